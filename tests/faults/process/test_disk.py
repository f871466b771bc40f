"""A4, A5: a disk that is full, and places where nothing can be written."""

import os
from contextlib import suppress

import pytest

ROW_COUNT = 300
NOTE = "invented note " * 200
"""A column of the payer's own that makes the outcome file far larger than the ledger."""
RESULTS = ("outcomes.csv", "attention.csv", "summary.json", "report.html", "report.xlsx")


@pytest.fixture(scope="module")
def wide(network_payments):
    rows = [{**row, "note": NOTE} for row in network_payments(ROW_COUNT)]
    return rows, tuple(rows[0])


@pytest.fixture
def undisturbed(desk_in, sandbox, wide, tmp_path):
    """The outcome file where nothing is in the way."""
    desk = desk_in(tmp_path / "undisturbed")
    rows, header = wide
    file = desk.payments(rows, header=header)
    finished = desk("run", file, *desk.using(cop=sandbox.section(rate_per_s=1000)), "--quiet")
    assert finished.status == 0
    return desk.stable_outcomes(desk.folder / "payments.precheck")


def half_written(desk, folder, rows):
    """Whether a file under a final name is not what it should be."""
    outcome_file = folder / "outcomes.csv"
    left = [path.name for path in folder.glob("*.part")]
    return bool(left) or (outcome_file.exists() and desk.stable_outcomes(folder) != rows)


def test_a_full_disk_ends_with_74_and_the_same_command_goes_on_once_there_is_room(
    desk, sandbox, wide, undisturbed, small_disk, tell, is_long
):
    rows, header = wide
    file = desk.payments(rows, header=header)
    words = ("run", file, *desk.using(cop=sandbox.section(rate_per_s=1000)), "--quiet")
    # From no room for the ledger's first page to room for all but the last file.
    sizes_kib = range(8, 1400, 24) if is_long else (8, 96, 300, 900)
    survived, at_ledger, at_other = 0, 0, 0
    for kib in sizes_kib:
        disk, remount = small_disk(kib, name=f"disk{kib}")
        folder = disk / "results"
        before = sandbox.call_count
        state = str(desk.folder / f"state{kib}")
        full = desk(*words, "--out", folder, XDG_STATE_HOME=state)
        partial = folder.exists() and half_written(desk, folder, undisturbed)
        remount("size=16m")
        again = desk(*words, "--out", folder, XDG_STATE_HOME=state)
        calls = [call["question"] for call in sandbox.questions(before)]
        is_told = full.status == 74 and len(full.sentences) == 1 and str(disk) in full.err
        is_whole = again.status == 0 and desk.stable_outcomes(folder) == undisturbed
        is_right = is_told and not partial and is_whole and len(calls) - len(set(calls)) <= 64
        survived += is_right
        at_ledger += "ledger.db" in full.err
        at_other += "ledger.db" not in full.err
        if not is_right:
            print(kib, full, partial, again, len(calls))  # noqa: T201 (pytest shows it for a failure)
    tell(
        "A4",
        "disk full at any moment",
        tried=len(sizes_kib),
        survived=survived,
        figure=f"{sizes_kib[0]} to {sizes_kib[-1]} KiB: full at the ledger {at_ledger}, elsewhere {at_other}",
        goal="74 with the path; nothing partial; then the identical file",
    )


def test_a_disk_that_is_full_at_the_outcome_file_costs_no_call_in_the_end(
    desk, sandbox, wide, undisturbed, small_disk, tell
):
    rows, header = wide
    file = desk.payments(rows, header=header)
    words = ("run", file, *desk.using(cop=sandbox.section(rate_per_s=1000)), "--quiet")
    disk, remount = small_disk(16 * 1024)
    folder = disk / "results"
    assert desk(*words, "--out", folder).status == 0
    for name in ("outcomes.csv", "attention.csv"):
        (folder / name).unlink()
    room = os.statvfs(disk)
    used_kib = (room.f_blocks - room.f_bfree) * room.f_frsize // 1024
    before, survived = sandbox.call_count, 0
    rooms_kib = (150, 400, 700)
    for room_kib in rooms_kib:
        remount(f"size={used_kib + room_kib}k")
        full = desk(*words, "--out", folder)
        is_told = full.status == 74 and len(full.sentences) == 1 and f"{folder / 'outcomes.csv'}" in full.err
        is_clean = not (folder / "outcomes.csv").exists() and not list(folder.glob("*.part"))
        survived += is_told and is_clean
        if not (is_told and is_clean):
            print(room_kib, full, list(folder.iterdir()))  # noqa: T201 (pytest shows it for a failure)
    remount("size=16m")
    again = desk(*words, "--out", folder)
    call_count = len(sandbox.questions(before))
    is_whole = again.status == 0 and desk.stable_outcomes(folder) == undisturbed
    tell(
        "A4",
        "disk full at the outcome file",
        tried=len(rooms_kib),
        survived=survived * (is_whole and call_count == 0),
        figure=f"74 with its path {survived}; then the same file with calls {call_count}",
        goal="74 with the path; nothing partial; then the identical file, calls 0",
    )


def test_a_file_size_limit_is_a_full_disk_for_those_who_are_not_root(
    desk, sandbox, wide, undisturbed, file_size_limit, tell, is_long
):
    rows, header = wide
    file = desk.payments(rows, header=header)
    words = ("run", file, *desk.using(cop=sandbox.section(rate_per_s=1000)), "--quiet")
    sizes = range(4096, 800_000, 16_384) if is_long else (4_096, 60_000, 500_000)
    survived = 0
    for number, byte_count in enumerate(sizes):
        folder = desk.folder / f"results{number}"
        state = str(desk.folder / f"state{number}")
        full = desk(*words, "--out", folder, limits=file_size_limit(byte_count), XDG_STATE_HOME=state)
        partial = half_written(desk, folder, undisturbed)
        again = desk(*words, "--out", folder, XDG_STATE_HOME=state)
        is_told = full.status == 74 and len(full.sentences) == 1 and str(folder) in full.err
        is_whole = again.status == 0 and desk.stable_outcomes(folder) == undisturbed
        survived += is_told and not partial and is_whole
        if not (is_told and not partial and is_whole):
            print(byte_count, full, partial, again)  # noqa: T201 (pytest shows it for a failure)
    tell(
        "A4",
        "disk full, RLIMIT_FSIZE",
        tried=len(sizes),
        survived=survived,
        figure=f"limits of {sizes[0]:,} to {sizes[-1]:,} bytes a file",
        goal="74 with the path; nothing partial; then the identical file",
    )


def fill(disk):
    """Leave no block on a small disk."""
    with suppress(OSError), (disk / "ballast").open("wb", buffering=0) as ballast:
        while True:
            ballast.write(bytes(4096))


def leave_no_inode(disk, remount):
    room = os.statvfs(disk)
    remount(f"nr_inodes={room.f_files - room.f_ffree}")


@pytest.mark.parametrize("lacking", ["blocks", "inodes"])
@pytest.mark.parametrize("at", ["the turns", "the daily cap"])
def test_a_full_state_folder_is_told_before_the_first_call(
    desk, sandbox, network_payments, small_disk, tell, lacking, at
):
    file = desk.payments(network_payments(3))
    disk, remount = small_disk(64, name="state")
    words = ("run", file, "--quiet", *desk.using(cop=sandbox.section(daily_cap=10)))
    if at == "the daily cap":  # the locks of the turns are there, and room in their pages
        assert desk(*words, "--out", "before", XDG_STATE_HOME=str(disk)).status == 0
        [quota] = disk.rglob("quota.db")
        quota.unlink()
    if lacking == "blocks":
        fill(disk)
    else:
        leave_no_inode(disk, remount)
    before = sandbox.call_count
    finished = desk(*words, XDG_STATE_HOME=str(disk))
    call_count = len(sandbox.questions(before))
    named = "quota.db" if at == "the daily cap" else str(disk)
    tell(
        "A4",
        f"state folder without {lacking}, at {at}",
        tried=1,
        survived=finished.status == 74 and named in finished.err and call_count == 0,
        figure=f"exit {finished.status}; calls {call_count}",
        goal="74 with the path; calls 0",
    )


def test_a_place_that_cannot_be_written_to_is_refused_before_the_first_call(
    desk, sandbox, network_payments, small_disk, tmp_path, tell
):
    file = desk.payments(network_payments(3))
    words = ("run", file, *desk.using(cop=sandbox.section()), "--quiet")
    if os.geteuid() == 0:  # whom modes do not stop
        read_only, remount = small_disk(64)
        remount("ro")
    else:
        read_only = tmp_path / "read_only"
        read_only.mkdir(mode=0o500)
    in_the_way = tmp_path / "in_the_way"
    in_the_way.write_text("a file\n")
    below = {"below read-only": read_only / "results", "below a file": in_the_way / "x"}
    places = {"read-only": read_only, **below}
    before = sandbox.call_count
    found = {name: desk(*words, "--out", place) for name, place in places.items()}
    refused = [name for name, end in found.items() if end.status == 73 and len(end.sentences) == 1]
    call_count = len(sandbox.questions(before))
    missing = desk(*words, "--out", tmp_path / "missing" / "deeper")
    tell(
        "A5",
        "read-only and missing folders",
        tried=len(places) + 1,
        survived=(len(refused) + (missing.status == 0)) * (call_count == 0),
        figure=f"refused with 73: {', '.join(refused)}; calls {call_count}; a missing folder is made",
        goal="73, calls 0",
    )


@pytest.mark.parametrize("kind", ["a symbolic link", "a folder"])
def test_something_else_under_a_final_name_is_refused_before_the_first_call(
    desk, sandbox, network_payments, tmp_path, tell, kind
):
    file = desk.payments(network_payments(3))
    words = ("run", file, *desk.using(cop=sandbox.section()), "--quiet")
    names = (*RESULTS[:4], "ledger.db", ".lock")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("not ours\n")
    refused, call_count = [], 0
    for name in names:
        folder = tmp_path / kind.replace(" ", "_") / name.strip(".")
        folder.mkdir(parents=True)
        if kind == "a folder":
            (folder / name).mkdir()
        else:
            (folder / name).symlink_to(elsewhere)
        before = sandbox.call_count
        finished = desk(*words, "--out", folder)
        calls = len(sandbox.questions(before))
        call_count += calls
        if finished.status == 73 and calls == 0 and elsewhere.read_text() == "not ours\n":
            refused.append(name)
        else:
            print(kind, name, finished, calls)  # noqa: T201 (pytest shows it for a failure)
    tell(
        "A5",
        f"{kind} at a final name",
        tried=len(names),
        survived=len(refused),
        figure=f"refused with 73: {', '.join(refused) or 'none'}; calls {call_count}",
        goal="73, calls 0, the other file untouched",
    )
