"""Roles test and production: the simulated network behind the gateway.

Questions are routed to a bank as in the real service, and that bank answers from its register. Only the bank
matches names (API reference, "What the service does").
"""

import asyncio
import hashlib
import math
import random

from pipeline.sandbox import banks
from pipeline.sandbox.banks import Bank, Conduct
from pipeline.sandbox.matching import compare_identifications, compare_names, identifications
from pipeline.sandbox.problems import ProblemError
from pipeline.sandbox.registers import AccountStatus, RegisteredAccount, account_of
from pipeline.sandbox.settings import SandboxSettings
from schemas.cop import NameVerification, ReasonCode, VerificationReport
from schemas.outcomes import ApiName, Outcome
from schemas.problem import ProblemCode
from schemas.vop import GatewayRequest, IdMatch, NameMatch, StandardRequest, VerificationOfPayeeResponse

_JUST_WITHIN = 0.9  # share of the responder wait
_CODE_OF_STATUS = {
    AccountStatus.ABSENT: ReasonCode.AC01,
    AccountStatus.OPTED_OUT: ReasonCode.OPTO,
    AccountStatus.UNSUPPORTED_TYPE: ReasonCode.ACNS,
    AccountStatus.SWITCHED: ReasonCode.CASS,
}

_CODE_OF_BRANCH = {"4": ReasonCode.FOURHUN, "5": ReasonCode.HTTPERR}
"""First digit of the account number -> reply, for sort codes that the bank does not support."""


class Network:
    """The simulated banks, with their registers and conduct."""

    def __init__(self, seed: int, *, is_faulty: bool) -> None:
        """Create the network of a seed, which determines all accounts; `is_faulty` lets banks misbehave."""
        self._seed = seed
        self._is_faulty = is_faulty

    def check_name(self, question: NameVerification) -> tuple[VerificationReport, Conduct]:
        """Ask the bank that owns the sort code."""
        bank = banks.bank_of_sort_code(question.identification[:6])
        if bank is None:
            return _not_possible(ReasonCode.NOROUTE), Conduct.STEADY
        conduct = self._conduct(bank)
        if conduct is Conduct.FAILING:
            is_refusal = hashlib.blake2b(question.identification.encode()).digest()[0] % 2
            code = ReasonCode.FOURHUN if is_refusal else ReasonCode.HTTPERR
            return _not_possible(code), conduct
        if question.identification[4:6] == banks.UNSUPPORTED_BRANCH:
            code = _CODE_OF_BRANCH.get(question.identification[6], ReasonCode.SCNS)
            return _not_possible(code), conduct
        account = account_of(self._seed, bank, question.identification)
        if account.status is not AccountStatus.OPEN:
            return _not_possible(_CODE_OF_STATUS[account.status]), conduct
        given, needed = question.secondary_identification, account.secondary_reference
        if needed is not None and needed != given:
            return _not_possible(ReasonCode.SECMISS if given is None else ReasonCode.IVCR), conduct
        outcome = _compared(question.name, account, bank)
        is_type_right = question.account_type is account.account_type
        return cop_report(outcome, account, is_type_right=is_type_right), conduct

    def check_payee(self, question: GatewayRequest) -> tuple[VerificationOfPayeeResponse, Conduct]:
        """Ask the bank of the IBAN; if the requester names a bank, it must be the same."""
        account_number = question.party_account.iban
        bank = banks.bank_of_iban(account_number)
        if isinstance(question, StandardRequest) and question.party_agent is not None:
            asked = banks.bank_of_bic(question.party_agent.financial_institution_id.bicfi)
            # A bank knows only its own accounts.
            bank = bank if asked == bank else None
        if bank is None:
            return not_applicable(question), Conduct.STEADY
        conduct = self._conduct(bank)
        account = account_of(self._seed, bank, account_number)
        if conduct is Conduct.FAILING or account.status is not AccountStatus.OPEN:
            return not_applicable(question), conduct
        party = question.party
        if party.name is not None:
            return vop_response(_compared(party.name, account, bank), account.name), conduct
        verdict = compare_identifications(identifications(party), account.identifications)
        return VerificationOfPayeeResponse(party_id_match=verdict), conduct

    def _conduct(self, bank: Bank) -> Conduct:
        return bank.conduct if self._is_faulty else Conduct.STEADY


def cop_report(outcome: Outcome, account: RegisteredAccount, *, is_type_right: bool) -> VerificationReport:
    """Return the report for a comparison of names; `is_type_right` is True if the account type was right."""
    if outcome is Outcome.MATCH and is_type_right:
        return VerificationReport(matched=True)
    if outcome is Outcome.MATCH:
        code = ReasonCode.BANM if account.is_business else ReasonCode.PANM
        return VerificationReport(matched=False, reason_code=code)
    if outcome is Outcome.CLOSE_MATCH:
        of_wrong_type = ReasonCode.BAMM if account.is_business else ReasonCode.PAMM
        code = ReasonCode.MBAM if is_type_right else of_wrong_type
        return VerificationReport(matched=False, reason_code=code, name=account.name)
    return VerificationReport(matched=False, reason_code=ReasonCode.ANNM)


def vop_response(outcome: Outcome, held_name: str) -> VerificationOfPayeeResponse:
    """Return the answer to a check by name."""
    if outcome is Outcome.MATCH:
        return VerificationOfPayeeResponse(party_name_match=NameMatch.MTCH)
    if outcome is Outcome.CLOSE_MATCH:
        return VerificationOfPayeeResponse(party_name_match=NameMatch.CMTC, matched_name=held_name)
    return VerificationOfPayeeResponse(party_name_match=NameMatch.NMTC)


def not_applicable(question: GatewayRequest) -> VerificationOfPayeeResponse:
    """Return the kind of answer requested, for an account that cannot be checked."""
    if question.party.name is None:
        return VerificationOfPayeeResponse(party_id_match=IdMatch.NOAP)
    return VerificationOfPayeeResponse(party_name_match=NameMatch.NOAP)


def _compared(name: str, account: RegisteredAccount, bank: Bank) -> Outcome:
    return compare_names(name, account.name, business=account.is_business, lenient=bank.is_lenient)


def _not_possible(code: ReasonCode) -> VerificationReport:
    return VerificationReport(matched=False, reason_code=code)


class Responder:
    """The responders of one API, with the delays and failures of a sandbox's settings."""

    def __init__(self, settings: SandboxSettings, api: ApiName) -> None:
        self._wait_max_s = settings.responder_wait_s(api)
        self._latency_s = settings.latency_s
        self._latency_spread = settings.latency_spread
        self._chance = random.Random(settings.seed)  # noqa: S311 (waits are no secret)

    async def respond(self, conduct: Conduct) -> None:
        """Wait as long as this responder does, and fail as it does, with the reference's 500, 502 or 504."""
        match conduct:
            case Conduct.STEADY:
                await self._wait()
            case Conduct.SLOW:
                await asyncio.sleep(self._wait_max_s * _JUST_WITHIN)
            case Conduct.FAILING:
                await self._wait()
                # Temporary failures: a client that retries gets an answer eventually.
                if self._chance.random() < 0.3:
                    raise ProblemError(
                        500,
                        ProblemCode.SERVER_ERROR,
                        "a technical problem in the gateway prevented execution",
                    )
            case Conduct.SILENT:
                await asyncio.sleep(self._wait_max_s)
                raise ProblemError(
                    504,
                    ProblemCode.TIMEOUT_ERROR,
                    f"no response from the responder within {self._wait_max_s:g} seconds",
                )
            case Conduct.BROKEN_TLS:
                raise ProblemError(502, ProblemCode.SSL_ERROR, "the TLS handshake with the responder failed")

    async def _wait(self) -> None:
        if self._latency_s > 0:
            drawn_s = self._chance.lognormvariate(math.log(self._latency_s), self._latency_spread)
            await asyncio.sleep(min(drawn_s, self._wait_max_s * _JUST_WITHIN))
