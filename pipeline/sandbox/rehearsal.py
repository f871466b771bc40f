"""Invented answers about unknown accounts, in a realistic mix.

A user without a contract who tries a real file sees a realistic mix of answers instead of AC01 in every row.
Each answer depends on a hash of its question, so it is the same in every rehearsal.
"""

import hashlib

from pipeline.sandbox.accounts import DummyAccounts
from pipeline.sandbox.banks import Conduct
from pipeline.sandbox.network import NameReply, PayeeReply, cop_report, not_applicable, vop_response
from pipeline.sandbox.registers import AccountStatus, RegisteredAccount
from schemas.cop import AccountType, NameVerification, ReasonCode, VerificationReport
from schemas.outcomes import Outcome
from schemas.vop import GatewayRequest, IdMatch, VerificationOfPayeeResponse

MIX = ((880, Outcome.MATCH), (50, Outcome.CLOSE_MATCH), (40, Outcome.NO_MATCH), (30, Outcome.NOT_POSSIBLE))
"""Questions per thousand with each outcome; our choice."""
_TYPE_WRONG = 20  # of a thousand UK accounts have the other account type
_NOT_POSSIBLE = (ReasonCode.AC01, ReasonCode.AC01, ReasonCode.OPTO, ReasonCode.ACNS, ReasonCode.CASS)
_NAME_MAX = 140
_OTHER_TYPE = {AccountType.PERSONAL: AccountType.BUSINESS, AccountType.BUSINESS: AccountType.PERSONAL}
_ID_MATCH = {Outcome.MATCH: IdMatch.MTCH, Outcome.NO_MATCH: IdMatch.NMTC, Outcome.CLOSE_MATCH: IdMatch.NMTC}


class Rehearsal(DummyAccounts):
    """The dummy accounts, with an invented answer about every other account."""

    def check_name(self, question: NameVerification) -> NameReply:
        """Answer a Confirmation of Payee question."""
        known = super().check_name(question)
        if known.report.reason_code is not ReasonCode.AC01:
            return known
        drawn = _drawn(question.identification, question.name, question.account_type.value)
        outcome = _outcome(drawn % 1000)
        if outcome is Outcome.NOT_POSSIBLE:
            code = _NOT_POSSIBLE[drawn // 1000 % len(_NOT_POSSIBLE)]
            return NameReply(VerificationReport(matched=False, reason_code=code), Conduct.STEADY)
        is_type_right = drawn // 1000 % 1000 >= _TYPE_WRONG
        held = question.account_type if is_type_right else _OTHER_TYPE[question.account_type]
        account = RegisteredAccount(AccountStatus.OPEN, held, _near(question.name))
        return NameReply(cop_report(outcome, account, is_type_right=is_type_right), Conduct.STEADY)

    def check_payee(self, question: GatewayRequest) -> PayeeReply:
        """Answer a Verification of Payee question."""
        known = super().check_payee(question)
        if known.response != not_applicable(question):
            return known
        party = question.party
        outcome = _outcome(_drawn(question.party_account.iban, party.model_dump_json()) % 1000)
        if outcome is Outcome.NOT_POSSIBLE:
            return known
        if party.name is None:
            return PayeeReply(VerificationOfPayeeResponse(party_id_match=_ID_MATCH[outcome]), Conduct.STEADY)
        return PayeeReply(vop_response(outcome, _near(party.name)), Conduct.STEADY)


def _drawn(*question: str) -> int:
    return int.from_bytes(hashlib.blake2b("\n".join(question).encode(), digest_size=8).digest(), "big")


def _outcome(drawn: int) -> Outcome:
    for share, outcome in MIX:
        if drawn < share:
            return outcome
        drawn -= share
    raise AssertionError(drawn)


def _near(name: str) -> str:
    """Return a similar name that a bank may hold: with a middle initial, or with one word less."""
    first, *others = name.split()
    if not others:
        return first[:-1] or f"{first}s"
    return " ".join(others if len(name) + 2 > _NAME_MAX else [first, "J", *others])
