"""The questions of a data set, in files of its buckets, with their answers in files beside them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

import polars as pl
from anyio import to_thread

from pipeline.executors.asking import Piece, never_asked
from pipeline.frames import ANSWERS, CHECKS, Answer, Checks, Schema
from pipeline.runs.work_folder import PartFiles, read_frame, write_frame
from pipeline.stages.ask.values import AnswerBuffer
from schemas.outcomes import ApiName

ANSWERS_AT_ONCE = 65_536  # how many answers are held in memory before they are written
LEFT: Schema = {**CHECKS, "attempts": pl.Int32(), "is_suspect": pl.Boolean()}


class SetQuestions:
    """The questions of a data set; a `RunQuestions` whose parts are buckets."""

    def __init__(self, files: PartFiles, counts: Sequence[Mapping[ApiName, int]]) -> None:
        self.part_count = len(counts)
        self.counts = sum(map(Counter, counts), Counter[ApiName]())
        self._files = files
        self._coming = AnswerBuffer()
        self._spill_count = 0

    def checks(self, part: int) -> Checks:
        return Checks(read_frame(self._files.frame("questions", part), CHECKS))

    def unasked(self, part: int) -> Piece:
        return partial(to_thread.run_sync, lambda: never_asked(self.checks(part)))

    def put_aside(self, part: int, name: str, todo: pl.DataFrame) -> Piece:
        path = self._files.left(part, name)
        write_frame(todo.cast(LEFT), path)  # type: ignore[arg-type]  # polars' stubs want an invariant mapping
        return partial(to_thread.run_sync, read_frame, path, LEFT)

    def add(self, answer: Answer) -> None:
        """Hold another answer in memory, or write all that are held."""
        self._coming.add(answer)
        if self._coming.count == ANSWERS_AT_ONCE:
            self.frame()

    def frame(self) -> pl.DataFrame:
        """Write the answers held in memory to the files of their buckets."""
        self._spill_count += 1
        coming, self._coming = self._coming.frame(), AnswerBuffer()
        bucket = ((pl.col("check") - 1) % self.part_count).alias("bucket")
        pieces = coming.with_columns(bucket).partition_by("bucket", as_dict=True, include_key=False)
        for (part,), some in pieces.items():
            self.keep(part, f"{self._spill_count:06}", some)
        return pl.DataFrame(schema=ANSWERS)

    def keep(self, part: int, name: str, answers: pl.DataFrame) -> None:
        write_frame(answers, self._files.answers(part) / f"{name}.parquet")

    def forget(self) -> None:
        for part in range(self.part_count):
            for piece in self._files.answers(part).glob("*"):
                piece.unlink(missing_ok=True)
