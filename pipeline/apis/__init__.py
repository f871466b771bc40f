"""The name-check APIs, each a module of pure functions: build a request, read a response, know the codes.

Nothing here touches a network, a clock or chance. Each module's `ApiDeclaration` holds all that the program
needs to know about its API; `registry` lists them. An `Api` builds the requests and reads the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, StrEnum, auto
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from pipeline.frames import QUESTION, UK_ROUTES, Check, Meaning, RouteReason
from pipeline.sections.servers import Server
from pipeline.wording import Sentence
from schemas.outcomes import ApiName

if TYPE_CHECKING:  # imported only to ask questions: it is slow, and most commands ask none
    import httpx

MATCH_CODE = "MTCH"
"""The code of a full match in every API: CoP itself has no code for it."""
IDENTIFICATION = frozenset(
    {"lei", "organisation_bic", "organisation_id", "organisation_id_scheme", "organisation_id_issuer"}
)
"""The fields of a question that identify a payee without a name."""


class Basis(StrEnum):
    """How a question identifies the payee."""

    NAME = "name"
    IDENTIFICATION = "identification"


class ParsedAnswer(NamedTuple):
    """A well-formed answer as the responder gave it."""

    code: str
    matched_name: str | None


RETRY_HERE = Sentence("todo.run_again_later")
"""Advice for a question without an answer."""
RETRY_ELSEWHERE = Sentence("todo.ask_anew")
"""Advice for a question that may get another answer later."""


class ContractBreachError(Exception):
    """A response that breaks the API reference; the sentence names the rule and quotes nothing."""

    def __init__(self, rule: Sentence) -> None:
        super().__init__(rule)
        self.rule = rule


class MisdirectedError(ContractBreachError):
    """A response that belongs to another request: its correlation id is not ours."""


class Api(NamedTuple):
    """One name-check API, as one requester uses it."""

    name: ApiName
    responder_wait_s: float
    """How long the service waits for the responder before it answers 504."""
    request: Callable[[Check, str, str], httpx.Request]
    """(check, correlation id, timestamp) -> request."""
    read: Callable[[httpx.Response, Check, str], ParsedAnswer]
    """(response with status 200, check, correlation id) -> reading; raises ContractBreachError."""
    meanings: Mapping[tuple[Basis, str], Meaning]
    """The meaning of every code that `read` can return; other codes do not exist."""
    responder: Callable[[Check], str]
    """The bank that answers for an account. It only decides which questions share a bulkhead and a breaker,
    so a wrong guess costs nothing.
    """


class Route(NamedTuple):
    """A route: the payments that can go to an API, and the kind of question it is asked."""

    account: pl.Expr
    """The account of a cleaned payment (stages/validate.py), as the API writes it."""
    only: pl.Expr | None = None
    """A condition on the payment; None: none. An API with a condition is listed before one without."""


class ApiDeclaration(NamedTuple):
    """The declaration of one API for the rest of the program."""

    name: ApiName
    key: str
    """Key of its section in a profile."""
    form: str
    """The `api` of its section, which distinguishes APIs with the same key."""
    section: type[Server]
    api: Callable[[Server], Api]
    """The API for the requester that such a section describes."""
    takes: frozenset[str]
    """The fields that its questions carry besides the account. If `responder_bic` is one, it is required."""
    routes: Mapping[RouteReason, Route]
    """Its routes by the account details that a payment has: only those of UK accounts, or none of them."""
    meanings: Mapping[tuple[Basis, str], Meaning]
    """The meanings of its `Api`, the same for every requester."""
    asked: Mapping[Basis, str]
    """The API's name for users, for each basis of a question."""

    @property
    def takes_uk(self) -> bool:
        """True if it checks UK accounts."""
        return self.routes.keys() <= UK_ROUTES

    def check(self) -> None:
        """Assert that the declaration does not contradict itself."""
        assert self.takes <= QUESTION.keys() - {"api", "account"}, f"{self.name}: takes what no question has"
        assert self.takes_uk or not self.routes.keys() & UK_ROUTES, f"{self.name}: two kinds of accounts"
        assert {basis for basis, _ in self.meanings} == self.asked.keys(), f"{self.name}: asked by what?"


class ReportDeclaration(NamedTuple):
    """The declaration of a bank's report, which holds the answers that an API would have given."""

    name: ApiName
    takes: frozenset[str]
    routes: Mapping[RouteReason, Route]
    meanings: Mapping[tuple[Basis, str], Meaning]


def basis_of(check: Check) -> Basis:
    """The basis of a question: the name or, without one, the identification."""
    return Basis.IDENTIFICATION if check.name is None else Basis.NAME


def post(path: str, headers: Mapping[str, str], body: bytes) -> httpx.Request:
    """The request of a question, with a path only: the client knows the server's address.

    The body is a stream because httpx parses the headers of any other body twice.
    """
    from httpx import ByteStream, Request

    length = {"Content-Length": str(len(body))}
    return Request("POST", _address(path), headers={**headers, **length}, stream=ByteStream(body))


@cache
def _address(path: str) -> httpx.URL:
    from httpx import URL

    return URL(path)


def name_in(member: str | None) -> str | None:
    """The matched name in a member of an answer; an empty string counts as no name."""
    return member or None


def require_json(response: httpx.Response) -> None:
    """Refuse a response without the content type of JSON, such as a login page (ContractBreachError)."""
    media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise ContractBreachError(Sentence("apis.not_json"))


def require_echo(response: httpx.Response, header: str, request_id: str) -> None:
    """Refuse a response that does not carry the correlation id of its request (MisdirectedError)."""
    if echo_of(response, header, request_id) is not Echo.OURS:
        raise MisdirectedError(Sentence("apis.other_correlation_id", header=header))


class Echo(Enum):
    """Whether a response carries the correlation id of its request."""

    OURS = auto()
    MISSING = auto()
    OTHER = auto()  # the response belongs to another request


def echo_of(response: httpx.Response, header: str, request_id: str) -> Echo:
    """Compare a response's correlation id with the request's; the same id sent twice counts as one."""
    values = response.headers.get_list(header, split_commas=True)
    echoed = {value.strip().lower() for value in values} - {""}
    if not echoed:
        return Echo.MISSING
    return Echo.OURS if echoed == {request_id} else Echo.OTHER
