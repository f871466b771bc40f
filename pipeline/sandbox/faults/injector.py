"""Apply the chosen faults to replies before they are sent."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pipeline.sandbox.calls import Call
from pipeline.sandbox.faults.effects import (
    ConnectionFault,
    Delivery,
    Effect,
    Pause,
    ReplyChange,
    ResponderPause,
    Revocation,
    Scene,
    Swap,
)
from pipeline.sandbox.faults.selection import Aim, Selection
from pipeline.sandbox.replies import Reply
from schemas.outcomes import ApiName

SWAP_WAIT_MAX_S = 1.0
"""How long a reply waits for another one to swap with; after that it is sent unchanged."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The parts of the server that effects need."""

    correlation_headers: Mapping[ApiName, str]
    responder_waits_s: Mapping[ApiName, float]
    elsewhere: str  # the base URL of another port of this server
    revoke_tokens: Callable[[], None]


class Injector:
    """Decides which faults affect each answered request, and applies them."""

    def __init__(self, selections: Sequence[Selection], surroundings: Surroundings) -> None:
        """Activate the faults; each counts requests separately, and several can affect one request."""
        self.aim(selections)
        self._surroundings = surroundings
        self._swapping = _Swapping()

    def aim(self, selections: Sequence[Selection]) -> None:
        """Replace all active faults by these, which start counting now."""
        self._aims = [Aim(selection) for selection in selections]

    @property
    def selections(self) -> tuple[Selection, ...]:
        """The active faults."""
        return tuple(aim.selection for aim in self._aims)

    def befalls_connections(self, fault: ConnectionFault) -> bool:
        """True if this connection fault is active."""
        return any(fault in aim.selection.fault.effects for aim in self._aims)

    async def befall(self, call: Call, reply: Reply) -> tuple[Reply, Delivery | None]:
        """Apply faults to a reply, and record their names in the call."""
        if not self._aims:
            return reply, None
        met = [aim.selection.fault for aim in self._aims if aim.meets(call)]
        call.faults = tuple(fault.name for fault in met)
        delivery = None
        scene = self._scene(call)
        for fault in met:
            for effect in fault.effects:
                if isinstance(effect, Delivery):
                    delivery = effect
                else:
                    reply = await self._apply(effect, reply, scene)
        return reply, delivery

    async def _apply(self, effect: Effect, reply: Reply, scene: Scene) -> Reply:
        match effect:
            case ReplyChange(make):
                return make(reply, scene)
            case Pause(wait_s):
                await asyncio.sleep(wait_s)
            case ResponderPause():
                assert scene.api is not None
                await asyncio.sleep(self._surroundings.responder_waits_s[scene.api])
            case Swap():
                return await self._swapping.swap(reply)
            case Revocation():
                self._surroundings.revoke_tokens()
            case Delivery():
                raise AssertionError("a delivery comes last")
            case ConnectionFault():
                raise AssertionError("no request meets it")
        return reply

    def _scene(self, call: Call) -> Scene:
        headers, elsewhere = self._surroundings.correlation_headers, self._surroundings.elsewhere
        header = "" if call.asked is None else headers[call.asked]
        return Scene(call.path, call.asked, header, time.time(), elsewhere)


class _Swapping:
    """Swaps the replies to two requests in flight."""

    def __init__(self) -> None:
        self._first: tuple[Reply, asyncio.Future[Reply]] | None = None

    async def swap(self, reply: Reply) -> Reply:
        if self._first is not None:
            (other, place), self._first = self._first, None
            place.set_result(reply)
            return other
        mine: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._first = (reply, mine)
        try:
            async with asyncio.timeout(SWAP_WAIT_MAX_S):
                return await mine
        except TimeoutError:
            return reply
        finally:
            self._withdraw(mine)

    def _withdraw(self, place: asyncio.Future[Reply]) -> None:
        """Withdraw a reply whose client has left."""
        if self._first is not None and self._first[1] is place:
            self._first = None
