"""What a fault makes of a reply: other statuses, other headers, other bodies.

Each function gives an effect. Where a body contradicts the reference, it holds a match as well: a
client that reads only the part it likes is found out.
"""

import gzip
import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import format_datetime
from math import ceil

from pipeline.sandbox.faults.effects import ReplyChange, Scene
from pipeline.sandbox.problems import ProblemError
from pipeline.sandbox.replies import Reply
from schemas.outcomes import ApiName
from schemas.strict import timestamp

Json = Mapping[str, object]

LOGIN_PAGE = b"<!DOCTYPE html><html><title>Sign in</title><body><form method=post>...</form></body></html>"
PADDING_BYTES = 4 * 1024 * 1024
_PADDING = b" " * PADDING_BYTES  # white space, so that the body stays good JSON
_HEADER_PADDING_BYTES = 200 * 1024


def problem(status: int, code: str, detail: str) -> ReplyChange:
    """Problem details instead of the answer."""

    def make(reply: Reply, scene: Scene) -> Reply:
        body = ProblemError(status, code, detail).to_json(scene.path)
        return replace(reply, status=status, body=body)

    return ReplyChange(make)


def retry_after(wait_s: int, *, as_date: bool = False) -> ReplyChange:
    """Retry-After, as seconds or as a date."""

    def make(reply: Reply, scene: Scene) -> Reply:
        if not as_date:
            return reply.with_headers(Retry_After=str(wait_s))
        until = datetime.fromtimestamp(ceil(scene.time_s + wait_s), UTC)
        return reply.with_headers(Retry_After=format_datetime(until, usegmt=True))

    return ReplyChange(make)


def status(code: int, body: bytes | None = None) -> ReplyChange:
    """Another status, and another body where one is given."""

    def make(reply: Reply, _scene: Scene) -> Reply:
        return replace(reply, status=code, body=reply.body if body is None else body)

    return ReplyChange(make)


def body(content: bytes, content_type: str = "application/json") -> ReplyChange:
    """Another body."""

    def make(reply: Reply, _scene: Scene) -> Reply:
        return replace(reply, body=content).with_headers(Content_Type=content_type)

    return ReplyChange(make)


def rewritten(rewrite: Callable[[bytes], bytes], **headers: str | None) -> ReplyChange:
    """The true body, rewritten, with other headers."""

    def make(reply: Reply, _scene: Scene) -> Reply:
        return replace(reply, body=rewrite(reply.body)).with_headers(**headers)

    return ReplyChange(make)


def said(*, cop: Json | None = None, vop: Json | None = None) -> ReplyChange:
    """An answer in the form of the API that was asked.

    Args:
        cop: the members of verificationReport; None where no CoP request meets this.
        vop: the members of VerificationOfPayeeResponse.
    """

    def make(reply: Reply, scene: Scene) -> Reply:
        if scene.api is ApiName.COP:
            assert cop is not None
            return replace(reply, body=json.dumps({"data": {"verificationReport": cop}}).encode())
        assert vop is not None
        return replace(reply, body=json.dumps(vop).encode())

    return ReplyChange(make)


def written(*, cop: bytes, vop: bytes) -> ReplyChange:
    """As `said`, but letter by letter, for what a JSON encoder would not write.

    Args:
        cop: the value of verificationReport.
        vop: the whole body.
    """

    def make(reply: Reply, scene: Scene) -> Reply:
        if scene.api is ApiName.COP:
            return replace(reply, body=b'{"data":{"verificationReport":' + cop + b"}}")
        return replace(reply, body=vop)

    return ReplyChange(make)


def token_said(**changes: object) -> ReplyChange:
    """A token answer with other members; None takes a member away."""

    def make(reply: Reply, _scene: Scene) -> Reply:
        answer = {**json.loads(reply.body), **changes}
        kept = {name: value for name, value in answer.items() if value is not None}
        return replace(reply, body=json.dumps(kept).encode())

    return ReplyChange(make)


def header(**changes: str | None) -> ReplyChange:
    """Other headers, `_` for `-` in their names; None takes a header away."""

    def make(reply: Reply, _scene: Scene) -> Reply:
        return reply.with_headers(**changes)

    return ReplyChange(make)


def echo(*, missing: bool = False) -> ReplyChange:
    """No correlation id, or one of no request."""

    def make(reply: Reply, scene: Scene) -> Reply:
        value = None if missing else str(uuid.uuid4())
        return reply.with_headers(**{scene.correlation_header: value})

    return ReplyChange(make)


def clock(ahead_s: float) -> ReplyChange:
    """X-Response-Timestamp of a clock that goes wrong."""

    def make(reply: Reply, scene: Scene) -> Reply:
        moment = datetime.fromtimestamp(scene.time_s + ahead_s, UTC)
        return reply.with_headers(X_Response_Timestamp=timestamp(moment))

    return ReplyChange(make)


def redirect(code: int) -> ReplyChange:
    """To the same path at another port of this server, below /elsewhere."""

    def make(_reply: Reply, scene: Scene) -> Reply:
        return Reply(code, {"Location": f"{scene.elsewhere}/elsewhere{scene.path}"}, b"")

    return ReplyChange(make)


def padded(content: bytes) -> bytes:
    """The body, and then more white space than any client should read."""
    return content + _PADDING


def compressed(content: bytes) -> bytes:
    """The body, compressed."""
    return gzip.compress(content)


def bomb(content: bytes) -> bytes:
    """A small body that unpacks to four thousand times its size."""
    return gzip.compress(padded(content), 9)


HEADER_PADDING = "x" * _HEADER_PADDING_BYTES
"""A header that no client should keep."""


def nested(depth: int) -> bytes:
    """Arrays within arrays."""
    return b"[" * depth + b"]" * depth
