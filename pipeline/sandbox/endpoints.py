"""The handlers of paths: the token endpoint, and one endpoint per API and server.

A check is handled in the order of a gateway: authentication, limits, validation, then the responder's answer.
"""

import ipaddress
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from typing import ClassVar

from aiohttp import web
from cryptography import x509

from pipeline.sandbox import intake, participants
from pipeline.sandbox.accounts import DummyAccounts
from pipeline.sandbox.identity import IdentityProvider
from pipeline.sandbox.journal import TOKEN, Call, fingerprint
from pipeline.sandbox.limits import DailyCap, RateLimit
from pipeline.sandbox.network import Network, Responder
from pipeline.sandbox.openapi import describe
from pipeline.sandbox.problems import Refusal, format_error, not_found
from pipeline.sandbox.settings import Clock, NameCheckApi, Question, SandboxSettings
from schemas.cop import NameVerificationRequest, NameVerificationResponse, VerificationResult
from schemas.outcomes import ApiName, Environment
from schemas.vop import StandardRequest


class Endpoint(ABC):
    """Handles the requests to one path."""

    methods: ClassVar[tuple[str, ...]]  # the HTTP methods that are allowed

    def recognise(self, request: web.BaseRequest, call: Call) -> None:  # noqa: B027 (nothing, by default)
        """Record what the headers say about a call, and the headers to echo; by default nothing."""

    @abstractmethod
    async def answer(self, request: web.BaseRequest, call: Call) -> bytes:
        """Return the body of a 200 response; raise a ProblemError for any other status."""


class DescriptionEndpoint(Endpoint):
    """Serves this server's OpenAPI document, for clients on the same machine."""

    methods = ("GET",)

    def __init__(self, url: str) -> None:
        self._describe = cache(partial(describe, url))

    async def answer(self, request: web.BaseRequest, call: Call) -> bytes:  # noqa: ARG002
        """Return the OpenAPI document."""
        if request.remote is None or not ipaddress.ip_address(request.remote).is_loopback:
            raise not_found()
        return self._describe()


@dataclass(frozen=True)
class TokenService(Endpoint):
    """The identity provider's token endpoint: GET with a body, as the reference documents it, or POST."""

    identity: IdentityProvider
    request_wait_s: float
    methods = ("GET", "POST")

    def recognise(self, request: web.BaseRequest, call: Call) -> None:  # noqa: ARG002
        """Record that a token is requested."""
        call.api = TOKEN

    async def answer(self, request: web.BaseRequest, call: Call) -> bytes:
        """Issue a token."""
        if request.query_string:
            # Secrets in URLs end up in logs.
            detail = "query: not accepted; send the fields as a form in the body"
            raise format_error(detail, Refusal.QUERY)
        intake.check_body_headers(request.headers, "application/x-www-form-urlencoded")
        role, body = self.identity.issue(await intake.read_body(request, self.request_wait_s))
        call.role = role.value
        call.headers["Cache-Control"] = "no-store"
        return body


@dataclass(frozen=True)
class CheckEndpoint(Endpoint):
    """One of the three APIs on one server."""

    api: NameCheckApi
    role: Environment  # the server's role
    identity: IdentityProvider  # recognises gateway clients by their tokens
    authority: x509.Certificate  # issued the certificates of VoP Standard clients
    limits: Sequence[DailyCap | RateLimit]  # the limits for each client on this server
    answering: DummyAccounts | Network  # the source of the answers
    responder: Responder  # delays and failures of responders
    clock: Clock
    settings: SandboxSettings
    methods = ("POST",)

    def recognise(self, request: web.BaseRequest, call: Call) -> None:
        """Record the correlation id, which is echoed in any case."""
        call.role, call.api = self.role.value, self.api.name.value
        header = self.api.correlation_header
        call.request_id = intake.correlation_id(request.headers, header)
        if call.request_id is not None:
            call.headers[header] = call.request_id
        authorization = request.headers.get("Authorization")
        if authorization is not None:
            # Bytes that are not UTF-8 appear as surrogates.
            call.token = fingerprint(authorization.encode(errors="surrogateescape"))[:12]

    async def answer(self, request: web.BaseRequest, call: Call) -> bytes:
        """Answer a name check."""
        client = self._client(request)
        for limit in self.limits:
            limit.admit(client)
        intake.check_headers(
            request.headers,
            self.api.correlation_header,
            now_s=self.clock.now(),
            clock_skew_max_s=self.settings.clock_skew_max_s,
        )
        body = await intake.read_body(request, self.settings.request_wait_s)
        call.question = fingerprint(body)
        question = intake.read_question(self.api.document, body)
        call.question = fingerprint(question.to_json())  # as any equal question
        call.account = _account_of(question)
        if isinstance(question, StandardRequest) and question.requesting_agent is not None:
            bic = question.requesting_agent.financial_institution_id.bicfi
            participants.check_requesting_bic(client, bic)
        return await self._ask(question)

    def _client(self, request: web.BaseRequest) -> str:
        if self.api.name is not ApiName.VOP_STANDARD:
            authorization = intake.one_value(request.headers, "Authorization", Refusal.TOKEN_UNKNOWN)
            return self.identity.client_of(authorization, self.role)
        tls = request.get_extra_info("ssl_object")
        certificate: bytes | None = tls.getpeercert(True) if tls is not None else None
        return participants.requester_of(certificate, self.authority, datetime.now(UTC))

    async def _ask(self, question: Question) -> bytes:
        if isinstance(question, NameVerificationRequest):
            report, conduct = self.answering.check_name(question.data)
            await self.responder.respond(conduct)
            return NameVerificationResponse(data=VerificationResult(verification_report=report)).to_json()
        response, conduct = self.answering.check_payee(question)
        await self.responder.respond(conduct)
        return response.to_json()


def _account_of(question: Question) -> str:
    if isinstance(question, NameVerificationRequest):
        return question.data.identification
    return question.party_account.iban
