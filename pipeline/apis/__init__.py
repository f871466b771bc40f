"""The name-check APIs, each a module of pure functions: build a request, read a response, know the codes.

Nothing here touches a network, a clock or chance. A module gives in its `ApiDeclaration` all that the program
has to know of its API; `registry` has all of them. An `Api` builds the requests and reads the answers.
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

if TYPE_CHECKING:  # imported where something is asked: it is slow, and most commands ask nothing
    import httpx

MATCH_CODE = "MTCH"
"""The code of a full match, for every API: CoP has none of its own."""
IDENTIFICATION = frozenset(
    {"lei", "organisation_bic", "organisation_id", "organisation_id_scheme", "organisation_id_issuer"}
)
"""The fields of a question that asks for a payee by identification."""


class Basis(StrEnum):
    """How a question identifies the payee."""

    NAME = "name"
    IDENTIFICATION = "identification"


class ParsedAnswer(NamedTuple):
    """A well-formed answer as the responder gave it."""

    code: str
    matched_name: str | None


RETRY_HERE = Sentence("todo.run_again_later")
"""For a question without an answer."""
RETRY_ELSEWHERE = Sentence("todo.ask_anew")
"""For a question whose answer may be another one later."""


class ContractBreachError(Exception):
    """A response that breaks the API reference; the sentence names the rule and quotes nothing."""

    def __init__(self, rule: Sentence) -> None:
        super().__init__(rule)
        self.rule = rule


class MisdirectedError(ContractBreachError):
    """A response that belongs to another request: its correlation id is not ours."""


class Api(NamedTuple):
    """One name-check API, as one requester asks it."""

    name: ApiName
    responder_wait_s: float
    """How long the service waits for the responder before it answers 504."""
    request: Callable[[Check, str, str], httpx.Request]
    """(check, correlation id, timestamp) -> request."""
    read: Callable[[httpx.Response, Check, str], ParsedAnswer]
    """(response with status 200, check, correlation id) -> reading; raises ContractBreachError."""
    meanings: Mapping[tuple[Basis, str], Meaning]
    """Every code that `read` can return, and what it means. A code that is not here does not exist."""
    responder: Callable[[Check], str]
    """The bank that answers for an account. It decides only which questions share a bulkhead and a breaker,
    so a wrong guess costs nothing."""


class Route(NamedTuple):
    """A route: the payments that can go to an API, and the kind of question it is asked."""

    account: pl.Expr
    """The account, as the API writes it, of a cleaned payment (stages/validate.py)."""
    only: pl.Expr | None = None
    """Which of the kind; None: all. An API that takes some of a kind comes before one that takes all."""


class ApiDeclaration(NamedTuple):
    """The declaration of one API for the rest of the program."""

    name: ApiName
    key: str
    """Key of its section in a profile."""
    form: str
    """The `api` of its section, which distinguishes APIs with the same key."""
    section: type[Server]
    api: Callable[[Server], Api]
    """The API as the requester asks it that such a section is about."""
    takes: frozenset[str]
    """The fields of a question that it is sent, beside the account; a bank's BIC, if at all, is required."""
    routes: Mapping[RouteReason, Route]
    """By what its payments say where the money goes: only UK accounts, or none of them."""
    meanings: Mapping[tuple[Basis, str], Meaning]
    """The settings of its `Api`, the same for every caller."""
    asked: Mapping[Basis, str]
    """Name of the API for people, by what it is asked by."""

    @property
    def takes_uk(self) -> bool:
        """True if it is asked about UK accounts."""
        return self.routes.keys() <= UK_ROUTES

    def check(self) -> None:
        """Refuse a declaration that contradicts itself: a mistake of ours."""
        assert self.takes <= QUESTION.keys() - {"api", "account"}, f"{self.name}: takes what no question has"
        assert self.takes_uk or not self.routes.keys() & UK_ROUTES, f"{self.name}: two kinds of accounts"
        assert {basis for basis, _ in self.meanings} == self.asked.keys(), f"{self.name}: asked by what?"


class ReportDeclaration(NamedTuple):
    """The same of a bank's report, which is not asked: it says of each payment what an API would have."""

    name: ApiName
    takes: frozenset[str]
    routes: Mapping[RouteReason, Route]
    meanings: Mapping[tuple[Basis, str], Meaning]


def basis_of(check: Check) -> Basis:
    """The basis of a question: the name or, without one, the identification."""
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


def name_in(member: str | None) -> str | None:
    """The matched name in a member of an answer: an empty one is no name."""
    return member or None


def require_json(response: httpx.Response) -> None:
    """Refuse a response that is not declared to be JSON, such as a login page (ContractBreachError)."""
    media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise ContractBreachError(Sentence("apis.not_json"))


def require_echo(response: httpx.Response, header: str, request_id: str) -> None:
    """Refuse a response that does not carry the correlation id of its request (MisdirectedError)."""
    if echo_of(response, header, request_id) is not Echo.OURS:
        raise MisdirectedError(Sentence("apis.other_correlation_id", header=header))


class Echo(Enum):
    """The correlation id of a response."""

    OURS = auto()
    MISSING = auto()
    OTHER = auto()  # the response belongs to another request


def echo_of(response: httpx.Response, header: str, request_id: str) -> Echo:
    """Whose correlation id a response carries; the same id sent twice is one echo."""
    values = response.headers.get_list(header, split_commas=True)
    echoed = {value.strip().lower() for value in values} - {""}
    if not echoed:
        return Echo.MISSING
    return Echo.OURS if echoed == {request_id} else Echo.OTHER
