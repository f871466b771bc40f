"""From the answers to files that can be paid: what to correct, what to release, what to hold.

    Outcomes -fix-> Corrections -> corrections.csv, and the payment file with those that were accepted
    Outcomes -split-> Placements -> the payments to release, the payments to hold, and why

Both jobs read the folder of a run and ask nobody. A payment file is built from the outcome file, whose
hash is on record, is read again before it gets its name, and must then hold exactly what it was given.
"""

import shlex
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path

import polars as pl

from pipeline import settings
from pipeline.apis.identifiers import masked
from pipeline.apis.totals import added, totals, with_money
from pipeline.approvals import decider, record_approval
from pipeline.errors import IncompleteError, InputError, UsageError
from pipeline.finished import FinishedRun, finished
from pipeline.formats import decisions as workbook
from pipeline.formats import delimited, parquet, spreadsheet
from pipeline.formats.delimited import DELIMITER
from pipeline.formats.styles import style_of, write_in_style
from pipeline.formats.whole import write_whole
from pipeline.manifest import read_manifest, refresh_manifest
from pipeline.profiles import BUILT_IN, choose
from pipeline.reports.terminal import ADVICE
from pipeline.stages.fix import accepted, correct, correctable, fix
from pipeline.stages.read import read_written
from pipeline.stages.split import DEFAULT_POLICY, UNDECIDED, split
from schemas.approvals import Approval
from schemas.folder import CORRECTED, CORRECTIONS, HOLD, HOLD_REASONS, RELEASE
from schemas.outcomes import Action
from schemas.review import Acceptance, ControlTotal, Decision, Fix, HoldReason, PaymentFile, Split, Verdict
from schemas.wire import timestamp


@dataclass(frozen=True, slots=True)
class FixJob:
    """What to correct in the folder of a run."""

    folder: Path
    accept: Sequence[Acceptance] = ()
    reason: str | None = None
    """Why `accept`; each decision of a workbook has its own."""
    decisions: Path | None = None
    """The workbook; instead of `accept`."""
    by: str | None = None
    allow_simulated: bool = False


@dataclass(frozen=True, slots=True)
class SplitJob:
    """How to split the payments of a run."""

    folder: Path
    config: Path | None = None
    decisions: Path | None = None
    by: str | None = None
    hold_undecided: bool = False
    allow_simulated: bool = False


def fix_folder(job: FixJob) -> Fix:
    """Write what is to be corrected, and the payment file with the corrections that were accepted.

    Raises:
        PrecheckError: nothing was written; the exit code says why.
    """
    now = timestamp(datetime.now(UTC))
    with finished(job.folder, now=now) as run, ExitStack() as files:
        corrections = fix(run.source.payments, run.outcomes, run.headers)
        possible = correctable(corrections)
        wanted = _wanted(job, run, corrections)
        chosen = possible.join(wanted, on="row", how="semi", maintain_order="left")
        rows = chosen["row"].unique().sort()
        corrected = None
        if not chosen.is_empty():
            _refuse_simulated(run, allowed=job.allow_simulated)
            corrected = _write_payments(run, correct(run.source.original, chosen), CORRECTED, files)
            _require_sums(run, [corrected])
            what = f"fix: written to {Path(corrected.path).name}, SHA-256 {corrected.sha256}"
            reasons = wanted.join(chosen, on="row", how="semi", maintain_order="left")
            record_approval(job.folder, *_approvals(reasons, decider(job.by), now, what))
        _write_corrections(run, corrections, files)
        files.close()  # each file gets its name
        _take_into_evidence(job.folder, CORRECTIONS, f"{CORRECTED}.*")
    return Fix(
        simulated=run.summary.simulated,
        corrections=str(job.folder / CORRECTIONS),
        row_count=corrections["row"].n_unique(),
        correctable_count=possible["row"].n_unique(),
        corrected=corrected,
        corrected_rows=rows.to_list(),
        refused_rows=wanted.filter(~pl.col("row").is_in(rows.implode()))["row"].to_list(),
        next_step=_next_step(run, corrected),
    )


def split_folder(job: SplitJob) -> Split:
    """Write the payments that may be paid, those that are held, and why.

    Raises:
        IncompleteError: a payment is not decided yet, and nobody said to hold it.
        PrecheckError: nothing was written; the exit code says why.
    """
    now = timestamp(datetime.now(UTC))
    with finished(job.folder, now=now) as run, ExitStack() as files:
        _refuse_simulated(run, allowed=job.allow_simulated)
        if not job.hold_undecided:
            _refuse_undecided(run)
        policy = _policy(run, job.config)
        decisions = _decisions(job.decisions, run)
        placements = split(run.outcomes, policy, decisions)
        release = _write_place(run, placements, Verdict.RELEASE, RELEASE, files)
        hold = _write_place(run, placements, Verdict.HOLD, HOLD, files)
        control = _require_sums(run, [file for file in (release, hold) if file is not None])
        _write_reasons(run, placements, files)
        decided = decisions.join(placements.filter("decided"), on="row", how="semi", maintain_order="left")
        for decision, said in decided.group_by("decision", maintain_order=True):
            what = _told(str(decision[0]), release)
            record_approval(job.folder, *_approvals(said, decider(job.by), now, what))
        files.close()  # each file gets its name
        _take_into_evidence(job.folder, HOLD_REASONS, f"{RELEASE}.*", f"{HOLD}.*")
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


# What may be done with a run.


def _refuse_simulated(run: FinishedRun, *, allowed: bool) -> None:
    if run.summary.simulated and not allowed:
        raise UsageError(
            f"{run.folder}: a sandbox answered, and no answer says anything about a real account; "
            "check the file with a real profile, or say --allow-simulated to try this command"
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


def _decisions(path: Path | None, run: FinishedRun) -> pl.DataFrame:
    if path is None:
        return workbook.no_decisions()
    return workbook.read(path, run_id=run.summary.run_id, row_count=run.outcomes.height)


def _wanted(job: FixJob, run: FinishedRun, corrections: pl.DataFrame) -> pl.DataFrame:
    """The rows that somebody wants corrected, as `Decisions`, each with the reason given."""
    if job.decisions is not None:
        return _decisions(job.decisions, run).filter(decision=Decision.FIX)
    rows = accepted(corrections, job.accept).select(pl.col("row").unique(maintain_order=True))
    return rows.with_columns(decision=pl.lit(Decision.FIX.value), reason=pl.lit(job.reason, dtype=pl.String))


def _approvals(decisions: pl.DataFrame, by: str, time: str, what: str) -> list[Approval]:
    """One for each reason that was given."""
    return [
        Approval(by=by, time=time, what=what, why=str(why or "no reason given"), rows=said["row"].to_list())
        for (why,), said in decisions.group_by("reason", maintain_order=True)
    ]


def _told(decision: str, release: PaymentFile | None) -> str:
    """What was decided; which file it let the payments into, or kept them out of."""
    if release is None:
        return f"{decision}: no payment was released"
    return f"{decision}: the released payments are {Path(release.path).name}, SHA-256 {release.sha256}"


# What is written.


def _write_place(
    run: FinishedRun, placements: pl.DataFrame, place: Verdict, stem: str, files: ExitStack
) -> PaymentFile | None:
    """The payments of one place; a file without payments is none, and an earlier one of its name goes."""
    mine = run.source.original.filter(placements["place"] == place)
    if mine.is_empty():
        path = _payment_path(run, stem)
        files.callback(path.unlink, missing_ok=True)
        return None
    return _write_payments(run, mine, stem, files)


def _payment_path(run: FinishedRun, stem: str) -> Path:
    simulated = ".simulated" if run.summary.simulated else ""
    return run.folder / f"{stem}{simulated}{style_of(run.summary.input).suffix}"


def _write_payments(run: FinishedRun, table: pl.DataFrame, stem: str, files: ExitStack) -> PaymentFile:
    """A payment file in the style of the input, read again as every payment file is."""
    _require_style(run)
    style, path = style_of(run.summary.input), _payment_path(run, stem)
    extra = table.columns[table.width - run.summary.input.extra_column_count :]
    table = table.drop(name for name in extra if table[name].null_count() == table.height)
    file = files.enter_context(write_whole(path))
    write_in_style(table, file, style, where=path.name)
    file.seek(0)
    again = read_written(
        file.read(),
        style.format,
        where=path.name,
        mapping=run.summary.input.mapping,
        encoding=None if style.encoding == "utf-8" else style.encoding,
    )
    if not again.original.equals(table):
        raise AssertionError("the written payment file holds other cells than it was given")
    return PaymentFile(
        path=str(path),
        sha256=again.sha256,
        row_count=again.payments.height,
        totals=totals(with_money(again.payments)),
    )


def _require_style(run: FinishedRun) -> None:
    """Refuse to guess how the input was written."""
    source = run.summary.input
    if source.format == parquet.NAME != run.source.format:
        raise InputError(
            f"{run.folder}: the outcome file is CSV, which does not know the types of {source.name}; "
            "run the same command again with --format parquet, which asks nothing twice"
        )
    if source.format == delimited.NAME and source.delimiter is None:
        raise InputError(
            f"{run.folder}: the run was of an older version, which did not say how {source.name} is written; "
            "run the same command again, which asks nothing twice"
        )


def _require_sums(run: FinishedRun, files: Sequence[PaymentFile]) -> ControlTotal:
    """The control totals of the input, which those of the files must add up to."""
    input_totals = totals(with_money(run.source.payments))
    assert input_totals == added([total.totals for total in run.summary.outcomes])
    if sum(file.row_count for file in files) != run.outcomes.height:
        raise AssertionError("the written files have more or fewer rows than the input")
    if added([file.totals for file in files]) != input_totals:
        raise AssertionError("the money in the written files is not the money in the input")
    return ControlTotal(row_count=run.outcomes.height, totals=input_totals)


def _write_corrections(run: FinishedRun, corrections: pl.DataFrame, files: ExitStack) -> None:
    listed = corrections.select(
        "row", "field", "from", "to", pl.concat_str("why", "obstacle", separator=" ", ignore_nulls=True)
    )
    _write_for_people(listed, run, CORRECTIONS, files)


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
    _write_for_people(reasons, run, HOLD_REASONS, files)


def _write_for_people(table: pl.DataFrame, run: FinishedRun, name: str, files: ExitStack) -> None:
    file = files.enter_context(write_whole(run.folder / name))
    spreadsheet.write(table, file, delimiter=run.summary.input.delimiter or DELIMITER)


def _take_into_evidence(folder: Path, *patterns: str) -> None:
    """Put what was just written into the manifest, and what it replaced out of it."""
    there = [path.name for pattern in patterns for path in folder.glob(pattern)]
    gone = [
        file.name
        for file in read_manifest(folder).files
        if file.name not in there and any(fnmatch(file.name, pattern) for pattern in patterns)
    ]
    refresh_manifest(folder, now=datetime.now(UTC), written=there, removed=gone)


def _next_step(run: FinishedRun, corrected: PaymentFile | None) -> str:
    """The command that checks the corrected file, or that leads to one."""
    folder = run.folder
    if corrected is None:
        return shlex.join(["precheck", "fix", str(folder), "--decisions", str(folder / "report.xlsx")])
    source = run.summary.input
    words = ["precheck", "run", corrected.path]
    words += [] if run.summary.profile == BUILT_IN[0] else ["--profile", run.summary.profile]
    words += [word for field, header in source.mapping.items() for word in ("--map", f"{field}={header}")]
    words += [] if source.encoding == "utf-8" else ["--encoding", source.encoding]
    return shlex.join([*words, "--out", str(folder.with_name(f"{folder.stem}.corrected{folder.suffix}"))])
