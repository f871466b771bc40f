"""A1, A4: a data set goes on where it was killed, and what is written from it is whole or not there."""

import shutil
import time
from collections import Counter

import polars as pl
import pytest
from desk import VOLATILE
from paymentfiles.pain001 import Batch, Payment, document
from paymentfiles.pain002 import Said, SaidOfBatch, report, zipped

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


def killed_at(desk, moments, command, goes_on):
    """How often the command goes on as it should where it was killed at these moments, and was killed."""
    survived = killed = 0
    for pattern in moments:
        start_over(desk)
        finished = desk.start(*command).kill_when(lambda pattern=pattern: any(desk.folder.glob(pattern)))
        killed += finished.status == -9
        survived += goes_on()
    assert killed
    return survived, killed


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
    moments = {
        "release begun": "release.simulated.parts.part/*",
        "last part of hold": f"hold.simulated.parts.part/part-{PARTS - 1}*",
        "named": "release.simulated.parts",
    }
    survived, killed = killed_at(
        desk,
        [f"{FOLDER}/{pattern}" for pattern in moments.values()],
        split,
        lambda: is_whole_or_absent(desk, whole) and is_as_undisturbed(desk, split, whole),
    )
    tell(
        "A1",
        "killed while a data set is split",
        tried=len(moments),
        survived=survived,
        figure=f"SIGKILL at {', '.join(moments)}; killed {killed}",
        goal="no folder of parts has its name before it is whole; then the identical parts",
    )


def test_a_killed_correction_of_a_data_set_is_made_again(checked, tell):
    desk, corrected = checked[0], "corrected.simulated.parts"
    fix = ("fix", FOLDER, "--accept", "close_match", "--reason", "asked", "--by", "Ann", "--allow-simulated")
    start_over(desk)
    assert desk(*fix).status == 0
    whole = parts_of(desk.folder / FOLDER / corrected)

    def goes_on():
        is_half = parts_of(desk.folder / FOLDER / corrected) not in (None, whole)
        again = desk(*fix).status == 0 and parts_of(desk.folder / FOLDER / corrected) == whole
        return not is_half and again and desk("verify", FOLDER).status == 0

    moments = (f"{FOLDER}/{corrected}.part/*", f"{FOLDER}/{corrected}.part/part-{PARTS - 1}*")
    survived, killed = killed_at(desk, moments, fix, goes_on)
    tell(
        "A1",
        "killed while a data set is corrected",
        tried=len(moments),
        survived=survived,
        figure=f"SIGKILL at the first and the last part; killed {killed}",
        goal="no folder of parts has its name before it is whole; then the identical parts",
    )


def test_a_killed_comparison_of_a_data_set_goes_on(checked, sandbox, tell):
    desk = checked[0]
    start_over(desk)
    compared = ("run", "set", "--out", "compared", "--compare-with", FOLDER, "--reuse-from", FOLDER,
                "--work", "work", *sandbox.using("production"), "--quiet")  # fmt: skip
    before = sandbox.call_count
    assert desk(*compared).status == 0
    whole, asked = stable_outcomes(desk.folder / "compared"), sandbox.call_count - before

    def goes_on():
        again = desk(*compared).status == 0 and stable_outcomes(desk.folder / "compared") == whole
        is_proved = again and desk("verify", "compared").status == 0
        shutil.rmtree(desk.folder / "compared")
        return is_proved

    shutil.rmtree(desk.folder / "compared")
    before, moments = sandbox.call_count, ("work/*/changes/*", "work/*/decided/*", "compared/outcomes/*")
    survived, killed = killed_at(desk, moments, compared, goes_on)
    assert sandbox.call_count - before == len(moments) * asked  # matches are reused, the others asked once
    tell(
        "A1",
        "a data set that is compared with its last run and reuses its answers, killed",
        tried=len(moments),
        survived=survived,
        figure=f"SIGKILL while comparing, deciding and writing; killed {killed}; no question twice",
        goal="as undisturbed",
    )


def test_a_killed_import_of_reports_on_parts_is_made_again(desk_in, tmp_path_factory, tell):
    desk = desk_in(tmp_path_factory.mktemp("reports-on-parts") / "desk")
    (desk.folder / "set").mkdir()
    reports = []
    for part in range(2):
        payments = [Payment(end_to_end_id=f"E-{part}-{at}", amount=f"{part}{at}.00") for at in range(10)]
        desk.file(f"set/part-{part}.xml", document((Batch(tuple(payments)),), message_id=f"M-{part}"))
        said = [Said(one.end_to_end_id, "RVNM" if at % 3 else "RCVC") for at, one in enumerate(payments)]
        reports.append(report((SaidOfBatch(tuple(said)),), message_id=f"M-{part}"))
    command = ("import", "set", "--work", "work", "--by", "Ann", "--report", "vop.zip")
    desk.file("vop.zip", zipped(*reports))
    assert desk(*command).status == 0
    whole = stable_outcomes(desk.folder / FOLDER)
    (desk.folder / "kept").mkdir()

    def goes_on():
        again = desk(*command)
        is_there = again.status == 0 and stable_outcomes(desk.folder / FOLDER) == whole
        return is_there and desk("verify", FOLDER, "--input", "set").status == 0

    moments = (f"{FOLDER}/bank_report-1*", "work/*/decided/*", f"{FOLDER}/summary.json")
    survived, killed = killed_at(desk, moments, command, goes_on)
    tell(
        "A1",
        "killed while reports on the parts of a data set are imported",
        tried=len(moments),
        survived=survived,
        figure=f"SIGKILL while copying, deciding and reporting; killed {killed}",
        goal="the same command again comes to the same, and is proved",
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
