"""The name-check APIs, each a module of pure functions: build requests, read responses, explain codes.

Each module's `ApiDeclaration` contains everything that the rest of the program knows about its API;
`registry` lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, StrEnum, auto
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from pipeline.frames import QUESTION, UK_ROUTES, Check, Meaning, RouteReason
from pipeline.sections import Server
from pipeline.transport import UNREAD
from pipeline.wording import Sentence
from schemas.outcomes import Action, ApiName, Outcome

if TYPE_CHECKING:  # slow to import, and needed only to ask questions
    import httpx

MATCH_CODE = "MTCH"  # the code of a full match in every API; CoP itself has no code for it
IDENTIFICATION = frozenset(
    {"lei", "organisation_bic", "organisation_id", "organisation_id_scheme", "organisation_id_issuer"}
)
"""Fields of a question that identify a payee without a name."""


class Basis(StrEnum):
    """How a question identifies the payee."""

    NAME = "name"
    IDENTIFICATION = "identification"


class ParsedAnswer(NamedTuple):
    """A well-formed answer, as the responder gave it."""

    code: str
    matched_name: str | None


CLOSE_NAME = Meaning(
    Outcome.CLOSE_MATCH,
    Action.FIX_NAME,
    Sentence("answer.close_name"),
    Sentence("explain.person_judges"),
    Sentence("explain.judge_names"),
)
"""The meaning of a close match in every API."""
RETRY_HERE = Sentence("todo.run_again_later")  # advice if a question has no answer
RETRY_ELSEWHERE = Sentence("todo.ask_again_elsewhere")  # advice if a question may get another answer later


class ContractBreachError(Exception):
    """A response breaks the API reference; the sentence names the rule and quotes nothing."""

    def __init__(self, rule: Sentence) -> None:
        super().__init__(rule)
        self.rule = rule


class MisdirectedError(ContractBreachError):
    """A response belongs to another request: its correlation id is not ours."""


class Api(NamedTuple):
    """A name-check API, as one requester uses it."""

    name: ApiName
    responder_wait_s: float  # how long the service waits for the responder before it answers 504
    request: Callable[[Check, str, str], httpx.Request]  # builds one: (check, correlation id, timestamp)
    read: Callable[[httpx.Response, Check, str], ParsedAnswer]
    """Reads a 200 response: (response, check, correlation id) -> answer; raises ContractBreachError."""
    meanings: Mapping[tuple[Basis, str], Meaning]  # what each code from `read` means
    responder: Callable[[Check], str]
    """Names the bank that answers for an account. It only decides which questions share a bulkhead and a
    breaker, so a wrong guess does no harm.
    """


class Route(NamedTuple):
    """Which payments can go to an API, and how the API is asked about them."""

    account: pl.Expr  # the account of a cleaned payment (stages/validate.py), as the API writes accounts
    only: pl.Expr | None = None  # a condition on payments; APIs with one are listed before those without


class ApiDeclaration(NamedTuple):
    """Everything that the rest of the program knows about one API."""

    name: ApiName
    key: str  # the key of its section in a profile
    form: str  # the value of `api` in its section, which distinguishes APIs with the same key
    section: type[Server]
    api: Callable[[Server], Api]  # returns the API for the requester described by such a section
    takes: frozenset[str]  # question fields besides the account; `responder_bic` is required if listed
    routes: Mapping[RouteReason, Route]
    """Routes by the account details that a payment has: either only UK accounts, or no UK accounts."""
    meanings: Mapping[tuple[Basis, str], Meaning]  # as in its `Api`, the same for every requester
    asked: Mapping[Basis, str]  # basis of a question -> what users call the API

    @property
    def takes_uk(self) -> bool:
        """True if the API checks UK accounts."""
        return self.routes.keys() <= UK_ROUTES

    def check(self) -> None:
        """Assert that the declaration is consistent."""
        assert self.takes <= QUESTION.keys() - {"api", "account"}, f"{self.name}: takes what no question has"
        assert self.takes_uk or not self.routes.keys() & UK_ROUTES, f"{self.name}: two kinds of accounts"
        assert {basis for basis, _ in self.meanings} == self.asked.keys(), f"{self.name}: asked by what?"


class ReportDeclaration(NamedTuple):
    """The declaration of a bank's report, which contains the answers that an API would have given."""

    name: ApiName
    takes: frozenset[str]
    routes: Mapping[RouteReason, Route]
    meanings: Mapping[tuple[Basis, str], Meaning]


def basis_of(check: Check) -> Basis:
    """Return the basis of a question: the name or, without a name, the identification."""
    return Basis.IDENTIFICATION if check.name is None else Basis.NAME


def post(path: str, headers: Mapping[str, str], body: bytes) -> httpx.Request:
    """Build the request of a question, with only a path: the client knows the server's address.

    The body is a stream, because httpx would parse the headers twice for any other body.
    """
    from httpx import ByteStream, Request

    length = {"Content-Length": str(len(body))}
    return Request("POST", _address(path), headers={**headers, **length}, stream=ByteStream(body))


@cache
def _address(path: str) -> httpx.URL:
    from httpx import URL

    return URL(path)


def is_visible(name: str) -> bool:
    """True if a name has a character that people can see."""
    return any(sign.isprintable() and not sign.isspace() for sign in name)


def require_json(response: httpx.Response) -> None:
    """Refuse a response not declared as JSON, such as a login page, or not read (ContractBreachError)."""
    if (unread := response.extensions.get(UNREAD)) is not None:
        raise ContractBreachError(unread)
    media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise ContractBreachError(Sentence("apis.not_json"))


def require_echo(response: httpx.Response, header: str, request_id: str) -> None:
    """Refuse a response that does not echo the correlation id of its request (MisdirectedError)."""
    if echo_of(response, header, request_id) is not Echo.OURS:
        raise MisdirectedError(Sentence("apis.other_correlation_id", header=header))


class Echo(Enum):
    """Whether a response echoes the correlation id of its request."""

    OURS = auto()
    MISSING = auto()
    OTHER = auto()  # the response belongs to another request


def echo_of(response: httpx.Response, header: str, request_id: str) -> Echo:
    """Compare a response's correlation id with the request's; the same id twice counts as one."""
    values = response.headers.get_list(header, split_commas=True)
    echoed = {value.lower() for value in values} - {""}
    if not echoed:
        return Echo.MISSING
    return Echo.OURS if echoed == {request_id} else Echo.OTHER
