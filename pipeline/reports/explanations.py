"""Explain every code that a row can have: what it means, what it does not mean, and what to do.

The explanations come from the tables that the program uses. `precheck explain` prints them, and
docs/outcomes.md has them as tables.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from typing import NamedTuple

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pipeline.apis import RETRY_ELSEWHERE, RETRY_HERE, own_codes
from pipeline.apis.registry import APIS
from pipeline.errors import UsageError
from pipeline.frames import AnswerState, Meaning
from pipeline.reports.terminal import table_of
from pipeline.reports.wording import ADVICE_BY_CODE, in_words
from pipeline.rules.enumeration import PAYEES_MAX
from pipeline.rules.rules import RULES
from pipeline.rules.unasked import UNASKED
from pipeline.wording import Sentence
from schemas.outcomes import Action, Outcome, WarningCode

HTTP_STATUS = "HTTP_STATUS"  # stands for HTTP_ and three digits

STEPS: Mapping[Action, Sentence] = {
    action: Sentence(f"explain.step_{action}", here=RETRY_HERE, elsewhere=RETRY_ELSEWHERE)
    for action in Action
}
"""Action -> the next step in full."""

_OF_A_RULE = Sentence("explain.no_bank_was_asked")
_RULES_NOT_SAID: Mapping[str, Sentence] = {
    "SORT_CODE_DAMAGED": Sentence("explain.digits_lost"),
    "ACCOUNT_NUMBER_DAMAGED": Sentence("explain.digits_lost"),
    "IBAN_DAMAGED": Sentence("explain.digits_lost"),
    "IBAN_CHECK_DIGITS": Sentence("explain.which_character"),
    "INVISIBLE_CHARACTER": Sentence("explain.looks_wrong"),
    "NAME_FORMULA": Sentence("explain.formula_only"),
    "AMOUNT_AMBIGUOUS": Sentence("explain.which_amount"),
    "ACCOUNT_AMBIGUOUS": Sentence("explain.which_account"),
    "NO_API": Sentence("explain.profile_lacks_section"),
    "RESPONDER_BIC_UNKNOWN": Sentence("explain.list_incomplete"),
}


class CodesSection(StrEnum):
    """The sources of codes, which are headings of the page."""

    ANSWERS = "Answers of banks"
    NO_ANSWER = "No answer"
    RULES = "Local rules"
    WARNINGS = "Warnings"


class Case(NamedTuple):
    """One meaning of a code."""

    where: Sentence  # the API or the fields with this code
    outcome: Outcome | None  # None for a warning, which does not change the outcome
    action: Action | None
    says: Sentence
    not_said: Sentence
    to_do: Sentence


class Explanation(NamedTuple):
    """A code with all its meanings."""

    code: str
    section: CodesSection
    cases: tuple[Case, ...]  # at least one; several if the code differs between questions or fields


def explain(code: str) -> Explanation:
    """Look a code up, ignoring case (UsageError: the code does not exist)."""
    wanted = code.strip().upper()
    found = explanations().get(wanted)
    if found is None and re.fullmatch("HTTP_[0-9]{3}", wanted):
        found = explanations()[HTTP_STATUS]
    if found is None:
        near = get_close_matches(wanted, explanations(), n=1)
        if near:
            raise UsageError(Sentence("reports.unknown_code_near_match", wanted=repr(wanted), near=near[0]))
        raise UsageError(Sentence("reports.unknown_code", wanted=repr(wanted)))
    return found._replace(code=wanted)


@cache
def explanations() -> Mapping[str, Explanation]:
    """Return all explanations by code, sorted by section and then as in the source table."""
    cases: dict[tuple[CodesSection, str], list[Case]] = {}
    for section, gathered in (
        (CodesSection.ANSWERS, _of_answers()),
        (CodesSection.NO_ANSWER, _of_no_answer()),
        (CodesSection.RULES, _of_rules()),
        (CodesSection.WARNINGS, _of_warnings()),
    ):
        for code, case in gathered:
            cases.setdefault((section, code), []).append(case)
    found = {code: Explanation(code, section, tuple(cases_of)) for (section, code), cases_of in cases.items()}
    assert len(found) == len(cases), "one code stands for two things"
    return found


def _of_answers() -> Iterator[tuple[str, Case]]:
    seen = set()  # APIs may share a table of codes
    for api in APIS.values():
        for asked_by, where in api.asked.items():
            if where not in seen:
                seen.add(where)
                for (basis, code), meaning in api.meanings.items():
                    if basis is asked_by:
                        yield str(code), _case(Sentence("explain.from_api", api=where), meaning)


def _of_no_answer() -> Iterator[tuple[str, Case]]:
    wheres = {
        AnswerState.DEFERRED: Sentence("explain.from_not_asked"),
        AnswerState.UNANSWERED: Sentence("explain.from_no_reply"),
        AnswerState.REFUSED: Sentence("explain.from_refusal"),
    }
    for (state, code), meaning in own_codes.MEANINGS.items():
        where = Sentence("explain.from_bank_report") if code in own_codes.OF_REPORTS else wheres[state]
        yield str(code), _case(where, meaning)
    for state, says in (
        (AnswerState.UNANSWERED, Sentence("explain.any_other_status")),
        (AnswerState.REFUSED, Sentence("explain.status_400_or_422")),
    ):
        yield HTTP_STATUS, _case(wheres[state], own_codes.BY_STATE[state])._replace(says=says)


def _of_rules() -> Iterator[tuple[str, Case]]:
    """Yield one case for each code and sentence, with all its fields."""
    fields: dict[tuple[str, Sentence], list[str]] = {}
    for rule in RULES:
        fields.setdefault((rule.code, rule.sentence), []).append(rule.field)
    for (code, sentence), named in fields.items():
        says = Sentence("formats.sentence_with_full_stop", sentence=sentence)
        if code in UNASKED:
            where = Sentence("explain.from_profile", fields=named)
            yield code, _case(where, UNASKED[code])._replace(says=says)
            continue
        where = Sentence("explain.from_rules", fields=named)
        not_said = _RULES_NOT_SAID.get(code, _OF_A_RULE)
        to_do = ADVICE_BY_CODE.get(code, STEPS[Action.CORRECT_ROW])
        yield code, Case(where, Outcome.REJECTED, Action.CORRECT_ROW, says, not_said, to_do)


def whole(text: str) -> str:
    """Return a text as a separate sentence, with a capital letter."""
    return f"{text[0].upper()}{text[1:]}"


def _of_warnings() -> Iterator[tuple[str, Case]]:
    for code in WarningCode:
        of_code = f"explain.{code.value.lower()}"
        says = Sentence(of_code, names_max=PAYEES_MAX)
        not_said, to_do = Sentence(f"{of_code}_not"), Sentence(f"{of_code}_do")
        yield code.value, Case(Sentence("explain.from_warning"), None, None, says, not_said, to_do)


def _case(where: Sentence, meaning: Meaning) -> Case:
    to_do = meaning.advice or STEPS[meaning.action]
    return Case(where, meaning.outcome, meaning.action, meaning.reason, meaning.not_said, to_do)


def print_explanation(explanation: Explanation, console: Console) -> None:
    """Print every meaning of one code."""
    console.print(Text(explanation.code, style="bold"))
    for case in explanation.cases:
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True, style="dim")
        table.add_column()
        for name, text in _lines(case):
            table.add_row(f"  {in_words(name)}", Text(text))
        console.print(table, "")


def print_codes(explanations: Iterable[Explanation], console: Console, *, in_full: bool) -> None:
    """Print all codes by source; in full, each with its first meaning."""
    listed = list(explanations)
    for section in CodesSection:
        mine = [explanation for explanation in listed if explanation.section is section]
        if not in_full:
            console.print(Text(in_words(_SECTIONS[section]), style="bold"))
            console.print(Padding(Text(" ".join(one.code for one in mine)), (0, 0, 1, 2)))
            continue
        table = table_of("code", "")  # the section is its heading
        table.columns[1].header = in_words(_SECTIONS[section])
        for one in mine:
            table.add_row(one.code, whole(in_words(one.cases[0].says)))
        console.print(table, "")
    console.print(Text(in_words(Sentence("explain.how_to_explain_codes"))))


_SECTIONS = {section: Sentence(f"explain.{section.name.lower()}") for section in CodesSection}


def _lines(case: Case) -> Iterable[tuple[Sentence, str]]:
    yield Sentence("explain.from"), in_words(case.where)
    if case.outcome is not None:
        yield Sentence("explain.outcome"), in_words(Sentence(f"outcome.{case.outcome}"))
    yield Sentence("explain.says"), whole(in_words(case.says))
    yield Sentence("explain.does_not_say"), in_words(case.not_said)
    yield Sentence("explain.to_do"), in_words(case.to_do)
