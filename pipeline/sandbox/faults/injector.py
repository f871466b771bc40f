"""Apply the chosen faults to replies before they are sent."""

import asyncio
from collections.abc import Callable, Sequence

from pipeline.sandbox.faults.effects import ConnectionFault, Delivery, Scene
from pipeline.sandbox.faults.selection import Aim, Selection
from pipeline.sandbox.http_connection import Reply
from pipeline.sandbox.journal import Call
from pipeline.sandbox.settings import APIS, SandboxSettings

SWAP_WAIT_MAX_S = 1.0  # how long a reply waits for another one to swap with; after that it is sent unchanged
_CORRELATION_HEADERS = {api.name: api.correlation_header for api in APIS}


class Injector:
    """Decides which faults affect each answered request, and applies them."""

    def __init__(
        self, settings: SandboxSettings, *, elsewhere: str, revoke_tokens: Callable[[], None]
    ) -> None:
        """Activate the faults of the settings, each with its own count; redirects lead to `elsewhere`."""
        self.aim(settings.faults)
        self._settings = settings
        self._elsewhere = elsewhere
        self._revoke_tokens = revoke_tokens
        self._swapping: tuple[Reply, asyncio.Future[Reply]] | None = None

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
        met = [aim.selection.fault for aim in self._aims if aim.meets(call)]
        call.faults = tuple(fault.name for fault in met)
        delivery = None
        for effect in (effect for fault in met for effect in fault.effects):
            assert not isinstance(effect, ConnectionFault), "no request meets it"
            if isinstance(effect, Delivery):
                delivery = effect
            else:
                changed = effect(reply, self._scene(call))
                reply = changed if isinstance(changed, Reply) else await changed
        return reply, delivery

    def _scene(self, call: Call) -> Scene:
        return Scene(
            call.path,
            call.asked,
            correlation_header="" if call.asked is None else _CORRELATION_HEADERS[call.asked],
            responder_wait_s=0.0 if call.asked is None else self._settings.responder_wait_s(call.asked),
            elsewhere=self._elsewhere,
            revoke_tokens=self._revoke_tokens,
            swap=self._swap,
        )

    async def _swap(self, reply: Reply) -> Reply:
        if self._swapping is not None:
            (other, waiting), self._swapping = self._swapping, None
            waiting.set_result(reply)
            return other
        place: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        mine = self._swapping = (reply, place)
        try:
            async with asyncio.timeout(SWAP_WAIT_MAX_S):
                return await place
        except TimeoutError:
            return reply
        finally:
            if self._swapping is mine:  # no other reply came, or this one's client has left
                self._swapping = None
