"""A run opened for review: the policy's verdict on each row, and people's decisions."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import polars as pl

from pipeline.config.profiles import choose_again
from pipeline.desk.families import released_near
from pipeline.desk.folders import FileFolder
from pipeline.desk.journal import ChainedJournal
from pipeline.desk.refusals import Conflict
from pipeline.errors import InputError, PrecheckError
from pipeline.frames import DECISIONS, Decisions, Outcomes, Payments, Warned
from pipeline.reports.choices import IS_CORRECTABLE, and_repeated, warned_in
from pipeline.reports.documents import Rows
from pipeline.reports.groups import ActionGroup, groups_of, in_line
from pipeline.reports.wording import BY_POLICY, sentences_of
from pipeline.review.corrections import BY_HAND, OF_REJECTED
from pipeline.review.placements import Preview, judged, preview, total
from pipeline.rules.policy import ANSWERED, verdicts
from pipeline.rules.warnings import repeated_in
from pipeline.runs.ended import ended_run
from pipeline.runs.families import listed as rows_of
from pipeline.wording import Sentence
from schemas.desk import RowsDecided
from schemas.outcomes import ABOUT_THE_PAYEE, Outcome
from schemas.review import ControlTotal, Verdict
from schemas.summary import Summary, WarningCount

REASONS_SUGGESTED = 8
_OF_A_PREVIEW = {name: DECISIONS[name] for name in ("row", "decision")}
_ANSWER = ("check_outcome", "check_code", "check_matched_name", "check_id")
ACCOUNTS = ("account_number", "iban")
Made = TypeVar("Made")
_SEARCHED = ("name", "payment_id", *ACCOUNTS, "reference", "check_matched_name")


class Repeated(NamedTuple):
    """The same payment in another file at the desk."""

    file_id: str
    name: str
    row: int


class Undecided(NamedTuple):
    """The rows to review without a decision."""

    counts: dict[str, int]  # group -> the number of its rows
    money: ControlTotal


class Review(NamedTuple):
    """An open run; cached while its answers and the policy stay the same."""

    summary: Summary
    outcomes_sha256: str
    rows: Rows
    listed: pl.DataFrame
    """Every row, in order: row, group, outcome, action, verdict, decided_by, the possible decisions, and
    whether a person must review it: the policy does not release it, the name does not match, or there is a
    warning about the payee.
    """
    groups: tuple[ActionGroup, ...]  # groups of rows to review
    policy: Mapping[str, Verdict]
    judged: pl.DataFrame  # the columns that a preview needs, for every row
    decisions: ChainedJournal[RowsDecided]
    known_answers: dict[int, str]  # cache of `answers_of`
    counted: list[tuple[Sequence[RowsDecided], Mapping[int, RowsDecided]]]
    """Cached result of `last_decisions`: all decisions, and those that count."""
    repeated: Mapping[int, Repeated]
    """Rows whose payment another file released and about which the run has no warning."""
    searched: pl.Series
    """The cells of each row that a search considers, one per line: one column is searched faster than six."""
    currencies: tuple[str | None, ...]  # the currencies of the rows
    remembered: dict[str, tuple[object, Any]]
    """The last `preview` and `undecided` with their arguments: the next page often needs the same."""

    @property
    def to_look_at(self) -> pl.DataFrame:
        """The rows that a person must review before the file is paid, in the order of the file."""
        return self.listed.filter("is_to_look_at")

    @property
    def to_look_at_count(self) -> int:
        """The number of rows to review."""
        return sum(group.row_count for group in self.groups)

    @property
    def warned_of_file(self) -> list[WarningCount]:
        """Warnings that require no review of rows; the page shows one line for each."""
        return [one for one in self.summary.warning_codes if one.code not in ABOUT_THE_PAYEE]

    def line(self, number: int) -> dict[str, Any] | None:
        """A row of `listed`; None if it does not exist."""
        found = (self.listed["row"] == number).arg_true()
        return self.listed.row(found[0], named=True) if found.len() else None

    def totals(self, rows: pl.DataFrame) -> list[tuple[str, ControlTotal]]:
        """Rows and amounts by outcome, starting with the most rows, then the total."""
        mine = self.judged[rows["row"] - 1]
        parts = sorted(mine.partition_by("check_outcome"), key=lambda part: -part.height)
        found = [(part["check_outcome"][0], total(part)) for part in parts]
        return [*found, ("", total(mine))] if len(found) > 1 else found

    def last_at_once(self, latest: Mapping[int, RowsDecided]) -> RowsDecided | None:
        """Return the last bulk decision, with the rows not decided again since; None if there are none."""
        entry = next((entry for entry in reversed(self.decisions.entries()) if entry.at_once), None)
        if entry is None:
            return None
        rows = [row for row in entry.rows if latest.get(row) is entry]
        return entry.model_copy(update={"rows": rows}) if rows else None

    def reasons(self) -> list[str]:
        """Recent reasons without repetitions, the latest first."""
        reasons = (entry.reason for entry in reversed(self.decisions.entries()) if entry.reason)
        return [*dict.fromkeys(reasons)][:REASONS_SUGGESTED]

    def answers_of(self, rows: Sequence[int]) -> list[str]:
        """Return a short hash of each row's answer, to detect changed answers."""
        if new := [row for row in rows if row not in self.known_answers]:
            some = self.rows.outcomes[pl.Series(new, dtype=pl.UInt32) - 1].select(_ANSWER)
            texts = ("\0".join(map(str, line)) for line in some.iter_rows())
            hashes = (sha256(text.encode()).hexdigest()[:12] for text in texts)
            self.known_answers.update(zip(new, hashes, strict=True))
        return [self.known_answers[row] for row in rows]

    def text_of(self, last: RowsDecided | None) -> str:
        """The corrected cell of a rejected row; empty if there is none, or it was deleted."""
        if last is None or last.written is None:
            return ""
        folder = self.decisions.path.parent
        return FileFolder(folder.name, folder).kept(last.written)

    def reason_of(self, row: int) -> list[Sentence | str]:
        """Explain the row's outcome in sentences."""
        reason = self.rows.outcomes["check_reason"][row - 1]
        return sentences_of(reason, self.rows.reasons, self.summary.input.positions)

    def undecided(self, latest: Mapping[int, RowsDecided]) -> Undecided:
        """The rows to review without a decision."""

        def make() -> Undecided:
            is_decided = pl.col("row").is_in(pl.Series([*latest], dtype=pl.UInt32).implode())
            left = self.listed.lazy().filter(pl.col("is_to_look_at"), ~is_decided)
            rows = left.select("group", "currency", amount="decimal").collect()
            counts = dict(rows["group"].value_counts().iter_rows())
            return Undecided({group.key: counts.get(group.key, 0) for group in self.groups}, total(rows))

        return self._once("undecided", {*latest}, make)

    def preview(self, latest: Mapping[int, RowsDecided], released_in: Mapping[int, str]) -> Preview:
        """Preview where each payment would go, by the decisions so far and earlier releases."""

        def make() -> Preview:
            decisions = [last.decision for last in latest.values()]
            return preview(self.judged, pl.DataFrame([list(latest), decisions], _OF_A_PREVIEW), released_in)

        return self._once("preview", (dict(latest), dict(released_in)), make)

    def _once(self, name: str, of_what: object, make: Callable[[], Made]) -> Made:
        known = self.remembered.get(name)
        if known is None or known[0] != of_what:
            known = self.remembered[name] = of_what, make()
        made: Made = known[1]
        return made


def opened(folder: FileFolder) -> Review:
    """Open the run of a file (PrecheckError: not ended, changed, purged, or without its profile)."""
    run = ended_run(folder.run)
    policy = choose_again(run.manifest.profile.name, None).settings.policy
    if (deleted := run.forgotten(run.outcome_file.name)) is not None:
        raise InputError(Sentence("runs.file_deleted", file=run.outcome_file.name, deleted=deleted))
    near = released_near(folder)
    return _opened(folder, run.manifest.outcome_file.sha256, tuple(sorted(policy.items())), near)


def forget_all() -> None:
    """Drop all cached runs, because names in one of them were deleted."""
    _opened.cache_clear()


@lru_cache(maxsize=3)
def _opened(
    folder: FileFolder,
    outcomes_sha256: str,
    policy_items: tuple[tuple[str, Verdict], ...],
    near: tuple[tuple[str, tuple[tuple[int, int], ...]], ...],
) -> Review:
    run, policy = ended_run(folder.run), dict(policy_items)
    summary, rows = run.summary(), run.rows()
    joined = rows.payments.hstack(rows.outcomes.drop("row").get_columns())
    repeated = _repeated(folder, rows.payments, near)
    warned = and_repeated(warned_in(summary), [*repeated])
    listed = _with_verdicts(in_line(joined), rows.outcomes, warned, policy)
    every = judged(rows.payments, rows.outcomes, warned, policy)
    return Review(
        summary,
        outcomes_sha256,
        rows,
        listed,
        groups_of(listed.filter("is_to_look_at")),
        policy,
        every,
        folder.decisions,
        known_answers={},
        counted=[],
        repeated=repeated,
        searched=joined.select(pl.concat_str(_SEARCHED, separator="\n", ignore_nulls=True)).to_series(),
        currencies=(*listed["currency"].unique(),),
        remembered={},
    )


def _repeated(
    folder: FileFolder, payments: Payments, near: Iterable[tuple[str, Iterable[tuple[int, int]]]]
) -> dict[int, Repeated]:
    found: dict[int, Repeated] = {}
    for file_id, spans in near:
        other = FileFolder(file_id, folder.path.parent / file_id)
        with suppress(PrecheckError):  # the names in that file were deleted
            theirs = ended_run(other.run).rows().payments
            released = theirs.filter(pl.col("row").is_in(rows_of(spans)))
            name = other.read().name
            repeated = repeated_in(payments, released).items()
            found |= {row: Repeated(file_id, name, first) for row, first in repeated}
    return found


def _gravest(warned: Warned) -> pl.DataFrame:
    """Return `row`, and the code of its most serious `warning` about the payee."""
    ranks = {str(code): rank for rank, code in enumerate(ABOUT_THE_PAYEE)}
    gravity = pl.col("code").replace_strict(ranks, default=None, return_dtype=pl.UInt8)
    found = warned.with_columns(gravity=gravity).drop_nulls("gravity")
    return found.group_by("row").agg(warning=pl.col("code").sort_by("gravity").first())


def _with_verdicts(
    listed: pl.DataFrame, outcomes: Outcomes, warned: Warned, policy: Mapping[str, Verdict]
) -> pl.DataFrame:
    """Return the rows in order with the policy's verdict; matches to review get a group for the cause."""
    found = verdicts(outcomes, warned, policy).select(
        "row",
        "verdict",
        "decided_by",
        can_release=ANSWERED & (pl.col("verdict") != Verdict.HOLD),
        can_fix=IS_CORRECTABLE,
        writes=pl.when(OF_REJECTED.is_in(BY_HAND)).then(OF_REJECTED),
    )
    for more in (found, _gravest(warned)):
        listed = listed.join(more, on="row", how="left", maintain_order="left")
    by_policy = pl.when(pl.col("verdict") != Verdict.RELEASE).then(pl.lit(BY_POLICY))
    why = pl.coalesce("warning", by_policy)
    is_match = pl.col("check_outcome") == Outcome.MATCH
    return listed.with_columns(
        group=pl.when(is_match & why.is_not_null())
        .then(pl.concat_str("check_action", pl.lit("-"), why))
        .otherwise("group"),
        is_to_look_at=~is_match | why.is_not_null(),
    )


def last_decisions(review: Review) -> dict[int, RowsDecided]:
    """Map each row to the decision that counts: the last on its current answer, or one carried over."""
    entries = review.decisions.entries()
    counted, before = review.counted[-1] if review.counted else ((), {})
    if any(was is not now for was, now in zip(counted, entries, strict=False)) or len(counted) > len(entries):
        counted, before = (), {}  # the journal was replaced, so read it all again
    new, latest = entries[len(counted) :], dict(before)
    row_count = review.summary.input.row_count
    for entry in new:
        review.answers_of([row for row in entry.rows if 1 <= row <= row_count])
    now = review.known_answers
    for entry in new:
        for row, answer in zip(entry.rows, entry.answers, strict=False):
            if now.get(row) != answer and (row not in now or entry.carried_from is None):
                continue
            if entry.decision is None:
                latest.pop(row, None)
            else:
                latest[row] = entry
    review.counted[:] = [(entries, dict(latest))]
    return latest


def reviewed(folder: FileFolder) -> tuple[Review, dict[int, RowsDecided]]:
    """Return a file's run, and the decisions that count; same errors as `opened` and `last_decisions`."""
    review = opened(folder)
    return review, last_decisions(review)


def by_entry(latest: Mapping[int, RowsDecided]) -> list[tuple[RowsDecided, int]]:
    """Each entry among the decisions that count, with the number of its rows: one entry may be about many."""
    entries = {id(last): last for last in latest.values()}
    return [(entries[one], count) for one, count in Counter(map(id, latest.values())).items()]


def frame_of(latest: Mapping[int, RowsDecided]) -> Decisions:
    """The decisions that count, as a `Decisions` frame."""
    columns = {name: [getattr(last, name) for last in latest.values()] for name in DECISIONS if name != "row"}
    return Decisions(pl.DataFrame({"row": list(latest), **columns}, schema=DECISIONS).sort("row"))


class Shown(NamedTuple):
    """Hashes of what a page showed."""

    run: str
    outcomes: str
    policy: str
    decisions: str
    totals: str

    def __str__(self) -> str:
        """The hashes as the value of a form field."""
        return "-".join(self)


OF_A_ROW = ("run", "outcomes", "policy")
"""The hashes in the form of one row, which leaves out the decisions and the totals."""


def shown_of(
    review: Review,
    latest: dict[int, RowsDecided],
    decisions: str,
    released_in: Mapping[int, str] = MappingProxyType({}),
) -> Shown:
    """Hash what a page shows: the run, the decisions that count, and the payments that they release."""
    preview = review.preview(latest, released_in)
    totals = (preview.release, preview.hold, preview.refused.to_list())
    policy = sorted(review.policy.items())
    parts = (review.summary.run_id, review.outcomes_sha256, policy, decisions, totals)
    return Shown(*(sha256(repr(part).encode()).hexdigest()[:12] for part in parts))


def refuse_changed(was: object, now: Shown, parts: tuple[str, ...] = Shown._fields) -> None:
    """Refuse a form whose page is out of date (Conflict: names what has changed)."""
    earlier = dict(zip(Shown._fields, str(was).split("-"), strict=False))
    if changed := [part for part in parts if earlier.get(part) != getattr(now, part)]:
        what = [Sentence(f"desk.shown_{part}") for part in changed]
        raise Conflict(Sentence("desk.changed_since_shown", what=what))
