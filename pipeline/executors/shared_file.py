"""The asking of a payment file whose run others ask too; the ledger of its folder gets a copy of it all."""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import anyio
import polars as pl

from pipeline.errors import IncompleteError, PrecheckError
from pipeline.executors.asking import AskingPlan, AskingResult, new_context, or_stopped, watched
from pipeline.executors.folder_copy import FolderCopy
from pipeline.executors.joining import SharedAccess
from pipeline.executors.shared import RoundAsker, planned_chunks, round_to_ask
from pipeline.frames import ANSWERS, Answers, AnswerState, Checks, OwnCode
from pipeline.runs.request import CheckJob, Phase, Surface
from pipeline.stages.ask import AskingTally, answers_so_far, count_given_up, remaining_questions
from pipeline.stages.ask.values import Closure
from pipeline.stores.shared import SharedRun, StoredRun
from pipeline.stores.sqlite.ledger import SqliteLedger
from schemas.outcomes import ApiName, Environment

LAST_WAIT_MAX_S = 5.0
"""How long a database that was away already is waited for at the end of a run."""
ANSWERED = (AnswerState.ANSWERED, AnswerState.REFUSED, AnswerState.REUSED)


class JoinedRun(NamedTuple):
    """The shared run of a file."""

    access: SharedAccess
    run: StoredRun
    shared: SharedRun
    """This process's view of it."""


def ask_with_others(
    job: CheckJob, asking: AskingPlan, joined: JoinedRun, ledger: SqliteLedger, surface: Surface
) -> AskingResult:
    """Ask what is left to ask, together with every process that works on the same run.

    Returns:
        What came back, whoever asked; also where an error or a request to stop ended the asking. Where the
        database is away for good, that is what it had for this process, and what this process asked.

    Raises:
        DiskError: the ledger of the folder cannot be written.
        StoppedError: the run is to stop at once; what was answered is in the shared ledger.
    """
    access, run, shared = joined
    world = new_context(surface)
    copy = FolderCopy(ledger)
    shared.copy_to(copy.add)
    apis = {ApiName(api) for api in asking.checks["api"].unique()}
    asker = RoundAsker(shared, access, apis, world, surface.watch, limit=job.limit, wait_max_s=job.wait_max_s)
    ended_by: PrecheckError | None = None
    try:
        if shared.counts != ledger.counts:
            copy.take_over(access.store.lines(run), asking.checks, shared)
        _, ended_by = watched(partial(_ask, job, asking, asker), world, surface)
    except IncompleteError as error:
        ended_by = error
    finally:
        copy.flush()
    ended_by = or_stopped(ended_by, job.file.name, surface.stop)
    if isinstance(ended_by, IncompleteError):
        access.store.wait_at_most(LAST_WAIT_MAX_S)
    given_up_count = 0
    try:
        anyio.run(end_round, asker)
        given_up_count = anyio.run(count_given_up, asking.checks, shared)
        copy.take_over(access.store.lines(run), asking.checks, shared)
    except IncompleteError as error:
        ended_by = ended_by or error
    answers = with_reasons(anyio.run(answers_so_far, asking.checks, ledger), asking.checks, asker)
    answered = answers.filter(pl.col("state").is_in(ANSWERED)).join(
        asking.checks.select("check", "api"), on="check"
    )
    counts = {ApiName(api): count for api, count in answered.group_by("api").len().iter_rows()}
    count_elsewhere(counts, world.tally)
    return AskingResult(
        Answers(answers), asker.caps, world.tally.closed, world.tally, given_up_count, ended_by
    )


async def _ask(job: CheckJob, asking: AskingPlan, asker: RoundAsker) -> None:
    """Find what is left, and take part in asking it."""
    asker.watch.begin(simulated=asking.profile.environment is Environment.SANDBOX)
    asker.watch.enter(Phase.CONNECTING)
    left = await remaining_questions(
        asking.checks, asker.run, asker.world.tally, retry_unanswered=job.retry_unanswered
    )
    asker.has_answered = left.has_answered
    if (number := await round_to_ask(asker.run, planned_chunks(left.todo))) is not None:
        await asker.ask(number)


async def end_round(asker: RoundAsker) -> None:
    """End the round with what was not asked, where nobody else is at it; and find out why it was not."""
    if asker.round_number is not None:
        await asker.run.end_round(asker.round_number, is_over=True)
        await _find_spent_caps(asker)


async def _find_spent_caps(asker: RoundAsker) -> None:
    """Note the caps that other processes have used up, which this one need not have met."""
    closures = asker.world.tally.closures
    if asker.world.stop.is_set() or asker.is_used_up:
        return
    for api in asker.apis:
        if api not in closures and (spent := await asker.access.spent_cap(api)) is not None:
            closures[api] = Closure(AnswerState.DEFERRED, OwnCode.DAILY_CAP)
            asker.caps[api] = spent


def with_reasons(answers: pl.DataFrame, checks: Checks, asker: RoundAsker) -> pl.DataFrame:
    """`Answers` with the reason why a question has none, where it is this process that knows it."""
    reasons: dict[str, Closure] = {str(api): closure for api, closure in asker.world.tally.closures.items()}
    if asker.is_used_up:
        reasons = {str(api): Closure(AnswerState.DEFERRED, OwnCode.LIMIT) for api in asker.apis} | reasons
    of_api = answers.select("check").join(
        checks.select("check", pl.col("api").cast(pl.String)), on="check", how="left", maintain_order="left"
    )
    for api, (state, code) in reasons.items():
        is_left = (pl.col("code") == OwnCode.RUN_ENDED) & (of_api["api"] == api)
        answers = answers.with_columns(
            state=pl.when(is_left).then(pl.lit(str(state), ANSWERS["state"])).otherwise("state"),
            code=pl.when(is_left).then(pl.lit(str(code))).otherwise("code"),
        )
    return answers


def count_elsewhere(answered: Mapping[ApiName, int], tally: AskingTally) -> None:
    """Count what other processes answered while this one asked, from the answers that each API has now."""
    for name, count in answered.items():
        # Where the database is away, not all that it had before is known here any more.
        before_count = tally.answered_before[name] + tally.reused[name]
        tally.elsewhere[name] = max(count - before_count - tally.answered[name], 0)
