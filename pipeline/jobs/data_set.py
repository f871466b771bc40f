"""Check a data set part by part, in the steps of `jobs.check`. Read that module first.

    part   -read_part->      accepted payments by bucket, rejects
    bucket -plan_bucket->    distinct questions, warnings across parts
             ask             ask the questions of all buckets at once
    bucket -divide_answers-> answers by part
    part   -decide_part->    outcome file, summary of the part

A bucket contains all payments to some of the accounts. An engine (`pipeline.executors.datasets`) runs the
four functions. Each writes its complete result to the work folder, and is not called again if the result
exists, so a killed run resumes where it stopped.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from uuid import UUID, uuid5

import polars as pl

from pipeline.config import ConfigurationFile, Profile
from pipeline.config.profiles import Chosen, choose, ledger_url, modulus_of
from pipeline.connections import routes
from pipeline.errors import InputError, UsageError
from pipeline.executors.datasets.engines import Engine, engine, watched
from pipeline.executors.datasets.steps import (
    POLARS,
    BucketTask,
    PartTask,
    SetTask,
    UsableRows,
    accepted_rows,
    by_part,
    kept_part,
    plan_bucket,
    read_part,
)
from pipeline.files.plain import real_path
from pipeline.formats import format_named
from pipeline.formats.message import CONTROLS_MAX
from pipeline.frames import ASSIGNMENTS, CHANGES, CHECKS, REJECTS, WARNINGS
from pipeline.headers.parties import payee_id_header
from pipeline.jobs.check import RunResult, check_input
from pipeline.jobs.comparing import (
    Compared,
    ComparedRun,
    ComparisonRequest,
    CurrentRun,
    compare_with_earlier,
    rows_in_pieces,
)
from pipeline.jobs.prepare import (
    VERSION,
    PlannedInput,
    RunTime,
    assumed_types,
    country_of,
    notify_of_wasted_calls,
    wanted,
)
from pipeline.reports.changes import gravest_in_parts, listed_changes
from pipeline.rules.enumeration import ROWS_NAMED_MAX, ManyNames, why_refused
from pipeline.rules.modulus import same_tables
from pipeline.runs.data_set import DataPart, DataSet, known_in, open_data_set, places_in, write_record
from pipeline.runs.ended import EndedRun, changes_in
from pipeline.runs.manifest import read_manifest
from pipeline.runs.part_files import PartFiles, read_frame, write_frame
from pipeline.runs.request import CheckJob, DataSetJob, RunObserver, SetStep, Surface
from pipeline.runs.starting import finished_before
from pipeline.stages.compare import warnings_of
from pipeline.stages.validate import Routes
from pipeline.stores.sqlite.ledger import SqliteLedger
from pipeline.wording import PLACE, Sentence
from schemas.changes import Change
from schemas.cop import AccountType
from schemas.data_set import BucketPlanned, PartRead
from schemas.localized import LocalizedText
from schemas.outcomes import ApiName
from schemas.summary import ROWS_LISTED_MAX, CurrencySources, ModulusUsed, RouteCount, Summary

if TYPE_CHECKING:
    from pipeline.executors.datasets.questions import SetQuestions
    from pipeline.executors.results import AskingResult, QuestionsLeft
    from pipeline.jobs.data_set_outcomes import Answered
    from pipeline.jobs.writing import DecidedRun, OpenRun


_FOLDERS = UUID("6f0c0f5e-2f5b-5d5e-9b6c-2a54c3a0d1b7")
_BUCKETS_MIN, _BUCKETS_MAX = 4, 1_000
_ROWS_MAX = 4_000_000_000
"""Row numbers have 32 bits."""
_HEADERS_NAMED_MAX = 5


class PlannedSet(NamedTuple):
    """A data set, read and planned."""

    parts: Sequence[tuple[DataPart, PartRead]]  # all parts, in order
    rows: UsableRows  # rows of the usable parts
    buckets: Sequence[BucketPlanned]

    @property
    def usable(self) -> list[tuple[DataPart, PartRead]]:
        """The parts that can be used."""
        return [(part, read) for part, read in self.parts if read.problem is None]

    @property
    def unusable(self) -> set[int]:
        """The numbers of unusable parts."""
        return {part.number for part, read in self.parts if read.problem is not None}

    @property
    def many_names(self) -> ManyNames:
        """Payments that try many names on one account."""
        return ManyNames(
            sorted(row for bucket in self.buckets for row in bucket.many_names_rows)[:ROWS_NAMED_MAX],
            sum(bucket.many_names_count for bucket in self.buckets),
            sum(bucket.many_names_account_count for bucket in self.buckets),
        )

    @property
    def routes(self) -> list[RouteCount]:
        """Numbers of rows by route."""
        found = Counter[tuple[ApiName, str, str | None]]()
        for route in (route for _, read in self.usable for route in read.routes):
            found[route.api, route.reason, route.bic_source] += route.row_count
        return [
            RouteCount(api=api, reason=reason, bic_source=source, row_count=count)
            for (api, reason, source), count in found.items()
        ]

    @property
    def modulus(self) -> ModulusUsed | None:
        """The modulus tables that were used."""
        used = [bucket.modulus for bucket in self.buckets if bucket.modulus is not None]
        if not used:
            return None
        return used[0].model_copy(update={"uncovered_count": sum(bucket.uncovered_count for bucket in used)})

    def facts(self, default: AccountType) -> dict[str, Any]:
        """Return the fields that `InputFile` and `Forecast` share; `default` is the assumed account type."""
        parts = self.usable
        sources, assumed_count = Counter[str](), sum(read.assumed_type_count for _, read in parts)
        for _, read in parts:
            sources.update(read.currency_sources.model_dump())
        not_payments = [
            row.model_copy(update={"sentence": _in_part(row.sentence, part)})
            for part, read in parts
            for row in read.not_payments
        ]
        controls = [
            control.model_copy(update={"difference": _in_part(control.difference, part)})
            for part, read in parts
            for control in read.controls
            if control.difference is not None
        ]
        shared = [note for note in parts[0][1].notes if all(note in read.notes for _, read in parts)]
        own = [_in_part(note, part) for part, read in parts for note in read.notes if note not in shared]
        assumed = [note.recorded() for note in assumed_types(assumed_count, default)]
        return {
            "not_payments": not_payments[:ROWS_LISTED_MAX],
            "controls": controls[:CONTROLS_MAX],
            "set_aside": [aside for _, read in parts for aside in read.set_aside],
            "notes": [*shared, *own[:ROWS_LISTED_MAX], *assumed],
            "currency_sources": CurrencySources(**sources),
        }


def _in_part(sentence: LocalizedText, part: DataPart) -> LocalizedText:
    """Return a sentence about a part, with the name of the part."""
    return Sentence("footer.in_part", part=part.name, sentence=Sentence.of_data(sentence.sentence)).recorded()


def task_of(job: DataSetJob, data: DataSet, chosen: Chosen, there: Routes) -> SetTask:
    """Return the settings that all tasks share; their work folder is only for these settings."""
    check, modulus = job.check, there.modulus
    bucket_bytes = format_named(data.outcome_format).BUCKET_BYTES
    bucket_count = max(_BUCKETS_MIN, min(_BUCKETS_MAX, data.byte_count // bucket_bytes + 1))
    settings = {
        "parts": data.sha256,
        "out": str(real_path(check.out)),
        "profile": chosen.fingerprint,
        "mapping": dict(check.mapping),
        "encoding": check.encoding,
        "country": country_of(check, chosen),
        "modulus": None
        if modulus is None
        else [modulus.tables.weights_sha256, modulus.tables.substitutions_sha256, modulus.is_old],
        "versions": [VERSION, POLARS],
    }
    name = uuid5(_FOLDERS, json.dumps(settings, sort_keys=True))
    files = PartFiles(real_path(job.work) / str(name))
    read_so = data.format, dict(check.mapping), check.encoding
    return SetTask(files, there, *read_so, bucket_count, country_of(check, chosen))


def plan_parts(data: DataSet, shared: SetTask, at_work: Engine, watch: RunObserver) -> PlannedSet:
    """Read every part (InputError: none is usable), then plan every bucket; report progress to `watch`."""
    tasks = [PartTask(shared, part) for part in data.parts]
    reads = watched(at_work.each(read_part, tasks), watch, SetStep.READ, len(tasks))
    found = {task.part.number: read for task, read in reads}
    parts = _compared([(part, found[part.number]) for part in data.parts])
    rows = _rows([(part, read) for part, read in parts if read.problem is None], data.path.name)
    _forget_other_rows(shared, rows)
    buckets = [BucketTask(shared, bucket, rows) for bucket in range(shared.bucket_count)]
    plans = watched(at_work.each(plan_bucket, buckets), watch, SetStep.PLANNED, len(buckets))
    planned = {task.bucket: of_bucket for task, of_bucket in plans}
    return PlannedSet(parts, rows, [planned[bucket] for bucket in range(shared.bucket_count)])


def compare_parts(
    wanted: ComparisonRequest, subject: CurrentRun, shared: SetTask, planned: PlannedSet, *, now: datetime
) -> ComparedRun | None:
    """Compare a data set with earlier runs, and pass the changes on to its parts."""

    def rows() -> Compared:
        has_ids = payee_id_header(planned.usable[0][1].headers) is not None
        row_count = sum(planned.rows.counts) if has_ids else None
        return rows_in_pieces(partial(accepted_rows, shared, planned.rows), row_count)

    found = compare_with_earlier(wanted, subject, rows, now=now, spool=shared.files.root)
    changes = {} if found is None else by_part(found.changes, planned.rows)
    for part in planned.rows.parts:
        write_frame(changes.get(part, pl.DataFrame(schema=CHANGES)), shared.files.frame("changes", part))
    return found


def _compared(parts: Sequence[tuple[DataPart, PartRead]]) -> list[tuple[DataPart, PartRead]]:
    """Return the parts; those whose columns differ from the first usable part get a problem."""
    first = next(((part, read) for part, read in parts if read.problem is None), None)
    if first is None:
        raise InputError(Sentence("jobs.part_unusable", problem=parts[0][1].problem))
    compared, before = [], _Columns({}, set())
    for part, read in parts:
        found = _like(part, read, first, before)
        if found.problem is None:
            filled = {f"{PLACE}{number}" for number in range(1, len(read.headers) + 1)} - set(read.blank)
            before = _Columns({**read.decision, **before.decision}, before.filled | filled)
        compared.append((part, found))
    return compared


class _Columns(NamedTuple):
    """The columns of the parts read so far."""

    decision: Mapping[str, str]  # how each column was read, decided by a part with cells in it
    filled: set[str]  # columns with cells in any part, by position


def _like(part: DataPart, read: PartRead, like: tuple[DataPart, PartRead], before: _Columns) -> PartRead:
    """Return the part with its findings, or with a problem if its columns differ from earlier parts."""
    first, as_read = like
    if read.problem is not None:
        return read
    if read.headers != as_read.headers:
        return PartRead(
            problem=Sentence(
                "jobs.part_of_other_columns",
                part=part.name,
                first=first.name,
                differences=_differences(read.headers, as_read.headers),
            ).recorded()
        )
    fields = {
        field
        for field, columns in before.decision.items()
        if _filled(columns, read.blank) != _filled(read.decision.get(field, ""), read.blank)
    }
    fields |= {
        field
        for field, columns in read.decision.items()
        if field not in before.decision and before.filled & set(re.split(r"[|+]", columns))
    }
    if fields:
        return PartRead(
            problem=Sentence("jobs.part_read_otherwise", part=part.name, fields=sorted(fields)).recorded()
        )
    return read


def _filled(columns: str, blank: Collection[str]) -> list[str]:
    """Return a field's columns that have cells, in `--map` notation."""
    return [one for one in columns.split("|") if one and not set(one.split("+")) <= set(blank)]


def _differences(headers: Sequence[str], others: Sequence[str]) -> list[Sentence]:
    lacks = [header for header in others if header not in headers][:_HEADERS_NAMED_MAX]
    has = [header for header in headers if header not in others][:_HEADERS_NAMED_MAX]
    found = [Sentence("jobs.without_headers", headers=lacks)] if lacks else []
    found += [Sentence("jobs.with_headers", headers=has)] if has else []
    return found or [Sentence("jobs.in_another_order")]


def _rows(usable: Sequence[tuple[DataPart, PartRead]], where: str) -> UsableRows:
    counts = [read.row_count for _, read in usable]
    if sum(counts) > _ROWS_MAX:
        raise InputError(Sentence("jobs.more_than_rows", where=where, rows_max=_ROWS_MAX))
    return UsableRows(
        [part.number for part, _ in usable], counts, places_in([part for part, _ in usable], counts)
    )


def _forget_other_rows(shared: SetTask, rows: UsableRows) -> None:
    """Discard the plans of all buckets if the set of usable parts has changed."""
    path, content = shared.files.root / "rows.json", json.dumps([rows.parts, rows.counts])
    if path.exists() and path.read_text("ascii") == content:
        return
    for bucket in range(shared.bucket_count):
        shared.files.done("planned", bucket).unlink(missing_ok=True)
    path.write_text(content, "ascii")


PROBLEMS_NAMED_MAX = 5


def check_data_set(job: DataSetJob, surface: Surface) -> RunResult:
    """Check every part of a data set, like `check`, even if some parts cannot be used."""
    return check_input(job.check, partial(CheckedSet.read, of=job), surface, asks=job.asks)


class CheckedSet:
    """A data set as a `RunInput`; its frames are files in the work folder."""

    task: SetTask
    planned_set: PlannedSet
    compared: ComparedRun | None
    _answered: "Answered"

    def __init__(self, of: DataSetJob, data: DataSet) -> None:
        self.job, self._of, self.sha256 = of.check, of, data.sha256
        self._data, self.run_sha256 = known_in(of.check.out, data)

    @classmethod
    def read(cls, check: CheckJob, file: ConfigurationFile, *, of: DataSetJob) -> Self:
        """Find the parts (UsageError: an option does not apply to data sets)."""
        refuse_options_of_a_file(check)
        chosen = choose(check.profile, file)
        if not of.asks and ledger_url(chosen) is None:
            raise UsageError(Sentence("jobs.leaves_asking_workers"), advice=Sentence("jobs.name_one_profile"))
        return cls(replace(of, check=check), open_data_set(check.file, of.work))

    def finished_before(self, ledger: SqliteLedger, chosen: Chosen, today: date) -> Summary | None:
        """See `RunInput.finished_before`."""
        job, found = self.job, finished_before(self.job, None, ledger)
        if found is None or not found.complete:
            return None
        file, suffix = found.input, format_named(job.format or self._data.outcome_format).SUFFIX
        requested_before = None if found.compared is None else found.compared.requested
        before = (file.sha256, file.mapping, file.encoding, file.country, requested_before)
        now = (self.sha256, dict(job.mapping), job.encoding or "utf-8", country_of(job, chosen))
        is_same = before == (*now, wanted(job, chosen).in_words)
        is_same &= all(str(part.outcome_file).endswith(suffix) for part in found.parts)
        return found if is_same and same_tables(found.modulus, modulus_of(chosen, today=today)) else None

    def changes(self, summary: Summary) -> Sequence[Change]:
        """See `RunInput.changes`."""
        run = EndedRun(self.job.out, read_manifest(self.job.out))
        if (changes := changes_in(run.folder, run.content)) is None:
            return ()
        parts = (
            (part.first_row, part.row_count, lambda part=part: run.source(part).payments)
            for part in run.parts()
        )
        return listed_changes(gravest_in_parts(changes, parts), summary.compared)

    def prepare(self, chosen: Chosen, profile: Profile, time: RunTime, watch: RunObserver) -> Sentence | None:
        """Read, plan and compare the parts; see `RunInput.prepare`."""
        there = routes(profile)._replace(modulus=modulus_of(chosen, today=time.now.date()))
        self.task = task_of(self._of, self._data, chosen, there)
        if self.job.fresh:
            self.task.files.remove()
        with engine(self._of.engine, self._of.scheduler) as at_work:
            self.planned_set = plan_parts(self._data, self.task, at_work, watch)
        subject = CurrentRun(self.job.out, self.sha256, chosen.environment, time.begun)
        request = wanted(self.job, chosen)
        self.compared = compare_parts(request, subject, self.task, self.planned_set, now=time.now)
        positions = self.planned_set.rows.positions
        return why_refused(self.planned_set.many_names, where=self.job.file.name, positions=positions)

    def planned(self, profile: Profile) -> PlannedInput:
        """See `RunInput.planned`; its frames are read when they are needed."""
        usable, rows, files = self.planned_set.usable, self.planned_set.rows, self.task.files

        def payments(part: DataPart, read: PartRead, start: int) -> pl.DataFrame:
            return kept_part(self.task, part, read)[1].with_columns(pl.col("row") + start)

        parts = (
            (start + 1, read.row_count, partial(payments, part, read, start))
            for (part, read), start in zip(usable, rows.starts, strict=True)
        )
        questions = (
            (
                read_frame(files.frame("questions", bucket), CHECKS),
                read_frame(files.frame("assignments", bucket), ASSIGNMENTS),
            )
            for bucket in range(self.task.bucket_count)
        )
        found = self.planned_set.facts(profile.default_account_type)
        found["notes"] += [read.problem for _, read in self.planned_set.parts if read.problem is not None]
        changed = partial(gravest_in_parts, parts=parts)
        return PlannedInput(questions, self._findings(), rows.positions, self.compared, changed, found)

    def _findings(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return `Rejects` and `Warnings` of all parts, numbered by the rows of the data set."""
        files, rows = self.task.files, self.planned_set.rows
        rejects, warnings = [pl.DataFrame(schema=REJECTS)], [pl.DataFrame(schema=WARNINGS)]
        if self.compared is not None:
            warnings.append(warnings_of(self.compared.changes))
        for part, start in zip(rows.parts, rows.starts, strict=True):
            row = pl.col("row") + start
            rejects.append(read_frame(files.frame("rejects", part), REJECTS).with_columns(row))
            buckets = range(self.task.bucket_count)
            across = (files.frame("warnings_across", part, bucket) for bucket in buckets)
            paths = (files.frame("warnings", part), *across)
            warnings += [read_frame(path, WARNINGS).with_columns(row) for path in paths]
        return pl.concat(rejects), pl.concat(warnings)

    def questions(self, surface: Surface) -> "SetQuestions":
        """See `RunInput.questions`."""
        from pipeline.executors.datasets.questions import SetQuestions

        write_record(self.job.out, self._data, self.run_sha256, self.planned_set.unusable, self.task.files)
        rows = self.planned_set.rows
        found = (
            read_frame(self.task.files.frame("warnings", number), WARNINGS).with_columns(
                pl.col("row") + start
            )
            for number, start in zip(rows.parts, rows.starts, strict=True)
        )
        notify_of_wasted_calls(pl.concat(found), rows.positions, surface)
        return SetQuestions(self.task.files, [bucket.question_counts for bucket in self.planned_set.buckets])

    def left(self, asked: "AskingResult") -> "QuestionsLeft":
        """See `RunInput.left`."""
        from pipeline.jobs.data_set_outcomes import look_at_answers

        self._answered = look_at_answers(self.task, self.planned_set, asked)
        return self._answered.left

    def decide(self, run: "OpenRun", left: "QuestionsLeft", surface: Surface) -> "DecidedRun":
        """See `RunInput.decide`."""
        from pipeline.jobs.data_set_outcomes import KnownSet, decide_parts, set_results

        known = KnownSet(self._data, self.task, self.planned_set, self._answered, self.compared)
        with engine(self._of.engine, self._of.scheduler) as at_work:
            parts = decide_parts(run, known, at_work, surface.watch)
        decided = set_results(run, left, known, parts, surface)
        problems = [part.problem for part in decided.summary.parts if part.problem]
        return decided._replace(ended_by=_unusable(self._data, problems))


def refuse_options_of_a_file(check: CheckJob) -> None:
    """Refuse options that do not apply to data sets (UsageError)."""
    options_given = {
        "--pain002": check.pain002,
        "--sheet": check.sheet is not None,
        "--input-format": check.input_format is not None,
        "--order amount": check.order == "amount",
    }
    for option, is_given in options_given.items():
        if is_given:
            raise UsageError(
                Sentence("jobs.option_of_a_file", option=option), advice=Sentence("jobs.leave_out")
            )


def _unusable(data: DataSet, problems: list[LocalizedText | str]) -> InputError | None:
    """Return the error to raise at the end if parts cannot be used; the other parts are checked anyway."""
    if not problems:
        return None
    more_count = len(problems) - PROBLEMS_NAMED_MAX
    return InputError(
        Sentence(
            "jobs.parts_cannot_used" if more_count <= 0 else "jobs.parts_cannot_used_and_more",
            path=data.path.name,
            problems_count=len(problems),
            parts_count=len(data.parts),
            problems=problems[:PROBLEMS_NAMED_MAX],
            more_count=more_count,
        ),
        advice=Sentence("jobs.correct_them_run"),
    )
