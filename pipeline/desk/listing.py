"""List the rows of a run for pages: filtered, sorted, 50 to a page; and select rows for bulk decisions."""

from collections.abc import Collection, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any, NamedTuple

import polars as pl

from pipeline.desk.finding import has_text
from pipeline.desk.languages import gettext, gettext_noop
from pipeline.desk.review import ACCOUNTS, Repeated, Review
from pipeline.headers.readings import spoken
from pipeline.reports.groups import TEXT_CHARS_MAX, Row, amount_text, numbered, shown
from pipeline.reports.wording import positions_in_words
from pipeline.review.placements import total
from pipeline.wording import Sentence
from schemas.desk import RowsDecided
from schemas.outcomes import Action, Outcome
from schemas.review import ControlTotal, Decision, Verdict

_N = gettext_noop
ROWS_ON_PAGE = 50
_FIXES: Mapping[str, str] = {
    Action.FIX_NAME: _N("Use the bank's name"),
    Action.FIX_ACCOUNT_TYPE: _N("Use the other account type"),
    Action.FIX_NAME_AND_ACCOUNT_TYPE: _N("Use the bank's name and the other account type"),
}
_POLICY_SAYS: Mapping[str, str] = {
    Verdict.RELEASE: _N("The policy releases it, unless you hold it."),
    Verdict.REVIEW: _N("Your decision: this payment stays on hold until you release it."),
}
_IS_ONE_BY_ONE = (pl.col("check_outcome") == Outcome.NO_MATCH) & (pl.col("verdict") != Verdict.RELEASE)
_AT_ONCE: Mapping[Decision, pl.Expr] = {
    Decision.RELEASE: pl.col("can_release") & ~_IS_ONE_BY_ONE,
    Decision.FIX: pl.col("can_fix"),
    Decision.HOLD: pl.lit(value=True),
}
"""Decision -> the rows that it may be made for in bulk."""
_OUTCOMES = frozenset(outcome.value for outcome in Outcome)
_NEVER: Mapping[str, str] = {
    Outcome.REJECTED: _N("Not checked, so it is held. Correct it in your file and upload the file again."),
    Outcome.DEFERRED: _N("No answer yet, so it is held. Resume the check first."),
    Outcome.UNANSWERED: _N("No answer yet, so it is held. Resume the check first."),
}
_BY_HAND = _N("Not checked, so it is held. Correct it here and have it checked.")
_TO_FIX = _N(
    "The policy holds %(what)s: you cannot release it here, but you can accept the correction "
    "offered and have it checked."
)
_TO_ALLOW = _N(
    "The policy holds %(what)s: you cannot release it here. If your file is right, only your "
    "administrator can change the policy."
)
_TO_CORRECT = _N(
    "The policy holds %(what)s: you cannot release it here. Correct your file with what the payee "
    "confirmed and upload it again."
)


class ListedRow(NamedTuple):
    """A row on the page."""

    row: Row
    group: str
    verdict: str  # the policy's verdict: release, review or hold
    policy_says: str  # the same, as a sentence
    can_release: bool
    fix: str  # the effect of a correction, in words; empty if none is known
    latest: RowsDecided | None
    reason: list[Sentence | str]
    repeats: Repeated | None = None  # the same payment that another file released
    account: str = ""  # the whole account, in groups
    writes: str | None = None  # the field of a rejected row that the user may correct here
    written: str = ""  # the corrected value of that field


class Asked(NamedTuple):
    """The filters and order that the user requested."""

    group: str = ""
    outcome: str = ""
    decided: str = ""  # `yes`, `no`, or `release` for rows that would be released; empty: any
    text: str = ""
    rows: str = ""  # `all`, or only rows that need review
    currency: str = ""
    least: str = ""  # the smallest amount; ignored unless all rows share one currency
    sort: str = ""  # one of `SORTS`, with a minus sign for the other direction; empty: largest amounts first
    page: int = 1
    again: str = ""  # `yes` to release again what was released before

    @property
    def is_filtered(self) -> bool:
        """True if a filter hides rows."""
        return any((self.group, self.outcome, self.text.strip(), self.currency, self.least))


SORTS = ("row", "name", "check_matched_name", "amount", "check_code", "decision")
"""The columns that rows can be sorted by, from left to right."""


class BulkChoice(NamedTuple):
    """The bulk decisions offered for all undecided rows on display."""

    row_count: int
    release_count: int  # rows that the policy leaves to people, except no matches
    one_by_one_count: int  # rows that may be released one by one
    fix_count: int  # rows with a known correction
    fix: str  # the effect of the correction, in words; empty if there is none


class Overrides(NamedTuple):
    """The payments that are released only because a person decided so."""

    rows: list[ListedRow]  # the largest amounts, by currency
    total: ControlTotal


class ReviewPage(NamedTuple):
    """One page of the rows."""

    rows: list[ListedRow]
    row_count: int  # rows that match the filters, on all pages
    page: int
    page_count: int


class Listing(NamedTuple):
    """The rows of a run, with people's decisions so far."""

    run: Review
    latest: Mapping[int, RowsDecided]  # the decisions that count, by row
    released_in: Mapping[int, str] = MappingProxyType({})  # row -> the file that released the payment before

    @property
    def currencies(self) -> list[str]:
        """The currency codes of the rows."""
        return sorted(code for code in self.run.currencies if code is not None and len(code) == 3)

    def compares_money(self, asked: Asked) -> bool:
        """True if the requested rows share one currency, so that amounts can be compared."""
        return bool(asked.currency) or len(self.run.currencies) == 1

    def page(self, found: pl.DataFrame, page: int = 1) -> ReviewPage:
        """One page of the `chosen` rows."""
        page_count = max(1, -(-found.height // ROWS_ON_PAGE))
        page = min(max(page, 1), page_count)
        some = found.slice((page - 1) * ROWS_ON_PAGE, ROWS_ON_PAGE)
        return ReviewPage(self._shown(some), found.height, page, page_count)

    def row(self, number: int) -> ListedRow | None:
        """One row; None if it does not exist."""
        return next(iter(self._shown(self.run.listed.filter(pl.col("row") == number))), None)

    def overrides(self, overridden: pl.Series) -> Overrides:
        """The payments that are released only because of decisions."""
        found = self.run.listed.filter(pl.col("row").is_in(overridden.implode()))
        each_max = ROWS_ON_PAGE // max(1, found["currency"].n_unique())
        found = found.sort("currency", maintain_order=True)
        found = found.filter(pl.int_range(pl.len()).over("currency") < max(1, each_max))
        return Overrides(self._shown(found), total(self.run.judged[overridden - 1]))

    def undecided(self, found: pl.DataFrame, decision: Decision) -> pl.DataFrame:
        """Those of the `chosen` rows that are undecided and allow this decision."""
        return found.filter(_AT_ONCE[decision], ~self._is_decided)

    def choice(self, asked: Asked, found: pl.DataFrame | None = None) -> BulkChoice | None:
        """The bulk decisions for the `chosen` rows, if they are known; None if no filter is set."""
        if not asked.is_filtered:
            return None
        every = self.undecided(self.chosen(asked) if found is None else found, Decision.HOLD)
        fix = every.filter(_AT_ONCE[Decision.FIX])
        actions = fix["check_action"].unique()
        return BulkChoice(
            every.height,
            every.filter(_AT_ONCE[Decision.RELEASE]).height,
            every.filter("can_release").filter(_IS_ONE_BY_ONE).height,
            fix.height if actions.len() == 1 else 0,
            gettext(_FIXES[actions[0]]) if actions.len() == 1 else "",
        )

    @property
    def _is_decided(self) -> pl.Expr:
        return pl.col("row").is_in(pl.Series("row", [*self.latest], pl.UInt32).implode())

    def chosen(self, asked: Asked, ticked: Collection[int] = ()) -> pl.DataFrame:
        """The requested rows, or those of them that are ticked."""
        run = self.run
        found = run.listed if asked.rows == "all" or not run.groups else run.to_look_at
        equal = {"group": asked.group, "check_outcome": asked.outcome, "currency": asked.currency}
        found = found.filter(*(pl.col(column) == value for column, value in equal.items() if value))
        if asked.decided in ("yes", "no"):
            found = found.filter(self._is_decided if asked.decided == "yes" else ~self._is_decided)
        elif asked.decided == "release":
            rows = run.preview(self.latest, self.released_in).rows
            found = found.filter(pl.col("row").is_in(rows.implode()))
        if asked.least and self.compares_money(asked):
            found = found.filter(pl.col("decimal") >= Decimal(asked.least))
        if asked.text.strip():
            cells = run.rows.payments.select(*ACCOUNTS, run.searched.alias("searched"))
            is_found = cells.select(has_text(asked.text, ["searched"], ACCOUNTS)).to_series()
            found = found.filter(is_found[found["row"] - 1])
        if ticked:
            found = found.filter(pl.col("row").is_in([*ticked]))
        return self._sorted(found, asked.sort)

    def _sorted(self, found: pl.DataFrame, sort: str) -> pl.DataFrame:
        column, descending = sort.removeprefix("-"), sort.startswith("-")
        indexes = found["row"] - 1
        match column:
            case "":
                return found
            case "row":
                by = found["row"]
            case "amount":  # by currency first: amounts in two currencies cannot be compared
                return found.sort("currency", "decimal", descending=[False, not descending], nulls_last=True)
            case "name":
                by = self.run.rows.payments["name"][indexes].str.to_lowercase()
            case "decision":
                by = found.select(self._is_decided).to_series()
            case _:
                by = self.run.rows.outcomes[column][indexes].cast(pl.String).str.to_lowercase()
        return found[by.arg_sort(descending=descending, nulls_last=True)]

    def _shown(self, some: pl.DataFrame) -> list[ListedRow]:
        if some.is_empty():
            return []
        run, indexes, positions = self.run, some["row"] - 1, self.run.summary.input.positions
        cells = run.rows.payments[indexes].hstack(run.rows.outcomes[indexes].drop("row").get_columns())
        # `numbered` finds rows by position.
        own = cells.with_columns(row=pl.int_range(1, cells.height + 1, dtype=pl.UInt32))
        texts = numbered(own, range(1, cells.height + 1))
        accounts = cells.select("iban", "sort_code", "account_number").iter_rows()
        found: list[ListedRow] = []
        for text, account, line in zip(texts, accounts, some.iter_rows(named=True), strict=True):
            number, figure, action = line["row"], line["decimal"], line["check_action"]
            row = text._replace(
                number=number,
                place=positions_in_words([number], positions),
                amount=text.amount if figure is None else amount_text(figure),
            )
            found.append(
                ListedRow(
                    row,
                    line["group"],
                    line["verdict"],
                    policy_says(line),
                    line["can_release"],
                    gettext(_FIXES[action]) if line["can_fix"] else "",
                    self.latest.get(number),
                    run.reason_of(number),
                    run.repeated.get(number),
                    in_groups(*account),
                    line["writes"],
                    run.text_of(self.latest.get(number)),
                )
            )
        return found


def in_groups(iban: str | None, sort_code: str | None, account_number: str | None) -> str:
    """Return a whole account number in groups, which are easy to compare.

    >>> in_groups("DE35370400440084210077", None, None), in_groups(None, "112233", "00000007")
    ('DE35 3704 0044 0084 2100 77', '112233 00000007')
    """
    compact = "".join((iban or "").split())
    groups = [compact[start : start + 4] for start in range(0, len(compact), 4)]
    whole = " ".join(groups) or " ".join(filter(None, (sort_code, account_number)))
    return shown(whole, TEXT_CHARS_MAX)


def policy_says(line: Mapping[str, Any]) -> str:
    """The policy's verdict on a row of `listed`, as a sentence."""
    never = _BY_HAND if line["writes"] else _NEVER.get(line["check_outcome"])
    text = never or _POLICY_SAYS.get(line["verdict"])
    if text is not None:
        return gettext(text)
    held_by = line["decided_by"]
    if held_by in _OUTCOMES:
        held_by = gettext(spoken(held_by))
    to_do = _TO_FIX if line["can_fix"] else _TO_CORRECT
    if line["check_outcome"] == Outcome.NOT_POSSIBLE and not line["can_fix"]:
        to_do = _TO_ALLOW
    return gettext(to_do, what=held_by)
