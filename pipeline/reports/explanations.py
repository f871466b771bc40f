"""Every code that a row can have, in plain words: what it means, what it does not mean, and what to do.

Gathered from the tables that decide. `precheck explain` prints it, and docs/outcomes.md has its tables.
"""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from typing import NamedTuple

from pipeline.apis import RETRY_ELSEWHERE, RETRY_HERE, own_codes
from pipeline.apis.registry import APIS
from pipeline.errors import UsageError
from pipeline.frames import AnswerState, Meaning
from pipeline.reports.wording import ADVICE_BY_CODE
from pipeline.rules.enumeration import PAYEES_MAX
from pipeline.rules.rules import RULES
from pipeline.rules.unasked import UNASKED
from pipeline.wording import Sentence
from schemas.outcomes import Action, Outcome, WarningCode

HTTP_STATUS = "HTTP_STATUS"
"""Stands for HTTP_ and three digits."""

STEPS: Mapping[Action, str] = {
    Action.PAY: "Nothing more: pay.",
    Action.FIX_NAME: "Judge first whether both names are the payee's. Only then correct the name to "
    "the one on the account, and check again.",
    Action.FIX_ACCOUNT_TYPE: "Change Personal to Business, or the other way round, and check again.",
    Action.FIX_NAME_AND_ACCOUNT_TYPE: "Judge first whether both names are the payee's. Only then "
    "correct the name and the account type, and check again.",
    Action.CHECK_ACCOUNT_DETAILS: "Compare the account details with the payee's own document.",
    Action.ADD_SECONDARY_REFERENCE: "Ask the payee for the reference, such as a roll number, add it and "
    "check again.",
    Action.GET_NEW_ACCOUNT_DETAILS: "Ask the payee for the new account; it was moved to another bank.",
    Action.ASK_PAYEE: "Ask the payee, by a contact that you knew before this payment.",
    Action.RETRY_LATER: f"Where there is no answer: {RETRY_HERE} Where there is one (HTTPERR): "
    f"{RETRY_ELSEWHERE}",
    Action.CORRECT_ROW: "Correct the row in the file, and check again.",
}
"""What a person does next, at length."""

_OF_A_RULE = "anything about the payee or the account: no bank was asked."
_RULES_NOT_SAID: Mapping[str, str] = {
    "SORT_CODE_DAMAGED": "which digits were lost: that is not in the file, so none is added.",
    "ACCOUNT_NUMBER_DAMAGED": "which digits were lost: that is not in the file, so none is added.",
    "IBAN_DAMAGED": "which digits were lost: that is not in the file, so none is added.",
    "IBAN_CHECK_DIGITS": "which character is wrong, nor anything about the payee: no bank was asked.",
    "INVISIBLE_CHARACTER": "that anything looks wrong: such a character is not seen, and comes along when "
    "text is copied. Type the text instead.",
    "NAME_FORMULA": "who is to be paid: the name was calculated, and the file has the formula only.",
    "AMOUNT_AMBIGUOUS": "which of two amounts is meant: the tool does not choose.",
    "ACCOUNT_AMBIGUOUS": "which account is meant: the tool does not choose.",
    "NO_API": "that anything is wrong with the row: it is the profile that lacks a section.",
    "RESPONDER_BIC_UNKNOWN": "that the bank takes no part: the list of banks that comes with the tool is "
    "incomplete.",
}


class CodesSection(StrEnum):
    """Where codes come from; the headings of the page."""

    ANSWERS = "Answers of banks"
    NO_ANSWER = "No answer"
    RULES = "Local rules"
    WARNINGS = "Warnings"


class Case(NamedTuple):
    """One meaning of a code."""

    where: str
    """Of which API, or of which fields."""
    outcome: Outcome | None
    """None for a warning, which changes no outcome."""
    action: Action | None
    says: str
    not_said: str
    to_do: str


class Explanation(NamedTuple):
    """A code with all its meanings."""

    code: str
    section: CodesSection
    cases: tuple[Case, ...]
    """At least one; several where the code means different things for different questions or fields."""


def _warning(says: str, not_said: str, to_do: str) -> Case:
    return Case("this program, as a note that changes no outcome", None, None, says, not_said, to_do)


_WARNINGS: Mapping[WarningCode, Case] = {
    WarningCode.ACCOUNT_CHANGED: _warning(
        "The payee, by your own id for it or else by name, was paid in the run compared with, but never to "
        "this account.",
        "that the new account is wrong: payees do move. But it is how most payments are stolen, and the name "
        "on the new account may well match.",
        "Ask the payee, by a contact that you knew before the change, whether the account is theirs.",
    ),
    WarningCode.NAME_CHANGED: _warning(
        "The account was paid in the run that the file was compared with, under other names than this one.",
        "that it is somebody else's: people marry, and firms are renamed or spelt differently.",
        "Make sure that the name is of whom you mean to pay.",
    ),
    WarningCode.PAYEE_NEW: _warning(
        "Neither the payee nor the account is known from the run compared with: not there, or neither "
        "confirmed by a match nor released.",
        "that the payee is not genuine.",
        "Make sure that somebody ordered the payment.",
    ),
    WarningCode.PAYMENT_REPEATED: _warning(
        "The payment says the same as an earlier one: payee, account, amount and reference.",
        "that one of them is a mistake.",
        "Make sure that both are meant.",
    ),
    WarningCode.MANY_NAMES: _warning(
        f"Its account is asked about by more than {PAYEES_MAX} different names or identifications, which the "
        "run was allowed to do.",
        "which of the names is right, nor that anybody meant harm.",
        "Make sure that each of them is meant.",
    ),
    WarningCode.ENUMERATION: _warning(
        "It is one of several unknown accounts whose numbers follow one another, which looks as if somebody "
        "tried out which accounts exist.",
        "that anybody did.",
        "Make sure that the payment is meant.",
    ),
    WarningCode.MIXED_SCRIPTS: _warning(
        "A word of the name mixes alphabets whose letters look alike.",
        "that the name is wrong.",
        "Make sure that no letter only looks like another; type the name again.",
    ),
    WarningCode.MODULUS_OLD_TABLES: _warning(
        "The digits of the account fail the UK modulus check, by tables that are older than a year.",
        "that the account does not exist: its sort code may have come, or changed, since.",
        "Take the latest tables from Pay.UK and name them in the profile; look for a mistyped digit.",
    ),
    WarningCode.NAME_NOT_LATIN: _warning(
        "The name has letters of another script than the Latin one, the only one that VoP is sure to carry "
        "between banks. The warning comes before anything is asked.",
        "that the bank cannot match the name: some banks keep it in these letters.",
        "Give the name in Latin letters where the payee has one; vop_names = 'latin' in the profile leaves "
        "such names unasked.",
    ),
    WarningCode.NAME_CLEANED: _warning(
        'The name was written as ="...", or held marks that carry nothing, such as soft hyphens. It was '
        "asked about without them.",
        "that anything else was changed: a name is sent as it was entered.",
        "Nothing, or clean the name where it comes from.",
    ),
    WarningCode.ACCOUNT_TYPE_DEFAULT: _warning(
        "The account type says what the account is for, such as Current or Savings, and not who holds it, so "
        "the default_account_type of the profile was taken.",
        "whether the account is of a person or of a business.",
        "Write Personal or Business where the default is wrong.",
    ),
    WarningCode.BIC_OTHER_COUNTRY: _warning(
        "The BIC is of another country than the account.",
        "that either is wrong: the branches of a bank abroad may carry the BIC of its head office.",
        "Make sure that both are of the payee.",
    ),
    WarningCode.UK_ACCOUNT_CURRENCY: _warning(
        "The row has a sort code and an account number, and its currency is not GBP.",
        "that either is wrong: UK banks keep accounts in euros and dollars that have a sort code.",
        "Make sure that the sort code is a UK one, and not a bank's code of another country.",
    ),
    WarningCode.NAME_TRUNCATED: _warning(
        "The name fills the field that the payment format has for it, 18 characters in Bacs Standard 18, so "
        "its end may be missing.",
        "that anything is missing; but a close match may mean no more than that.",
        "Compare the matched name with the whole name where the file was made.",
    ),
}


def explain(code: str) -> Explanation:
    """Look a code up, however it is spelt in capitals and small letters.

    Raises:
        UsageError: there is no such code.
    """
    wanted = code.strip().upper()
    found = explanations().get(wanted)
    if found is None and re.fullmatch("HTTP_[0-9]{3}", wanted):
        found = explanations()[HTTP_STATUS]
    if found is None:
        near = get_close_matches(wanted, explanations(), n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UsageError(Sentence("reports.no_code_precheck", wanted=repr(wanted), hint=hint))
    return found._replace(code=wanted)


@cache
def explanations() -> Mapping[str, Explanation]:
    """All of them by code: by section, and within it in the order of the table that decides."""
    cases: dict[tuple[CodesSection, str], list[Case]] = {}
    for section, gathered in (
        (CodesSection.ANSWERS, _of_answers()),
        (CodesSection.NO_ANSWER, _of_no_answer()),
        (CodesSection.RULES, _of_rules()),
        (CodesSection.WARNINGS, _of_warnings()),
    ):
        for code, case in gathered:
            cases.setdefault((section, code), []).append(case)
    found = {code: Explanation(code, section, tuple(said)) for (section, code), said in cases.items()}
    assert len(found) == len(cases), "one code stands for two things"
    return found


def _of_answers() -> Iterator[tuple[str, Case]]:
    told = set()  # one table of codes may be that of several APIs
    for api in APIS.values():
        for asked_by, where in api.asked.items():
            if where not in told:
                told.add(where)
                for (basis, code), meaning in api.meanings.items():
                    if basis is asked_by:
                        yield str(code), _case(where, meaning)


def _of_no_answer() -> Iterator[tuple[str, Case]]:
    wheres = {
        AnswerState.DEFERRED: "this program, which did not ask",
        AnswerState.UNANSWERED: "the service or this program, without a usable reply",
        AnswerState.REFUSED: "the service, which refused the request",
    }
    for (state, code), meaning in own_codes.MEANINGS.items():
        yield str(code), _case(wheres[state], meaning)
    for state, statuses in (
        (AnswerState.UNANSWERED, "Any other HTTP status of an error"),
        (AnswerState.REFUSED, "HTTP status 400 or 422"),
    ):
        says = f"{statuses}: the server gave no code, or one that means something else here."
        yield HTTP_STATUS, _case(wheres[state], own_codes.BY_STATE[state])._replace(says=says)


def _of_rules() -> Iterator[tuple[str, Case]]:
    """Of each code and sentence one case, with all the fields that they stand for."""
    fields: dict[tuple[str, str], list[str]] = {}
    for rule in RULES:
        fields.setdefault((rule.code, str(rule.sentence)), []).append(rule.field)
    for (code, sentence), named in fields.items():
        yield (
            code,
            Case(
                f"the local rules of {', '.join(named)}",
                Outcome.REJECTED,
                Action.CORRECT_ROW,
                _whole(sentence),
                _RULES_NOT_SAID.get(code, _OF_A_RULE),
                str(ADVICE_BY_CODE.get(code, STEPS[Action.CORRECT_ROW])),
            )
            if code not in UNASKED
            else _case(f"the profile, about {', '.join(named)}", UNASKED[code])._replace(
                says=_whole(sentence)
            ),
        )


def _whole(sentence: str) -> str:
    return f"{sentence[0].upper()}{sentence[1:]}."


def _of_warnings() -> Iterator[tuple[str, Case]]:
    for code in WarningCode:
        yield code.value, _WARNINGS[code]


def _case(where: str, meaning: Meaning) -> Case:
    return Case(
        where,
        meaning.outcome,
        meaning.action,
        str(meaning.reason),
        meaning.not_said,
        str(meaning.advice or STEPS[meaning.action]),
    )
