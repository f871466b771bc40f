"""HTTP/1.1 on one connection; invalid and slow requests get problem details like all others.

aiohttp reads and writes, but its own answers to unreadable requests would quote them in plain text.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Self

from aiohttp import StreamReader, web

from pipeline.sandbox.journal import Visit


@dataclass(frozen=True, slots=True)
class Reply:
    """One HTTP response that has not been sent yet, as a value that faults can change."""

    status: int
    headers: dict[str, str]
    body: bytes

    def with_headers(self, **changes: str | None) -> Self:
        """Return the reply with other headers, `_` for `-` in their names; None removes a header."""
        headers = dict(self.headers)
        for name, value in changes.items():
            spelled = name.replace("_", "-")
            headers.pop(spelled, None)
            if value is not None:
                headers[spelled] = value
        return replace(self, headers=headers)

    def head(self) -> bytes:
        """Status line and headers, as sent on the connection."""
        headers = {**self.headers, "Content-Length": str(len(self.body))}
        lines = [f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")

    def whole(self) -> bytes:
        """Head and body."""
        return self.head() + self.body


class HttpConnection(web.RequestHandler):
    """Handles the requests of one connection, one after another."""

    __slots__ = ("_deadline", "_head_max_s", "_latest_body", "_refuse_unread", "visit")

    def __init__(
        self,
        server: web.Server,
        refuse_unread: Callable[[int, Visit], Reply],
        visit: Visit,
        head_max_s: float,
    ) -> None:
        """Await requests; answer bad ones with 400, slow heads (`head_max_s`) with 408, our bugs with 500."""
        super().__init__(
            server, loop=asyncio.get_running_loop(), auto_decompress=False, lingering_time=head_max_s
        )
        self._logging_enabled = False
        self.visit = visit
        self._refuse_unread = refuse_unread
        self._head_max_s = head_max_s
        self._deadline: asyncio.TimerHandle | None = None
        self._latest_body: StreamReader | None = None

    @property
    def waiting_count(self) -> int:
        """The number of requests sent before the current one was answered."""
        return len(self._messages)

    def data_received(self, data: bytes) -> None:
        """Receive bytes; once a head has begun, it must be complete in time."""
        count = self._request_count
        super().data_received(data)
        if self._request_count > count:
            self._stop_watching()
            self._latest_body = self._messages[-1][1] if self._messages else None
        elif data and self._deadline is None and (self._latest_body is None or self._latest_body.is_eof()):
            self._deadline = asyncio.get_running_loop().call_later(self._head_max_s, self._refuse_slow_head)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Cancel the deadline."""
        self._stop_watching()
        super().connection_lost(exc)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 (from the parser; it may quote the request)
    ) -> web.StreamResponse:
        """Answer a request that the parser refused, or that hit a bug of this server."""
        if status >= 500:
            self.logger.error("sandbox: %s", type(exc).__name__)
        if request.writer.output_size > 0:
            raise ConnectionError("the answer has begun to leave")
        reply = self._refuse_unread(status, self.visit)
        response = web.Response(status=reply.status, body=reply.body, headers=reply.headers)
        response.force_close()
        return response

    def _refuse_slow_head(self) -> None:
        if self.transport is None or self._current_request is not None:
            return
        reply = self._refuse_unread(408, self.visit)
        self.transport.write(reply.whole())
        self.force_close()

    def _stop_watching(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
