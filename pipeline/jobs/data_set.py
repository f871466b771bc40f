"""Check a data set part by part, in the steps of `jobs.check`. Read that module first.

    part   -read_part->      accepted payments by bucket, rejects
    bucket -plan_bucket->    distinct questions, warnings across parts
             ask             ask the questions of all buckets at once
    bucket -divide_answers-> answers by part
    part   -decide_part->    outcome file, summary of the part

A bucket has all payments to some accounts. Each function keeps its whole result in the work folder, and is
not called again if the result exists, so a killed run resumes where it stopped.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Self

import polars as pl

from pipeline.config import ConfigurationFile, Profile
from pipeline.config.profiles import Chosen, choose, modulus_of
from pipeline.connections import routes
from pipeline.errors import InputError, UsageError
from pipeline.executors.datasets.engines import engine
from pipeline.executors.datasets.steps import SetTask, kept_part, message_of_part
from pipeline.formats.message import Message
from pipeline.formats.registry import format_named
from pipeline.frames import ASSIGNMENTS, CHECKS, REJECTS, WARNINGS
from pipeline.jobs.check import RunResult, check_input
from pipeline.jobs.comparing import ComparedRun, CurrentRun
from pipeline.jobs.data_set_plan import PlannedSet, compare_parts, plan_parts, task_of
from pipeline.jobs.prepare import PlannedInput, RunTime, country_of, notify_of_wasted_calls, wanted
from pipeline.reports.changes import gravest_in_parts, listed_changes
from pipeline.rules.enumeration import why_refused
from pipeline.rules.modulus import same_tables
from pipeline.runs.data_set import DataPart, DataSet, known_in, open_data_set, write_record
from pipeline.runs.ended import EndedRun, changes_in
from pipeline.runs.manifest import read_manifest
from pipeline.runs.request import CheckJob, DataSetJob, RunObserver, Surface
from pipeline.runs.starting import finished_before
from pipeline.runs.work_folder import read_frame
from pipeline.stages.compare import warnings_of
from pipeline.stores.sqlite.ledger import SqliteLedger
from pipeline.wording import Sentence
from schemas.changes import Change
from schemas.data_set import PartRead
from schemas.localized import LocalizedText
from schemas.summary import Summary

if TYPE_CHECKING:
    from pipeline.executors.asking import AskingResult, QuestionsLeft
    from pipeline.executors.datasets.questions import SetQuestions
    from pipeline.executors.from_report import ReceivedReport
    from pipeline.jobs.data_set_outcomes import Answered
    from pipeline.jobs.writing import DecidedRun, OpenRun

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
        if not of.asks and chosen.settings.ledger is None:
            raise UsageError(
                Sentence("jobs.no_ask_needs_shared_ledger"),
                advice=Sentence("jobs.name_ledger_or_omit_option"),
            )
        return cls(replace(of, check=check), open_data_set(check.file, of.work))

    def finished_before(self, ledger: SqliteLedger, chosen: Chosen, today: date) -> Summary | None:
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
        run = EndedRun(self.job.out, read_manifest(self.job.out))
        if (changes := changes_in(run.folder, run.content)) is None:
            return ()
        parts = (
            (part.first_row, part.row_count, lambda part=part: run.source(part).payments)
            for part in run.parts()
        )
        return listed_changes(gravest_in_parts(changes, parts), summary.compared)

    def prepare(self, chosen: Chosen, profile: Profile, time: RunTime, watch: RunObserver) -> Sentence | None:
        there = routes(profile)._replace(modulus=modulus_of(chosen, today=time.now.date()))
        self.task = task_of(self._of, self._data, chosen, there, time.now.date())
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

    @property
    def format(self) -> str:
        """The format of the parts."""
        return self._data.format

    def messages(self) -> list[tuple[DataPart, Message]]:
        """Read the messages of the usable parts, which bank's reports may be about."""
        return [(part, message_of_part(self.task, part)) for part, _ in self.planned_set.usable]

    def questions(self, surface: Surface | None = None) -> "SetQuestions":
        from pipeline.executors.datasets.questions import SetQuestions

        write_record(self.job.out, self._data, self.run_sha256, self.planned_set.unusable, self.task.files)
        if surface is not None:
            self._notify_of_wasted_calls(surface)
        return SetQuestions(self.task.files, [bucket.question_counts for bucket in self.planned_set.buckets])

    def _notify_of_wasted_calls(self, surface: Surface) -> None:
        rows = self.planned_set.rows
        paths = (self.task.files.frame("warnings", number) for number in rows.parts)
        found = (
            read_frame(path, WARNINGS).with_columns(pl.col("row") + start)
            for path, start in zip(paths, rows.starts, strict=True)
        )
        notify_of_wasted_calls(pl.concat(found), rows.positions, surface)

    def left(self, asked: "AskingResult") -> "QuestionsLeft":
        from pipeline.jobs.data_set_outcomes import look_at_answers

        self._answered = look_at_answers(self.task, self.planned_set, asked)
        return self._answered.left

    def decide(self, run: "OpenRun", left: "QuestionsLeft", surface: Surface) -> "DecidedRun":
        from pipeline.jobs.data_set_outcomes import KnownSet, decide_parts, set_results

        facts = self._data, self.task, self.planned_set, self._answered, self.compared
        known = KnownSet(*facts, self._received(run))
        with engine(self._of.engine, self._of.scheduler) as at_work:
            parts = decide_parts(run, known, at_work, surface.watch)
        decided = set_results(run, left, known, parts, surface)
        problems = [part.problem for part in decided.summary.parts if part.problem]
        return decided._replace(ended_by=_unusable(self._data, problems))

    def _received(self, run: "OpenRun") -> "list[ReceivedReport]":
        """Read the bank's reports that this check was compared with, if there are any."""
        if not run.compares_with_bank:
            return []
        from pipeline.executors.from_report import kept_reports

        assert run.before is not None
        messages = [message for _, message in self.messages()]
        kept = kept_reports(EndedRun(self.job.out, run.before), messages)
        return [report._replace(data=b"") for report in kept]  # only the content is compared


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
                Sentence("jobs.option_not_for_data_sets", option=option), advice=Sentence("cli.leave_out")
            )


def _unusable(data: DataSet, problems: list[LocalizedText | str]) -> InputError | None:
    """Return the error to raise at the end if parts cannot be used; the other parts are checked anyway."""
    if not problems:
        return None
    more_count = len(problems) - PROBLEMS_NAMED_MAX
    return InputError(
        Sentence(
            "jobs.parts_unusable" if more_count <= 0 else "jobs.parts_unusable_and_more",
            path=data.path.name,
            problems_count=len(problems),
            parts_count=len(data.parts),
            problems=problems[:PROBLEMS_NAMED_MAX],
            more_count=more_count,
        ),
        advice=Sentence("jobs.correct_parts_and_rerun"),
    )
