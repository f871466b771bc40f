"""Divide the payments of a run into payments to make and payments to hold, with reasons."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

import polars as pl

from pipeline.config import ConfigurationFile
from pipeline.config.profiles import choose_again
from pipeline.errors import IncompleteError, InputError, UsageError
from pipeline.formats.message import Role
from pipeline.frames import DECISIONS, Decisions, Placements, Warned
from pipeline.reports.choices import and_repeated
from pipeline.reports.wording import ADVICE, ADVICE_BY_CODE
from pipeline.review.decisions import (
    ReviewJob,
    RunDecisions,
    approval_of_none,
    approvals_for,
    decisions_of,
    refuse_simulated,
)
from pipeline.review.payment_files import (
    Write,
    notes_on,
    payments_writer,
    require_sums,
    row_counts,
    take_into_evidence,
    write_for_people,
    write_payments,
)
from pipeline.review.placements import split, why_held
from pipeline.rules.identifiers import masked
from pipeline.rules.policy import DEFAULT_POLICY
from pipeline.rules.row_positions import position_texts
from pipeline.rules.totals import currency_shown
from pipeline.rules.warnings import warning_counts
from pipeline.runs.ended import FinishedRun, finished_run
from pipeline.runs.families import splitting
from pipeline.runs.folder import approvals_of, record_approval
from pipeline.runs.manifest import evidence
from pipeline.runs.proof import sign, signer_again
from pipeline.wording import Moment, Sentence
from schemas.folder import HOLD, HOLD_REASONS, RELEASE
from schemas.localized import LocalizedText
from schemas.manifest import PaymentsEvidence, SplitMade
from schemas.outcomes import Action
from schemas.review import Approval, Decision, HoldReason, PaymentFile, Split, Verdict
from schemas.strict import timestamp
from schemas.summary import WarningCount


@dataclass(frozen=True, slots=True)
class SplitJob(ReviewJob):
    """The arguments of `precheck split`."""

    config: ConfigurationFile | Path | None = None
    hold_undecided: bool = False
    repeated_rows: Sequence[int] = ()  # PAYMENT_REPEATED for the policy: another family's file released them
    release_again: bool = False  # true if payments that were released before may be released again


def split_folder(job: SplitJob, *, now: datetime) -> Split:
    """Write released and held payments, and reasons (IncompleteError: undecided; PrecheckError: no file)."""
    time = timestamp(now)
    with finished_run(job.folder, now=time) as run, ExitStack() as alone, ExitStack() as files:
        refuse_simulated(run, allowed=job.allow_simulated or run.summary.is_rehearsal)
        if not job.hold_undecided:
            _refuse_undecided(run)
        # The policy of the profile as it is now.
        file = ConfigurationFile.of(job.config)
        policy = choose_again(run.summary.profile, file).settings.policy
        signer = signer_again(job.folder, run.manifest, job.sign_with, file)
        approver = job.approver(time)
        decisions = decisions_of(job.decisions, run, approver)
        shaped = [*job.decisions.shaped] if isinstance(job.decisions, RunDecisions) else []
        warned = and_repeated(run.warned(), job.repeated_rows)
        alone.enter_context(splitting(job.folder))
        run.require_unchanged()
        before = job.released_before()
        held_for_it = {} if job.release_again else before
        placed = [split(part.outcomes, warned, policy, decisions, held_for_it) for part in run.each()]
        placements = Placements(pl.concat(placed))
        released_rows = placements.filter(place=Verdict.RELEASE)["row"]
        if run.summary.is_rehearsal:
            counts = dict(placements["place"].value_counts().iter_rows())
            released, held = counts.get(Verdict.RELEASE, 0), counts.get(Verdict.HOLD, 0)
            raise UsageError(
                Sentence("review.only_a_rehearsal", folder=run.folder, released=released, held=held)
            )
        release, hold = (
            write_payments(run, role, partial(_placed, job, placements, role), files) for role in ROLES
        )
        payment_files = [file for file in (release, hold) if file is not None]
        control = require_sums(run, payment_files)
        reasons = [_reasons(part, placements, decisions) for part in run.each()]
        write_for_people(pl.concat(reasons), run, HOLD_REASONS, files)
        if decisions.is_empty():
            note = _note_of("no decision on any row", release)
            approvals = [approval_of_none(approver, job.decisions, note)]
        else:
            new = _not_on_record(decisions, approvals_of(job.folder))
            approvals = _approvals(new, placements, release, partial(approvals_for, approver))
        record_approval(job.folder, *approvals)
        files.close()  # gives each file its final name
        in_force = {**DEFAULT_POLICY, **policy}
        made = SplitMade(
            time=time,
            by=approver.by,
            self_approved=approver.is_own(
                [*decisions["by"], *(approval.by for approval in approvals), *(one.by for one in shaped)]
            ),
            shaped=shaped,
            policy=in_force,
            release=_evidence_of(release),
            hold=_evidence_of(hold),
            reasons=evidence(job.folder / HOLD_REASONS),
            refused_rows=_refused(decisions, placements)["row"].to_list(),
            held_rows=placements.filter(place=Verdict.HOLD)["row"].to_list(),
            again_rows=[row for row in released_rows if row in before],
        )
        renewed = take_into_evidence(
            run,
            f"{RELEASE}.*",
            f"{HOLD}.*",
            now=now,
            written=[HOLD_REASONS],
            payments=payment_files,
            decided=None if signer is None else approvals,
            split=made,
        )
        sign(job.folder, signer, renewed)
        earlier = run.manifest.splits
    released_warnings, held = _released_warnings(warned, placements), why_held(placements)
    return Split(
        simulated=run.summary.simulated,
        policy=in_force,
        input=control,
        release=release,
        hold=hold,
        positions=run.summary.input.positions,
        differences=run.summary.input.differences,
        notes=[
            *notes_on(run.summary.input, row_counts(payment_files)),
            *_released_here(earlier, release, released_rows),
        ],
        released_warnings=released_warnings,
        how_to_hold=_how_to_hold(run, released_warnings),
        reasons=str(job.folder / HOLD_REASONS),
        held=[HoldReason(why=why.recorded(), row_count=count) for why, count in held.values()],
        unheeded_rows=made.refused_rows,
    )


def _released_warnings(warned: Warned, placements: Placements) -> list[WarningCount]:
    released = warned.join(placements.filter(place=Verdict.RELEASE), on="row", how="semi")
    return sorted(warning_counts(released), key=lambda count: count.code)


def _how_to_hold(run: FinishedRun, warnings: Sequence[WarningCount]) -> LocalizedText | None:
    if not warnings:
        return None
    keys = [f'{count.code} = "{Verdict.HOLD}"' for count in warnings]
    return Sentence("review.how_to_hold", keys=keys, profile=run.summary.profile).recorded()


def _refused(decisions: pl.DataFrame, placements: pl.DataFrame) -> pl.DataFrame:
    """Return the `Decisions` to release that have no effect."""
    held = placements.filter(place=Verdict.HOLD)
    return decisions.filter(decision=Decision.RELEASE).join(held, on="row", how="semi", maintain_order="left")


def _not_on_record(decisions: Decisions, approvals: Iterable[Approval]) -> pl.DataFrame:
    """Return the decisions without corrections already recorded when the corrected file was approved."""
    fixed = [
        (row, Decision.FIX.value, approval.by, approval.time)
        for approval in approvals
        if approval.decision is Decision.FIX
        for row in approval.rows
    ]
    same = ("row", "decision", "by", "time")
    on_record = pl.DataFrame(fixed, schema={name: DECISIONS[name] for name in same}, orient="row")
    return decisions.join(on_record, on=same, how="anti", maintain_order="left")


def _approvals(
    decisions: pl.DataFrame,
    placements: pl.DataFrame,
    release: PaymentFile | None,
    sign: Callable[[pl.DataFrame, str, Decision | None], list[Approval]],
) -> list[Approval]:
    """Record people's decisions as approvals, including those without effect; refused ones last."""
    refused = _refused(decisions, placements)
    kept = decisions.join(refused, on="row", how="anti", maintain_order="left")
    counted = [
        approval
        for (word,), rows in kept.group_by("decision", maintain_order=True)
        for approval in sign(rows, _note_of(str(word), release), Decision(word))
    ]
    return [*counted, *sign(refused, "release refused: the rows stay held", None)]


def _evidence_of(file: PaymentFile | None) -> PaymentsEvidence | None:
    if file is None:
        return None
    found = evidence(Path(file.path))
    if found.sha256 != file.sha256:
        raise InputError(Sentence("runs.changed_meanwhile", path=file.path))
    return PaymentsEvidence(**found.model_dump(), row_count=file.row_count, totals=file.totals)


def _refuse_undecided(run: FinishedRun) -> None:
    if count := run.summary.undecided_count:
        raise IncompleteError(
            Sentence("jobs.rows_without_answer", folder=run.folder, count=count),
            advice=Sentence(
                "jobs.import_final_report_or_hold"
                if run.summary.is_bank_answered
                else "jobs.rerun_or_hold_undecided"
            ),
        )


def _note_of(decision: str, release: PaymentFile | None) -> str:
    """Describe a decision, and the file that the payments went into or were left out of."""
    if release is None:
        return f"{decision}: no payment was released"
    return f"{decision}: the released payments are {Path(release.path).name}, SHA-256 {release.sha256}"


ROLES: tuple[Role, Role] = (RELEASE, HOLD)


def _placed(job: SplitJob, placements: Placements, role: Role, part: FinishedRun) -> Write | None:
    mine = placements["place"].slice(part.part.first_row - 1, part.part.row_count) == role
    return partial(payments_writer(part, job.input_file).part, mine, role) if mine.any() else None


def _released_here(
    earlier: Sequence[SplitMade], release: PaymentFile | None, rows: pl.Series
) -> Iterator[LocalizedText]:
    """Yield a note for each earlier release file that has payments in common with the new one."""
    for made in reversed(earlier):
        if release is None or made.release is None or made.release.sha256 == release.sha256:
            continue
        if count := (~rows.is_in(made.held_rows)).sum():
            yield Sentence(
                "review.release_overlaps", count=count, time=Moment(made.time), hash=made.release.sha256
            ).recorded()
            return


def _reasons(run: FinishedRun, placements: Placements, decisions: pl.DataFrame) -> pl.DataFrame:
    """Return each held row of an outcome file with reasons in sentences; users' own reasons stay verbatim."""
    payments, outcomes = run.source.payments, run.outcomes
    placements = Placements(placements.slice(run.part.first_row - 1, run.part.row_count))
    decided = decisions.select("row", words=pl.col("reason").str.strip_chars_end(". "))
    held = placements.filter(place=Verdict.HOLD).join(decided, on="row", how="left", maintain_order="left")
    english = {key: str(why) for key, (why, _) in why_held(placements).items()}
    texts = [english[key] for key in held.select("why", "why_of").iter_rows()]
    held = held.with_columns(pl.Series("why", texts, dtype=pl.String))
    in_words = pl.format("{}: {}.", pl.col("why").str.strip_suffix("."), "words")
    why = pl.when(pl.col("decided") & pl.col("words").is_not_null()).then(in_words).otherwise("why")
    rows = held.join(payments, on="row", maintain_order="left").join(
        outcomes, on="row", maintain_order="left"
    )
    accounts = rows.select(pl.coalesce("iban", "account_number")).to_series()
    advice = {**ADVICE, Action.PAY: Sentence("todo.nothing_wrong")}
    codes = {code: str(advised) for code, advised in ADVICE_BY_CODE.items()}
    by_code = pl.col("check_code").replace_strict(codes, default=None, return_dtype=pl.String)
    actions = {action.value: str(advice[action]) for action in Action}
    by_action = pl.col("check_action").replace_strict(actions)
    return rows.select(
        "row",
        position_texts(rows["row"], run.summary.input.positions),
        payee="name",
        account=pl.Series([masked(account) for account in accounts], dtype=pl.String),
        amount="amount",
        currency=currency_shown(rows),
        outcome="check_outcome",
        code="check_code",
        why_held=pl.concat_str(pl.col("check_reason"), why, separator=" "),
        what_to_do=pl.coalesce(by_code, by_action),
    )
