"""Check a payment file in the steps of `jobs.check`; every stage takes all of its rows at once."""

from collections.abc import Sequence
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Self

from pipeline.apis.registry import about_uk_accounts
from pipeline.config import ConfigurationFile, Profile
from pipeline.config.profiles import Chosen, modulus_of
from pipeline.errors import UsageError
from pipeline.formats import pain001
from pipeline.formats.message import Message, set_aside, stated_controls
from pipeline.frames import Answers, Checks, Questions
from pipeline.jobs.prepare import (
    PlannedInput,
    PreparedFile,
    RunTime,
    notify_of_wasted_calls,
    prepare,
    read_file,
    wanted,
)
from pipeline.reports.changes import changes_of, gravest
from pipeline.rules.enumeration import unknown_in_sequence
from pipeline.runs.ended import changes_in, require_pain001
from pipeline.runs.request import CheckJob, RunObserver, Surface
from pipeline.runs.starting import finished_before, is_same_reading
from pipeline.stages.plan import bases
from pipeline.stages.read import PaymentSource
from pipeline.stages.resolve import resolve
from pipeline.stores.sqlite.ledger import SqliteLedger
from pipeline.wording import Sentence
from schemas.changes import Change
from schemas.summary import Summary

if TYPE_CHECKING:
    from pipeline.executors.asking import AskingResult, FileQuestions, QuestionsLeft
    from pipeline.jobs.writing import DecidedRun, OpenRun


class WholeFile:
    """A `RunInput` for a file; it frees frames early, as there may be millions of rows."""

    _prepared: PreparedFile
    _checks: Checks
    _asked: Questions
    _answers: Answers
    _questions: "FileQuestions"

    def __init__(self, job: CheckJob, source: PaymentSource) -> None:
        self.job = job
        self.sha256 = self.run_sha256 = source.sha256
        self._source = source

    @classmethod
    def read(cls, job: CheckJob, file: ConfigurationFile, *, ahead: PaymentSource | None = None) -> Self:
        """Read a file, unless it was already read ahead."""
        source = read_file(job, file) if ahead is None else ahead
        if job.pain002:
            require_pain001(source.format, name=job.file.name)
        return cls(job, source)

    def finished_before(self, ledger: SqliteLedger, chosen: Chosen, today: date) -> Summary | None:
        source, job = self._source, self.job
        found = finished_before(job, job.format or source.outcome_format, ledger)
        judged_by = wanted(job, chosen).in_words, modulus_of(chosen, today=today)
        return found if found is not None and is_same_reading(found, job, source, *judged_by) else None

    def changes(self, summary: Summary) -> Sequence[Change]:
        return changes_of(summary, self._source.payments, changes_in(self.job.out))

    def prepare(
        self,
        chosen: Chosen,
        profile: Profile,
        time: RunTime,
        watch: RunObserver,  # noqa: ARG002 (quick)
    ) -> Sentence | None:
        if self.job.work is not None and chosen.settings.ledger is None:
            raise UsageError(Sentence("jobs.work_needs_shared_ledger"), advice=Sentence("advice.name_ledger"))
        self._prepared, self._checks = prepare(self.job, self._source, chosen, profile, time)
        return self._prepared.refusal

    def planned(self, profile: Profile) -> PlannedInput:  # noqa: ARG002 (its types are already assumed)
        source, prepared = self._source, self._prepared
        found = prepared.facts(source)
        if source.message is not None:
            found |= {"controls": stated_controls(source.message), "set_aside": set_aside(source.message)}
        return PlannedInput(
            [(self._checks, prepared.assignments)],
            prepared.findings,
            source.positions,
            prepared.compared,
            partial(gravest, payments=source.payments),
            found,
            source.payments,
        )

    def messages(self) -> list[tuple[None, Message]]:
        """Return the message that a bank's report may be about; none if the file is not a pain.001."""
        message = self._source.message if self._source.format == pain001.NAME else None
        return [] if message is None else [(None, message)]

    def questions(self, surface: Surface | None = None) -> "FileQuestions":
        from pipeline.executors.asking import FileQuestions

        if surface is not None:
            notify_of_wasted_calls(self._prepared.findings.warnings, self._source.positions, surface)
        self._questions = FileQuestions(self._checks)
        return self._questions

    def left(self, asked: "AskingResult") -> "QuestionsLeft":
        from pipeline.executors.asking import questions_left

        checks, prepared, answers = self._checks, self._prepared, self._questions.answers()
        in_sequence = unknown_in_sequence(about_uk_accounts(checks), prepared.assignments, answers)
        self._prepared = prepared._replace(findings=prepared.findings.and_warnings(in_sequence))
        self._asked, self._answers = Questions(bases(checks), prepared.assignments), answers
        del self._checks, self._questions  # the largest frame
        return questions_left(answers, self._asked.bases, asked)

    def decide(self, run: "OpenRun", left: "QuestionsLeft", surface: Surface) -> "DecidedRun":
        from pipeline.jobs.writing import write_results

        source, findings = self._source, self._prepared.findings
        resolved = resolve(findings, self._asked, self._answers, run.apis, run.chosen.environment)
        return write_results(run, left, source, self._prepared, resolved, self._asked.bases, surface)
