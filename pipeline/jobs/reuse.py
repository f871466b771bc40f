"""Reuse matches of earlier runs, and count the calls that this saves. An answer keeps its original time."""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from pipeline.apis import Api, basis_of
from pipeline.config.profiles import built_in_fingerprint
from pipeline.errors import DiskError, InputError, LockedError, OutputError, UsageError
from pipeline.files.plain import real_path
from pipeline.frames import CHECKS, AnswerState, Check, each_check
from pipeline.runs.folder import ledger_of
from pipeline.runs.proof import opened_to_read
from pipeline.runs.request import ReusePermission
from pipeline.stages.forecast import SparedChecks
from pipeline.stores.protocols import SharedRun
from pipeline.stores.sqlite.ledger import SqliteLedger
from pipeline.stores.sqlite.reader import LedgerReader
from pipeline.stores.values import FinalAnswer, ReusedAnswer, RunIdentity
from pipeline.wording import Sentence
from schemas.localized import LocalizedText
from schemas.outcomes import ApiName, Environment, Outcome
from schemas.strict import timestamp
from schemas.summary import REHEARSAL

if TYPE_CHECKING:
    from pipeline.executors.asking import RunQuestions


class EarlierAnswers(NamedTuple):
    """The answers of another run, from its folder or from a shared ledger."""

    question_key: Callable[[Check], bytes]  # returns the key of a question in that run
    input_sha256: str
    answers_to: Callable[[Sequence[bytes]], Mapping[bytes, FinalAnswer]]  # final answers by questions' keys


class KnownAnswer(NamedTuple):
    """A question, with the match that an earlier run got."""

    check: Check
    answer: FinalAnswer  # as the earlier run recorded it; `question` is a key of that run
    source: int  # index of the earlier run, from 0


def reuse_answers(
    permitted: ReusePermission,
    questions: "RunQuestions",
    own: tuple[SqliteLedger | SharedRun, RunIdentity],
    apis: Mapping[ApiName, Api],
    *,
    now: datetime,
) -> None:
    """Record which questions without a final answer are answered by matches of earlier runs.

    Raises UsageError if a folder has no run or another provider's, LockedError if one is in use, or
    DiskError.
    """
    if not permitted.folders and not permitted.in_ledger:
        return
    ledger, identity = own
    not_before, time = timestamp(now - permitted.age_max), timestamp(now)
    answered = {final.question for final in ledger.answers()}
    with _records(permitted, identity, now) as folders:
        for part in range(questions.part_count):
            left = _unanswered(questions.checks(part), ledger, answered)
            earlier = [*folders, *_others(permitted, left, ledger, now)]
            known = reuse(left, earlier, apis, not_before=not_before, now=time)
            ledger.reuse(
                [
                    ReusedAnswer(
                        ledger.question_key(one.check),
                        one.answer.code,
                        one.answer.request_id or "",
                        one.answer.time or "",
                        earlier[one.source].input_sha256,
                        time,
                    )
                    for one in known
                ]
            )


@contextmanager
def spared_checks(
    permitted: ReusePermission, own: tuple[Path, RunIdentity], apis: Mapping[ApiName, Api], *, now: datetime
) -> Iterator[Callable[[pl.DataFrame], SparedChecks]]:
    """Yield a function that finds `Checks` to skip; same errors as `reuse_answers`, but records nothing."""
    (folder, identity), not_before = own, timestamp(now - permitted.age_max)
    refuse_own_folder(permitted.folders, folder)
    with ExitStack() as stack, _records(permitted, identity, now) as records:
        record, answers, why_uncounted = _answered(folder, identity, now, stack)

        def spared(checks: pl.DataFrame) -> SparedChecks:
            left = checks if record is None else _unanswered(checks, record, answers)
            known = reuse(left, records, apis, not_before=not_before, now=timestamp(now))
            answered = frozenset(checks["check"]) - frozenset(left["check"])
            return SparedChecks(answered, frozenset(one.check.check for one in known), why_uncounted)

        yield spared


def _answered(
    folder: Path, identity: RunIdentity, now: datetime, stack: ExitStack
) -> tuple[LedgerReader | None, Collection[bytes], LocalizedText | None]:
    """Open the folder's record, and return the answered questions, or why it cannot be read."""
    if not os.path.lexists(ledger_of(folder)):
        return None, (), None
    try:
        record = stack.enter_context(opened_to_read(folder, now=timestamp(now)))
        if record.run[:3] == identity[:3]:
            return record, {final.question for final in record.answers()}, None
        if not any(record.answers()):
            return None, (), None  # another run may be using it
    except (InputError, LockedError, OutputError, DiskError) as error:
        return None, (), error.messages[0].recorded()
    return None, (), Sentence("jobs.folder_of_another_run", folder=folder).recorded()


@contextmanager
def _records(
    permitted: ReusePermission, identity: RunIdentity, now: datetime
) -> Iterator[list[EarlierAnswers]]:
    """Open the records of earlier runs, all of the same provider, during the block."""
    with ExitStack() as stack:
        records = [
            stack.enter_context(opened_to_read(folder, now=timestamp(now), signer=permitted.signer))
            for folder in permitted.folders
        ]
        for record in records:
            _require_same_provider(record, identity)
        yield [EarlierAnswers(one.question_key, one.run.input_sha256, one.answers_to) for one in records]


def _others(
    permitted: ReusePermission, checks: pl.DataFrame, ledger: SqliteLedger | SharedRun, now: datetime
) -> list[EarlierAnswers]:
    if not permitted.in_ledger:
        return []
    keys = list(map(ledger.question_key, each_check(checks)))
    found = ledger.earlier_answers(keys, timestamp(now - permitted.age_max))
    return [
        EarlierAnswers(ledger.question_key, source, partial(_among, {one.question: one for one in answers}))
        for source, answers in found.items()
    ]


def _among(answers: Mapping[bytes, FinalAnswer], questions: Sequence[bytes]) -> Mapping[bytes, FinalAnswer]:
    return {question: answers[question] for question in questions if question in answers}


def refuse_own_folder(folders: Collection[Path], own: Path) -> None:
    """Refuse the run's own folder as an earlier run: a fresh start would delete it (UsageError)."""
    if real_path(own) in {real_path(folder) for folder in folders}:
        raise UsageError(Sentence("jobs.reuse_from_own_folder", own=own), advice=Sentence("cli.leave_out"))


def _require_same_provider(record: LedgerReader, identity: RunIdentity) -> None:
    if identity.profile_sha256 == built_in_fingerprint(REHEARSAL):
        raise UsageError(Sentence("jobs.rehearsal_reuses_nothing"))
    where, theirs, ours = record.path.parent, record.run.environment, identity.environment
    if theirs != ours and Environment.SANDBOX in (theirs, ours):
        raise UsageError(Sentence("jobs.reuse_mixes_simulated", where=where, theirs=theirs, ours=ours))
    if theirs != ours or record.run.profile_sha256 != identity.profile_sha256:
        raise UsageError(
            Sentence("jobs.reuse_from_other_settings", where=where),
            advice=Sentence("jobs.name_run_of_same_profile"),
        )


def _unanswered(
    checks: pl.DataFrame, record: LedgerReader | SqliteLedger | SharedRun, answered: Collection[bytes]
) -> pl.DataFrame:
    if not answered:
        return checks
    is_open = [record.question_key(check) not in answered for check in each_check(checks)]
    return checks.filter(pl.Series(is_open, dtype=pl.Boolean))


def reuse(
    checks: pl.DataFrame,
    earlier: Sequence[EarlierAnswers],
    apis: Mapping[ApiName, Api],
    *,
    not_before: str,
    now: str,
) -> list[KnownAnswer]:
    """Return earlier matches for this run's unanswered questions, in the order of the questions.

    Only the latest answer of all runs counts, even if an older one was a match. Times are UTC, ISO 8601 with
    Z; answers from the future, dated by a wrong clock, are ignored.
    """
    assert checks.schema == CHECKS
    every = [*each_check(checks)]
    keys = [[record.question_key(check) for check in every] for record in earlier]
    answers = [record.answers_to(of_record) for record, of_record in zip(earlier, keys, strict=True)]
    found = []
    for place, check in enumerate(every):
        known = [
            KnownAnswer(check, answer, source)
            for source, of_record in enumerate(keys)
            if (answer := answers[source].get(of_record[place])) is not None
        ]
        latest = max(known, key=lambda one: one.answer.time or "", default=None)
        if latest is None or not _is_match(latest, apis[check.api]):
            continue
        assert latest.answer.time is not None, "a match without a time"
        if not_before <= latest.answer.time <= now:
            found.append(latest)
    return found


def _is_match(known: KnownAnswer, api: Api) -> bool:
    if known.answer.state not in (AnswerState.ANSWERED, AnswerState.REUSED):
        return False
    return api.meanings[basis_of(known.check), known.answer.code].outcome is Outcome.MATCH
