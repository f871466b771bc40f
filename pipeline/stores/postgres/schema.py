"""The tables of a ledger in PostgreSQL, their version, and the permissions of the role of the runs.

The tables belong to the role that runs `precheck ledger init`. The role of the runs can read, add lines and
change leases, but neither alter tables nor delete lines. Append-only data change through functions of the
owner, which enforce the rules. Triggers bind even the owner.
"""

from collections.abc import Iterator
from importlib.resources import files

_FILE = files("pipeline.stores.postgres").joinpath("queries.sql").read_text("utf-8")
_NAMED = (part.partition("\n") for part in _FILE.split("-- name: ")[1:])
STATEMENTS = {name: statement.strip() for name, _, statement in _NAMED}  # name, with its module -> statement


VERSION = 3
TABLES = files("pipeline.stores.postgres").joinpath("schema.sql").read_bytes()
"""The SQL that creates all tables together."""
INSERTED = {
    "run": (
        *("id", "input_sha256", "profile_sha256", "environment", "tool_version"),
        *("plan_hash", "question_count", "seal"),
    ),
    "holder": ("holder", "host", "pid", "tool_version"),
    "round": ("run", "round"),
    "chunk": ("run", "chunk", "round", "api", "part", "members"),
    "intent": ("run", "question", "attempt", "request_id", "time", "seal"),
    "failure": ("run", "question", "attempt", "round", "code", "time", "detail", "seal"),
    "answer": (
        *("run", "question", "attempt", "state", "code", "time", "is_named", "matched_name"),
        *("detail", "seal"),
    ),
    "reuse": ("run", "question", "code", "request_id", "time", "source_sha256", "reused_at", "seal"),
    "account": ("scope", "api", "division"),
}
"""Table -> the columns that the role of the runs may insert. It may read all tables."""
UPDATED = {
    "run": ("finished_at",),
    "holder": ("seen_at", "left_at"),
    "round": ("ended_at",),
    "chunk": ("fence", "holder", "lease_until", "done_at"),
    "account": ("division",),
}
"""Table -> the columns that the role may update."""


def grants() -> Iterator[str]:
    """Yield the role's permissions, each as in `GRANT ... TO`."""
    yield "SELECT ON ALL TABLES IN SCHEMA precheck"
    yield "EXECUTE ON ALL FUNCTIONS IN SCHEMA precheck"
    for privilege, tables in (("INSERT", INSERTED), ("UPDATE", UPDATED)):
        for table, columns in tables.items():
            yield f"{privilege} ({', '.join(columns)}) ON precheck.{table}"


TRIGGERS = frozenset(
    {
        *(("answer", "never_changes"), ("failure", "never_changes"), ("intent", "never_changes")),
        *(("answer", "never_leaves"), ("failure", "never_leaves"), ("intent", "never_leaves")),
        *(("reuse", "never_changes"), ("reuse", "never_leaves"), ("account", "time_goes_on")),
        *((table, "only_grows") for table in ("chunk", "run", "round", "daily_cap")),
    }
)
"""(table, name) of each trigger that protects answers and caps."""
