"""What other runs of a ledger were answered: the same question has the same key in all of them."""

from collections.abc import Sequence
from typing import Any

import psycopg

from pipeline.stores.postgres.keys import StoreKeys
from pipeline.stores.postgres.lines import RunLines
from pipeline.stores.postgres.queries import STATEMENTS
from pipeline.stores.shared import StoredRun
from pipeline.stores.values import FinalAnswer

_AT_ONCE = 1_000
_LATEST = STATEMENTS["earlier.latest"]


def earlier_answers(
    db: psycopg.Connection, keys: StoreKeys, run: StoredRun, questions: Sequence[bytes], not_before: str
) -> dict[str, list[FinalAnswer]]:
    """The latest answer that another run of the same profile and environment has to each question.

    Args:
        db: the ledger.
        keys: of it.
        run: the one that is to use them.
        questions: their keys.
        not_before: UTC, ISO 8601 with Z; older answers are left out.

    Returns:
        SHA-256 of the input of a run -> its answers, without their names.

    Raises:
        DiskError: a line is not as it was written.
    """
    found: dict[str, list[FinalAnswer]] = {}
    lines: dict[int, RunLines] = {}
    place = f"{db.info.host}:{db.info.port}"
    for start in range(0, len(questions), _AT_ONCE):
        some = list(questions[start : start + _AT_ONCE])
        values = {"questions": some, "run": run.number, "after": not_before}
        for row in db.cursor(binary=True).execute(_LATEST, values):
            source, number, run_id, version, *said = row
            if number not in lines:
                lines[number] = RunLines(keys, StoredRun(number, run_id, version, "", None), place)
            found.setdefault(source, []).append(_proved(lines[number], said))
    return found


def _proved(lines: RunLines, said: list[Any]) -> FinalAnswer:
    question, attempt, request_id, sent_at, seal, state, code, time, is_named, _, answer_seal = said
    lines.require_intent(question, attempt, request_id, sent_at, seal)
    return lines.final_answer(question, attempt, request_id, state, code, time, is_named, None, answer_seal)
