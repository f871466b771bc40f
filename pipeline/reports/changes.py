"""Changes since an earlier run: shown first and masked, with old and new next to each other."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from pipeline.frames import CHANGES, PAYMENTS
from pipeline.reports.groups import WORD_CHARS_MAX, amount_text, currency_text, shown
from pipeline.reports.wording import counted, in_words, positions_in_words, say, visible
from pipeline.rules.totals import money_of, plain
from pipeline.wording import Sentence
from schemas.changes import Change, Comparison
from schemas.forecast import Forecast
from schemas.outcomes import WarningCode
from schemas.row_positions import RowPositions
from schemas.summary import Summary, WarningCount

LISTED_MAX = 1000  # maximum number of changes listed, the most serious codes and the largest amounts first
WORDS: Mapping[WarningCode, Sentence] = {
    WarningCode.BANK_DIFFERS: Sentence("changes.bank_differs"),
    WarningCode.ACCOUNT_CHANGED: Sentence("changes.account_changed"),
    WarningCode.NAME_CHANGED: Sentence("changes.name_changed"),
    WarningCode.PAYEE_NEW: Sentence("changes.payee_new"),
}
"""Kinds of change, the most serious first."""


def gravest(changes: pl.DataFrame, payments: pl.DataFrame) -> pl.DataFrame:
    """Add the payments' amounts to changes, then `gravest_first`; `payments` are consecutive rows."""
    assert changes.schema == CHANGES
    assert payments.schema == PAYMENTS
    money, currency = money_of(payments[changes["row"] - (payments["row"].min() or 1)])
    return gravest_first(changes.with_columns(money.alias("amount"), currency.alias("currency")))


def gravest_first(changes: pl.DataFrame) -> pl.DataFrame:
    """Sort accounts, names, then new payees, largest first; keep only those that are listed."""
    rank = pl.col("code").replace_strict(
        {code.value: rank for rank, code in enumerate(WORDS)}, return_dtype=pl.Int8
    )
    ordered = changes.sort(rank, "amount", "row", descending=[False, True, False], nulls_last=True)
    return ordered.head(LISTED_MAX)


def gravest_in_parts(
    changes: pl.DataFrame, parts: Iterable[tuple[int, int, Callable[[], pl.DataFrame]]]
) -> pl.DataFrame:
    """Like `gravest`, for a data set; a part is its first row, its row count and a reader of `Payments`."""
    found = [gravest(changes.clear(), pl.DataFrame(schema=PAYMENTS))]
    for first_row, row_count, payments in parts:
        mine = changes.filter(pl.col("row").is_between(first_row, first_row + row_count - 1))
        if not mine.is_empty():
            found.append(gravest(mine, payments()))
    return gravest_first(pl.concat(found))


def listed_changes(changes: pl.DataFrame, comparison: Comparison | None) -> list[Change]:
    """Return the changes of `gravest` for people, without new payees if every payee is new."""
    if comparison is not None and all_are_new(comparison):
        changes = changes.filter(pl.col("code") != WarningCode.PAYEE_NEW)
    return [
        Change(**row, amount=None if amount is None else plain(amount))
        for row, amount in zip(changes.drop("amount").iter_rows(named=True), changes["amount"], strict=True)
    ]


def changes_of(summary: Summary, payments: pl.DataFrame, changes: pl.DataFrame | None) -> list[Change]:
    """Return the changes that a person reviews; empty if purged or none were found."""
    return [] if changes is None else listed_changes(gravest(changes, payments), summary.compared)


def all_are_new(comparison: Comparison) -> bool:
    """True if earlier runs know no payee of the file, or there are no earlier runs."""
    return comparison.new_count == comparison.payee_count


def compared_with(comparison: Comparison) -> str:
    """Return a sentence on a comparison and its result."""
    if not comparison.runs:
        return say("changes.no_earlier_run", requested=comparison.requested)
    folders = [run.folder for run in comparison.runs]
    if comparison.payee_count and all_are_new(comparison):
        return say("changes.all_payees_are_new", folders=folders)
    return say("changes.compared", folders=folders)


def comparisons_in_words(found: Summary | Forecast) -> str | None:
    """Return what a file was compared with, and the result; None if with nothing."""
    sentences = [] if found.compared is None else [compared_with(found.compared)]
    if isinstance(found, Summary) and found.bank_comparison is not None:
        sentences.append(compared_with_bank(found))
    return " ".join(sentences) or None


def compared_with_bank(summary: Summary) -> str:
    """Return a sentence on the comparison of a check with the bank's reports."""
    bank = summary.bank_comparison
    assert bank is not None
    return say("changes.compared_with_bank", count=len(summary.bank_reports), **bank.model_dump())


def counts_in_words(counts: Iterable[WarningCount]) -> str:
    """Return a sentence with the number of changed payments by kind; empty if there are none."""
    known = [
        (counted(count.row_count, "payment"), WORDS[count.code]) for count in counts if count.code in WORDS
    ]
    words = [Sentence("changes.counted", payments=payments, what=what) for payments, what in known]
    return say("changes.told", told=words) if words else ""


def sides(change: Change) -> tuple[str, str]:
    """Return old and new value, to show next to each other."""
    then = "-" if change.code is WarningCode.PAYEE_NEW else change.then or say("changes.no_longer_kept")
    if change.code is WarningCode.BANK_DIFFERS:
        return _outcome_shown(then), _outcome_shown(change.now)
    return visible(then), visible(change.now)


def _outcome_shown(text: str) -> str:
    """Return an outcome in words, with the masked name that came with it."""
    outcome, colon, name = text.partition(":")
    return f"{say(f'outcome.{outcome}')}{colon}{visible(name)}"


class ChangeLine(NamedTuple):
    """One change, as text for the page."""

    number: int
    place: str
    payment_id: str
    payee: str
    what: str
    then: str
    now: str
    amount: str
    currency: str


def lines(
    changes: Iterable[Change], rows: pl.DataFrame, positions: RowPositions | None
) -> Iterator[ChangeLine]:
    """Yield the listed changes with the payee, from ID and name in their rows."""
    changes = list(changes)
    some = rows.filter(pl.col("row").is_in([change.row for change in changes]))
    who = {row: told for row, *told in some.select("row", "payment_id", "name").iter_rows()}
    for change in changes:
        payment_id, name = who[change.row]
        then, now = sides(change)
        yield ChangeLine(
            change.row,
            positions_in_words([change.row], positions),
            shown(payment_id, WORD_CHARS_MAX),
            shown(name),
            in_words(WORDS[change.code]),
            then,
            now,
            "" if change.amount is None else amount_text(change.amount),
            "" if change.amount is None else currency_text(change.currency),
        )


class ChangeSection(NamedTuple):
    """What one comparison found, for the page."""

    id: str
    heading: str
    compared: str
    note: str  # what to do about the changes
    then: str  # the heading of the old values
    now: str
    lines: Sequence[ChangeLine]


def sections(summary: Summary, changes: Iterable[Change], rows: pl.DataFrame) -> Iterator[ChangeSection]:
    """Yield what the bank's report changed first: it is newest; then what changed since earlier runs."""
    of_bank, others = list[Change](), list[Change]()
    for change in changes:
        (of_bank if change.code is WarningCode.BANK_DIFFERS else others).append(change)
    places = summary.input.positions
    if summary.bank_comparison is not None:
        yield ChangeSection(
            "bank",
            say("page.bank_differs"),
            compared_with_bank(summary),
            say("page.both_results_kept"),
            say("page.bank_check"),
            say("page.bank"),
            list(lines(of_bank, rows, places)),
        )
    if summary.compared is not None:
        yield ChangeSection(
            "changed",
            say("page.changed_since"),
            compared_with(summary.compared),
            say("page.call_about_changed_account"),
            say("page.then"),
            say("page.now"),
            list(lines(others, rows, places)),
        )


def beside_rows(changes: Iterable[Change]) -> pl.DataFrame:
    """Return each payment's changes in one line: `row`, `changed`, `then` and `now`."""
    pairs = [(change.row, in_words(WORDS[change.code]), *sides(change)) for change in changes]
    columns = {"row": pl.UInt32(), **dict.fromkeys(("changed", "then", "now"), pl.String())}
    joined = [pl.col(column).str.join("; ") for column in ("changed", "then", "now")]
    return pl.DataFrame(pairs, columns, orient="row").group_by("row", maintain_order=True).agg(joined)
