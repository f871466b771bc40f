"""Group the payments that are not a match by next step: the body of the report page.

Text from the file and from banks leaves this module as harmless text of limited length, without anything that
a browser or terminal would act on.
"""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple

import polars as pl

from pipeline.frames import Warned
from pipeline.reports.differences import Difference, Piece, difference
from pipeline.reports.wording import ADVICE_BY_CODE, advice, number, positions_in_words, say, visible
from pipeline.rules.identifiers import masked
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
"""Columns of each payment from `frames.PAYMENTS` and `frames.OUTCOMES`, and `batch` in some formats."""
LISTED = tuple(dict.fromkeys((*COLUMNS, *MONEY_FIELDS, "account_type", "sort_code")))
"""The columns of a data set's listed payments; the workbook shows more columns."""

TEXT_CHARS_MAX = 160
"""Longest shown name; longer ones than 140 are never checked."""
REASON_CHARS_MAX = 600
CURRENCY_CHARS_MAX = 12
WORD_CHARS_MAX = 40
"""Longest shown id, code, or unreadable amount."""
PARTS_ROWS_MAX = 5_000
"""Payments of a data set that are listed, over all parts."""
CURRENCIES_MAX = 200
"""Currencies shown for a group: a hostile file can have one in every row."""

_HAS_ADVICE = pl.col("check_code").is_in(list(ADVICE_BY_CODE))
_GROUP = pl.concat_str(
    "check_action", pl.when(_HAS_ADVICE).then("-" + pl.col("check_code")).otherwise(pl.lit(""))
)
_IDENTIFICATIONS = ("lei", "organisation_bic", "organisation_id")

_Compared = Callable[[str, str], Difference]
"""`difference`, cached for the present payments."""


class ListedRows(NamedTuple):
    """The payments that the page and the workbook are made of."""

    rows: pl.DataFrame
    """`Payments` joined with `Outcomes` on `row`, in row order: all, or of a data set those that may be
    listed; where there is a `decision` and a `reason` already, with those."""
    changes: Sequence[Change]
    """Differences from an earlier run, as `changes.listed` gives them."""
    policy: Mapping[str, Verdict] | None
    """Policy of the profile, which decides the actions offered for a row; None if unknown."""
    warned: Warned
    """Which rows have which warning."""
    sums: pl.DataFrame | None = None
    """For a data set, the sums of all rows, from `groups.added_sums`; None if `rows` are all rows."""


class Row(NamedTuple):
    """One payment, as text to be shown."""

    number: int
    place: str  # its position in the file; empty if the format has none
    batch: str  # the batch that books it; empty if the format has none
    payment_id: str
    names: Difference
    account: str
    amount: str
    currency: str
    amount_rank: int  # its position among the listed rows by amount, smallest first; 0 without an amount
    outcome: Outcome
    code: str
    reason: str


class ActionGroup(NamedTuple):
    """The payments with the same next step."""

    key: str  # its id on the page: the action, and the code if that has its own advice
    action: Action
    advice: Sentence  # the next step
    row_count: int
    money: tuple[Money, ...]  # totals per currency, largest first, of the rows with a readable amount
    more_currency_count: int  # number of currencies not in `money`
    rows: tuple[Row, ...]  # largest amounts first; fewer than `row_count` if the page is full


class Pending(NamedTuple):
    """All payments that are not a match."""

    groups: tuple[ActionGroup, ...]
    """Most money first; rows that are left for a later run come last."""
    row_count: int
    listed_count: int
    matches: ActionGroup | None
    """The payments that are a match, for the search; None if the file has too many rows."""


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
    are listed before those left for a later run, and large amounts before small ones, whatever the currency.
    If `rows` are only those that may be listed, `sums` are those of all rows, from `sums_of`.
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
    by_group = texts.partition_by("group", as_dict=True)
    compared = cache(difference)  # many payments may go to one payee

    def rows_of(key: str) -> tuple[Row, ...]:
        return tuple(_row(row, positions, compared) for row in _dicts(by_group.get((key,))))

    open_sums = _sums(open_rows) if sums is None else sums
    return Pending(
        _groups(open_sums, rows_of),
        int(open_sums["row_count"].sum()),
        chosen.height - matches.height,
        next(iter(_groups(_sums(matches), rows_of)), None),
    )


def groups_of(rows: pl.DataFrame) -> tuple[ActionGroup, ...]:
    """The groups of rows in the order of `in_line`, with counts and money, without listed rows."""
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
    """Rows and money of non-matches for `pending`, by next step and currency."""
    open_rows = rows.lazy().filter(pl.col("check_outcome") != Outcome.MATCH).with_columns(group=_GROUP)
    return _sums(_with_money(open_rows.select("group", "check_action", *MONEY_FIELDS).collect()))


def added_sums(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The combined sums of several sets of payments."""
    by = ("group", "check_action", "currency")
    added = pl.concat(parts).group_by(by).agg(pl.col("row_count", "summed_count", "decimal").sum())
    return added.sort("group", "currency")


def listable(rows: pl.DataFrame, rows_max: int, also: pl.Series) -> pl.DataFrame:
    """The payments that `pending` lists first, up to a number, and some others, with the columns `LISTED`."""
    some = rows.lazy().with_row_index("position").filter(pl.col("check_outcome") != Outcome.MATCH)
    deciding = _with_money(some.select("position", "check_outcome", *MONEY_FIELDS).collect())
    others = rows["row"].is_in(also.implode()).arg_true()
    return rows.select(LISTED)[
        pl.concat([_in_line(deciding).head(rows_max)["position"], others]).unique().sort()
    ]


def _with_money(rows: pl.DataFrame) -> pl.DataFrame:
    money, currency = money_of(rows)
    return rows.with_columns(money.alias("decimal"), currency)


def _sums(rows: pl.DataFrame) -> pl.DataFrame:
    """Sums of rows with `group`, `check_action`, `decimal` and `currency`."""
    readable = pl.col("decimal").filter(pl.col("decimal") >= 0)
    return rows.group_by("group", "check_action", "currency").agg(
        row_count=pl.len(), summed_count=readable.len(), decimal=readable.sum()
    )


def in_line(rows: pl.DataFrame) -> pl.DataFrame:
    """All rows in the order of review: row, group, outcome, action, `decimal` and `currency`."""
    money, currency = money_of(rows)
    found = rows.select("row", "check_outcome", "check_action", group=_GROUP, position=pl.col("row"))
    found = found.with_columns(money.alias("decimal"), currency)
    return _in_line(found).drop("position")


def numbered(rows: pl.DataFrame, numbers: Sequence[int], positions: RowPositions | None = None) -> list[Row]:
    """The payments of these row numbers, in this order; `rows` as `pending` takes them."""
    found = rows.select(*_columns_of(rows), "sort_code")[[number - 1 for number in numbers]]
    assert found["row"].to_list() == list(numbers)
    money, currency = money_of(found)
    texts = found.with_columns(money.alias("decimal"), currency, amount_rank=pl.lit(0))
    return [_row(row, positions, difference) for row in _dicts(texts)]


def _columns_of(rows: pl.DataFrame) -> list[str]:
    return [*COLUMNS, *(name for name in ("batch",) if name in rows.columns)]


def _in_line(rows: pl.DataFrame) -> pl.DataFrame:
    """Decided rows first, then the others; large amounts before small ones."""
    undecided = pl.col("check_outcome").is_in(list(UNDECIDED))
    return rows.sort(undecided, "decimal", "position", descending=[False, True, False], nulls_last=True)


def _in_order(sums: pl.DataFrame) -> pl.DataFrame:
    """The next steps, with their rows counted: most money first, rows that only time can change last."""
    return (
        sums.group_by("group", "check_action")
        .agg(pl.col("row_count").sum(), money=pl.col("decimal").sum())
        .sort(
            pl.col("check_action") == Action.RETRY_LATER,
            "money",
            "row_count",
            "group",
            descending=[False, True, True, False],
        )
        .select("group", "check_action", "row_count")
    )


def _totals(sums: pl.DataFrame) -> tuple[tuple[Money, ...], int]:
    totals = sums.filter(pl.col("summed_count") > 0).sort("decimal", "currency", descending=[True, False])
    money = totals.head(CURRENCIES_MAX).select("currency", row_count="summed_count", amount="decimal")
    return tuple(Money(**one) for one in money.iter_rows(named=True)), totals.height - money.height


def _dicts(rows: pl.DataFrame | None) -> Iterator[dict[str, Any]]:
    return iter(()) if rows is None else rows.iter_rows(named=True)


def _row(row: dict[str, Any], positions: RowPositions | None, compared: _Compared) -> Row:
    decimal: Decimal | None = row["decimal"]
    return Row(
        number=row["row"],
        place=positions_in_words([row["row"]], positions),
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
    r"""Outside text, normalised, harmless and of limited length; absent text is empty.

    >>> shown("Acme\u202e Ltd"), shown("x" * 9, 4)
    ('Acme\\u202e Ltd', 'xxxx… (9 characters)')
    """
    if not text:
        return ""
    if len(text) <= chars_max and text.isascii() and text.isprintable():
        return text  # the usual case
    if len(text) > chars_max:
        return say("page.cut", text=shown(text[:chars_max], chars_max), number=len(text))
    return visible(unicodedata.normalize("NFC", text))


def money_texts(totals: Iterable[Money]) -> list[str]:
    """Totals in the format of the current language."""
    return [f"{amount_text(money.amount)} {currency_text(money.currency)}" for money in totals]


def amount_text(amount: Decimal) -> str:
    """An amount with grouped thousands, and a third decimal if it is not zero.

    >>> amount_text(Decimal("1234.500")), amount_text(Decimal("1.234"))
    ('1,234.50', '1.234')
    """
    return number(amount, ",.3f").removesuffix("0")


def currency_text(code: str | None) -> str:
    """A currency as in the file, shortened; a phrase if the file has none."""
    return shown(code, CURRENCY_CHARS_MAX) or say("page.no_currency")
