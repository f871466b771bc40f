"""The asking of a run in this process alone, from first to last question."""

from functools import partial

import anyio
import polars as pl

from pipeline.connections import open_channels, shares_of_this_machine
from pipeline.executors.asking import (
    AskingPlan,
    AskingResult,
    Caps,
    caps_of,
    new_context,
    or_stopped,
    watched,
)
from pipeline.frames import Answers, slim
from pipeline.runs.request import CheckJob, Phase, RunObserver, Surface
from pipeline.stages.ask import AskingContext, answers_so_far, ask, count_given_up, remaining_questions
from pipeline.stores.leased_shares import LeaseTerms
from pipeline.stores.local_source import LocalSource
from pipeline.stores.protocols import Ledger
from schemas.outcomes import ApiName, Environment


def ask_all(job: CheckJob, asking: AskingPlan, ledger: Ledger, surface: Surface) -> AskingResult:
    """Ask what is left to ask and report the progress, until all is asked or the run is stopped.

    Returns:
        What came back; also where an error or a request to stop ended the asking, which is part of it.

    Raises:
        DiskError: the ledger cannot be written.
        StoppedError: the run is to stop at once; what was answered is in the ledger.
    """
    world = new_context(surface)
    asked, ended_by = watched(partial(_answers, job, asking, ledger, world, surface.watch), world, surface)
    ended_by = or_stopped(ended_by, job.file.name, surface.stop)
    answers, caps = asked or (None, {})
    if answers is None or ended_by is not None:
        answers = anyio.run(answers_so_far, asking.checks, ledger)
    given_up_count = anyio.run(count_given_up, asking.checks, ledger)
    return AskingResult(Answers(answers), caps, world.tally.closed, world.tally, given_up_count, ended_by)


async def _answers(
    job: CheckJob, asking: AskingPlan, ledger: Ledger, world: AskingContext, watch: RunObserver
) -> tuple[pl.DataFrame, Caps]:
    """Open the channels and ask."""
    watch.begin(simulated=asking.profile.environment is Environment.SANDBOX)
    watch.enter(Phase.CONNECTING)
    checks = asking.checks
    needed = {ApiName(api) for api in checks["api"].unique()}
    terms = LeaseTerms(world.now, world.clock, watch.wait, job.wait_max_s)
    shares = None if asking.is_ours else shares_of_this_machine(terms)
    async with open_channels(asking.profile, needed, now=world.now, shares=shares) as channels:
        watch.enter(Phase.ASKING)
        left = await remaining_questions(
            checks, ledger, world.tally, limit=job.limit, retry_unanswered=job.retry_unanswered
        )
        source = LocalSource(left.todo, ledger.question_key)
        asked = await ask(source, channels, ledger, world, has_answered=left.has_answered)
        caps = await caps_of(asking.profile.servers, channels)
    return slim(left.answers, asked), caps
