"""The result of a run in words, for page, workbook and terminal."""

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from textwrap import fill
from typing import Any

from pipeline.apis import RETRY_ELSEWHERE, RETRY_HERE
from pipeline.apis.own_codes import OF_REPORTS, TOO_LARGE, WRONG_FORM
from pipeline.frames import Reasons
from pipeline.wording import Sentence, SurfaceKind, Value, language, rendered
from pipeline.wording.rows import positions_named, rows_named
from pipeline.wording.sentences import number_of
from schemas.outcomes import ABOUT_THE_PAYEE, Action
from schemas.prices import Price
from schemas.row_positions import RowPositions
from schemas.summary import CurrencySources, Money, NotPayment, StatedControl, WarningCount

SIMULATED = Sentence("terminal.simulated")
ROWS_NAMED_MAX = 10
BY_POLICY = "policy"  # replaces a warning's code for a match that the policy does not release
ADVICE = {
    action: RETRY_HERE if action is Action.RETRY_LATER else Sentence(f"todo.{action}") for action in Action
}
"""The next step for each action."""
_ASK_PROVIDER = Sentence("todo.ask_provider")
ADVICE_BY_CODE: Mapping[str, Sentence] = {
    "NO_API": Sentence("todo.add_section"),  # the row may be correct
    "RESPONDER_BIC_UNKNOWN": Sentence("todo.give_bic"),
    "FOURHUN": Sentence("todo.check_details_or_ask_provider"),
    "HTTPERR": RETRY_ELSEWHERE,  # this is an answer, unlike other codes worth retrying
    TOO_LARGE: _ASK_PROVIDER,
    WRONG_FORM: _ASK_PROVIDER,
    BY_POLICY: Sentence("todo.policy_asks_for_decision"),
    **{code: Sentence(f"warning.{code}") for code in ABOUT_THE_PAYEE},
    **{code: meaning.advice for code, meaning in OF_REPORTS.items() if meaning.advice is not None},
}
"""The next step for codes whose action has another one, and for a match that needs review."""
_OPTION = re.compile(r'--[a-z-]+ (?:"[^"]*"|[^ ]+)')
_BLANK_KEPT = "\0"  # marks a blank where lines do not break; `visible` removes it from all sentences


def between_words(sentence: str, width: int) -> str:
    """Wrap a sentence for a terminal; an option and its value stay together.

    >>> print(between_words('say which with --map name=Tenant or --map "name=The owner"', 33))
    say which with --map name=Tenant
    or --map "name=The owner"
    """
    together = _OPTION.sub(lambda option: option[0].replace(" ", _BLANK_KEPT), sentence)
    return fill(together, width, break_long_words=False, break_on_hyphens=False).replace(_BLANK_KEPT, " ")


def advice(action: Action, code: str) -> Sentence:
    """Return the next step for a row."""
    return ADVICE_BY_CODE.get(code) or ADVICE[action]


def say(key: str, /, **values: Value) -> str:
    """Return a sentence of the catalogues in the current language, for any surface."""
    return rendered(Sentence(key, **values), SurfaceKind.ANY)


def number(count: float | Decimal, style: str = ",") -> str:
    """Return a number in the format of the current language."""
    return number_of(count, style, language())


def counted(count: int, thing: str) -> str:
    """Return a count with its noun.

    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return say(f"counted.{thing.replace(' ', '_')}", count=count)


def which_rows(rows: Sequence[int], *, positions: RowPositions | None = None) -> str:
    """List row numbers, only the first if there are many.

    Row numbers have no thousands separators, which would look like commas in a list.

    >>> which_rows([2]), which_rows([2, 1200]), which_rows(range(1, 13))
    ('row 2', 'rows 2, 1200', 'rows 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more')
    """
    return in_words(rows_named(rows[:ROWS_NAMED_MAX], positions, row_count=len(rows)))


def positions_in_words(rows: Sequence[int], positions: RowPositions | None) -> str:
    """List positions of rows, such as `lines 24, 25`; empty without rows, or if the format has none."""
    return say("places.at", places=positions_named(rows, positions)) if positions is not None and rows else ""


def position_pattern(positions: RowPositions | None) -> str:
    """Return the pattern for `position_texts`; empty for paths, which have no words."""
    match None if positions is None else positions.unit:
        case "line":
            return say("places.lines", count=1, places="{}")
        case "sheet row":
            return say("places.sheet_rows", count=1, places="{}")
        case _:
            return ""


def in_brackets(rows: Sequence[int], positions: RowPositions | None) -> str:
    """Return the positions in brackets, to follow the row numbers."""
    where = positions_in_words(rows, positions)
    return f" ({where})" if where else ""


def visible(text: str) -> str:
    r"""Make characters visible that a terminal would act on.

    >>> visible("Acme [bold]\x1b[31m")
    'Acme [bold]\\x1b[31m'
    """
    if text.isprintable():  # the usual case, quick to test
        return text
    return "".join(
        character
        if unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Zl", "Zp"}
        else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def money_text(money: Money) -> str:
    """Return a total with its currency: `1,234.56 GBP`."""
    return f"{number(money.amount)} {visible(money.currency or say('page.no_currency'))}"


def price_text(price: Price) -> str:
    """Return a price with as many decimals as it needs, at least two.

    >>> from decimal import Decimal
    >>> price_text(Price(amount=Decimal("1234.5"), currency="GBP"))
    '1,234.50 GBP'
    >>> price_text(Price(amount=Decimal("0.002500"), currency="EUR"))
    '0.0025 EUR'
    """
    decimals = f"{price.amount:f}".partition(".")[2].rstrip("0")
    return f"{number(price.amount, f',.{max(2, len(decimals))}f')} {price.currency}"


def money_lines(row_count: int, totals: Sequence[Money]) -> str:
    """Return totals, one per line, and the number of rows that no total includes."""
    lines = [money_text(money) for money in totals]
    if without_count := row_count - sum(money.row_count for money in totals):
        lines.append(say("terminal.rows_without_amount", rows=counted(without_count, "row")))
    return "\n".join(lines)


def warning_text(count: WarningCount, positions: RowPositions | None = None) -> str:
    """Return a warning, and its rows with their positions in the file."""
    more = ", ..." if count.row_count > len(count.rows) else ""
    rows = ", ".join(map(str, count.rows))
    where = f"; {positions_in_words(count.rows, positions)}{more}" if positions is not None else ""
    what = Sentence(f"warned.{count.code}")
    sentence = Sentence("terminal.warned_rows", what=what, count=count.row_count, rows=f"{rows}{more}{where}")
    return in_words(sentence)


def note_sentences(notes: Iterable[str]) -> list[str]:
    """Return a line for each note on the choice of columns."""
    return [in_words(Sentence("terminal.note", note=in_words(note))) for note in notes]


def not_payment_sentences(rows: Iterable[NotPayment]) -> list[str]:
    """Return a line for each row that is not a payment; differing figures are warnings."""
    return [_warning(row.sentence) if row.agrees is False else in_words(row.sentence) for row in rows]


def in_words(sentence: Sentence | str) -> str:
    """Return a sentence in the words of a terminal; text is unchanged."""
    return rendered(sentence, SurfaceKind.COMMAND)


def _warning(text: str) -> str:
    return in_words(Sentence("terminal.warning", sentence=in_words(text)))


def currency_sentences(sources: CurrencySources) -> list[str]:
    """Return the source of the currencies, if the file does not state all of them."""
    ways = [
        (sources.given, Sentence("terminal.by_currency_column")),
        (sources.beside_amount, Sentence("terminal.beside_amount")),
        (sources.uk_account, Sentence("terminal.as_uk_account")),
        (sources.unknown, Sentence("terminal.currency_unknown")),
    ]
    if sources.given == sum(count for count, _ in ways):
        return []
    ways_used = [Sentence("terminal.rows_by_source", count=count, way=way) for count, way in ways if count]
    return [in_words(Sentence("terminal.currencies", told=ways_used))]


CONTROLS_SHOWN_MAX = 5
"""Maximum number of differing control totals shown; a file cut off within one batch has two or three."""
_SAID_OTHERWISE = {
    "name_chars_max": "fact.at_most_chars", "sealed": "fact.signed", "labels none": "fact.no_labels"
}  # fmt: skip
"""Facts whose values need words."""


def facts_in_words(facts: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return name and value of facts about the whole file."""
    named = []
    for name, fact in facts.items():
        key = _SAID_OTHERWISE.get(name, _SAID_OTHERWISE.get(f"{name} {fact}"))
        if fact:
            named.append((say(f"fact.{name.replace(' ', '_')}"), say(key, number=fact) if key else fact))
    return named


def controls_in_words(controls: Sequence[StatedControl], count: int) -> str:
    """Return how many totals the file states, and how many differ from its payments."""
    differing_count = sum(not control.agrees for control in controls)
    if not differing_count:
        return say("controls.agree", count=count)
    if count == 1:
        return say("controls.only_one_differs")
    return say("controls.differ", count=differing_count, all=count)


def difference_sentences(controls: Sequence[StatedControl]) -> list[str]:
    """Warn about each control total that differs from the payments; only the first if there are many."""
    sentences = [control.difference for control in controls if control.difference]
    lines = [_warning(sentence) for sentence in sentences[:CONTROLS_SHOWN_MAX]]
    more_count = len(sentences) - len(lines)
    more = [in_words(Sentence("terminal.more_controls_differ", count=more_count))] if more_count else []
    return [*lines, *more]


SaidReasons = Mapping[str, str]
"""Reason -> its sentences, as in `frames.REASONS`."""


def said_reasons(reasons: Reasons) -> SaidReasons:
    """Return the frame as a mapping."""
    return dict(reasons.iter_rows())


def sentences_of(reason: str, reasons: SaidReasons, positions: RowPositions | None) -> list[Sentence | str]:
    """Return the sentences of a `check_reason`, with positions of rows; its text if they are unknown."""
    recorded = reasons.get(reason)
    return [reason] if recorded is None else [sentence_of(one, positions) for one in json.loads(recorded)]


def sentence_of(data: list[Any], positions: RowPositions | None) -> Sentence:
    """Return a sentence of `frames.FINDINGS`, with positions for row numbers."""
    return _located(Sentence.of_data(data), positions)


def _located(sentence: Sentence, positions: RowPositions | None) -> Sentence:
    sentences = ((name, value) for name, value in sentence.values.items() if isinstance(value, Sentence))
    within = {name: _located(value, positions) for name, value in sentences}
    row = sentence.values.get("row")
    if isinstance(row, int):
        within["row"] = rows_named([row], positions)
    return sentence.having(**within)
