"""List the corrections of a run, and write a payment file with the accepted ones."""

import shlex
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

import polars as pl

from pipeline.config.file import BUILT_IN
from pipeline.files.atomic import delete
from pipeline.frames import DECISIONS, Corrections
from pipeline.headers.parties import payee_ids
from pipeline.review import decisions, payment_files
from pipeline.review.corrections import (
    accepted_corrections,
    by_hand,
    correctable,
    fix,
    released_ones_stay,
    unknown_corrections,
)
from pipeline.rules.row_positions import position_texts
from pipeline.runs.ended import FinishedRun, finished_run
from pipeline.runs.folder import record_approval
from pipeline.runs.proof import sign, signer_again
from pipeline.wording import Sentence
from schemas.folder import CORRECTED, CORRECTIONS, REPORT_XLSX
from schemas.localized import LocalizedText
from schemas.review import Acceptance, Approval, Decision, Fix, PaymentFile
from schemas.strict import timestamp


@dataclass(frozen=True, slots=True)
class FixJob(decisions.ReviewJob):
    """The arguments of `precheck fix`."""

    accept: Sequence[Acceptance] = ()  # corrections to accept, instead of decisions
    reason: str | None = None  # the reason for `accept`; decisions in a workbook have their own reasons


def fix_folder(job: FixJob, *, now: datetime) -> Fix:
    """Write the list of corrections, and a payment file with the accepted ones (PrecheckError: no file)."""
    time = timestamp(now)
    with finished_run(job.folder, now=time) as run, ExitStack() as files:
        signer = signer_again(job.folder, run.manifest, job.sign_with)
        writer = payment_files.payments_writer(run, job.input_file)
        written = job.decisions.written if isinstance(job.decisions, decisions.RunDecisions) else {}
        known = [
            (writer if part is run else payment_files.payments_writer(part, job.input_file)).fitted(
                by_hand(fix(part.source.payments, part.outcomes, part.headers), written, part.headers)
            )
            for part in run.each()
        ]
        every = Corrections(pl.concat(known))
        corrections = released_ones_stay(every, job.released_before())
        possible = correctable(corrections)
        approver = None if not job.accept and job.decisions is None else job.approver(time)
        wanted = (
            pl.DataFrame(schema=DECISIONS) if approver is None else _wanted(job, run, corrections, approver)
        )
        if not wanted.is_empty():
            writer.refuse_obstacle()
        chosen = Corrections(possible.join(wanted, on="row", how="semi", maintain_order="left"))
        rows = chosen["row"].unique().sort()
        corrected, decided = None, list[Approval]()
        if approver is not None and not chosen.is_empty():
            decisions.refuse_simulated(run, allowed=job.allow_simulated)
            corrected = payment_files.write_payments(run, CORRECTED, partial(_corrected, job, chosen), files)
            assert corrected is not None, "every row is in it"
            payment_files.require_sums(run, [corrected])
            what = f"fix: written to {Path(corrected.path).name}, SHA-256 {corrected.sha256}"
            reasons = wanted.join(chosen, on="row", how="semi", maintain_order="left")
            decided = decisions.approvals_for(approver, reasons, what, Decision.FIX)
            record_approval(job.folder, *decided)
        elif isinstance(job.decisions, decisions.RunDecisions):
            # Every recorded decision counts: corrections of earlier approvals were undone.
            files.callback(delete, payment_files.payment_path(run, CORRECTED))
        undue = wanted.join(corrections, on="row", how="anti")["row"]
        listed = [_listed(part, corrections, undue, rows) for part in run.each()]
        payment_files.write_for_people(pl.concat(listed), run, CORRECTIONS, files)
        files.close()  # gives each file its final name
        made = payment_files.take_into_evidence(
            run,
            f"{CORRECTED}.*",
            now=now,
            written=[CORRECTIONS],
            payments=[] if corrected is None else [corrected],
            decided=None if signer is None else decided,
        )
        sign(job.folder, signer, made)
    return Fix(
        simulated=run.summary.simulated,
        corrections=str(job.folder / CORRECTIONS),
        row_count=corrections["row"].n_unique(),
        correctable_count=possible["row"].n_unique(),
        corrected=corrected,
        positions=run.summary.input.positions,
        notes=[]
        if corrected is None
        else payment_files.notes_on(run.summary.input, payment_files.row_counts([corrected])),
        corrected_rows=rows.to_list(),
        refused_rows=wanted.filter(~pl.col("row").is_in(rows.implode()))["row"].to_list(),
        before_next=_before_next(job, run, corrected),
        next_step=_next_step(job, run, corrected),
    )


def _wanted(
    job: FixJob, run: FinishedRun, corrections: Corrections, approver: decisions.Approver
) -> pl.DataFrame:
    if job.decisions is not None:
        return decisions.decisions_of(job.decisions, run, approver).filter(decision=Decision.FIX)
    rows = accepted_corrections(corrections, job.accept).select(pl.col("row").unique(maintain_order=True))
    decided = rows.with_columns(
        decision=pl.lit(Decision.FIX.value),
        reason=pl.lit(job.reason, dtype=pl.String),
        claimed_by=pl.lit(None, dtype=pl.String),
    )
    return decisions.signed(decided, by=approver.by, time=approver.time)


def _corrected(job: FixJob, chosen: Corrections, part: FinishedRun) -> payment_files.Write:
    mine = chosen.join(part.outcomes, on="row", how="semi", maintain_order="left")
    return partial(payment_files.payments_writer(part, job.input_file).corrected, Corrections(mine))


def _listed(run: FinishedRun, corrections: Corrections, undue: pl.Series, applied: pl.Series) -> pl.DataFrame:
    """List an outcome file's corrections for people, with requested corrections that do not apply."""
    source = run.source
    mine = corrections.join(run.outcomes, on="row", how="semi", maintain_order="left")
    corrections = Corrections(
        pl.concat([mine, unknown_corrections(run.outcomes, undue)]).sort("row", maintain_order=True)
    )
    payments = source.payments.select(
        "row", "payment_id", "sort_code", account=pl.coalesce("iban", "account_number")
    ).with_columns(payee_key=payee_ids(source.original))
    return corrections.join(payments, on="row", how="left", maintain_order="left").select(
        "row",
        position_texts(corrections["row"], run.summary.input.positions),
        "field",
        "from",
        "to",
        pl.concat_str("why", "obstacle", separator=" ", ignore_nulls=True),
        pl.when(pl.col("row").is_in(applied.implode()))
        .then(pl.lit("yes"))
        .otherwise(pl.lit("no"))
        .alias("applied"),
        # Keys for finding payment, account and payee in the user's own systems.
        *("payment_id", "sort_code", "account", "payee_key"),
        check_environment=pl.lit(run.summary.environment.value),
    )


def _before_next(job: FixJob, run: FinishedRun, corrected: PaymentFile | None) -> LocalizedText:
    if corrected is not None and run.summary.is_bank_answered:
        return Sentence("review.hand_in_corrected").recorded()
    if corrected is not None:
        built_in = run.summary.profile in BUILT_IN
        return Sentence("review.not_checked_yet" if built_in else "review.not_checked_yet_config").recorded()
    if isinstance(job.decisions, Path):
        return Sentence("review.corrects_no_row", file=job.decisions).recorded()
    copy = shlex.join(["cp", str(run.folder / REPORT_XLSX), str(_copy(run))])
    return Sentence("review.decide_in_a_copy", copy=copy).recorded()


def _copy(run: FinishedRun) -> Path:
    """Name a copy of the workbook outside the run's folder, because the folder is evidence."""
    return run.folder.with_name(f"{run.folder.stem}.decided.xlsx")


def _next_step(job: FixJob, run: FinishedRun, corrected: PaymentFile | None) -> str:
    folder = run.folder
    if corrected is None:
        workbook = job.decisions if isinstance(job.decisions, Path) else _copy(run)
        words = ["precheck", "fix", str(folder), "--decisions", str(workbook)]
        return shlex.join([*words, *(["--allow-simulated"] if run.summary.simulated else [])])
    source = run.summary.input
    beside = ["--out", str(folder.with_name(f"{folder.stem}.corrected{folder.suffix}"))]
    if run.is_data_set:
        beside += ["--work", str(folder.with_name(f"{folder.stem}.work"))]
    if run.summary.is_bank_answered:
        return shlex.join(["precheck", "import", corrected.path, "--report", "REPORT", *beside])
    words = ["precheck", "run", corrected.path]
    words += [] if run.summary.profile == BUILT_IN[0] else ["--profile", run.summary.profile]
    words += [word for field, header in source.mapping.items() for word in ("--map", f"{field}={header}")]
    words += ["--input-format", source.format] if source.format_said else []
    words += [] if source.encoding == "utf-8" else ["--encoding", source.encoding]
    return shlex.join([*words, *beside])
