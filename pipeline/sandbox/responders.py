"""Delays and failures of simulated banks, as a gateway's client sees them."""

import asyncio
import math
import random

from pipeline.sandbox.banks import Conduct
from pipeline.sandbox.problems import ProblemError
from pipeline.sandbox.settings import SandboxSettings
from schemas.outcomes import ApiName
from schemas.problem import ProblemCode

_JUST_WITHIN = 0.9  # of the responder wait


class Responder:
    """The responders of one API, with the delays and failures of a sandbox's settings."""

    def __init__(self, settings: SandboxSettings, api: ApiName) -> None:
        self._wait_max_s = settings.responder_wait_s(api)
        self._latency_s = settings.latency_s
        self._latency_spread = settings.latency_spread
        self._chance = random.Random(settings.seed)  # noqa: S311 (waits are no secret)

    async def respond(self, conduct: Conduct) -> None:
        """Wait as long as this responder does, and fail as it does, with the reference's 500, 502 or 504."""
        match conduct:
            case Conduct.STEADY:
                await self._wait()
            case Conduct.SLOW:
                await asyncio.sleep(self._wait_max_s * _JUST_WITHIN)
            case Conduct.FAILING:
                await self._wait()
                self._fail_sometimes()
            case Conduct.SILENT:
                await asyncio.sleep(self._wait_max_s)
                raise ProblemError(
                    504,
                    ProblemCode.TIMEOUT_ERROR,
                    f"no response from the responder within {self._wait_max_s:g} seconds",
                )
            case Conduct.BROKEN_TLS:
                raise ProblemError(502, ProblemCode.SSL_ERROR, "the TLS handshake with the responder failed")

    async def _wait(self) -> None:
        if self._latency_s > 0:
            drawn_s = self._chance.lognormvariate(math.log(self._latency_s), self._latency_spread)
            await asyncio.sleep(min(drawn_s, self._wait_max_s * _JUST_WITHIN))

    def _fail_sometimes(self) -> None:
        # Temporary failures: a client that retries gets an answer eventually.
        if self._chance.random() < 0.3:
            raise ProblemError(
                500, ProblemCode.SERVER_ERROR, "a technical problem in the gateway prevented execution"
            )
