"""The name-check APIs, each a module of pure functions: build a request, read a response, know the codes.

Nothing here touches a network, a clock or chance. An `Api` is the value that a module offers;
`cop.API`, `vop.GATEWAY` and `vop.standard(...)` are the three there are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from pipeline.frames import TURNED_AWAY_CODES, Check, OwnCode
from schemas.cop import ReasonCode
from schemas.outcomes import ApiName, Meaning
from schemas.problem import Problem
from schemas.strict import parse
from schemas.vop import IdMatch, NameMatch

if TYPE_CHECKING:  # imported where something is asked: most commands ask nothing, and it takes its time
    import httpx

MATCH_CODE = "MTCH"
"""The code of a full match, for every API: CoP has none of its own."""

_CODE = re.compile(r"[A-Z][A-Z0-9_]{1,39}")
_TAKEN = frozenset({*OwnCode, *TURNED_AWAY_CODES, *ReasonCode, *NameMatch, *IdMatch})


class Basis(StrEnum):
    """What the payee was asked for by."""

    NAME = "name"
    IDENTIFICATION = "identification"


class Reading(NamedTuple):
    """A well-formed answer: what the responder said, and nothing else."""

    code: str
    matched_name: str | None


RETRY_HERE = "Run the same command again later."
"""For a question without an answer."""
RETRY_ELSEWHERE = (
    "This answer is kept: the same command does not ask again. To ask again later, run the file with "
    "--out OTHER --reuse-from DIR, where DIR is the folder of this run: matches are used again, and every "
    "other row is asked again."
)
"""For a question whose answer may be another one later."""
JUDGE_NAMES = (
    "Judge first whether both names, yours and check_matched_name, are the payee's. Only if they are, "
)
JUDGED_OTHERWISE = "if not, ask the payee, by a contact that you knew before this payment."
"""What to do about a close match: how it begins, and how it ends."""


class ContractBreachError(Exception):
    """A response that breaks the API reference; the message names the rule and quotes nothing."""


class MisdirectedError(ContractBreachError):
    """A response that belongs to another request: its correlation id is not ours."""


class Api(NamedTuple):
    """One name-check API."""

    name: ApiName
    responder_wait_s: float
    """How long the service waits for the responder before it answers 504."""
    request: Callable[[Check, str, str], httpx.Request]
    """(check, correlation id, timestamp) -> request."""
    read: Callable[[httpx.Response, Check, str], Reading]
    """(response with status 200, check, correlation id) -> reading; raises ContractBreachError."""
    meanings: Mapping[tuple[Basis, str], Meaning]
    """Every code that `read` can return, and what it means. A code that is not here does not exist."""


def basis_of(check: Check) -> Basis:
    """Tell whether a question asks by name or, having none, by identification."""
    return Basis.IDENTIFICATION if check.name is None else Basis.NAME


def post(path: str, headers: Mapping[str, str], body: bytes) -> httpx.Request:
    """The request of a question: its path in place of an address, which the client knows.

    Its body is handed over as a stream, because httpx looks twice at the headers of any other.
    """
    from httpx import ByteStream, Request

    length = {"Content-Length": str(len(body))}
    return Request("POST", _address(path), headers={**headers, **length}, stream=ByteStream(body))


@cache
def _address(path: str) -> httpx.URL:
    from httpx import URL

    return URL(path)


def require_json(response: httpx.Response) -> None:
    """Refuse a response whose body is not declared to be JSON, such as a login page.

    Raises:
        ContractBreachError: the content type is something else, or missing.
    """
    media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise ContractBreachError("the response is not application/json")


def require_echo(response: httpx.Response, header: str, request_id: str) -> None:
    """Refuse a response that does not carry the correlation id of its request.

    Raises:
        MisdirectedError: the header is missing or holds another id.
    """
    if response.headers.get(header.lower(), "").strip().lower() != request_id:
        raise MisdirectedError(f"{header} does not echo the request's correlation id")


def problem_code(response: httpx.Response) -> str:
    """The machine-readable code of an error response, or `HTTP_` and its status.

    A code is passed on verbatim, but only if it looks like one, as the server's text is data, and
    only if it is not a word that stands for something else in an outcome.
    """
    try:
        code = parse(Problem, response.content).code
    except ValueError:
        code = None
    if code is not None and _CODE.fullmatch(code) and code not in _TAKEN:
        return code
    return f"HTTP_{response.status_code}"
