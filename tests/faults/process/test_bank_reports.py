"""A1, A4: a report imported into a folder with results is there whole, or goes on where it was killed."""

import json
import shutil
from dataclasses import replace
from typing import NamedTuple

import pytest
from paymentfiles.pain001 import Batch, Payment, document
from paymentfiles.pain002 import Said, SaidOfBatch, report, zipped
from signers import key_files

ROWS = 100
IBANS = ("DE89370400440532013000", "NL91ABNA0417164300", "FR1420041010050500013M02606", "BE68539007547034")
NAMES = ("Ada Quillon", "Imogen Faraday", "Averi Thornwood", "Bo Kestrel")
STATUSES = ("RVNM", "RCVC", "RVNA", "RVNM")
"""What the bank says of each of the four payees, two of whom the check found otherwise."""
FOLDER = "pay.precheck"
CHECK, SIGNED, BANK, SET = (
    "a check",
    "a signed check that was compared before",
    "a folder of an earlier report",
    "a check of a data set that was compared before",
)


class Imported(NamedTuple):
    """A desk with a folder, kept, and what an import that nothing disturbs makes of it."""

    desk: object
    command: tuple
    before: tuple
    whole: tuple

    @property
    def folder(self):
        return self.desk.folder / FOLDER

    @property
    def is_proved_half(self):
        """Whether `verify` is content with anything but what was there before, and the whole."""
        found = results_in(self.folder)
        return self.desk("verify", FOLDER).status == 0 and found not in (self.before, self.whole)

    @property
    def is_as_undisturbed(self):
        """Whether the same command again comes to the whole, and leaves nothing beside it."""
        again = self.desk(*self.command)
        is_there = again.status == 0 or "already has all of these reports" in again.err
        left = [*self.folder.rglob("*.part"), *self.folder.rglob("*.before")]
        held = results_in(self.folder) == self.whole
        return is_there and held and not left and self.desk("verify", FOLDER).status == 0

    def start_over(self):
        """Put back what was kept, also what the user's state remembers of signed folders."""
        for name in (FOLDER, "state"):
            shutil.rmtree(self.desk.folder / name, ignore_errors=True)
            if (kept := self.desk.folder / "kept" / name).exists():
                shutil.copytree(kept, self.desk.folder / name)
        return state_of(self.folder)


def results_in(folder):
    """The outcomes, what the summary says of the bank's reports, and the changes."""
    summary, changes = json.loads((folder / "summary.json").read_text()), folder / "changes.jsonl"
    said = summary["outcomes"], summary["bank_comparison"], summary["warning_codes"]
    files = [*sorted(folder.glob("outcomes*/*.csv")), *folder.glob("outcomes.csv"), *folder.glob("warned.*")]
    return [path.read_bytes() for path in files], said, changes.read_bytes() if changes.exists() else None


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


@pytest.fixture(scope="module", params=[CHECK, SIGNED, BANK, SET])
def imported(request, desk_in, sandbox, tmp_path_factory):
    desk = desk_in(tmp_path_factory.mktemp("bank-reports") / "desk")
    of = [(f"E-{at}", NAMES[at % 4], IBANS[at % 4], f"{at + 1}.00") for at in range(ROWS)]
    fields = ("end_to_end_id", "name", "iban", "amount")
    payments = [Payment(**dict(zip(fields, one, strict=True))) for one in of]
    said = [
        replace(Said(key, STATUSES[at % 4], ()), account=iban, amount=amount, name=name)
        for at, (key, name, iban, amount) in enumerate(of)
    ]
    if request.param == SET:
        (desk.folder / "set").mkdir()
        halves, said_of = (slice(ROWS // 2), slice(ROWS // 2, ROWS)), []
        for number, half in enumerate(halves):
            own_id = f"M-{number}"
            desk.file(f"set/{own_id}.xml", document((Batch(payments[half]),), message_id=own_id))
            said_of.append(report((SaidOfBatch(tuple(said[half])),), message_id=own_id))
        desk.file("half.xml", said_of[0])
        desk.file("vop.xml", zipped(*said_of))
        given = ("set", "--work", "work", "--out", FOLDER)
    else:
        desk.file("pay.xml", document((Batch(payments),)))
        desk.file("half.xml", report((SaidOfBatch(tuple(said[: ROWS // 2])),)))
        desk.file("vop.xml", report((SaidOfBatch(tuple(said)),)))
        given = ("pay.xml",)
    signs = ("--sign-with", key_files(desk, "signing")[0]) if request.param == SIGNED else ()
    if request.param != BANK:
        using = desk.using(vop=sandbox.section("production", "vop", server="production"))
        assert desk("run", *given, *using, "--quiet", *signs).status == 0
    if request.param != CHECK:
        assert desk("import", *given, "--report", "half.xml", *signs).status in {0, 75}
    for name in (FOLDER, "state"):
        if (desk.folder / name).exists():
            shutil.copytree(desk.folder / name, desk.folder / "kept" / name)
    before, command = results_in(desk.folder / FOLDER), ("import", *given, "--report", "vop.xml", *signs)
    done = desk(*command)
    assert done.status == 0, done.err
    whole = results_in(desk.folder / FOLDER)
    assert whole != before
    return Imported(desk, command, before, whole), request.param


def test_a_killed_import_is_made_again(imported, is_long, tell):
    of, where = imported
    before = of.start_over()
    assert of.desk(*of.command).status == 0
    written_count = changed_count(of.folder, before)
    survived = killed = 0
    counts = range(1, written_count + 1, 1 if is_long else 3)
    for count in counts:
        before = of.start_over()
        finished = of.desk.start(*of.command).kill_when(
            lambda count=count, before=before: changed_count(of.folder, before) >= count
        )
        killed += finished.status == -9
        survived += not of.is_proved_half and of.is_as_undisturbed
    assert killed > len(counts) // 2
    tell(
        "A1",
        f"killed while a bank's report is imported into {where}",
        tried=len(counts),
        survived=survived,
        figure=f"SIGKILL after files 1 to {counts[-1]} of {written_count}; killed {killed}",
        goal="evidence holds for none or all of it; the same command again comes to the same",
    )


def test_a_full_disk_leaves_no_half_of_an_import(imported, is_long, file_size_limit, tell):
    of, where = imported
    before = of.start_over()
    assert of.desk(*of.command).status == 0
    written = state_of(of.folder).items() - before.items()
    sizes = sorted({size - 1 for _, (_, size, _) in written if size > 1})[:: 1 if is_long else 3]
    survived = 0
    for byte_count in sizes:
        of.start_over()
        full = of.desk(*of.command, limits=file_size_limit(byte_count))
        is_said = full.status in {0, 74} and len(full.sentences) >= (full.status == 74)
        survived += is_said and not of.is_proved_half and of.is_as_undisturbed
    tell(
        "A4",
        f"disk full while a bank's report is imported into {where}",
        tried=len(sizes),
        survived=survived,
        figure=f"limits one byte short of {len(sizes)} files, {sizes[0]:,} to {sizes[-1]:,} bytes",
        goal="74 with the path; evidence holds for none or all of it; then the same as undisturbed",
    )
