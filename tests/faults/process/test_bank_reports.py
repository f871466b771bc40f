"""A1, A4: a comparison with a bank's report is whole or goes on where it was killed."""

import json
import shutil
from dataclasses import replace

import pytest
from paymentfiles.pain001 import Batch, Payment, document
from paymentfiles.pain002 import Said, SaidOfBatch, report

ROWS = 400
IBANS = ("DE89370400440532013000", "NL91ABNA0417164300", "FR1420041010050500013M02606", "BE68539007547034")
NAMES = ("Ada Quillon", "Imogen Faraday", "Averi Thornwood", "Bo Kestrel")
STATUSES = ("RVNM", "RCVC", "RVNA", "RVNM")
"""What the bank says of each of the four payees, two of whom the check found otherwise."""
FOLDER = "pay.precheck"
COMPARE = ("import", "pay.xml", "--report", "vop.xml")


def comparison_in(folder):
    """The outcomes, and what summary and changes say of the bank's report; None where they say nothing."""
    summary, changes = json.loads((folder / "summary.json").read_text()), folder / "changes.jsonl"
    said = summary["bank_comparison"] and [summary["bank_comparison"], summary["warning_codes"]]
    return (folder / "outcomes.csv").read_bytes(), said, changes.read_bytes() if changes.exists() else None


def state_of(folder):
    paths = [path for path in folder.rglob("*") if path.is_file()]
    stats = {path.relative_to(folder): path.stat() for path in paths}
    return {name: (stat.st_mtime_ns, stat.st_size, stat.st_ino) for name, stat in stats.items()}


def changed_count(folder, before):
    """The files of a folder that are new or were written since; some may go while it is looked at."""
    try:
        return len(state_of(folder).items() - before.items())
    except FileNotFoundError:
        return 0


@pytest.fixture(scope="module")
def checked(desk_in, sandbox, tmp_path_factory):
    """A desk with a real check, kept; and what a comparison that nothing disturbs makes of it."""
    desk = desk_in(tmp_path_factory.mktemp("bank-reports") / "desk")
    of = [(f"E-{at}", NAMES[at % 4], IBANS[at % 4], f"{at + 1}.00") for at in range(ROWS)]
    fields = ("end_to_end_id", "name", "iban", "amount")
    desk.file("pay.xml", document((Batch([Payment(**dict(zip(fields, one, strict=True))) for one in of]),)))
    said = [
        replace(Said(key, STATUSES[at % 4], ()), account=iban, amount=amount, name=name)
        for at, (key, name, iban, amount) in enumerate(of)
    ]
    desk.file("vop.xml", report((SaidOfBatch(tuple(said)),)))
    using = desk.using(vop=sandbox.section("production", "vop", server="production"))
    assert desk("run", "pay.xml", *using, "--quiet").status == 0
    shutil.copytree(desk.folder / FOLDER, desk.folder / "kept")
    compared = desk(*COMPARE)
    assert compared.status == 0, compared.err
    whole = comparison_in(desk.folder / FOLDER)
    assert whole[1][0]["differing_count"] > ROWS // 4
    return desk, whole


def start_over(desk):
    shutil.rmtree(desk.folder / FOLDER)
    shutil.copytree(desk.folder / "kept", desk.folder / FOLDER)
    return state_of(desk.folder / FOLDER)


def is_proved_half(desk, whole):
    """Whether `verify` is content with anything but what was there before, and the whole."""
    found = comparison_in(desk.folder / FOLDER)
    return desk("verify", FOLDER).status == 0 and found not in ((whole[0], None, None), whole)


def is_as_undisturbed(desk, whole):
    again = desk(*COMPARE)
    is_there = again.status == 0 or "already has all of these reports" in again.err
    left = list((desk.folder / FOLDER).rglob("*.part"))
    held = comparison_in(desk.folder / FOLDER) == whole
    return is_there and held and not left and desk("verify", FOLDER).status == 0


def test_a_killed_comparison_is_made_again(checked, tell):
    desk, whole = checked
    folder, before = desk.folder / FOLDER, start_over(desk)
    assert desk(*COMPARE).status == 0
    written_count = changed_count(folder, before)
    survived = killed = 0
    for count in range(1, written_count + 1):
        before = start_over(desk)
        finished = desk.start(*COMPARE).kill_when(
            lambda count=count, before=before: changed_count(folder, before) >= count
        )
        killed += finished.status == -9
        survived += not is_proved_half(desk, whole) and is_as_undisturbed(desk, whole)
    assert killed > written_count // 2
    tell(
        "A1",
        "killed while a check is compared with the bank's report",
        tried=written_count,
        survived=survived,
        figure=f"SIGKILL after each of {written_count} files; killed {killed}",
        goal="evidence holds for none or all of it; the same command again comes to the same",
    )


def test_a_full_disk_leaves_no_half_of_a_comparison(checked, file_size_limit, tell):
    desk, whole = checked
    before = start_over(desk)
    assert desk(*COMPARE).status == 0
    written = state_of(desk.folder / FOLDER).items() - before.items()
    sizes = sorted({size - 1 for _, (_, size, _) in written if size > 1})
    survived = 0
    for byte_count in sizes:
        start_over(desk)
        full = desk(*COMPARE, limits=file_size_limit(byte_count))
        is_said = full.status in {0, 74} and len(full.sentences) >= (full.status == 74)
        survived += is_said and not is_proved_half(desk, whole) and is_as_undisturbed(desk, whole)
    tell(
        "A4",
        "disk full while a check is compared with the bank's report",
        tried=len(sizes),
        survived=survived,
        figure=f"limits one byte short of each of {len(sizes)} files, {sizes[0]:,} to {sizes[-1]:,} bytes",
        goal="74 with the path; evidence holds for none or all of it; then the same as undisturbed",
    )
