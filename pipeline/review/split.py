"""Which payments of a run may be paid, which are held, and why."""

from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from pipeline import settings
from pipeline.apis.identifiers import masked
from pipeline.approvals import decider, record_approval
from pipeline.errors import IncompleteError
from pipeline.finished import FinishedRun, finished
from pipeline.profiles import choose
from pipeline.reports.terminal import ADVICE
from pipeline.review.decided import approvals_for, decisions_of, refuse_simulated
from pipeline.review.payment_files import (
    payment_path,
    require_sums,
    take_into_evidence,
    write_for_people,
    write_payments,
)
from pipeline.stages.split import DEFAULT_POLICY, UNDECIDED, split
from schemas.folder import HOLD, HOLD_REASONS, RELEASE
from schemas.outcomes import Action
from schemas.review import Decision, HoldReason, PaymentFile, Split, Verdict
from schemas.wire import timestamp


@dataclass(frozen=True, slots=True)
class SplitJob:
    """How to split the payments of a run."""

    folder: Path
    config: Path | None = None
    decisions: Path | None = None
    by: str | None = None
    hold_undecided: bool = False
    allow_simulated: bool = False


def split_folder(job: SplitJob) -> Split:
    """Write the payments that may be paid, those that are held, and why.

    Raises:
        IncompleteError: a payment is not decided yet, and nobody said to hold it.
        PrecheckError: nothing was written; the exit code says why.
    """
    now = timestamp(datetime.now(UTC))
    with finished(job.folder, now=now) as run, ExitStack() as files:
        refuse_simulated(run, allowed=job.allow_simulated)
        if not job.hold_undecided:
            _refuse_undecided(run)
        policy = _policy(run, job.config)
        decisions = decisions_of(job.decisions, run)
        placements = split(run.outcomes, policy, decisions)
        release = _write_place(run, placements, Verdict.RELEASE, RELEASE, files)
        hold = _write_place(run, placements, Verdict.HOLD, HOLD, files)
        control = require_sums(run, [file for file in (release, hold) if file is not None])
        _write_reasons(run, placements, files)
        decided = decisions.join(placements.filter("decided"), on="row", how="semi", maintain_order="left")
        for decision, said in decided.group_by("decision", maintain_order=True):
            what = _told(str(decision[0]), release)
            record_approval(job.folder, *approvals_for(said, decider(job.by), now, what))
        files.close()  # each file gets its name
        take_into_evidence(job.folder, HOLD_REASONS, f"{RELEASE}.*", f"{HOLD}.*")
    unheeded = decisions.join(placements.filter(place=Verdict.HOLD, decided=False), on="row", how="semi")
    return Split(
        simulated=run.summary.simulated,
        policy={**DEFAULT_POLICY, **policy},
        input=control,
        release=release,
        hold=hold,
        reasons=str(job.folder / HOLD_REASONS),
        held=[
            HoldReason(why=why, row_count=row_count)
            for why, row_count in placements["why"].drop_nulls().value_counts(sort=True).iter_rows()
        ],
        unheeded_rows=unheeded.filter(decision=Decision.RELEASE)["row"].to_list(),
    )


def _refuse_undecided(run: FinishedRun) -> None:
    count = run.outcomes["check_outcome"].is_in(UNDECIDED).sum()
    if count:
        raise IncompleteError(
            f"{run.folder}: rows without an answer: {count:,}; run the same command again to ask about them, "
            "or hold them with --hold-undecided"
        )


def _policy(run: FinishedRun, config: Path | None) -> dict[str, Verdict]:
    """What the profile of the run says today; the built-in sandbox says nothing."""
    chosen = choose(run.summary.profile, config)
    return {} if chosen.config is None else settings.load(chosen.config, chosen.name).policy


def _told(decision: str, release: PaymentFile | None) -> str:
    """What was decided; which file it let the payments into, or kept them out of."""
    if release is None:
        return f"{decision}: no payment was released"
    return f"{decision}: the released payments are {Path(release.path).name}, SHA-256 {release.sha256}"


def _write_place(
    run: FinishedRun, placements: pl.DataFrame, place: Verdict, stem: str, files: ExitStack
) -> PaymentFile | None:
    """The payments of one place; a file without payments is none, and an earlier one of its name goes."""
    mine = run.source.original.filter(placements["place"] == place)
    if mine.is_empty():
        path = payment_path(run, stem)
        files.callback(path.unlink, missing_ok=True)
        return None
    return write_payments(run, mine, stem, files)


def _write_reasons(run: FinishedRun, placements: pl.DataFrame, files: ExitStack) -> None:
    """Each held row, and what a person has to know about it."""
    payments, outcomes = run.source.payments, run.outcomes
    held = placements.filter(place=Verdict.HOLD)
    rows = held.join(payments, on="row", maintain_order="left").join(
        outcomes, on="row", maintain_order="left"
    )
    accounts = rows.select(pl.coalesce("iban", "account_number")).to_series()
    advice = {**ADVICE, Action.PAY: "Nothing is wrong with the answer."}
    to_do = pl.col("check_action").replace_strict({action.value: advice[action] for action in Action})
    reasons = rows.select(
        "row",
        payee="name",
        account=pl.Series([masked(account) for account in accounts], dtype=pl.String),
        amount="amount",
        currency="currency",
        outcome="check_outcome",
        code="check_code",
        why_held=pl.concat_str("check_reason", "why", separator=" "),
        what_to_do=to_do,
    )
    write_for_people(reasons, run, HOLD_REASONS, files)
