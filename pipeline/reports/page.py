"""Render the report as one HTML page of limited size, without network access or active data.

The page has its own style and script, and a content security policy that allows only these two, by their
hashes (RELIABILITY, table E). The template or `payment_lines` escapes every text.
"""

import os
import re
import sys
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import polars as pl
from jinja2 import BytecodeCache, Environment, FunctionLoader, StrictUndefined, Template
from jinja2.bccache import Bucket
from markupsafe import Markup, escape

from pipeline.reports.changes import LISTED_MAX, WORDS, counts_in_words, sections
from pipeline.reports.differences import Piece
from pipeline.reports.groups import (
    PARTS_ROWS_MAX,
    REASON_CHARS_MAX,
    Row,
    amount_text,
    currency_text,
    money_texts,
    numbered,
    pending,
    shown,
)
from pipeline.reports.wording import (
    CONTROLS_SHOWN_MAX,
    SIMULATED,
    controls_in_words,
    counted,
    facts_in_words,
    in_words,
    number,
    say,
    which_rows,
)
from pipeline.rules.totals import control_totals
from pipeline.wording import ENGLISH, Value, language
from schemas.changes import Change
from schemas.outcomes import Outcome, WarningCode
from schemas.row_positions import RowPositions
from schemas.summary import OutcomeTotal, Summary, WarningRow

_PACKAGE = "pipeline.reports"
ROWS_MAX = 20_000  # maximum number of payments that the page lists
ROWS_SEARCHED_MAX = 5_000  # most rows of a file whose matches are on the page too, for its search
MONEY_AT_ONCE = 3  # maximum number of currencies next to a step; others are above its rows
BANKS_AT_ONCE = 12  # maximum number of rows in the table of banks; the workbook has a thousand
BATCHES_AT_ONCE = 100  # maximum number of rows in the table of batches; the workbook has a thousand
PARTS_AT_ONCE = 1_000  # maximum number of rows in the table of a data set's parts
CHANGES_AT_ONCE = 20  # changes shown at first; a reader can expand the others
ROWS_AT_ONCE = 500  # maximum number of payments in the browser's document at a time
ROWS_ON_PAPER = 2_000  # most payments that are printed: those selected on the screen, in their order

_REPEATED = WarningCode.PAYMENT_REPEATED
_TOLD_APART = (_REPEATED, *WORDS)


def page(
    summary: Summary, rows: pl.DataFrame, changes: Sequence[Change] = (), *, sums: pl.DataFrame | None = None
) -> str:
    """Render the report of one run as a whole HTML document.

    The page names payees and masks accounts. It lists at most `ROWS_MAX` payments that are not a match, and
    says if there are more. `rows` has one row per payment of the file, with `groups.COLUMNS` of `Payments`
    and `Outcomes`; for a data set, only those that may be listed, with `sums` from `groups.added_sums`.
    """
    assert sums is not None or rows.height == summary.input.row_count
    rows_max, searched_max = (ROWS_MAX, ROWS_SEARCHED_MAX) if sums is None else (PARTS_ROWS_MAX, 0)
    told_together = (warning for warning in summary.warnings if warning.code not in _TOLD_APART)
    return template().render(
        summary=summary,
        banks_before={bank.bank: bank for bank in (summary.compared.banks if summary.compared else [])},
        file=shown(summary.input.name),
        server=say(f"page.server_{summary.environment}"),
        simulated=in_words(SIMULATED) if summary.simulated else "",
        has_answers=any(total.row_count for total in summary.outcomes if total.outcome not in _NO_ANSWER),
        finished=f"{datetime.fromisoformat(summary.finished):%Y-%m-%d %H:%M} UTC",
        overview=overview(summary.outcomes),
        counts={total.outcome: total.row_count for total in summary.outcomes if total.row_count},
        pending=pending(
            rows, rows_max=rows_max, searched_max=searched_max, positions=summary.input.positions, sums=sums
        ),
        pairs=pairs(summary, rows) if sums is None else (),
        repeated_count=repeated_count(summary),
        warning_lines=warning_lines(told_together, summary.input.positions),
        comparisons=list(sections(summary, changes, rows)),
        changes=changes,
        change_counts=counts_in_words(summary.warning_codes),
        facts=facts_in_words(summary.input.facts),
        controls=controls_in_words(summary.input.controls, summary.input.control_count),
        requests=sum(call.request_count for call in summary.calls),
        questions=sum(call.question_count for call in summary.calls),
        report_count=len(summary.bank_reports) if summary.is_bank_answered else 0,
    )


_NO_ANSWER = (Outcome.REJECTED, Outcome.DEFERRED, Outcome.UNANSWERED)


@cache
def template() -> Template:
    """Compile the template of the page, once per process: that takes longer than rendering."""
    # Unoptimised, it compiles in a fifth of the time; it has no constants to optimise.
    environment = templates(_PACKAGE, optimized=False)
    environment.filters["breakable"] = breakable
    environment.filters["lines"] = payment_lines
    environment.filters["amounts"] = money_texts
    style, script = template_file(_PACKAGE, "report.css"), template_file(_PACKAGE, "report.js")
    environment.globals |= {
        "language": language,
        "say": _markup,
        "in_words": in_words,
        "number": number,
        "bold": Markup("<b>{}</b>").format,
        "bdi": Markup("<bdi>{}</bdi>").format,
        "capital": lambda text: text[:1].upper() + text[1:],
        "script_words": lambda: {name: say(key, **_PLACEHOLDERS) for name, key in _OF_SCRIPT.items()},
        "style": Markup(style),  # noqa: S704 (our own file, without placeholders)
        "script": Markup(script),  # noqa: S704 (our own file too)
        "policy": _policy(style, script),
        "counted": counted,
        "shown": shown,
        "rows_searched_max": ROWS_SEARCHED_MAX,
        "money_at_once": MONEY_AT_ONCE,
        "differences_at_once": CONTROLS_SHOWN_MAX,
        "batches_at_once": BATCHES_AT_ONCE,
        "banks_at_once": BANKS_AT_ONCE,
        "parts_at_once": PARTS_AT_ONCE,
        "changes_at_once": CHANGES_AT_ONCE,
        "changes_max": LISTED_MAX,
        "rows_at_once": ROWS_AT_ONCE,
        "rows_on_paper": ROWS_ON_PAPER,
    }
    return environment.get_template("report.html")


def _markup(key: str, **values: Value) -> Markup:
    """Return one of our sentences as markup, with escaped values."""
    escaped = {name: escape(value) if isinstance(value, str) else value for name, value in values.items()}
    return Markup(say(key, **escaped))  # noqa: S704 (the words are ours, and the values escaped)


_OF_SCRIPT = {
    "grouped": "page.rows_grouped",
    "groupedHere": "page.rows_grouped_here",
    "sorted": "page.rows_sorted",
    "sortedHere": "page.rows_sorted_here",
    "allInFile": "page.all_in_file",
    "copy": "page.copy",
    "copied": "page.copied",
    "notCopied": "page.not_copied",
    "ofRow": "page.word_of_row",
    "rowCopied": "page.row_copied",
    "rowSelected": "page.row_selected",
}
# The script fills in the values, so they stay in braces.
_PLACEHOLDERS = {name: f"{{{name}}}" for name in ("shown", "all", "first", "last", "word", "row")}


def _policy(style: str, script: str) -> str:
    """Return the content security policy of the page: only this style and script."""
    style, script = (b64encode(sha256(text.encode()).digest()).decode() for text in (style, script))
    return (
        f"default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; "
        "base-uri 'none'; form-action 'none'"
    )


LINES_MAX = 20


def warning_lines(warnings: Iterable[WarningRow], positions: RowPositions | None) -> list[tuple[str, str]]:
    """Return each distinct warning and its rows, such as `rows 2, 5 (lines 3, 6)`, up to a limit."""
    rows: dict[str, list[int]] = {}
    for warning in warnings:
        # Other languages show the sentence of the code, because details about the row are English.
        text = warning.message if language() == ENGLISH else say(f"warned.{warning.code}")
        rows.setdefault(text, []).append(warning.row)
    return [
        (shown(message, REASON_CHARS_MAX), which_rows(numbers, positions=positions))
        for message, numbers in list(rows.items())[:LINES_MAX]
    ]


PAIRS_MAX = 50


def pairs(summary: Summary, rows: pl.DataFrame) -> list[tuple[Row, Row]]:
    """Return at most `PAIRS_MAX` repeated payments, in row order, each with the first equal one."""
    found = [(warning.repeats, warning.row) for warning in summary.warnings if warning.repeats is not None][
        :PAIRS_MAX
    ]
    shown = numbered(rows, [number for pair in found for number in pair], summary.input.positions)
    return list(zip(shown[::2], shown[1::2], strict=True))


def repeated_count(summary: Summary) -> int:
    """Count the payments that repeat an earlier one and may be paid twice."""
    return sum(count.row_count for count in summary.warning_codes if count.code is _REPEATED)


CURRENCIES_DRAWN_MAX = 3
DRAWN_CHARS_MAX = 36  # total length of totals with bars, which must fit next to each other on half a screen
CURRENCIES_NAMED_MAX = 200  # more than all currencies that exist; a hostile file can have one in every row


class Bar(NamedTuple):
    """A number and its bar."""

    text: str  # the number as text; empty if zero
    share: int  # percentage of the file's rows, or of its amounts in this currency; at least 1 unless zero


class OutcomeLine(NamedTuple):
    """The row of one outcome in the chart."""

    outcome: Outcome
    bars: tuple[Bar, ...]  # one for each header


class Total(NamedTuple):
    """The totals of a currency, shown as text without bars."""

    currency: str
    whole: str  # the file's total
    open: str  # total of rows that are not a match; empty without any


class Overview(NamedTuple):
    """The contents of the chart."""

    headers: tuple[str, ...]  # rows first, then as many currencies as fit, most rows first
    lines: tuple[OutcomeLine, ...]  # outcomes that have rows
    totals: tuple[str, ...]  # totals of the whole file, one for each header
    more: tuple[Total, ...]  # totals of the other currencies
    unnamed_count: int  # number of currencies that are neither drawn nor in `more`
    without_amount_count: int  # rows without a readable amount, which no sum includes


def overview(outcomes: Sequence[OutcomeTotal]) -> Overview:
    """Lay out the totals of a summary; each bar is a share of the whole, so that all are comparable."""
    found = [total for total in outcomes if total.row_count]
    whole = {money.currency: money for money in control_totals(found)}
    not_match = [total for total in found if total.outcome is not Outcome.MATCH]
    left = {money.currency: amount_text(money.amount) for money in control_totals(not_match) if money.amount}
    currencies = sorted(whole, key=lambda code: (-whole[code].row_count, code or ""))
    drawn_count = _drawn_count([amount_text(whole[code].amount) for code in currencies])
    drawn, rest = currencies[:drawn_count], currencies[drawn_count:]
    amounts = [{money.currency: money.amount for money in total.totals} for total in found]
    bars = [
        _bars([Decimal(total.row_count) for total in found], number),
        *(_bars([amount.get(code, Decimal()) for amount in amounts], amount_text) for code in drawn),
    ]
    row_count = sum(total.row_count for total in found)
    named = ((code, amount_text(whole[code].amount)) for code in rest[:CURRENCIES_NAMED_MAX])
    more = tuple(Total(currency_text(code), amount, left.get(code, "")) for code, amount in named)
    return Overview(
        headers=(say("page.rows"), *(currency_text(code) for code in drawn)),
        lines=tuple(
            OutcomeLine(total.outcome, of_outcome)
            for total, of_outcome in zip(found, zip(*bars, strict=True), strict=True)
        ),
        totals=(number(row_count), *(amount_text(whole[code].amount) for code in drawn)),
        more=more,
        unnamed_count=len(rest) - len(more),
        without_amount_count=row_count - sum(money.row_count for money in whole.values()),
    )


def _drawn_count(totals: Sequence[str]) -> int:
    """Return how many currencies with these totals fit; at least one."""
    room = DRAWN_CHARS_MAX
    for count, total in enumerate(totals[:CURRENCIES_DRAWN_MAX]):
        room -= len(total)
        if room < 0 and count:
            return count
    return min(len(totals), CURRENCIES_DRAWN_MAX)


def _bars(numbers: Sequence[Decimal], text_of: Callable[[Decimal], str]) -> list[Bar]:
    whole = sum(numbers, Decimal())
    return [
        Bar(text_of(number), max(1, int(100 * number / whole))) if number else Bar("", 0)
        for number in numbers
    ]


ID_CHARS_MAX = 35  # maximum length of an ID that stays on one line, as in payment messages
AMOUNT_CHARS_MAX = 20  # longest amount that stays on one line: hundreds of billions, three decimals

# Never in texts: `groups.shown` removes control characters.
_BETWEEN, _MARK, _MARK_END = "\0", "\1", "\2"
_WORD_END = re.compile("[_/.:-]")
_AFTER_A_SIGN = re.compile("(?<=[_/.:])")
"""The position after a sign where an ID may break; browsers break after hyphens anyway."""


def payment_lines(rows: Iterable[Row]) -> Markup:
    """Return the lines of the table on the page, in row order; a template would take five times as long.

    All texts of a line are escaped before markup is added, so that none can be forgotten.
    """
    names = {outcome: say(f"outcome.{outcome}") for outcome in Outcome}
    return Markup("".join(_line(row, names[row.outcome]) for row in rows))  # noqa: S704 (each line escapes its texts)


def breakable(text: str) -> Markup:
    """Return a code or ID as text that may break across lines only after a sign."""
    return Markup(_breakable(str(escape(text))))  # noqa: S704 (escaped here)


def _breakable(escaped: str) -> str:
    return _AFTER_A_SIGN.sub("<wbr>", escaped)


def _line(row: Row, outcome: str) -> str:
    names = row.names
    supplied, matched, sentence, payment_id, account, amount, currency, code, outcome, reason, *places = (
        _escaped(
            _marked(names.supplied), _marked(names.matched), " ".join(map(in_words, names.sentences)),
            row.payment_id, row.account, row.amount, row.currency, row.code, outcome, row.reason,
            row.place, row.batch,
        )
    )  # fmt: skip
    place, batch = (f" <small>{_breakable(text)}</small>" if text else "" for text in places)
    kind_of_id = "endless" if _endless(row.payment_id, ID_CHARS_MAX) else "id"
    kind_of_amount = " class=endless" if _endless(row.amount, AMOUNT_CHARS_MAX) else ""
    return (
        f'<tr class="{row.outcome}" data-rank="{row.amount_rank}">'
        f'<th scope="row"><b>{row.number}</b>{place}{batch}</th>'
        f'<td><bdi>{supplied}</bdi> <small class="{kind_of_id}">{_breakable(payment_id)}</small></td>'
        f"<td><bdi>{matched}</bdi> <small>{sentence}</small></td>"
        f"<td><span>{account}</span></td>"
        f"<td><span{kind_of_amount}>{amount}</span> <small>{currency}</small></td>"
        f"<td><b>{_breakable(code)}</b> <i>{outcome}</i> <small>{reason}</small></td></tr>\n"
    )


def _escaped(*texts: str) -> list[str]:
    """Return the texts as markup, with their differences highlighted."""
    escaped = str(escape(_BETWEEN.join(texts)))
    return escaped.replace(_MARK, "<mark>").replace(_MARK_END, "</mark>").split(_BETWEEN)


def _marked(pieces: Sequence[Piece]) -> str:
    return "".join(f"{_MARK}{piece.text}{_MARK_END}" if piece.marked else piece.text for piece in pieces)


def _endless(text: str, chars_max: int) -> bool:
    """True if a word of an ID or an amount is too long to show in one piece.

    >>> _endless("PAYROLL-2026/0001", 8), _endless("PAYROLLS2026", 8)
    (False, True)
    """
    return len(text) > chars_max and max(map(len, _WORD_END.split(text))) > chars_max


_FOLDER = Path(__file__).parent / "__pycache__"
_WRITTEN_BY = f"{sys.implementation.cache_tag}.jinja-{version('jinja2')}"


def templates(package: str, *, extensions: Sequence[str] = (), optimized: bool = True) -> Environment:
    """Return the templates of a package; every text is escaped, and unknown names are errors."""
    return Environment(
        loader=FunctionLoader(lambda name: template_file(package, name)),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=_CompiledTemplates(),
        extensions=extensions,
        optimized=optimized,
    )


def template_file(package: str, name: str) -> str:
    """Read a file next to the templates of a package."""
    return files(package).joinpath("templates", name).read_text("utf-8")


class _CompiledTemplates(BytecodeCache):
    """Jinja's compiled templates, keyed by template text, Python version and Jinja version."""

    def load_bytecode(self, bucket: Bucket) -> None:
        """Load a template that an earlier process compiled."""
        with suppress(OSError), _path(bucket).open("rb") as file:
            bucket.load_bytecode(file)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Store a compiled template in a file that appears whole or not at all."""
        if sys.dont_write_bytecode:
            return
        unfinished = _path(bucket).with_suffix(f".{os.getpid()}")
        with suppress(OSError):
            with unfinished.open("wb") as file:
                bucket.write_bytecode(file)
            unfinished.replace(_path(bucket))


def _path(bucket: Bucket) -> Path:
    return _FOLDER / f"{bucket.key}.{_WRITTEN_BY}.template"
