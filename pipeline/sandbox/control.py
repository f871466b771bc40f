"""The control address: a Unix socket, mode 0600, in the sandbox's folder, to change it while it runs.

curl --unix-socket sandbox/control.sock http://sandbox/state
curl --unix-socket sandbox/control.sock -X PUT -d '["500:first=1"]' http://sandbox/faults
curl --unix-socket sandbox/control.sock -X PUT -d '{"rate_max": 5}' http://sandbox/limits
curl --unix-socket sandbox/control.sock -X PUT -d '{"ahead_s": 600}' http://sandbox/clock
curl --unix-socket sandbox/control.sock http://sandbox/verdict
"""

import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt, TypeAdapter, ValidationError

from pipeline.errors import ConfigurationError, UsageError
from pipeline.sandbox.faults.selection import parse, written
from pipeline.sandbox.journal import Journal
from pipeline.sandbox.service import Conditions
from pipeline.sandbox.verdict.reports import ConductVerdict, as_json, as_junit, as_text
from pipeline.wording import Sentence

SOCKET = "control.sock"
_AHEAD_MAX_S = 10 * 365 * 86_400
_FORMS = {"json": as_json, "xml": as_junit, "text": as_text}

_FAULTS = TypeAdapter(list[str])


class _Limits(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    rate_max: PositiveInt | None = None
    daily_cap: NonNegativeInt = 0


class _ClockSetting(BaseModel):
    model_config = ConfigDict(extra="forbid")

    ahead_s: float = Field(gt=-_AHEAD_MAX_S, lt=_AHEAD_MAX_S)


@dataclass(frozen=True, slots=True)
class SandboxControl:
    """Handlers of the control requests."""

    conditions: Conditions
    journal: Journal
    verdict: Callable[[], ConductVerdict]  # returns the verdict so far

    def routes(self) -> list[web.RouteDef]:
        """The paths of the control address."""
        return [
            web.get("/state", self._state),
            web.put("/faults", self._change(self._set_faults)),
            web.put("/limits", self._change(self._set_limits)),
            web.put("/clock", self._change(self._set_clock)),
            web.get("/verdict", self._tell_verdict),
        ]

    async def _state(self, _request: web.Request) -> web.Response:
        conditions = self.conditions
        state = {
            "faults": [written(selection) for selection in conditions.injector.selections],
            "rate_max": conditions.rate.rate_per_s_max,
            "daily_cap": conditions.daily_cap.requests_max,
            "clock_ahead_s": conditions.clock.ahead_s,
            "calls": len(self.journal.calls),
        }
        return web.json_response(state)

    async def _tell_verdict(self, request: web.Request) -> web.Response:
        form = _FORMS.get(request.query.get("form", "text"))
        if form is None:
            return _refused(f"form: one of {', '.join(_FORMS)}")
        return web.Response(text=form(self.verdict()))

    def _change(self, change: Callable[[bytes], None]) -> Callable[[web.Request], Any]:
        async def handle(request: web.Request) -> web.Response:
            try:
                change(await request.read())
            except UsageError as error:
                return _refused(str(error))
            except ValidationError:
                return _refused("the body must be the JSON that docs/sandbox.md shows")
            return await self._state(request)

        return handle

    def _set_faults(self, body: bytes) -> None:
        self.conditions.injector.aim(tuple(map(parse, _FAULTS.validate_json(body))))

    def _set_limits(self, body: bytes) -> None:
        limits = _Limits.model_validate_json(body)
        if "rate_max" in limits.model_fields_set:
            self.conditions.rate.rate_per_s_max = limits.rate_max
            self.journal.has_rate = self.journal.has_rate or limits.rate_max is not None
        if "daily_cap" in limits.model_fields_set:
            self.conditions.daily_cap.requests_max = limits.daily_cap

    def _set_clock(self, body: bytes) -> None:
        self.conditions.clock.ahead_s = _ClockSetting.model_validate_json(body).ahead_s


@asynccontextmanager
async def controlled(folder: Path, control: SandboxControl) -> AsyncIterator[Path]:
    """Listen on the control address during the block; yield its path (ConfigurationError: impossible)."""
    path = folder / SOCKET
    application = web.Application()
    application.add_routes(control.routes())
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    with socket.socket(socket.AF_UNIX) as listener:
        umask = os.umask(0o177)  # so that other users can never connect
        try:
            path.unlink(missing_ok=True)
            listener.bind(os.fspath(path))
        except OSError as error:
            raise ConfigurationError(
                Sentence("sandbox.control_address_unusable", path=path, reason=error)
            ) from error
        finally:
            os.umask(umask)
        try:
            await web.SockSite(runner, listener).start()
            yield path
        finally:
            await runner.cleanup()
            path.unlink(missing_ok=True)


def _refused(detail: str) -> web.Response:
    return web.json_response({"detail": detail}, status=400)
