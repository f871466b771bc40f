"""A1, A4: a data set goes on where it was killed, and what is written from it is whole or not there."""

import shutil
import time
from collections import Counter

import polars as pl
import pytest
from desk import VOLATILE

PARTS, ROWS_OF_PART = 4, 40
IN_FLIGHT_MAX = 32
FOLDER = "set.precheck"
SPLIT = ("split", FOLDER, "--allow-simulated", "--by", "Mara Ellery", "--config")
WRITTEN = ("release.simulated.parts", "hold.simulated.parts")
MOMENTS = (
    "work/*/read/*",
    "work/*/planned/*",
    f"{FOLDER}/ledger.db-wal",
    "work/*/decided/*",
    f"{FOLDER}/outcomes/*",
)
"""The files of which some number is there when a run is killed, in the order in which it writes them."""


def parts_of(folder):
    """The bytes of each file in a folder; None where there is no such folder."""
    if not folder.is_dir():
        return None
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def stable_outcomes(folder):
    """The rows of all parts, without what two runs may differ in."""
    paths = sorted((folder / "outcomes").iterdir())
    tables = [pl.read_csv(path, infer_schema=False).drop(VOLATILE, strict=False) for path in paths]
    return [row for table in tables for row in table.iter_rows()]


@pytest.fixture(scope="module")
def desk(desk_in, sample, tmp_path_factory):
    """A desk with a data set of parts of different questions, some of which two parts share."""
    desk = desk_in(tmp_path_factory.mktemp("data-sets") / "desk")
    (desk.folder / "set").mkdir()
    header, *lines = sample(PARTS * ROWS_OF_PART).read_text("utf-8").splitlines(keepends=True)
    for number in range(PARTS):
        rows = lines[number * ROWS_OF_PART : (number + 1) * ROWS_OF_PART]
        desk.file(f"set/part-{number}.csv", "".join([header, *rows, *lines[:5]]))
    return desk


@pytest.fixture(scope="module")
def command(desk, sandbox):
    limits = {
        api: sandbox.section("sandbox", api, rate_per_s=150, in_flight_max=16) for api in ("cop", "vop")
    }
    return ("run", "set", "--work", "work", "--quiet", *desk.using(**limits))


def is_as_one(desk, folder, whole):
    return stable_outcomes(folder) == whole and desk("verify", folder).status == 0


def test_a_killed_data_set_goes_on(desk, command, sandbox, chance, is_long, tell):
    before = sandbox.call_count
    assert desk(*command, "--out", "undisturbed").status == 0
    whole, questions = stable_outcomes(desk.folder / "undisturbed"), len(sandbox.questions(before))
    rounds = 5 if is_long else 1
    survived = kill_count = repeated = 0
    extra = []
    for _ in range(rounds):
        shutil.rmtree(desk.folder / FOLDER, ignore_errors=True)
        started = sandbox.call_count
        kills = 0
        for pattern in MOMENTS:
            least = chance.randrange(1, PARTS)
            begun, delay = time.monotonic(), chance.uniform(0, 0.3)

            def is_time(pattern=pattern, least=least, begun=begun, delay=delay, started=started):
                if pattern.endswith("-wal"):
                    return len(sandbox.questions(started)) > questions * least // PARTS
                found = sum(1 for _ in desk.folder.glob(pattern))
                return found >= least and time.monotonic() > begun + delay

            finished = desk.start(*command).kill_when(is_time)
            kills += finished.status == -9
        assert desk(*command).status == 0
        asked = Counter(call["question"] for call in sandbox.questions(started))
        extra.append(asked.total() - questions)
        repeated += asked.total() - len(asked) > kills * IN_FLIGHT_MAX
        kill_count += kills
        survived += is_as_one(desk, desk.folder / FOLDER, whole) and extra[-1] <= kills * IN_FLIGHT_MAX
    assert kill_count
    assert not repeated
    tell(
        "A1",
        "a data set of 4 parts, killed in each of its steps",
        tried=rounds,
        survived=survived,
        figure=f"{kill_count} kills; at most {max(extra)} calls beside {questions} questions",
        goal=f"all as undisturbed; extra calls per kill <= {IN_FLIGHT_MAX} in flight",
    )


@pytest.fixture(scope="module")
def checked(desk, sandbox):
    """That desk with a finished run, and what a split of it writes where nothing is in the way."""
    shutil.rmtree(desk.folder / FOLDER, ignore_errors=True)
    assert desk("run", "set", "--work", "work", *sandbox.using("production"), "--quiet").status == 0
    shutil.copytree(desk.folder / FOLDER, desk.folder / "kept")
    split = (*SPLIT, sandbox.config)
    assert desk(*split).status == 0
    whole = {name: parts_of(desk.folder / FOLDER / name) for name in WRITTEN}
    assert all(len(parts) == PARTS for parts in whole.values())
    return desk, split, whole


def start_over(desk):
    shutil.rmtree(desk.folder / FOLDER)
    shutil.copytree(desk.folder / "kept", desk.folder / FOLDER)


def is_whole_or_absent(desk, whole):
    return all(parts_of(desk.folder / FOLDER / name) in (None, parts) for name, parts in whole.items())


def is_as_undisturbed(desk, split, whole):
    again = desk(*split)
    written = {name: parts_of(desk.folder / FOLDER / name) for name in WRITTEN}
    left = list((desk.folder / FOLDER).rglob("*.part"))
    return again.status == 0 and written == whole and not left and desk("verify", FOLDER).status == 0


def test_a_kill_leaves_no_half_of_a_split_of_a_data_set(checked, tell):
    desk, split, whole = checked
    folder = desk.folder / FOLDER
    moments = {
        "release begun": "release.simulated.parts.part/*",
        "last part of hold": f"hold.simulated.parts.part/part-{PARTS - 1}*",
        "named": "release.simulated.parts",
    }
    survived = killed = 0
    for pattern in moments.values():
        start_over(desk)
        finished = desk.start(*split).kill_when(lambda pattern=pattern: any(folder.glob(pattern)))
        killed += finished.status == -9
        survived += is_whole_or_absent(desk, whole) and is_as_undisturbed(desk, split, whole)
    assert killed
    tell(
        "A1",
        "killed while a data set is split",
        tried=len(moments),
        survived=survived,
        figure=f"SIGKILL at {', '.join(moments)}; killed {killed}",
        goal="no folder of parts has its name before it is whole; then the identical parts",
    )


def test_a_full_disk_leaves_no_half_of_a_split_of_a_data_set(checked, file_size_limit, tell):
    desk, split, whole = checked
    largest = max(len(data) for parts in whole.values() for data in parts.values())
    sizes = [share * largest // 100 for share in (50, 99)]
    survived = 0
    for byte_count in sizes:
        start_over(desk)
        full = desk(*split, limits=file_size_limit(byte_count))
        is_clean = not [*(desk.folder / FOLDER).rglob("*.part")] and is_whole_or_absent(desk, whole)
        is_said = full.status == 74 and len(full.sentences) == 1 and ".parts" in full.err
        survived += is_said and is_clean and is_as_undisturbed(desk, split, whole)
    tell(
        "A4",
        "disk full while a data set is split",
        tried=len(sizes),
        survived=survived,
        figure=f"limits of {sizes[0]:,} to {sizes[-1]:,} bytes a file, of {largest:,}",
        goal="74 with the path; nothing partial; then the identical parts",
    )
