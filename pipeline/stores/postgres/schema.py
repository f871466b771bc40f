"""The tables of a ledger in PostgreSQL, their version, and what the role of the runs may do with them.

They belong to a role that runs `precheck ledger init`. Runs use another one, which reads, adds lines, and
changes what is about leases; it cannot change a table, nor delete a line. What a trigger forbids, it forbids
the owner too.
"""

from importlib.resources import files

VERSION = 3
TABLES = files("pipeline.stores.postgres").joinpath("schema.sql").read_bytes()
"""All of them are created at once."""
GRANTS = (
    "SELECT ON precheck.store",
    "SELECT, INSERT, UPDATE (finished_at) ON precheck.run",
    "SELECT, INSERT, UPDATE (seen_at, left_at) ON precheck.holder",
    "SELECT, INSERT, UPDATE (ended_at) ON precheck.round",
    "SELECT, INSERT, UPDATE (fence, holder, lease_until, done_at) ON precheck.chunk",
    "SELECT, INSERT ON precheck.intent",
    "SELECT, INSERT, UPDATE (detail) ON precheck.failure",
    "SELECT, INSERT, UPDATE (matched_name, detail) ON precheck.answer",
    "SELECT, INSERT ON precheck.reuse",
    "SELECT, INSERT ON precheck.purge",
    "SELECT, INSERT, UPDATE (division, latest) ON precheck.account",
    "SELECT, INSERT, UPDATE ON precheck.daily_cap",
    "SELECT, INSERT, UPDATE (count) ON precheck.units",
)
"""What the role of the runs may do with which table, as in `GRANT ... TO`."""
TRIGGERS = frozenset(
    {
        *(("answer", "never_changes"), ("failure", "never_changes"), ("intent", "never_changes")),
        *(("answer", "never_leaves"), ("failure", "never_leaves"), ("intent", "never_leaves")),
        *(("reuse", "never_changes"), ("reuse", "never_leaves"), ("chunk", "fences_only_grow")),
        *(("account", "time_never_goes_back"), ("daily_cap", "time_never_goes_back")),
    }
)
"""Table and name of those without which an answer, or a cap, is not safe."""
