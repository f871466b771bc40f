"""Fault table D: the same files at the desk. The page says what the command says, and the desk lives."""

from pathlib import Path

import pytest
from hostile_files import (
    CANARY,
    MIB,
    UNUSABLE,
    ambiguous_headers,
    hostile_archives,
    hostile_documents,
    hostile_parquet,
    hostile_workbooks,
    unfolding,
    unreadable_texts,
)
from visitors import served_desk

DESK_BYTES_MAX = 400 * MIB


def resident_bytes(process):
    """What a process has in memory, and the most that it ever had."""
    with Path(f"/proc/{process.pid}/status").open() as lines:
        found = dict(line.split(":", 1) for line in lines)
    return [int(found[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM")]


@pytest.fixture
def files(desk):
    """Every hostile file of the table that an upload may hold: name, bytes, options of the command."""
    target = desk.file("target.txt", "what an entity would fetch")
    plain = UNUSABLE | ambiguous_headers() | hostile_parquet() | hostile_workbooks() | hostile_archives()
    plain |= {f"{n}.xml": data for n, data in enumerate(hostile_documents(target).values())}
    plain |= {f"rows-{size}.parquet": unfolding("x" * size, 1_000_000) for size in (5_000_000, 60_000)}
    listed = [(name, data, ()) for name, data in plain.items() if data]  # an empty one does not come in
    return listed + [(f"{name}.csv", data, said) for name, data, said in unreadable_texts()]


def test_d17_the_page_says_what_the_command_says_of_every_hostile_file(tmp_path, files, tell):
    with served_desk(tmp_path / "own") as running:
        visitor = running.visitor()
        differing, talkative, usual = [], [], resident_bytes(running.process)[0]
        for name, data, said in files:
            at, reason, page = running.refusals(visitor, name, data, said)
            if reason not in page:
                differing.append(name)
            above = page.partition("Column in the file")[0]  # the table shows cells, to choose columns by
            if CANARY in above or "fetch" in above.replace("fetched", "") or " --" in page:
                talkative.append(name)
            refused = visitor.post(f"/files/{at}/columns", {"then": "plan"}).to.endswith("/columns")
            if not refused or visitor.post(f"/files/{at}/start").status != 409:
                differing.append(f"{name} can be started")
        assert visitor.get("/").status == 200
        assert running.process.poll() is None
        growth = resident_bytes(running.process)[1] - usual
        assert growth < DESK_BYTES_MAX
        errors = (running.desk.folder / "desk.err").read_text()
        assert CANARY not in errors
        assert "mistake" not in errors
    tell(
        "D17",
        "every file above uploaded at the desk: the command's sentence, no name, no start",
        tried=len(files),
        survived=len(files) - len({*differing, *talkative}),
        figure=f"the desk grew by {growth / MIB:,.0f} MiB; "
        f"not held: {', '.join([*differing, *talkative]) or 'none'}",
        goal="all the same, the desk lives",
    )
