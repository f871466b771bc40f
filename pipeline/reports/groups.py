"""Group the payments that are not a match by next step: the body of the report page.

Text from the file and from banks leaves this module harmless and with limited length, without anything that a
browser or terminal would act on.
"""

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple

import polars as pl

from pipeline.frames import Warned
from pipeline.reports.differences import Difference, Piece, difference
from pipeline.reports.wording import (
    ADVICE_BY_CODE,
    advice,
    number,
    position_pattern,
    positions_in_words,
    say,
    visible,
)
from pipeline.rules.identifiers import masked
from pipeline.rules.row_positions import position_texts
from pipeline.rules.totals import MONEY_FIELDS, money_of
from pipeline.wording import Sentence
from schemas.changes import Change
from schemas.outcomes import UNDECIDED, Action, Outcome
from schemas.review import Verdict
from schemas.row_positions import RowPositions
from schemas.summary import Money

COLUMNS = (
    "row", "payment_id", "name", "lei", "organisation_bic", "organisation_id", "account_number", "iban",
    "amount", "currency", "check_outcome", "check_code", "check_reason", "check_action",
    "check_matched_name",
)  # fmt: skip
"""Columns of each payment, from `frames.PAYMENTS` and `frames.OUTCOMES`; some formats add `batch`."""
LISTED = tuple(dict.fromkeys((*COLUMNS, *MONEY_FIELDS, "account_type", "sort_code")))
"""Columns of a data set's listed payments; the workbook shows more."""

TEXT_CHARS_MAX = 160  # maximum length of a name as shown; names of more than 140 characters are never checked
REASON_CHARS_MAX = 600
CURRENCY_CHARS_MAX = 12
WORD_CHARS_MAX = 40  # maximum length of an ID, code or unreadable amount as shown
PARTS_ROWS_MAX = 5_000  # maximum number of payments that are listed for a data set, over all parts
CURRENCIES_MAX = 200  # most currencies shown for a group; a hostile file can have one in every row

_HAS_ADVICE = pl.col("check_code").is_in(list(ADVICE_BY_CODE))
_GROUP = pl.concat_str(
    "check_action", pl.when(_HAS_ADVICE).then("-" + pl.col("check_code")).otherwise(pl.lit(""))
)
_IDENTIFICATIONS = ("lei", "organisation_bic", "organisation_id")

_Compared = Callable[[str, str], Difference]  # `difference`, cached for the payments at hand


class ListedRows(NamedTuple):
    """The payments for the page and the workbook."""

    rows: pl.DataFrame
    """`Payments` joined with `Outcomes` on `row`, in row order: all, or those of a data set that may be
    listed; with `decision` and `reason` if there are decisions."""
    changes: Sequence[Change]  # differences from an earlier run, as from `changes.listed_changes`
    policy: Mapping[str, Verdict] | None
    """The profile's policy, which decides the actions offered for a row; None if unknown."""
    warned: Warned  # the warnings of each row
    sums: pl.DataFrame | None = None
    """For a data set, the sums of all rows, from `groups.added_sums`; None if `rows` has all rows."""


class Row(NamedTuple):
    """One payment as text to show."""

    number: int
    place: str  # its position in the file; empty if the format has none
    batch: str  # its batch; empty if the format has none
    payment_id: str
    names: Difference
    account: str
    amount: str
    currency: str
    amount_rank: int  # rank among the listed rows by amount, smallest first; 0 without an amount
    outcome: Outcome
    code: str
    reason: str


class ActionGroup(NamedTuple):
    """The payments with the same next step."""

    key: str  # its ID on the page: the action, and the code if that has its own advice
    action: Action
    advice: Sentence  # the next step
    row_count: int
    money: tuple[Money, ...]  # totals of readable amounts per currency, largest first
    more_currency_count: int  # number of currencies not in `money`
    rows: tuple[Row, ...]  # largest amounts first; fewer than `row_count` if the page is full


class Pending(NamedTuple):
    """All payments that are not a match."""

    groups: tuple[ActionGroup, ...]  # largest totals first; rows left for a later run come last
    row_count: int
    listed_count: int
    matches: ActionGroup | None  # the matches, for the search; None if the file has too many rows


def pending(
    rows: pl.DataFrame,
    *,
    rows_max: int,
    searched_max: int,
    positions: RowPositions | None = None,
    sums: pl.DataFrame | None = None,
) -> Pending:
    """Group the payments that are not a match, and collect the matches for the search, if they are few.

    `rows` has one row per payment, with `COLUMNS` as in `frames.PAYMENTS` and `frames.OUTCOMES`. Decided rows
    are listed before those left for a later run, and large amounts before small ones, in any currency.
    If `rows` has only payments that may be listed, `sums` covers all rows, from `sums_of`.
    """
    # For all payments, which may be millions, only the columns that decide the order are read.
    deciding = ("position", "check_outcome", "check_action", "group", *MONEY_FIELDS)
    is_match = pl.col("check_outcome") == Outcome.MATCH
    found = (
        rows.lazy()
        .with_row_index("position")
        .with_columns(group=_GROUP)
        .filter(~is_match | pl.lit(rows.height <= searched_max))
        .select(deciding)
        .collect()
    )
    found = _with_money(found)
    open_rows, matches = found.filter(~is_match), found.filter(is_match)
    chosen = pl.concat([_in_line(open_rows).head(rows_max), _in_line(matches)]).with_columns(
        amount_rank=pl.col("decimal").rank("dense").fill_null(0)
    )
    texts = rows.select(_columns_of(rows))[chosen["position"]].with_columns(
        chosen.select("group", "decimal", "currency", "amount_rank")
    )
    by_group = texts.with_columns(_places(texts["row"], positions)).partition_by("group", as_dict=True)
    compared = cache(difference)  # many payments may go to one payee

    def rows_of(key: str) -> tuple[Row, ...]:
        mine = by_group.get((key,), texts.clear())
        return tuple(_row(row, compared) for row in mine.iter_rows(named=True))

    open_sums = _sums(open_rows) if sums is None else sums
    return Pending(
        _groups(open_sums, rows_of),
        int(open_sums["row_count"].sum()),
        chosen.height - matches.height,
        next(iter(_groups(_sums(matches), rows_of)), None),
    )


def groups_of(rows: pl.DataFrame) -> tuple[ActionGroup, ...]:
    """Return the groups of rows in the order of `in_line`, with counts and amounts but no rows."""
    return _groups(_sums(rows), lambda _: ())


def _groups(sums: pl.DataFrame, rows_of: Callable[[str], tuple[Row, ...]]) -> tuple[ActionGroup, ...]:
    return tuple(
        ActionGroup(
            key,
            Action(action),
            advice(Action(action), key.partition("-")[2]),
            row_count,
            *_totals(sums.filter(pl.col("group") == key)),
            rows_of(key),
        )
        for key, action, row_count in _in_order(sums).iter_rows()
    )


def sums_of(rows: pl.DataFrame) -> pl.DataFrame:
    """Sum rows and amounts of non-matches for `pending`, by next step and currency."""
    open_rows = rows.lazy().filter(pl.col("check_outcome") != Outcome.MATCH).with_columns(group=_GROUP)
    return _sums(_with_money(open_rows.select("group", "check_action", *MONEY_FIELDS).collect()))


def added_sums(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return the combined sums of several sets of payments."""
    by = ("group", "check_action", "currency")
    added = pl.concat(parts).group_by(by).agg(pl.col("row_count", "summed_count", "decimal").sum())
    return added.sort("group", "currency")


def listable(rows: pl.DataFrame, rows_max: int, also: pl.Series) -> pl.DataFrame:
    """Return at most `rows_max` payments that `pending` lists first, and the rows `also`, as `LISTED`."""
    some = rows.lazy().with_row_index("position").filter(pl.col("check_outcome") != Outcome.MATCH)
    deciding = _with_money(some.select("position", "check_outcome", *MONEY_FIELDS).collect())
    others = rows["row"].is_in(also.implode()).arg_true()
    first = _in_line(deciding).head(rows_max)["position"]
    columns = list(dict.fromkeys([*LISTED, *_columns_of(rows)]))
    return rows.select(columns)[pl.concat([first, others]).unique().sort()]


def _with_money(rows: pl.DataFrame) -> pl.DataFrame:
    money, currency = money_of(rows)
    return rows.with_columns(money.alias("decimal"), currency)


def _sums(rows: pl.DataFrame) -> pl.DataFrame:
    """Sum rows with `group`, `check_action`, `decimal` and `currency`."""
    readable = pl.col("decimal").filter(pl.col("decimal") >= 0)
    return rows.group_by("group", "check_action", "currency").agg(
        row_count=pl.len(), summed_count=readable.len(), decimal=readable.sum()
    )


def in_line(rows: pl.DataFrame) -> pl.DataFrame:
    """Return all rows in review order: row, group, outcome, action, `decimal` and `currency`."""
    money = _with_money(rows).select(
        "row", "check_outcome", "check_action", "decimal", "currency", group=_GROUP
    )
    return _in_line(money.with_columns(position="row")).drop("position")


def numbered(rows: pl.DataFrame, numbers: Sequence[int], positions: RowPositions | None = None) -> list[Row]:
    """Return the payments with these row numbers, in this order; `rows` as for `pending`."""
    found = rows.select(*_columns_of(rows), "sort_code")[[number - 1 for number in numbers]]
    assert found["row"].to_list() == list(numbers)
    texts = _with_money(found).with_columns(amount_rank=pl.lit(0))
    texts = texts.with_columns(_places(texts["row"], positions))
    return [_row(row, difference) for row in texts.iter_rows(named=True)]


def _columns_of(rows: pl.DataFrame) -> list[str]:
    return [*COLUMNS, *(name for name in ("batch",) if name in rows.columns)]


def _in_line(rows: pl.DataFrame) -> pl.DataFrame:
    """Sort decided rows first, then the others; large amounts before small ones."""
    undecided = pl.col("check_outcome").is_in(list(UNDECIDED))
    return rows.sort(undecided, "decimal", "position", descending=[False, True, False], nulls_last=True)


def _in_order(sums: pl.DataFrame) -> pl.DataFrame:
    """Count the rows of each next step: largest totals first, rows that only time can change last."""
    is_late = pl.col("check_action") == Action.RETRY_LATER
    return (
        sums.group_by("group", "check_action")
        .agg(pl.col("row_count").sum(), money=pl.col("decimal").sum())
        .sort(is_late, "money", "row_count", "group", descending=[False, True, True, False])
        .select("group", "check_action", "row_count")
    )


def _totals(sums: pl.DataFrame) -> tuple[tuple[Money, ...], int]:
    totals = sums.filter(pl.col("summed_count") > 0).sort("decimal", "currency", descending=[True, False])
    money = totals.head(CURRENCIES_MAX).select("currency", row_count="summed_count", amount="decimal")
    return tuple(Money(**one) for one in money.iter_rows(named=True)), totals.height - money.height


def _places(rows: pl.Series, positions: RowPositions | None) -> pl.Series:
    """Return the positions of rows in the current language, as a column `place`; null if they have none."""
    if positions is None or positions.unit != "part":
        return position_texts(rows, positions, position_pattern(positions))
    return pl.Series("place", [positions_in_words([row], positions) for row in rows], dtype=pl.String)


def _row(row: dict[str, Any], compared: _Compared) -> Row:
    decimal: Decimal | None = row["decimal"]
    return Row(
        number=row["row"],
        place=row["place"] or "",
        batch=shown(row.get("batch"), WORD_CHARS_MAX),
        payment_id=shown(row["payment_id"], WORD_CHARS_MAX),
        names=_names(row, compared),
        account=masked(row["iban"] or row["account_number"]),
        # An unreadable amount is shown as in the file.
        amount=shown(row["amount"], WORD_CHARS_MAX) if decimal is None else amount_text(decimal),
        currency=currency_text(row["currency"]) if row["amount"] else "",
        amount_rank=row["amount_rank"],
        outcome=Outcome(row["check_outcome"]),
        code=shown(row["check_code"], WORD_CHARS_MAX),
        reason=shown(row["check_reason"], REASON_CHARS_MAX),
    )


def _names(row: dict[str, Any], compared: _Compared) -> Difference:
    named_by = ("name", *_IDENTIFICATIONS)
    supplied = shown(next((row[field] for field in named_by if row[field]), None))
    if not row["check_matched_name"]:
        return Difference((Piece(supplied, marked=False),), (), ())
    return compared(supplied, shown(row["check_matched_name"]))


def shown(text: str | None, chars_max: int = TEXT_CHARS_MAX) -> str:
    r"""Return outside text normalised, harmless and of limited length; absent text is empty.

    >>> shown("Acme\u202e Ltd"), shown("x" * 9, 4)
    ('Acme\\u202e Ltd', 'xxxx… (9 characters)')
    """
    if not text:
        return ""
    if len(text) <= chars_max and text.isascii() and text.isprintable():
        return text  # the usual case
    if len(text) > chars_max:
        return say("page.text_cut", text=shown(text[:chars_max], chars_max), number=len(text))
    return visible(unicodedata.normalize("NFC", text))


def money_texts(totals: Iterable[Money]) -> list[str]:
    """Return totals in the format of the current language."""
    return [f"{amount_text(money.amount)} {currency_text(money.currency)}" for money in totals]


def amount_text(amount: Decimal) -> str:
    """Return an amount with grouped thousands, and a third decimal if it is not zero.

    >>> amount_text(Decimal("1234.500")), amount_text(Decimal("1.234"))
    ('1,234.50', '1.234')
    """
    return number(amount, ",.3f").removesuffix("0")


def currency_text(code: str | None) -> str:
    """Return a currency as in the file, shortened; a phrase if the file has none."""
    return shown(code, CURRENCY_CHARS_MAX) or say("page.no_currency")
