"""Lease chunks of questions to one process at a time, by the clock of the database.

When a lease ends, another process may take the chunk over. Fencing protects it: each claim raises the fence,
and no line is written under an old one. The fence is the time of the claim, in microseconds, so even if the
database loses a claim, as in a failover to a lagging standby, no other process gets the same number.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple
from uuid import UUID

import psycopg

from pipeline.stores.postgres.queries import STATEMENTS
from pipeline.stores.values import ChunkLease, PlannedChunk, RoundState

_NEXT_FENCE = "greatest(fence + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)"
_FREE = STATEMENTS["leases.free"]
_CLAIM = f"""
UPDATE precheck.chunk SET holder = %(holder)b, fence = {_NEXT_FENCE},
 lease_until = clock_timestamp() + %(lease)b * interval '1 s'
WHERE run = %(run)b AND chunk = ({_FREE} ORDER BY chunk LIMIT 1 FOR UPDATE OF chunk SKIP LOCKED)
RETURNING chunk, fence, round, part, members
"""  # noqa: S608 (constants)
_HAS_FREE = f"SELECT EXISTS ({_FREE})"
_KEEP = STATEMENTS["leases.keep"]
_SEEN = "UPDATE precheck.holder SET seen_at = clock_timestamp() WHERE holder = %s"
_LEFT = "UPDATE precheck.holder SET left_at = clock_timestamp() WHERE holder = %s"
_DONE = STATEMENTS["leases.done"]
_GIVE_BACK = STATEMENTS["leases.give_back"]
_STATE = STATEMENTS["leases.state"]
_LOCK = "SELECT 1 FROM precheck.run WHERE run = %b FOR UPDATE"
_OPEN = "INSERT INTO precheck.round(run, round) VALUES (%b, %b)"
_ADD = STATEMENTS["leases.add"]
# Unfinished questions go into chunks of the next round: no line is written under these any more.
_END = f"""
WITH ended AS (
 UPDATE precheck.round SET ended_at = clock_timestamp()
 WHERE run = %(run)b AND round = %(round)b AND ended_at IS NULL AND NOT EXISTS (
  SELECT FROM precheck.chunk WHERE run = %(run)b AND round = %(round)b AND done_at IS NULL
  AND (%(all)b OR holder IS NOT NULL AND lease_until >= clock_timestamp()))
 RETURNING run, round)
UPDATE precheck.chunk SET holder = NULL, lease_until = NULL,
 fence = {_NEXT_FENCE}
FROM ended WHERE chunk.run = ended.run AND chunk.round = ended.round AND done_at IS NULL
"""  # noqa: S608 (constants)


class ClaimedChunk(NamedTuple):
    """A chunk that this process holds, as recorded in the database."""

    hold: ChunkLease
    round: int
    part: int
    members: Sequence[int]


def claim(  # noqa: PLR0913, PLR0917
    db: psycopg.Connection, run: int, holder: UUID, api: str, lease_s: float, but: Collection[int]
) -> ClaimedChunk | None:
    """Lease the first free chunk of the open round, other than those in `but`; None if none is free.

    A chunk of this process that is not in `but` was claimed by a statement whose reply was lost; this process
    may claim it again at once.
    """
    values = {"holder": holder, "lease": lease_s, "run": run, "api": api, "not": list(but)}
    row = db.cursor(binary=True).execute(_CLAIM, values).fetchone()
    if row is None:
        return None
    chunk, fence, round_, part, members = row
    return ClaimedChunk(ChunkLease(chunk, fence), round_, part, members)


def has_free(db: psycopg.Connection, run: int, holder: UUID, api: str, but: Collection[int]) -> bool:
    """True if `claim` would find a chunk now; another process may still be faster."""
    values = {"holder": holder, "run": run, "api": api, "not": list(but)}
    row = db.cursor(binary=True).execute(_HAS_FREE, values).fetchone()
    return row is not None and row[0]


def keep(
    db: psycopg.Connection, run: int, holder: UUID, held: Sequence[ChunkLease], lease_s: float
) -> set[ChunkLease]:
    """Renew these leases; return those still held. The others were taken over."""
    values = {"lease": lease_s, "run": run, "holder": holder, **_of(held)}
    return {ChunkLease(*row) for row in db.cursor(binary=True).execute(_KEEP, values)}


def be_seen(db: psycopg.Connection, holder: UUID) -> None:
    """Record that a process is alive although it has no lease to renew."""
    db.execute(_SEEN, (holder,))


def leave(db: psycopg.Connection, holder: UUID) -> None:
    """Record that a process has ended normally."""
    db.execute(_LEFT, (holder,))


def done(db: psycopg.Connection, run: int, hold: ChunkLease) -> None:
    """Record that every question of a chunk is done in this round."""
    db.execute(_DONE, (run, hold.chunk, hold.fence))


def give_back(db: psycopg.Connection, run: int, holder: UUID, api: str | None) -> None:
    """Release every unfinished chunk that this process holds, for one API or all."""
    db.execute(_GIVE_BACK, {"run": run, "holder": holder, "api": api})


def latest_round(db: psycopg.Connection, run: int) -> RoundState:
    """Return the state of the latest round."""
    row = db.cursor(binary=True).execute(_STATE, (run, run)).fetchone()
    return RoundState(0, is_open=False, undone_count=0, free_count=0) if row is None else RoundState(*row)


def open_round(db: psycopg.Connection, run: int, chunks: Sequence[PlannedChunk], after: int) -> bool:
    """Open the next round; False if another process has opened one, or a round is still open."""
    with db.transaction():
        db.execute(_LOCK, (run,))
        latest = latest_round(db, run)
        if latest.is_open or latest.number != after:
            return False
        [first] = db.execute("SELECT count(*) FROM precheck.chunk WHERE run = %s", (run,)).fetchone() or (0,)
        db.execute(_OPEN, (run, after + 1))
        with db.cursor() as cursor:
            cursor.executemany(
                _ADD,
                [
                    (run, number, after + 1, chunk.api, chunk.part, list(chunk.members))
                    for number, chunk in enumerate(chunks, start=first + 1)
                ],
            )
    return True


def end_round(db: psycopg.Connection, run: int, number: int, *, all_done: bool) -> bool:
    """End a round if no chunk is held; True if it ended. The next round asks the unfinished chunks."""
    with db.transaction():
        db.execute(_LOCK, (run,))
        db.execute(_END, {"run": run, "round": number, "all": all_done})
        latest = latest_round(db, run)
    return latest.number > number or not latest.is_open


def _of(held: Sequence[ChunkLease]) -> dict[str, list[int]]:
    return {"chunks": [hold.chunk for hold in held], "fences": [hold.fence for hold in held]}
