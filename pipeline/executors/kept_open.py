"""Resources that files share, in their own event loop: sandbox, ledger, tokens, connections, shares."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from concurrent import futures
from contextlib import AbstractAsyncContextManager, AbstractContextManager, ExitStack, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Self, TypeVar

import anyio
import anyio.abc
from anyio.from_thread import BlockingPortal, start_blocking_portal

from pipeline.config import Profile
from pipeline.config.profiles import Chosen, opened
from pipeline.errors import PrecheckError
from pipeline.executors.event_loop import BACKEND
from pipeline.sections import Server
from pipeline.stores.protocols import SharedStore
from schemas.outcomes import ApiName

if TYPE_CHECKING:
    from pipeline.stages.ask.values import ApiChannel, AskingTally

T = TypeVar("T")
Opening = AbstractAsyncContextManager[Mapping[ApiName, "ApiChannel"]]


class KeptOpen:
    """Opens resources when a file needs them, and closes them after the last file."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._portal: BlockingPortal | None = None
        self._profiles: dict[str, Profile] = {}
        self._stores: dict[str, SharedStore] = {}
        self.meanwhile: Callable[[], object] = lambda: None
        """What this thread does while the questions of a file are asked."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def profile(self, chosen: Chosen) -> Profile:
        """Return the chosen profile; one embedded sandbox answers for all files."""
        if chosen.profile is not None:
            return chosen.profile
        if chosen.name not in self._profiles:
            self._profiles[chosen.name] = self._stack.enter_context(opened(chosen))
        return self._profiles[chosen.name]

    def store(self, url: str, opening: AbstractContextManager[SharedStore]) -> SharedStore:
        """Return the shared ledger at an address, which is opened only once."""
        if url not in self._stores:
            self._stores[url] = self._stack.enter_context(opening)
        return self._stores[url]

    def run(self, main: Callable[[], Awaitable[T]]) -> T:
        """Run a coroutine function in the event loop; interrupting this thread ends it at once."""
        if self._portal is None:
            self._portal = self._stack.enter_context(start_blocking_portal(backend_options=BACKEND))
            tasks = self._stack.enter_context(self._portal.wrap_async_context_manager(_tasks()))
            self._channels = _KeptChannels(tasks)
            self._stack.callback(self._portal.call, self._channels.close)
        running = self._portal.start_task_soon(self._run, main)
        try:
            self.meanwhile()
            return running.result()
        finally:
            if not running.done():
                self._portal.call(lambda: self._scope.cancel())  # noqa: PLW0108 (there once it has begun)
                futures.wait([running])

    async def _run(self, main: Callable[[], Awaitable[T]]) -> T:
        with anyio.CancelScope() as self._scope:
            return await main()
        raise AssertionError("it was cancelled, and nobody waits for what comes of it")

    def channels(self, servers: Collection[Server], opening: Opening, tally: "AskingTally") -> Opening:
        """Return open channels to servers, or new ones; call it inside `run`."""
        return self._channels.use(servers, opening, tally)

    async def close_channels(self) -> None:
        """Release the servers to other processes until the next question; call it inside `run`."""
        await self._channels.close()


class _KeptChannels:
    """Channels that stay open until other channels are needed or an error occurs."""

    def __init__(self, tasks: anyio.abc.TaskGroup) -> None:
        self._tasks = tasks
        self._servers: Collection[Server] = ()
        self._channels: Mapping[ApiName, ApiChannel] = {}
        self._close, self._closed = anyio.Event(), anyio.Event()
        self._closed.set()
        self._in_use: anyio.CancelScope | None = None
        self._lost: PrecheckError | None = None

    @asynccontextmanager
    async def use(
        self, servers: Collection[Server], opening: Opening, tally: "AskingTally"
    ) -> AsyncIterator[Mapping[ApiName, "ApiChannel"]]:
        """Use the channels to these servers during the block; reopen them if they ended early."""
        if not self._channels or any(server not in self._servers for server in servers):
            await self.close()
            self._channels = await self._tasks.start(self._keep, opening)
            self._servers = servers
        try:
            with anyio.CancelScope() as self._in_use:
                yield {server.name: self._channels[server.name] for server in servers}
            self._raise_loss()
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self.close()
            raise
        finally:
            self._in_use = None
        if tally.closures:
            await self.close()

    def _raise_loss(self) -> None:
        if self._lost is not None:
            raise self._lost

    async def close(self) -> None:
        self._close.set()
        await self._closed.wait()

    async def _keep(self, opening: Opening, *, task_status: anyio.abc.TaskStatus[object]) -> None:
        """Hold the channels until they are closed. A lost share ends their use."""
        self._close, self._closed, self._lost = anyio.Event(), anyio.Event(), None
        is_open = False
        try:
            async with opening as channels:
                is_open = True
                task_status.started({name: replace(one, stays=True) for name, one in channels.items()})
                await self._close.wait()
        except PrecheckError as error:
            if not is_open:
                raise
            self._lost = error
            if self._in_use is not None:
                self._in_use.cancel()
        finally:
            self._channels = {}
            self._closed.set()


@asynccontextmanager
async def _tasks() -> AsyncIterator[anyio.abc.TaskGroup]:
    async with anyio.create_task_group() as tasks:
        yield tasks
