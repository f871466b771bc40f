"""A snapshot of a shared ledger: its open runs, and the processes that work on them."""

from typing import Any

import psycopg
from psycopg.rows import namedtuple_row

from pipeline.stores.postgres.daily_caps import EDGE_S
from pipeline.stores.postgres.queries import STATEMENTS
from pipeline.stores.shared import AccountState, StoreState
from pipeline.stores.sharing import Division

SEEN_MAX_S = 60.0
"""Processes not seen for this long are not listed."""
_TIME = """to_char({0} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')"""
_NOW = f"SELECT {_TIME.format('clock_timestamp()')}"
_RUNS = f"""
SELECT run.id AS run, {_TIME.format("run.created_at")} AS created, tool_version, input_sha256, environment,
 question_count,
 (SELECT count(*) FROM precheck.intent WHERE intent.run = run.run) AS attempt_count,
 (SELECT count(*) FROM precheck.intent JOIN precheck.answer USING (run, question, attempt)
  WHERE intent.run = run.run) AS answer_count,
 (SELECT count(*) FROM precheck.reuse WHERE reuse.run = run.run) AS reused_count,
 coalesce(latest.round, 0) AS round, latest.round IS NOT NULL AND latest.ended_at IS NULL AS open,
 count(chunk) FILTER (WHERE done_at IS NULL) AS undone_chunk_count,
 count(chunk) FILTER (
  WHERE done_at IS NULL AND (holder IS NULL OR lease_until < clock_timestamp())) AS free_chunk_count
FROM precheck.run
LEFT JOIN LATERAL (SELECT round, ended_at FROM precheck.round WHERE round.run = run.run
 ORDER BY round DESC LIMIT 1) AS latest ON true
LEFT JOIN precheck.chunk ON chunk.run = run.run AND chunk.round = latest.round
WHERE finished_at IS NULL GROUP BY run.run, latest.round, latest.ended_at ORDER BY run.created_at, run.run
"""  # noqa: S608 (constants)
_HOLDERS = f"""
SELECT host, pid, tool_version, {_TIME.format("started_at")} AS started, {_TIME.format("seen_at")} AS seen,
 greatest(extract(epoch FROM clock_timestamp() - seen_at), 0)::float8 AS silent_s,
 count(held.members) AS chunk_count, coalesce(sum(cardinality(held.members)), 0)::int AS question_count,
 extract(epoch FROM min(held.lease_until) - clock_timestamp())::float8 AS oldest_lease_s
FROM precheck.holder LEFT JOIN (
 SELECT chunk.holder, members, lease_until FROM precheck.chunk JOIN precheck.run USING (run)
 WHERE done_at IS NULL AND finished_at IS NULL) AS held ON held.holder = holder.holder
WHERE left_at IS NULL AND seen_at > clock_timestamp() - %s * interval '1 s' GROUP BY holder.holder
ORDER BY started_at, holder.holder
"""  # noqa: S608 (constants)


_ACCOUNTS = STATEMENTS["status.accounts"]
_CAPS = STATEMENTS["status.caps"]


def state_of(db: psycopg.Connection) -> StoreState:
    """Return the state of a ledger."""
    # One snapshot, so that everything shown together is consistent.
    with db.transaction(), db.cursor(row_factory=namedtuple_row) as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        [time] = cursor.execute(_NOW).fetchone() or ("",)
        runs = cursor.execute(_RUNS).fetchall()
        holders = cursor.execute(_HOLDERS, (SEEN_MAX_S,)).fetchall()
        rows: list[Any] = cursor.execute(_ACCOUNTS).fetchall()
        caps = cursor.execute(_CAPS, (EDGE_S,)).fetchall()
    accounts = [AccountState(row.scope, row.api, Division.of_json(row.division), row.now) for row in rows]
    return StoreState(time, runs, holders, accounts, caps)
