"""Find the decisions that the workbook offers for each row under the policy, and why.

A row can always be held. It can be released if the policy leaves that to a person or releases it anyway, and
fixed if the answer has the correction.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from pipeline.frames import WARNED, Outcomes, Warned
from pipeline.reports.wording import say
from pipeline.rules.policy import ANSWERED, verdicts
from pipeline.wording import Sentence
from schemas.outcomes import Action, Outcome, WarningCode
from schemas.review import Decision, Verdict
from schemas.summary import Summary

if TYPE_CHECKING:
    from xlsxwriter.worksheet import Worksheet

_CORRECTABLE = (Action.FIX_NAME, Action.FIX_ACCOUNT_TYPE, Action.FIX_NAME_AND_ACCOUNT_TYPE)
IS_CORRECTABLE = pl.col("check_action").is_in(_CORRECTABLE) & (
    pl.col("check_matched_name").is_not_null() | (pl.col("check_action") == Action.FIX_ACCOUNT_TYPE)
)
"""True if `precheck fix` can make the correction that the bank gave."""
_DECIDING = ("row", "check_outcome", "check_code", "check_action", "check_matched_name")
PROFILE_CHARS_MAX = 40  # longest profile name in a text that a spreadsheet limits to 255 characters
_NEVER: Mapping[str, str] = {
    Outcome.REJECTED: "sheet.no_bank_was_asked",
    Outcome.DEFERRED: "sheet.no_answer_yet",
    Outcome.UNANSWERED: "sheet.no_answer_yet",
}
"""Why no policy releases a row, and what to do instead."""
_SAID: Mapping[str, str] = {
    Verdict.RELEASE: "sheet.released_without_decision",
    Verdict.REVIEW: "sheet.released_by_decision",
}


class OfferedDecisions(NamedTuple):
    """The decisions offered for some rows."""

    words: tuple[Decision, ...]
    why: str  # why release is not offered, and the setting that would allow it; empty if offered
    is_final: bool  # true if no setting can allow it


class Policy(NamedTuple):
    """The policy of a run."""

    verdicts: Mapping[str, Verdict] | None  # outcome, code or warning -> verdict; None if unknown
    warned: Warned
    profile: str


class RowSpan(NamedTuple):
    """Consecutive rows with the same decisions."""

    choice: OfferedDecisions
    first: int  # counted from 0
    last: int


def warned_in(summary: Summary) -> Warned:
    """Return `Warned` from the summary of a run."""
    rows = [(row, count.code.value) for count in summary.warning_codes for row in count.every_row]
    return Warned(pl.DataFrame(rows, schema=WARNED, orient="row"))


def and_repeated(warned: Warned, rows: Sequence[int]) -> Warned:
    """Add rows to `Warned` whose payment another file released, as found later."""
    code = pl.lit(WarningCode.PAYMENT_REPEATED.value)
    more = pl.DataFrame({"row": rows}, {"row": WARNED["row"]}).select("row", code=code)
    return Warned(pl.concat([warned, more]).unique(maintain_order=True)) if rows else warned


def offered(sheets: Sequence[pl.DataFrame], policy: Policy) -> list[list[RowSpan]]:
    """Return the decisions offered for the rows of each sheet under the policy, in row order."""
    chosen = policy.verdicts
    rows = pl.concat(rows.select(*_DECIDING, sheet=pl.lit(at)) for at, rows in enumerate(sheets))
    judged = verdicts(Outcomes(rows), policy.warned, chosen or {})
    holding = [
        pl.when(pl.col(by) == Verdict.HOLD).then(key)
        for by, key in (("by_answer", "answer_key"), ("by_warning", "warnings"))
    ]
    never = pl.when(~ANSWERED).then(pl.col("check_outcome").cast(pl.String))
    held = pl.when(ANSWERED & pl.lit(chosen is not None)).then(
        pl.concat_str(holding, separator=" ", ignore_nulls=True)
    )
    at = pl.col("at")
    runs = (
        judged.select("sheet", never=never, held=held.replace("", None), fix=IS_CORRECTABLE)
        .with_columns(run=pl.struct(pl.all()).rle_id(), at=pl.int_range(pl.len()).over("sheet"))
        .group_by("run", maintain_order=True)
        .agg(pl.col("sheet", "never", "held", "fix").first(), first=at.min(), last=at.max())
    )

    @cache  # thousands of spans have only a few different choices
    def choice_of(never: str | None, held: str | None, can_fix: bool) -> OfferedDecisions:
        return choice(never, (held or "").split(), policy.profile, can_fix=can_fix)

    spans: list[list[RowSpan]] = [[] for _ in sheets]
    for _, sheet, never, held, fix, first, last in runs.iter_rows():
        spans[sheet].append(RowSpan(choice_of(never, held, fix), first, last))
    return spans


class PolicyLine(NamedTuple):
    """The policy's verdict on an outcome, code or warning in this file."""

    key: str
    row_count: int
    verdict: str
    words: tuple[Decision, ...]  # the possible decisions
    why: str


def policy_lines(summary: Summary, policy: Policy) -> list[PolicyLine]:
    """Return the policy's verdicts on the rows of a run, by key; empty if the policy is unknown."""
    if policy.verdicts is None:
        return []
    codes = pl.DataFrame(
        [(code.outcome.value, code.code, code.row_count) for code in summary.codes],
        schema={"check_outcome": pl.String, "check_code": pl.String, "count": pl.Int64},
        orient="row",
    ).with_row_index("row")
    judged = verdicts(Outcomes(codes), Warned(policy.warned.clear()), policy.verdicts)
    counts = judged.group_by("check_outcome", "answer_key", "verdict", maintain_order=True).agg(
        pl.col("count").sum()
    )
    by_warning = (
        (None, one.code, policy.verdicts[one.code], one.row_count)
        for one in summary.warning_codes
        if one.code in policy.verdicts
    )
    found = []
    for outcome, key, verdict, count in (*counts.iter_rows(), *by_warning):
        held_by = [key] if verdict == Verdict.HOLD else []
        never = outcome if outcome in _NEVER else None
        offer = choice(never, held_by, policy.profile, can_fix=False)
        found.append(PolicyLine(key, count, verdict, offer.words, offer.why or say(_SAID[verdict])))
    return found


def choice(never: str | None, held_by: Sequence[str], profile: str, *, can_fix: bool) -> OfferedDecisions:
    """Return the decisions offered for a row under a profile.

    `never` is the outcome of a row that no policy releases; `held_by` has the policy keys that hold the row;
    `can_fix` is true if `precheck fix` can correct it.
    """
    fix = (Decision.FIX,) if can_fix else ()
    if never is not None:
        return OfferedDecisions((*fix, Decision.HOLD), say(_NEVER[never]), is_final=True)
    if held_by:
        return OfferedDecisions((*fix, Decision.HOLD), how_to_release(held_by, profile), is_final=False)
    return OfferedDecisions((Decision.RELEASE, *fix, Decision.HOLD), "", is_final=True)


def how_to_release(held_by: Sequence[str], profile: str) -> str:
    """Return what holds a row, and the setting that would let a person release it.

    >>> how_to_release(["no_match"], "main").split(", ")[1]
    'first write no_match = "review" into [profiles.main.policy] of the configuration.'
    """
    keys = [f'{key} = "{Verdict.REVIEW}"' for key in held_by]
    is_short = len(profile) <= PROFILE_CHARS_MAX
    table = f"[profiles.{profile}.policy]" if is_short else Sentence("sheet.policy_of_profile")
    return say("sheet.how_to_release", held=held_by, keys=keys, table=table)


RANGES_MAX = 100  # maximum number of cell ranges in one list; spreadsheet programs are slow with thousands


def write_lists(page: "Worksheet", column: int, runs: Sequence[RowSpan], *, first_line: int) -> None:
    """Write the possible decisions as lists in one column; column and first line are counted from 0."""
    ranges: dict[OfferedDecisions, list[list[int]]] = {}
    for run in runs:
        cells = [first_line + run.first, column, first_line + run.last, column]
        ranges.setdefault(run.choice, []).append(cells)
    for choice, of_choice in ranges.items():
        for start in range(0, len(of_choice), RANGES_MAX):
            some = of_choice[start : start + RANGES_MAX]
            failed = page.data_validation(*some[0], {**_list(choice), "other_cells": some[1:]})
            assert not failed, "the list is longer than a spreadsheet takes"


def _list(choice: OfferedDecisions) -> dict[str, str | list[str]]:
    words = [word.value for word in choice.words]
    shown: dict[str, str | list[str]] = {
        "validate": "list",
        "source": words,
        # A user who has changed the policy since then may enter what it now allows.
        "error_type": "stop" if choice.is_final else "warning",
        "error_title": say("sheet.decision"),
        "error_message": choice.why or say("sheet.choose_one", words=words),
    }
    if choice.why:
        shown |= {"input_title": say("sheet.decision"), "input_message": choice.why}
    return shown
