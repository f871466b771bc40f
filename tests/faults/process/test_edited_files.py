"""A1, A4: what is written as edits of a payment file is whole or not there."""

import shutil

import pytest
from paymentfiles.pain001 import Batch, Payment, document

FOLDER = "payments.precheck"
NAMES = ("Cobaltree Instruments GmbH", "Driftmoor Textil GmbH")
WRITTEN = ("release.simulated.xml", "hold.simulated.xml")
SPLIT = ("split", FOLDER, "--allow-simulated", "--by", "Mara Ellery")
COUNT = 3_000


@pytest.fixture(scope="module")
def checked(desk_in, sandbox, tmp_path_factory):
    """A desk with a run of a pain.001, and what a split of it writes where nothing is in the way."""
    desk = desk_in(tmp_path_factory.mktemp("checked") / "desk")
    payments = tuple(
        Payment(
            end_to_end_id=f"E2E-{number}",
            name=NAMES[number % 2],
            iban="DE35370400440084210077",
            amount=f"{number}.00",
        )
        for number in range(1, COUNT + 1)
    )
    file = desk.file("payments.xml", document((Batch(payments),)))
    assert desk("run", file, *sandbox.using("sandbox"), "--quiet").status == 0
    shutil.copytree(desk.folder / FOLDER, desk.folder / "kept")
    assert desk(*SPLIT).status == 0
    return desk, {name: (desk.folder / FOLDER / name).read_bytes() for name in WRITTEN}


def start_over(desk):
    shutil.rmtree(desk.folder / FOLDER)
    shutil.copytree(desk.folder / "kept", desk.folder / FOLDER)


def half_written(desk, whole):
    """The files that have their names and are not whole."""
    found = {name: desk.folder / FOLDER / name for name in WRITTEN}
    return [name for name, path in found.items() if path.exists() and path.read_bytes() != whole[name]]


def is_as_undisturbed(desk, whole):
    again = desk(*SPLIT)
    written = {name: (desk.folder / FOLDER / name).read_bytes() for name in WRITTEN}
    return again.status == 0 and written == whole and not list((desk.folder / FOLDER).glob("*.part"))


def test_a_full_disk_leaves_no_half_of_a_split(checked, file_size_limit, tell):
    desk, whole = checked
    sizes = [share * len(whole[WRITTEN[0]]) // 100 for share in (1, 50, 99)]
    survived = 0
    for byte_count in sizes:
        start_over(desk)
        full = desk(*SPLIT, limits=file_size_limit(byte_count))
        is_clean = not list((desk.folder / FOLDER).glob("*.part")) and not half_written(desk, whole)
        is_told = full.status == 74 and len(full.sentences) == 1 and "simulated.xml" in full.err
        survived += is_told and is_clean and is_as_undisturbed(desk, whole)
    tell(
        "A4",
        "disk full while a pain.001 split is written",
        tried=len(sizes),
        survived=survived,
        figure=f"limits of {sizes[0]:,} to {sizes[-1]:,} bytes a file, of {len(whole[WRITTEN[0]]):,}",
        goal="74 with the path; nothing partial; then the identical files",
    )


def test_a_kill_leaves_no_half_of_a_split(checked, tell):
    desk, whole = checked
    folder = desk.folder / FOLDER
    release, hold = (folder / f"{name}.part" for name in WRITTEN)
    moments = {
        "release begun": release.exists,
        "release written": lambda: release.exists() and release.stat().st_size >= len(whole[WRITTEN[0]]),
        "hold begun": hold.exists,
        "hold written": lambda: hold.exists() and hold.stat().st_size >= len(whole[WRITTEN[1]]),
        "named": lambda: any((folder / name).exists() for name in WRITTEN),
    }
    survived, killed = 0, 0
    for is_time in moments.values():
        start_over(desk)
        finished = desk.start(*SPLIT).kill_when(is_time)
        killed += finished.status == -9
        survived += not half_written(desk, whole) and is_as_undisturbed(desk, whole)
    assert killed
    tell(
        "A1",
        "killed while a pain.001 split is written",
        tried=len(moments),
        survived=survived,
        figure=f"SIGKILL at {', '.join(moments)}; killed {killed}",
        goal="nothing partial has its name; then the identical files",
    )
