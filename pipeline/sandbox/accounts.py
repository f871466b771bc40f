"""Role sandbox: fixed dummy accounts, each with names of a known outcome.

Source of the categories: API reference, "Sandbox behaviour". The reference does not list the operator's own
accounts and names; these are ours. Names are looked up exactly, not matched.

For each Confirmation of Payee account, checked with its own account type, `name` is a full match and
`close_name` MBAM; checked with the other type they are BANM and BAMM (a business account) or PANM and PAMM (a
personal account). `other_name`, like every name not in the table, is ANNM. An account not in the table is
AC01.

For each Verification of Payee account, `name` is MTCH, `close_name` CMTC, every other name NMTC, and
an IBAN that is not in the table, or is in it as not applicable, NOAP.
"""

import tomllib
from dataclasses import dataclass, field
from importlib.resources import files
from typing import NamedTuple

from pydantic import TypeAdapter

from pipeline.sandbox.banks import Conduct
from pipeline.sandbox.matching import compare_identifications, identifications
from pipeline.sandbox.network import NameReply, PayeeReply, cop_report, not_applicable, vop_response
from pipeline.sandbox.registers import AccountStatus, RegisteredAccount
from schemas.cop import AccountType, NameVerification, ReasonCode, VerificationReport
from schemas.outcomes import ApiName, Outcome
from schemas.vop import GatewayRequest, StandardRequest, VerificationOfPayeeResponse


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
    bic: str
    """BIC11 of its bank, which VoP Standard must name as the responder."""
    name: str
    close_name: str
    other_name: str
    identifications: dict[str, str] = field(default_factory=dict)
    """Identifications by kind: LEI, BIC, or a scheme's code such as TXID."""
    is_checkable: bool = True
    """False if every answer is NOAP."""


class DummyAnswer(NamedTuple):
    """One known question and its answer."""

    api: ApiName
    account: str
    account_type: AccountType | None  # Confirmation of Payee only
    asked: str  # the name, or the kind of identification and its value
    code: str  # a reason code, MATCHED for a full match, or a code of Verification of Payee
    matched_name: str | None


_FILE = tomllib.loads((files(__package__) / "accounts.toml").read_text("utf-8"))
UK_ACCOUNTS = TypeAdapter(tuple[UkAccount, ...]).validate_python(_FILE["uk"])
IBAN_ACCOUNTS = TypeAdapter(tuple[IbanAccount, ...]).validate_python(_FILE["iban"])
CLOSED_UK_ACCOUNTS = ("00112299999999", "20041500000001")
"""Deliberately missing from the table: AC01 for every name and account type."""

_UK_BY_IDENTIFICATION = {account.identification: account for account in UK_ACCOUNTS}
_BY_IBAN = {account.iban: account for account in IBAN_ACCOUNTS}


class DummyAccounts:
    """The fixed accounts, with the same methods as the network."""

    def check_name(self, question: NameVerification) -> NameReply:
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
        return NameReply(report, Conduct.STEADY)

    def check_payee(self, question: GatewayRequest) -> PayeeReply:
        """Look up a Verification of Payee question."""
        account = _BY_IBAN.get(question.party_account.iban)
        if account is None or not account.is_checkable or _names_another_bank(question, account):
            response = not_applicable(question)
        elif question.party.name is not None:
            response = vop_response(_outcome(question.party.name, account), account.name)
        else:
            verdict = compare_identifications(identifications(question.party), account.identifications)
            response = VerificationOfPayeeResponse(party_id_match=verdict)
        return PayeeReply(response, Conduct.STEADY)


def describe_accounts() -> list[DummyAnswer]:
    """List every known question with its answer, in table order, for the docs and the terminal."""
    return [*_describe_uk_accounts(), *_describe_iban_accounts()]


def _outcome(name: str, account: UkAccount | IbanAccount) -> Outcome:
    if name == account.name:
        return Outcome.MATCH
    return Outcome.CLOSE_MATCH if name == account.close_name else Outcome.NO_MATCH


def _names_another_bank(question: GatewayRequest, account: IbanAccount) -> bool:
    if not isinstance(question, StandardRequest) or question.party_agent is None:
        return False
    # The last three characters name a branch, and all branches of a bank know all its accounts.
    return question.party_agent.financial_institution_id.bicfi[:8] != account.bic[:8]


def _describe_uk_accounts() -> list[DummyAnswer]:
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
    answers = []
    for identification, account_type, name in asked:
        question = NameVerification(
            scheme_name="SortCodeAccountNumber",
            account_type=account_type,
            identification=identification,
            name=name,
        )
        report = DummyAccounts().check_name(question).report
        code = "MATCHED" if report.reason_code is None else report.reason_code.value
        answers.append(DummyAnswer(ApiName.COP, identification, account_type, name, code, report.name))
    return answers


def _describe_iban_accounts() -> list[DummyAnswer]:
    answers = []
    for account in IBAN_ACCOUNTS:
        for name in (account.name, account.close_name, account.other_name):
            verdict = vop_response(_outcome(name, account), account.name)
            code = verdict.party_name_match if account.is_checkable else "NOAP"
            matched_name = verdict.matched_name if account.is_checkable else None
            answers.append(
                DummyAnswer(ApiName.VOP_GATEWAY, account.iban, None, name, str(code), matched_name)
            )
        for kind, value in account.identifications.items():
            code = "MTCH" if account.is_checkable else "NOAP"
            answers.append(
                DummyAnswer(ApiName.VOP_GATEWAY, account.iban, None, f"{kind} {value}", code, None)
            )
    return answers
