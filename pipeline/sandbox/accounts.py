"""Role sandbox: fixed dummy accounts, each with names of a known outcome, looked up exactly, not matched.

For CoP (API reference, "Sandbox behaviour"), `name` is a full match and `close_name` MBAM; with the other
account type they are BANM and BAMM, or PANM and PAMM. Every other name is ANNM; an unknown account is AC01.
For VoP, they are MTCH, CMTC and NMTC, and an unknown IBAN is NOAP. A rehearsal also invents answers about all
other accounts, each from a hash of its question, so that a trial with a real file shows a realistic mix.
"""

import hashlib
import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from pipeline.sandbox.banks import Conduct
from pipeline.sandbox.matching import compare_identifications, identifications
from pipeline.sandbox.network import cop_report, not_applicable, vop_response
from pipeline.sandbox.registers import AccountStatus, RegisteredAccount, by_share
from pipeline.sandbox.settings import REQUESTING_BIC, Question
from pipeline.wording import Sentence, SurfaceKind, rendered
from schemas import vop
from schemas.cop import (
    AccountType,
    NameVerification,
    NameVerificationRequest,
    NameVerificationResponse,
    ReasonCode,
    VerificationReport,
    VerificationResult,
)
from schemas.outcomes import ApiName, Outcome

Json = dict[str, Any]
Answer = NameVerificationResponse | vop.VerificationOfPayeeResponse
MATCHED = "MATCHED"  # shown as the code of a full match of Confirmation of Payee, which has no code
COLUMNS = ("api", "account", "account type", "name or identification", "answer", "matched name")
_HEADS = {
    "account": "story.account",
    "account type": "field.account_type",
    "name or identification": "sandbox.name_or_identification",
    "answer": "sandbox.answer",
    "matched name": "story.name_at_the_bank",
}

MIX = ((880, Outcome.MATCH), (50, Outcome.CLOSE_MATCH), (40, Outcome.NO_MATCH), (30, Outcome.NOT_POSSIBLE))
"""Questions per thousand with each outcome; our choice."""
_TYPE_WRONG = 20  # UK accounts per thousand that have the other account type
_NOT_POSSIBLE = (ReasonCode.AC01, ReasonCode.AC01, ReasonCode.OPTO, ReasonCode.ACNS, ReasonCode.CASS)
_NAME_MAX = 140
_OTHER_TYPE = {AccountType.PERSONAL: AccountType.BUSINESS, AccountType.BUSINESS: AccountType.PERSONAL}
_ID_MATCH = {
    Outcome.MATCH: vop.IdMatch.MTCH,
    Outcome.NO_MATCH: vop.IdMatch.NMTC,
    Outcome.CLOSE_MATCH: vop.IdMatch.NMTC,
}


@dataclass(frozen=True, slots=True)
class UkAccount:
    """A dummy account of Confirmation of Payee."""

    identification: str
    account_type: AccountType
    name: str
    close_name: str
    other_name: str


@dataclass(frozen=True, slots=True)
class IbanAccount:
    """A dummy account of Verification of Payee."""

    iban: str
    bic: str  # BIC11 of its bank, which VoP Standard must name as the responder
    name: str
    close_name: str
    other_name: str
    identifications: dict[str, str] = field(default_factory=dict)
    """Identifications by kind: LEI, BIC, or a scheme's code such as TXID."""
    is_checkable: bool = True  # false if every answer is NOAP


_FILE = tomllib.loads((files(__package__) / "accounts.toml").read_text("utf-8"))
UK_ACCOUNTS = TypeAdapter(tuple[UkAccount, ...]).validate_python(_FILE["uk"])
IBAN_ACCOUNTS = TypeAdapter(tuple[IbanAccount, ...]).validate_python(_FILE["iban"])
CLOSED_UK_ACCOUNTS = ("00112299999999", "20041500000001")  # not in the table: AC01 for every question

_UK_BY_IDENTIFICATION = {account.identification: account for account in UK_ACCOUNTS}
_BY_IBAN = {account.iban: account for account in IBAN_ACCOUNTS}


class DummyAccounts:
    """The fixed accounts, with the same methods as the network."""

    def check_name(self, question: NameVerification) -> tuple[VerificationReport, Conduct]:
        """Look up a Confirmation of Payee question."""
        account = _UK_BY_IDENTIFICATION.get(question.identification)
        if account is None:
            report = VerificationReport(matched=False, reason_code=ReasonCode.AC01)
        else:
            report = cop_report(
                _outcome(question.name, account),
                RegisteredAccount(AccountStatus.OPEN, account.account_type, account.name),
                is_type_right=question.account_type is account.account_type,
            )
        return report, Conduct.STEADY

    def check_payee(self, question: vop.GatewayRequest) -> tuple[vop.VerificationOfPayeeResponse, Conduct]:
        """Look up a Verification of Payee question."""
        account = _BY_IBAN.get(question.party_account.iban)
        if account is None or not account.is_checkable or _names_another_bank(question, account):
            response = not_applicable(question)
        elif question.party.name is not None:
            response = vop_response(_outcome(question.party.name, account), account.name)
        else:
            verdict = compare_identifications(identifications(question.party), account.identifications)
            response = vop.VerificationOfPayeeResponse(party_id_match=verdict)
        return response, Conduct.STEADY


def _outcome(name: str, account: UkAccount | IbanAccount) -> Outcome:
    if name == account.name:
        return Outcome.MATCH
    return Outcome.CLOSE_MATCH if name == account.close_name else Outcome.NO_MATCH


def _names_another_bank(question: vop.GatewayRequest, account: IbanAccount) -> bool:
    if not isinstance(question, vop.StandardRequest) or question.party_agent is None:
        return False
    # The last three characters name a branch, and all branches of a bank know all its accounts.
    return question.party_agent.financial_institution_id.bicfi[:8] != account.bic[:8]


class Rehearsal(DummyAccounts):
    """The dummy accounts, with an invented answer about every other account."""

    def check_name(self, question: NameVerification) -> tuple[VerificationReport, Conduct]:
        """Answer a Confirmation of Payee question."""
        known, conduct = super().check_name(question)
        if known.reason_code is not ReasonCode.AC01:
            return known, conduct
        drawn = _drawn(question.identification, question.name, question.account_type.value)
        outcome = by_share(MIX, drawn % 1000)
        if outcome is Outcome.NOT_POSSIBLE:
            code = _NOT_POSSIBLE[drawn // 1000 % len(_NOT_POSSIBLE)]
            return VerificationReport(matched=False, reason_code=code), conduct
        is_type_right = drawn // 1000 % 1000 >= _TYPE_WRONG
        held = question.account_type if is_type_right else _OTHER_TYPE[question.account_type]
        account = RegisteredAccount(AccountStatus.OPEN, held, _near(question.name))
        return cop_report(outcome, account, is_type_right=is_type_right), conduct

    def check_payee(self, question: vop.GatewayRequest) -> tuple[vop.VerificationOfPayeeResponse, Conduct]:
        """Answer a Verification of Payee question."""
        known, conduct = super().check_payee(question)
        if known != not_applicable(question):
            return known, conduct
        party = question.party
        outcome = by_share(MIX, _drawn(question.party_account.iban, party.model_dump_json()) % 1000)
        if outcome is Outcome.NOT_POSSIBLE:
            return known, conduct
        if party.name is None:
            return vop.VerificationOfPayeeResponse(party_id_match=_ID_MATCH[outcome]), conduct
        return vop_response(outcome, _near(party.name)), conduct


def _drawn(*question: str) -> int:
    return int.from_bytes(hashlib.blake2b("\n".join(question).encode(), digest_size=8).digest(), "big")


def _near(name: str) -> str:
    """Return a similar name that a bank may hold: with a middle initial, or with one word less."""
    first, *others = name.split()
    if not others:
        return first[:-1] or f"{first}s"
    return " ".join(others if len(name) + 2 > _NAME_MAX else [first, "J", *others])


class DummyAnswer(NamedTuple):
    """One known question and its answer."""

    api: ApiName
    account: str
    account_type: AccountType | None  # Confirmation of Payee only
    asked: str  # the name, or the kind of identification and its value
    code: str  # a reason code, MATCHED for a full match, or a code of Verification of Payee
    matched_name: str | None
    question: Question
    answer: Answer


def describe_accounts() -> list[DummyAnswer]:
    """List every known question with its answer, in table order, for the docs and the terminal."""
    return [*_describe_uk_accounts(), *_describe_iban_accounts()]


def examples_of(api: ApiName) -> Iterator[tuple[str, Json, Json]]:
    """Yield an example of each outcome, by name and by identification: its name, request and answer."""
    seen = set()
    for known in describe_accounts():
        if (known.api is ApiName.COP) is not (api is ApiName.COP):
            continue
        question = known.question
        is_by_name = isinstance(question, NameVerificationRequest) or question.party.name is not None
        of_type = f" {known.account_type.value}" if known.account_type else ""
        name = f"{known.code}{of_type}{'' if is_by_name else ' by identification'}"
        if name not in seen:
            seen.add(name)
            asked = _as_asked(api, question)
            yield name, json.loads(asked.to_json()), json.loads(known.answer.to_json())


def account_rows() -> list[tuple[str, ...]]:
    """Every dummy account with its answer, in the columns of COLUMNS."""
    return [
        (
            "CoP" if known.api is ApiName.COP else "VoP",
            known.account,
            known.account_type.value if known.account_type else "",
            known.asked,
            known.code,
            known.matched_name or "",
        )
        for known in describe_accounts()
    ]


def account_lines() -> Iterator[str]:
    """The rows as columns of text, with the matched name on a line below."""
    heads = [rendered(Sentence(_HEADS.get(column, "header.api")), SurfaceKind.COMMAND) for column in COLUMNS]
    rows = [heads, *account_rows()]
    narrow = [(api, f"{account} {kind}".strip(), asked, code) for api, account, kind, asked, code, _ in rows]
    widths = [max(map(len, column)) for column in zip(*narrow, strict=True)]
    for row, (*_, matched_name) in zip(narrow, rows, strict=True):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        if matched_name:
            yield f"{'':{widths[0] + widths[1] + 4}}  {matched_name}"


def _describe_uk_accounts() -> Iterator[DummyAnswer]:
    asked = [
        (account.identification, account_type, name)
        for account in UK_ACCOUNTS
        for account_type in AccountType
        for name in (account.name, account.close_name, account.other_name)
    ]
    asked += [
        (identification, account_type, UK_ACCOUNTS[0].name)
        for identification in CLOSED_UK_ACCOUNTS
        for account_type in AccountType
    ]
    for identification, account_type, name in asked:
        question = NameVerification(
            scheme_name="SortCodeAccountNumber",
            account_type=account_type,
            identification=identification,
            name=name,
        )
        report, _ = DummyAccounts().check_name(question)
        yield DummyAnswer(
            ApiName.COP,
            identification,
            account_type,
            name,
            MATCHED if report.reason_code is None else report.reason_code.value,
            report.name,
            NameVerificationRequest(data=question),
            NameVerificationResponse(data=VerificationResult(verification_report=report)),
        )


def _describe_iban_accounts() -> Iterator[DummyAnswer]:
    for account in IBAN_ACCOUNTS:
        parties = {
            name: vop.Party(name=name) for name in (account.name, account.close_name, account.other_name)
        }
        for kind, value in account.identifications.items():
            identification = vop.PartyIdentification(organisation_id=_organisation(kind, value))
            parties[f"{kind} {value}"] = vop.Party(identification=identification)
        for asked, party in parties.items():
            question = vop.GatewayRequest(party=party, party_account=vop.PartyAccount(iban=account.iban))
            answer, _ = DummyAccounts().check_payee(question)
            code = str(answer.party_name_match or answer.party_id_match)
            api, name = ApiName.VOP_GATEWAY, answer.matched_name
            yield DummyAnswer(api, account.iban, None, asked, code, name, question, answer)


def _organisation(kind: str, value: str) -> vop.OrganisationId:
    if kind == "LEI":
        return vop.OrganisationId(lei=value)
    if kind == "BIC":
        return vop.OrganisationId(any_bic=value)
    return vop.OrganisationId(
        others=[vop.OtherId(identification=value, scheme_name_code=vop.SchemeCode(kind))]
    )


def _as_asked(api: ApiName, question: Question) -> Question:
    if api is not ApiName.VOP_STANDARD or isinstance(question, NameVerificationRequest):
        return question
    responder, requester = (
        vop.Agent(financial_institution_id=vop.FinancialInstitutionId(bicfi=bic))
        for bic in (_BY_IBAN[question.party_account.iban].bic, REQUESTING_BIC)
    )
    return vop.StandardRequest(**dict(question), party_agent=responder, requesting_agent=requester)
