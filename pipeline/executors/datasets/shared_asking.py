"""The asking of a data set whose run other processes ask too: for them its questions lie in the work folder.

Who has answered what stands in the shared ledger, and is read from there, bucket by bucket.
"""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from operator import itemgetter

import anyio
import polars as pl

from pipeline.errors import IncompleteError
from pipeline.executors.asking import new_context, or_stopped, watched
from pipeline.executors.datasets.asking import SetAsked, SetQuestions, forget_answers
from pipeline.executors.shared import CHUNK_SIZE, RoundAsker, round_to_ask
from pipeline.executors.shared_file import (
    ANSWERED,
    LAST_WAIT_MAX_S,
    JoinedRun,
    count_elsewhere,
    end_round,
    with_reasons,
)
from pipeline.frames import ANSWERS, Answer, Checks
from pipeline.runs.part_files import write_frame
from pipeline.runs.request import CheckJob, Phase, Surface
from pipeline.stages.ask import AskingTally, answers_so_far, count_given_up, remaining_questions
from pipeline.stores.values import PlannedChunk
from schemas.outcomes import ApiName


def ask_buckets_with_others(
    job: CheckJob, questions: SetQuestions, joined: JoinedRun, surface: Surface, *, asks: bool
) -> SetAsked:
    """Ask what is left to ask of a data set, together with every process that works on the same run.

    Args:
        job: what is to be done.
        questions: of the data set.
        joined: its run.
        surface: what starts it, to report to.
        asks: whether this process asks; otherwise it leaves a round open, for workers.

    Raises:
        IncompleteError: the database is away, and what was answered cannot be read.
        StoppedError: the run is to stop at once; what was answered is in the shared ledger.
    """
    access, _, shared = joined
    world = new_context(surface)
    apis = questions.by_api.keys()
    asker = RoundAsker(
        shared,
        access,
        apis,
        world,
        surface.watch,
        limit=job.limit,
        wait_max_s=job.wait_max_s,
        answers=NoAnswers(),
    )
    _, ended_by = watched(partial(_ask, job, questions, asker, asks=asks), world, surface)
    ended_by = or_stopped(ended_by, job.file.name, surface.stop)
    if isinstance(ended_by, IncompleteError):
        access.store.wait_at_most(LAST_WAIT_MAX_S)
    if asks:
        anyio.run(end_round, asker)
    given_up_count, answered = 0, Counter[ApiName]()
    forget_answers(questions)
    for bucket in questions.buckets:
        checks = questions.checks(bucket)
        given_up_count += anyio.run(count_given_up, checks, shared)
        found = with_reasons(anyio.run(answers_so_far, checks, shared), Checks(checks), asker)
        by_api = found.filter(pl.col("state").is_in(ANSWERED)).join(checks.select("check", "api"), on="check")
        answered.update({ApiName(api): count for api, count in by_api.group_by("api").len().iter_rows()})
        write_frame(found, questions.files.answers(bucket) / "so_far.parquet")
    count_elsewhere(answered, world.tally)
    return SetAsked(asker.caps, world.tally, given_up_count, ended_by)


async def _ask(job: CheckJob, questions: SetQuestions, asker: RoundAsker, *, asks: bool) -> None:
    """Find what is left, and take part in asking it."""
    tally = asker.world.tally
    asker.watch.enter(Phase.CONNECTING)
    planned, has_answered = list[tuple[int, PlannedChunk]](), set[ApiName]()
    for bucket in questions.buckets:
        of_bucket = AskingTally()
        checks = questions.checks(bucket)
        left = await remaining_questions(checks, asker.run, of_bucket, retry_unanswered=job.retry_unanswered)
        has_answered |= set(left.has_answered)
        places = checks.select("check").with_row_index("place")
        todo = left.todo.join(places, on="check", maintain_order="left")
        planned += _chunks(todo, bucket)
        tally.done_count += of_bucket.done_count
        tally.settled_count += of_bucket.settled_count
        tally.answered_before += of_bucket.answered_before
        tally.reused += of_bucket.reused
    tally.check_count = sum(questions.by_api.values())
    asker.has_answered = has_answered
    chunks = [chunk for _, chunk in sorted(planned, key=itemgetter(0))]
    if (number := await round_to_ask(asker.run, chunks)) is not None and asks:
        await asker.ask(number)


def _chunks(todo: pl.DataFrame, bucket: int) -> Iterator[tuple[int, PlannedChunk]]:
    """The chunks of a bucket, each with how often its questions were asked: new ones are by themselves."""
    was_asked = (pl.col("attempts") > 0).alias("was_asked")
    for (api, _), mine in todo.group_by("api", was_asked, maintain_order=True):
        for some in mine.iter_slices(CHUNK_SIZE):
            yield some["attempts"][0], PlannedChunk(str(api), bucket, some["place"].to_list())


class NoAnswers:
    """Answers that are in the shared ledger, and are kept nowhere else."""

    def add(self, answer: Answer) -> None:
        """Nothing to keep."""

    def frame(self) -> pl.DataFrame:
        """There are none here."""
        return pl.DataFrame(schema=ANSWERS)
