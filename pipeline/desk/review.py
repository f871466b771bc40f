"""The rows of a run to look at, with what the policy says of each and what people decided: 50 to a page."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import lru_cache
from hashlib import sha256
from types import MappingProxyType
from typing import NamedTuple

import polars as pl

from pipeline.config.profiles import choose
from pipeline.desk.families import released_near
from pipeline.desk.finding import has_text
from pipeline.desk.folders import FileFolder
from pipeline.desk.journal import ChainedJournal
from pipeline.desk.languages import amount, gettext, gettext_noop
from pipeline.errors import InputError, PrecheckError
from pipeline.frames import DECISIONS, Decisions, Outcomes, Payments, Warned
from pipeline.headers.readings import spoken
from pipeline.reports.choices import IS_CORRECTABLE, and_repeated, policy_of
from pipeline.reports.documents import Rows
from pipeline.reports.groups import TEXT_CHARS_MAX, ActionGroup, Row, groups_of, in_line, numbered, shown
from pipeline.reports.reasons import sentences_of
from pipeline.reports.wording import BY_POLICY, advice, positions_in_words
from pipeline.review.placements import Preview, judged, preview, total
from pipeline.rules.policy import ANSWERED, verdicts
from pipeline.rules.warnings import repeated_in
from pipeline.runs.ended import ended_run
from pipeline.runs.families import listed as rows_of
from pipeline.wording import Sentence
from schemas.desk import RowsDecided
from schemas.outcomes import ABOUT_THE_PAYEE, Action, Outcome
from schemas.review import ControlTotal, Decision, Verdict
from schemas.summary import Summary

ROWS_ON_PAGE = 50
REASONS_SUGGESTED = 8
_OF_A_PREVIEW = {name: DECISIONS[name] for name in ("row", "decision")}
_ANSWER = ("check_outcome", "check_code", "check_matched_name", "check_id")
ACCOUNTS = ("account_number", "iban")
SEARCHED = ("name", "payment_id", "account_number", "iban", "reference", "check_matched_name")
_FIXES: Mapping[str, str] = {
    Action.FIX_NAME: gettext_noop("Use the bank's name"),
    Action.FIX_ACCOUNT_TYPE: gettext_noop("Use the other account type"),
    Action.FIX_NAME_AND_ACCOUNT_TYPE: gettext_noop("Use the bank's name and the other account type"),
}
_POLICY_SAYS: Mapping[str, str] = {
    Verdict.RELEASE: gettext_noop("The policy releases it, unless you hold it."),
    Verdict.REVIEW: gettext_noop("Your decision: this payment stays on hold until you release it."),
}
_IS_ONE_BY_ONE = (pl.col("check_outcome") == Outcome.NO_MATCH) & (pl.col("verdict") != Verdict.RELEASE)
_AT_ONCE: Mapping[Decision, pl.Expr] = {
    Decision.RELEASE: pl.col("can_release") & ~_IS_ONE_BY_ONE,
    Decision.FIX: pl.col("can_fix"),
    Decision.HOLD: pl.lit(value=True),
}
"""The rows about which a decision may be made without looking at each."""
_OUTCOMES = frozenset(outcome.value for outcome in Outcome)
_NEVER: Mapping[str, str] = {
    Outcome.REJECTED: gettext_noop(
        "Not checked, so it is held. Correct it in your file and upload the file again."
    ),
    Outcome.DEFERRED: gettext_noop("No answer yet, so it is held. Resume the check first."),
    Outcome.UNANSWERED: gettext_noop("No answer yet, so it is held. Resume the check first."),
}


class LastDecision(NamedTuple):
    """The decision on a row that counts: the latest."""

    decision: Decision
    reason: str | None
    by: str
    time: str
    claimed_by: str | None = None
    """Whom the workbook names that it stood in."""
    is_carried: bool = False
    """Whether it was decided about the file that this one is the correction of."""


class Repeated(NamedTuple):
    """The same payment in another file at the desk."""

    file_id: str
    name: str
    row: int


class ListedRow(NamedTuple):
    """A row on the page."""

    row: Row
    advice: Sentence
    group: str
    verdict: str
    """Of the policy: release, review or hold."""
    policy_says: str
    """The same as a sentence."""
    can_release: bool
    fix: str
    """What a correction does, in words; empty where none is known."""
    latest: LastDecision | None
    reason: list[Sentence | str]
    repeats: Repeated | None = None
    """The same payment that another file released."""
    account: str = ""
    """The whole of it, in groups."""


class Asked(NamedTuple):
    """What somebody wants to see."""

    group: str = ""
    outcome: str = ""
    decided: str = ""
    """`yes`, `no`, `release` of what would be released, or anything."""
    text: str = ""
    rows: str = ""
    """`all`, or only those that need a look."""
    currency: str = ""
    least: str = ""
    """The smallest amount, which counts only if the rows are of one currency."""
    sort: str = ""
    """One of `SORTS`, with a minus sign for the other direction; empty: largest amounts first."""
    page: int = 1

    @property
    def is_filtered(self) -> bool:
        """Whether a filter leaves rows out."""
        return any((self.group, self.outcome, self.text.strip(), self.currency, self.least))


SORTS = ("row", "name", "check_matched_name", "amount", "check_code", "decision")
"""The columns of the page that rows can be sorted by, from left to right."""


class BulkChoice(NamedTuple):
    """The bulk decisions offered for all undecided rows that are shown."""

    row_count: int
    release_count: int
    """Of the rows that the policy leaves to people, without those that are no match."""
    one_by_one_count: int
    """Of these: one by one they may be released."""
    fix_count: int
    """Of those whose correction is known."""
    fix: str
    """What that does, in words; empty where there is none."""


class Overrides(NamedTuple):
    """The payments that are released because a person decided so."""

    rows: list[ListedRow]
    """Those of most money, by currency."""
    total: ControlTotal


class ReviewPage(NamedTuple):
    """Some of the rows."""

    rows: list[ListedRow]
    row_count: int
    """Of those that were asked for."""
    page: int
    page_count: int


class Review(NamedTuple):
    """A run, opened to be reviewed; it stays the same while its answers and the policy do."""

    summary: Summary
    outcomes_sha256: str
    rows: Rows
    listed: pl.DataFrame
    """Every row, in line: row, group, outcome, action, verdict, decided_by, what can be decided, and whether
    a person looks at it: the policy does not release it, its name is no match, or it has a warning about the
    payee."""
    groups: tuple[ActionGroup, ...]
    """Of the rows to look at."""
    policy: Mapping[str, Verdict]
    judged: pl.DataFrame
    """Every row, as a preview needs it."""
    decisions: ChainedJournal[RowsDecided]
    known_answers: dict[int, str]
    """What `answers_of` has found so far."""
    counted: list[tuple[Sequence[RowsDecided], Mapping[int, LastDecision]]]
    """What `last_decisions` found last: of these decisions those that count."""
    repeated: Mapping[int, Repeated]
    """The rows whose payment another file released, and no warning of the run says so."""
    previewed: list[tuple[pl.DataFrame, object, Preview]]
    """The last preview, with what it came of: a page and its form ask for the same."""

    @property
    def to_look_at(self) -> pl.DataFrame:
        """The rows that a person looks at before the file is paid, in line."""
        return self.listed.filter("is_to_look_at")

    @property
    def to_look_at_count(self) -> int:
        """How many there are."""
        return sum(group.row_count for group in self.groups)

    def overrides(self, overridden: pl.Series, latest: Mapping[int, LastDecision]) -> Overrides:
        """The payments that were found to be released by decisions alone."""
        found = self.listed.filter(pl.col("row").is_in(overridden.implode()))
        each_max = ROWS_ON_PAGE // max(1, found["currency"].n_unique())
        found = found.sort("currency", maintain_order=True)
        found = found.filter(pl.int_range(pl.len()).over("currency") < max(1, each_max))
        return Overrides(self._shown(found, latest), total(self.judged[overridden - 1]))

    def page(
        self,
        asked: Asked,
        latest: Mapping[int, LastDecision],
        released_in: Mapping[int, str] = MappingProxyType({}),
    ) -> ReviewPage:
        """The rows that were asked for, with the decisions that count, by row."""
        found = self._chosen(asked, latest)
        if asked.decided == "release":
            rows = self.preview(latest, released_in).rows
            found = found.filter(pl.col("row").is_in(rows.implode()))
        page_count = max(1, -(-found.height // ROWS_ON_PAGE))
        page = min(max(asked.page, 1), page_count)
        some = found.slice((page - 1) * ROWS_ON_PAGE, ROWS_ON_PAGE)
        return ReviewPage(self._shown(some, latest), found.height, page, page_count)

    def row(self, number: int, latest: Mapping[int, LastDecision]) -> ListedRow | None:
        """One row; None if it is not there."""
        return next(iter(self._shown(self.listed.filter(pl.col("row") == number), latest)), None)

    def undecided(
        self,
        asked: Asked,
        decision: Decision,
        latest: Mapping[int, LastDecision],
        ticked: Collection[int] = (),
    ) -> pl.DataFrame:
        """The rows asked for, or the ticked of them, without a decision and fit for this one at once."""
        mine = self._chosen(asked, latest).filter(_AT_ONCE[decision])
        mine = mine.filter(~pl.col("row").is_in(pl.Series("row", list(latest), pl.UInt32).implode()))
        return mine.filter(pl.col("row").is_in([*ticked])) if ticked else mine

    def choice(
        self, asked: Asked, latest: Mapping[int, LastDecision], ticked: Collection[int] = ()
    ) -> BulkChoice | None:
        """What may be decided at once about the rows that were asked for; None where that is everything."""
        if not asked.is_filtered:
            return None
        every = self.undecided(asked, Decision.HOLD, latest, ticked)
        fix = every.filter(_AT_ONCE[Decision.FIX])
        actions = fix["check_action"].unique()
        return BulkChoice(
            every.height,
            every.filter(_AT_ONCE[Decision.RELEASE]).height,
            every.filter("can_release").filter(_IS_ONE_BY_ONE).height,
            fix.height if actions.len() == 1 else 0,
            gettext(_FIXES[actions[0]]) if actions.len() == 1 else "",
        )

    def totals(self, rows: pl.DataFrame) -> list[tuple[str, ControlTotal]]:
        """Some of the rows with their money, by outcome, most rows first, and then all of them."""
        mine = self.judged[rows["row"] - 1]
        parts = sorted(mine.partition_by("check_outcome"), key=lambda part: -part.height)
        found = [(part["check_outcome"][0], total(part)) for part in parts]
        return [*found, ("", total(mine))] if len(found) > 1 else found

    def last_at_once(self, latest: Mapping[int, LastDecision]) -> RowsDecided | None:
        """The last bulk decision, with the rows that no later decision changed; None if none."""
        entry = next((entry for entry in reversed(self.decisions.entries()) if entry.at_once), None)
        if entry is None:
            return None
        rows = [row for row in entry.rows if row in latest and _is_of(latest[row], entry)]
        return entry.model_copy(update={"rows": rows}) if rows else None

    def reasons(self) -> list[str]:
        """The last reasons that were given, each once, the latest first."""
        reasons = (entry.reason for entry in reversed(self.decisions.entries()) if entry.reason)
        return [*dict.fromkeys(reasons)][:REASONS_SUGGESTED]

    def undecided_counts(self, latest: Mapping[int, LastDecision]) -> dict[str, int]:
        """Group -> the number of its undecided rows."""
        decided = pl.Series("row", list(latest), pl.UInt32)
        left = self.to_look_at.select("group", "row").filter(~pl.col("row").is_in(decided.implode()))
        counts = dict(left.group_by("group").len().iter_rows())
        return {group.key: counts.get(group.key, 0) for group in self.groups}

    def answers_of(self, rows: Sequence[int]) -> list[str]:
        """Of each of these rows, which answer it has: another one has other digits."""
        if new := [row for row in rows if row not in self.known_answers]:
            some = self.rows.outcomes[pl.Series(new, dtype=pl.UInt32) - 1].select(_ANSWER)
            texts = ("\0".join(map(str, line)) for line in some.iter_rows())
            hashes = (sha256(text.encode()).hexdigest()[:12] for text in texts)
            self.known_answers.update(zip(new, hashes, strict=True))
        return [self.known_answers[row] for row in rows]

    def reason_of(self, row: int) -> list[Sentence | str]:
        """Why a row has its outcome, as sentences."""
        reason = self.rows.outcomes["check_reason"][row - 1]
        return sentences_of(reason, self.rows.reasons, self.summary.input.places)

    def left(self, latest: Mapping[int, LastDecision]) -> ControlTotal:
        """The rows to look at without a decision, with their money."""
        rows = self.to_look_at["row"]
        return total(self.judged[rows.filter(~rows.is_in(list(latest))) - 1])

    def preview(self, latest: Mapping[int, LastDecision], released_in: Mapping[int, str]) -> Preview:
        """Where each payment would go by what was decided so far, and by what was released before."""
        of_what = (dict(latest), dict(released_in))
        for rows, known, found in self.previewed:
            if rows is self.judged and known == of_what:
                return found
        decisions = [last.decision for last in latest.values()]
        found = preview(self.judged, pl.DataFrame([list(latest), decisions], _OF_A_PREVIEW), released_in)
        self.previewed[:] = [(self.judged, of_what, found)]
        return found

    def _chosen(self, asked: Asked, latest: Mapping[int, LastDecision]) -> pl.DataFrame:
        found = self.listed if asked.rows == "all" or not self.groups else self.to_look_at
        if asked.group:
            found = found.filter(pl.col("group") == asked.group)
        if asked.outcome:
            found = found.filter(pl.col("check_outcome") == asked.outcome)
        if asked.decided in ("yes", "no"):
            is_decided = pl.col("row").is_in(pl.Series("row", list(latest), pl.UInt32).implode())
            found = found.filter(is_decided if asked.decided == "yes" else ~is_decided)
        if asked.currency:
            found = found.filter(pl.col("currency") == asked.currency)
        if asked.least and self.compares_money(asked):
            found = found.filter(pl.col("decimal") >= Decimal(asked.least))
        if asked.text.strip():
            found = found.filter(self._with_text(found["row"], asked.text))
        return self._sorted(found, asked.sort, latest)

    @property
    def currencies(self) -> list[str]:
        """The currency codes of the listed rows."""
        return sorted(code for code in self.listed["currency"].drop_nulls().unique() if len(code) == 3)

    def compares_money(self, asked: Asked) -> bool:
        """Whether the rows asked for share a currency, so that their amounts can be compared."""
        return bool(asked.currency) or self.listed["currency"].n_unique() == 1

    def _sorted(self, found: pl.DataFrame, sort: str, latest: Mapping[int, LastDecision]) -> pl.DataFrame:
        column, descending = sort.removeprefix("-"), sort.startswith("-")
        at = found["row"] - 1
        match column:
            case "":
                return found
            case "row":
                by = found["row"]
            case "amount":  # each currency apart, as two cannot be compared
                return found.sort("currency", "decimal", descending=[False, not descending], nulls_last=True)
            case "name":
                by = self.rows.payments["name"][at].str.to_lowercase()
            case "decision":
                by = found["row"].is_in(list(latest))
            case _:
                by = self.rows.outcomes[column][at].cast(pl.String).str.to_lowercase()
        order = by.arg_sort(descending=descending, nulls_last=True)
        return found[order]

    def _with_text(self, rows: pl.Series, text: str) -> pl.Series:
        at = rows - 1
        cells = self.rows.payments[at].hstack(self.rows.outcomes[at].select("check_matched_name"))
        return cells.select(has_text(text, SEARCHED, ACCOUNTS).alias("has_text"))["has_text"]

    def _shown(self, some: pl.DataFrame, latest: Mapping[int, LastDecision]) -> list[ListedRow]:
        if some.is_empty():
            return []
        payments, outcomes = self.rows.payments, self.rows.outcomes
        at = some["row"] - 1
        cells = payments[at].hstack(outcomes[at].drop("row").get_columns())
        # `numbered` finds rows by their place.
        texts = numbered(
            cells.with_columns(row=pl.int_range(1, cells.height + 1, dtype=pl.UInt32)),
            range(1, cells.height + 1),
        )
        places = self.summary.input.places
        found: list[ListedRow] = []
        for text, line in zip(texts, some.iter_rows(named=True), strict=True):
            number = line["row"]
            figure = line["decimal"]
            row = text._replace(
                number=number,
                place=positions_in_words([number], places),
                amount=text.amount if figure is None else amount(figure),
                currency=text.currency,
            )
            found.append(
                ListedRow(
                    row,
                    advice(Action(line["check_action"]), line["group"].partition("-")[2]),
                    line["group"],
                    line["verdict"],
                    _policy_says(line),
                    line["can_release"],
                    _fix(line) if line["can_fix"] else "",
                    latest.get(number),
                    self.reason_of(number),
                    self.repeated.get(number),
                    in_groups(*cells.select("iban", "sort_code", "account_number").row(len(found))),
                )
            )
        return found


def in_groups(iban: str | None, sort_code: str | None, account_number: str | None) -> str:
    """A whole account as people compare it.

    >>> in_groups("DE35370400440084210077", None, None), in_groups(None, "112233", "00000007")
    ('DE35 3704 0044 0084 2100 77', '112233 00000007')
    """
    compact = "".join((iban or "").split())
    groups = [compact[at : at + 4] for at in range(0, len(compact), 4)]
    whole = " ".join(groups) or " ".join(filter(None, (sort_code, account_number)))
    return shown(whole, TEXT_CHARS_MAX)


def _is_of(last: LastDecision, entry: RowsDecided) -> bool:
    return (last.decision, last.by, last.time) == (entry.decision, entry.by, entry.time)


def _fix(line: Mapping[str, str]) -> str:
    action = line["check_action"]
    return gettext(_FIXES[action])


def _policy_says(line: Mapping[str, str]) -> str:
    never = _NEVER.get(line["check_outcome"])
    said = never or _POLICY_SAYS.get(line["verdict"])
    if said is not None:
        return gettext(said)
    held_by = line["decided_by"]
    if held_by in _OUTCOMES:
        held_by = gettext(spoken(held_by))
    if line["can_fix"]:
        return gettext(
            "The policy holds %(what)s: you cannot release it here, but you can accept the correction "
            "offered and have it checked.",
            what=held_by,
        )
    if line["check_outcome"] == Outcome.NOT_POSSIBLE:
        return gettext(
            "The policy holds %(what)s: you cannot release it here. If your file is right, only your "
            "administrator can change the policy.",
            what=held_by,
        )
    return gettext(
        "The policy holds %(what)s: you cannot release it here. Correct your file with what the payee "
        "confirmed and upload it again.",
        what=held_by,
    )


def opened(folder: FileFolder) -> Review:
    """Open the run of a file.

    Raises:
        PrecheckError: there is none that has ended, its files were changed, or its profile is not there.
    """
    run = ended_run(folder.run)
    policy = choose(run.manifest.profile.name, None).policy
    if (deleted := run.forgotten(run.outcome_file.name)) is not None:
        raise InputError(Sentence("runs.forgotten", file=run.outcome_file.name, deleted=deleted))
    near = released_near(folder)
    return _opened(folder, run.manifest.outcome_file.sha256, tuple(sorted(policy.items())), near)


def forget_all() -> None:
    """Keep no run in memory any more, as names of one were deleted."""
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
    warned = and_repeated(policy_of(summary, policy).warned, [*repeated])
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
        previewed=[],
    )


def _repeated(
    folder: FileFolder, payments: Payments, near: Iterable[tuple[str, Iterable[tuple[int, int]]]]
) -> dict[int, Repeated]:
    found: dict[int, Repeated] = {}
    for file_id, spans in near:
        other = FileFolder(file_id, folder.path.parent / file_id)
        with suppress(PrecheckError):  # the names of that file were deleted
            theirs = ended_run(other.run).rows().payments
            released = theirs.filter(pl.col("row").is_in(rows_of(spans)))
            name = other.read().name
            found |= {
                row: Repeated(file_id, name, first) for row, first in repeated_in(payments, released).items()
            }
    return found


def _gravest(warned: Warned) -> pl.DataFrame:
    """`row`, and the code of its gravest `warning` about the payee."""
    gravity = pl.col("code").replace_strict(
        {str(code): rank for rank, code in enumerate(ABOUT_THE_PAYEE)}, default=None, return_dtype=pl.UInt8
    )
    found = warned.with_columns(gravity=gravity).drop_nulls("gravity")
    return found.group_by("row").agg(warning=pl.col("code").sort_by("gravity").first())


def _with_verdicts(
    listed: pl.DataFrame, outcomes: Outcomes, warned: Warned, policy: Mapping[str, Verdict]
) -> pl.DataFrame:
    """The rows in line with what the policy says; a match that needs a look has a group for why."""
    found = verdicts(outcomes, warned, policy).select(
        "row",
        "verdict",
        "decided_by",
        can_release=ANSWERED & (pl.col("verdict") != Verdict.HOLD),
        can_fix=IS_CORRECTABLE,
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


def last_decisions(review: Review) -> dict[int, LastDecision]:
    """Row -> the decision that counts: the last on the answer that the row has now, or carried over."""
    entries = review.decisions.entries()
    counted, before = review.counted[-1] if review.counted else ((), {})
    if any(was is not now for was, now in zip(counted, entries, strict=False)) or len(counted) > len(entries):
        counted, before = (), {}  # the journal is another one
    new, latest = entries[len(counted) :], dict(before)
    row_count = review.summary.input.row_count
    for entry in new:
        review.answers_of([row for row in entry.rows if 1 <= row <= row_count])
    now = review.known_answers
    for entry in new:
        last = (
            None
            if entry.decision is None
            else LastDecision(
                entry.decision,
                entry.reason,
                entry.by,
                entry.time,
                entry.claimed_by,
                entry.carried_from is not None,
            )
        )
        for row, answer in zip(entry.rows, entry.answers, strict=False):
            if now.get(row) != answer and (row not in now or entry.carried_from is None):
                continue
            if last is None:
                latest.pop(row, None)
            else:
                latest[row] = last
    review.counted[:] = [(entries, dict(latest))]
    return latest


def reviewed(folder: FileFolder) -> tuple[Review, dict[int, LastDecision]]:
    """The run of a file, and the decisions that count; raises as `opened` and `last_decisions`."""
    review = opened(folder)
    return review, last_decisions(review)


def frame_of(latest: Mapping[int, LastDecision]) -> Decisions:
    """The decisions that count, as `Decisions`."""
    columns = {name: [getattr(last, name) for last in latest.values()] for name in DECISIONS if name != "row"}
    return Decisions(pl.DataFrame({"row": list(latest), **columns}, schema=DECISIONS).sort("row"))
