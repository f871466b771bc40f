"""How faults change a reply: other statuses, headers or bodies.

The decorator hides the first two arguments: the catalogue passes the others, and gets an effect. Bodies that
contradict the reference also contain a match, to expose clients that read only that part.
"""

import gzip
import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import wraps
from math import ceil
from typing import Concatenate, ParamSpec

from pipeline.sandbox.faults.effects import ReplyChange, Scene
from pipeline.sandbox.problems import ProblemError
from pipeline.sandbox.replies import Reply
from schemas.outcomes import ApiName
from schemas.strict import timestamp

Json = Mapping[str, object]
Said = ParamSpec("Said")

LOGIN_PAGE = b"<!DOCTYPE html><html><title>Sign in</title><body><form method=post>...</form></body></html>"
REFUSAL_PAGE = (
    b"<html><head><title>400 No required SSL certificate was sent</title></head><body><center>"
    b"<h1>400 Bad Request</h1></center><center>No required SSL certificate was sent</center></body></html>"
)
"""An error page like nginx's."""
PADDING_BYTES = 4 * 1024 * 1024
_PADDING = b" " * PADDING_BYTES  # white space, so that the body remains valid JSON
HEADER_PADDING = "x" * 200 * 1024
"""The value of a header that is too long for any client to accept."""


def _change(make: Callable[Concatenate[Reply, Scene, Said], Reply]) -> Callable[Said, ReplyChange]:
    """Turn a function of reply, scene and other arguments into a factory of effects."""

    @wraps(make)
    def change(*words: Said.args, **named: Said.kwargs) -> ReplyChange:
        return ReplyChange(lambda reply, scene: make(reply, scene, *words, **named))

    return change


@_change
def problem(reply: Reply, scene: Scene, status: int, code: str, detail: str) -> Reply:
    """Send problem details instead of the answer."""
    return replace(reply, status=status, body=ProblemError(status, code, detail).to_json(scene.path))


@_change
def retry_after(reply: Reply, scene: Scene, wait_s: int, *, as_date: bool = False) -> Reply:
    """Add Retry-After, as seconds or as a date."""
    if not as_date:
        return reply.with_headers(Retry_After=str(wait_s))
    until = datetime.fromtimestamp(ceil(scene.time_s + wait_s), UTC)
    return reply.with_headers(Retry_After=format_datetime(until, usegmt=True))


@_change
def status(reply: Reply, _scene: Scene, code: int, body: bytes | None = None) -> Reply:
    """Send another status, and another body if given."""
    return replace(reply, status=code, body=reply.body if body is None else body)


@_change
def body(reply: Reply, _scene: Scene, content: bytes, content_type: str = "application/json") -> Reply:
    """Replace the body."""
    return replace(reply, body=content).with_headers(Content_Type=content_type)


@_change
def rewritten(
    reply: Reply, _scene: Scene, /, rewrite: Callable[[bytes], bytes], **headers: str | None
) -> Reply:
    """Rewrite the real body, and change headers."""
    return replace(reply, body=rewrite(reply.body)).with_headers(**headers)


@_change
def verdict(reply: Reply, scene: Scene, *, cop: Json | None = None, vop: Json | None = None) -> Reply:
    """Send the verificationReport `cop` or the VerificationOfPayeeResponse `vop`, depending on the API."""
    answer = {"data": {"verificationReport": cop}} if scene.api is ApiName.COP else vop
    return replace(reply, body=json.dumps(answer).encode())


@_change
def written(reply: Reply, scene: Scene, *, cop: bytes, vop: bytes) -> Reply:
    """Like `verdict`, but with bytes that a JSON encoder would not produce."""
    if scene.api is ApiName.COP:
        return replace(reply, body=b'{"data":{"verificationReport":' + cop + b"}}")
    return replace(reply, body=vop)


@_change
def token_said(reply: Reply, _scene: Scene, /, **changes: object) -> Reply:
    """Change members of a token response; None removes a member."""
    answer = {**json.loads(reply.body), **changes}
    kept = {name: value for name, value in answer.items() if value is not None}
    return replace(reply, body=json.dumps(kept).encode())


@_change
def header(reply: Reply, _scene: Scene, /, **changes: str | None) -> Reply:
    """Change headers, with `_` for `-` in their names; None removes a header."""
    return reply.with_headers(**changes)


@_change
def echo(reply: Reply, scene: Scene, *, missing: bool = False) -> Reply:
    """Echo no correlation id, or an invented one."""
    return reply.with_headers(**{scene.correlation_header: None if missing else str(uuid.uuid4())})


@_change
def doubled_echo(reply: Reply, scene: Scene) -> Reply:
    """Echo the correlation id twice in one header, as a chain of gateways may do."""
    value = reply.headers[scene.correlation_header]
    return reply.with_headers(**{scene.correlation_header: f"{value}, {value}"})


@_change
def clock(reply: Reply, scene: Scene, ahead_s: float) -> Reply:
    """Set X-Response-Timestamp by a wrong clock."""
    moment = datetime.fromtimestamp(scene.time_s + ahead_s, UTC)
    return reply.with_headers(X_Response_Timestamp=timestamp(moment))


@_change
def redirect(_reply: Reply, scene: Scene, code: int) -> Reply:
    """Redirect to the same path on another port of this server, below /elsewhere."""
    return Reply(code, {"Location": f"{scene.elsewhere}/elsewhere{scene.path}"}, b"")


def padded(content: bytes) -> bytes:
    """Return the body, followed by more white space than a client should read."""
    return content + _PADDING


def bomb(content: bytes) -> bytes:
    """Return a small body that decompresses to four thousand times its size."""
    return gzip.compress(padded(content), 9)
