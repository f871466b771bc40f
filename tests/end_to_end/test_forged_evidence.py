"""A forger who can write into a run's folder, and has no signing key, has nothing used and nothing signed."""

import hashlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from forgers import fit_manifest, forge, forging, swapped_after
from refusals import said
from signers import key_files

pytestmark = pytest.mark.usefixtures("in_this_process")

SAMPLES = Path(__file__).parents[2] / "sample_data"
UK = {"account_type": "Personal", "sort_code": "00-11-22", "account_number": "00012345", "currency": "GBP"}
ROWS = [
    UK | {"payment_id": "P1", "name": "Avery Thornwood", "amount": "100.00"},
    UK | {"payment_id": "P2", "name": "Averi Thornwood", "amount": "25.50"},
]
FORGED = "UPDATE answer SET code = 'MTCH', matched_name = NULL, name_salt = NULL, name_seal = NULL"


@pytest.fixture
def words(desk, sandbox):
    return "run", desk.payments(ROWS), *sandbox.using("sandbox"), "--quiet"


@pytest.fixture
def signing(desk):
    """The options of the holder of the signing key, and those of an auditor."""
    private, public = key_files(desk, "signing")
    return ("--sign-with", private), ("--signed-by", public)


@pytest.fixture
def folder(desk, words, signing):
    """The folder of a finished run whose manifest is signed."""
    assert desk.ran(*words, *signing[0]).status == 0
    return desk.folder / "payments.precheck"


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".lock"}


def follow_the_advice_of_verify(folder):
    """Move away what is not as the run left it."""
    (folder / "outcomes.csv").rename(folder.parent / "outcomes.moved.csv")


def forge_answer(folder):
    forge(folder / "ledger.db", FORGED)


def forge_manifest_too(folder):
    forge_answer(folder)
    fit_manifest(folder)


def remove_signature_too(folder):
    forge_manifest_too(folder)
    (folder / "manifest.json.sig").unlink()


def remove_manifest_too(folder):
    remove_signature_too(folder)
    (folder / "manifest.json").unlink()


def delete_an_answer(folder):
    with forging(folder / "ledger.db") as db:
        db.execute("DELETE FROM answer WHERE intent = 1")


def add_an_answer_to_an_older_run(folder):
    with forging(folder / "ledger.db") as db:
        db.execute("INSERT INTO intent SELECT 3, x'00', 1, 'id-3', time, 0, seal FROM intent WHERE id = 1")


@pytest.mark.parametrize(
    ("attack", "said"),
    [
        (forge_answer, "ledger.db: not the ledger that manifest.json records (its lines differ in: answer)"),
        (delete_an_answer, "its lines differ in: answer"),
        (add_an_answer_to_an_older_run, "its lines differ in: intent"),
        (forge_manifest_too, "manifest.json.sig: no signature of manifest.json by"),
        (remove_signature_too, "lines of the table answer that the signing key has not sealed: 1"),
        (remove_manifest_too, "lines of the table answer that the signing key has not sealed: 1"),
    ],
)
def test_the_holder_of_the_key_never_signs_a_forged_ledger(desk, folder, words, signing, attack, said):
    attack(folder)
    follow_the_advice_of_verify(folder)
    before = contents(folder)

    again = desk(*words, *signing[0])

    assert (again.status, said in again.err) == (65, True), again.err
    assert contents(folder) == before
    for command in (("report", folder), ("fix", folder), ("split", folder, "--allow-simulated")):
        assert desk(*command, *signing[0]).status != 0, command
    assert {*contents(folder)} == {*before}
    assert desk("verify", folder, *signing[1]).status != 0


def test_verify_finds_a_forged_ledger_and_never_says_to_run_again(desk, folder, signing):
    forge_answer(folder)

    found = desk("verify", folder, *signing[1])

    assert found.status == 65
    assert "PROBLEM ledger: " + said("evidence.ledger_forged", tables="answer") in found.out


def test_a_trigger_that_would_change_answers_while_they_are_read_is_found(desk, folder, words, signing):
    with forging(folder / "ledger.db") as db:
        db.execute("CREATE TRIGGER late AFTER INSERT ON finish BEGIN UPDATE answer SET code = 'MTCH'; END")
    follow_the_advice_of_verify(folder)
    again = desk(*words, *signing[0])
    assert (again.status, said("stores.found_other_tables") in again.err) == (65, True)


def test_a_ledger_that_another_began_is_not_taken_for_ones_own(desk, folder, words, signing):
    own = folder.with_name("own")
    shutil.move(folder, own)
    assert desk(*words).status == 0
    for name in ("manifest.json", "manifest.json.sig"):
        shutil.copy(own / name, folder / name)
    follow_the_advice_of_verify(folder)
    again = desk(*words, *signing[0])
    assert again.status == 65
    assert said("stores.ledger_not_recorded", tables="intent, answer, finish, language, run") in again.err


def test_an_outcome_file_that_only_the_ledger_vouches_for_is_not_split(desk, folder, signing):
    path = folder / "outcomes.csv"
    path.write_text(path.read_text().replace("Averi", "Eve"))
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    forge(folder / "ledger.db", f"INSERT INTO finish SELECT 2, time, 2, 0, '{sha256}', 1, seal FROM finish")
    found = desk("split", folder, "--allow-simulated", *signing[0])
    assert found.status == 65, found.err
    assert not list(folder.glob("release*"))


def test_decisions_that_nobody_took_are_not_signed(desk, folder, words, signing):
    fix = ("fix", folder, "--accept", "close_match", "--reason", "judged", "--allow-simulated")
    assert desk(*fix, *signing[0]).status == 0
    path = folder / "approvals.json"
    path.write_text(json.dumps([*json.loads(path.read_text()), *json.loads(path.read_text())]))

    for command in (("report", folder), fix, ("split", folder, "--allow-simulated"), words):
        refused = desk(*command, *signing[0])
        assert refused.status == 65, command
        assert said("runs.approvals_not_signed", path="approvals.json") in refused.err

    [advised] = re.findall(r"jq .*? > [^;]*approvals.json", refused.err)
    path.rename(desk.folder / "approvals.moved.json")
    subprocess.run(advised, shell=True, check=True, cwd=desk.folder)
    assert desk("split", folder, "--allow-simulated", *signing[0]).status == 0


def forge_decisions(folder):
    """That somebody decided, and another person approved it."""
    said = {"by": "Rita", "what": "release", "why": "phoned", "rows": [2], "decision": "release"}
    said |= {"time": "2031-01-01T00:00:00Z", "approved_by": "Anna", "approved_at": "2031-01-01T00:00:00Z"}
    (folder / "approvals.json").write_text(json.dumps([said | {"self_approved": False}]))


def as_killed_before_a_manifest(folder):
    for name in ("manifest.json", "manifest.json.sig", "summary.json", "outcomes.csv"):
        (folder / name).unlink()
    forge_decisions(folder)


def as_killed_before_the_signature(folder):
    forge_decisions(folder)
    path = folder / "manifest.json"
    decided = {"approvals": json.loads((folder / "approvals.json").read_text())}
    path.write_text(json.dumps(json.loads(path.read_text()) | decided))
    (folder / "manifest.json.sig").unlink()


def as_never_begun(folder):
    shutil.rmtree(folder)
    folder.mkdir(mode=0o700)
    forge_decisions(folder)


@pytest.mark.parametrize(
    "attack", [as_killed_before_a_manifest, as_killed_before_the_signature, as_never_begun]
)
def test_a_run_does_not_sign_decisions_that_nothing_signed_proves(desk, folder, words, signing, attack):
    attack(folder)

    again = desk(*words, *signing[0])

    assert again.status == 65
    assert said("runs.approvals_not_signed", path="approvals.json") in again.err
    assert desk("verify", folder, *signing[1]).status != 0


def test_lines_after_the_last_manifest_are_proved_by_the_key(desk, sandbox, signing):
    words = ("run", desk.payments(ROWS), *sandbox.using("sandbox"), "--quiet", *signing[0])
    assert desk(*words, "--limit", "1").status == 75
    folder = desk.folder / "payments.precheck"
    first = desk.folder / "first"
    shutil.copytree(folder, first)
    assert desk(*words).status == 0
    shutil.copy(folder / "ledger.db", first)
    elsewhere = {"XDG_STATE_HOME": str(desk.folder / "elsewhere")}  # where no newer state is known
    for is_forged in (True, False):
        shutil.rmtree(folder)
        shutil.copytree(first, folder)
        if is_forged:
            forge(folder / "ledger.db", f"{FORGED} WHERE after_finish = 1")
        again = desk(*words, **elsewhere)
        assert again.status == (65 if is_forged else 0), again.err
        assert (said("stores.ledger_not_sealed", count=1) in again.err) is is_forged


def test_a_line_that_the_key_sealed_counts_in_its_place_alone(desk, folder, words, signing, sandbox):
    """Neither one of another run that was signed with the key, nor one of another question."""
    other = desk.payments([ROWS[0], ROWS[0] | {"name": "Zoe Averis"}], name="other.csv")
    assert desk("run", other, *sandbox.using("sandbox"), "--quiet", *signing[0]).status == 0
    whole = (folder / "ledger.db").read_bytes()
    [(columns,)] = lines_of(folder, "SELECT group_concat(name) FROM pragma_table_info('answer')")
    swapped = lines_of(folder, f"SELECT {columns} FROM answer".replace("intent,", "3 - intent,"))
    for lines in (lines_of(other.with_suffix(".precheck"), "SELECT * FROM answer"), swapped):
        (folder / "ledger.db").write_bytes(whole)
        with forging(folder / "ledger.db", reseals=False) as db:
            db.execute("DELETE FROM answer")
            db.executemany(f"INSERT INTO answer VALUES({', '.join('?' * len(lines[0]))})", lines)
        for name in ("manifest.json", "manifest.json.sig", "outcomes.csv"):
            (folder / name).unlink(missing_ok=True)
        again = desk(*words, *signing[0])
        assert again.status == 65
        assert said("stores.found_lines_changed", table="answer", count=2) in again.err


def lines_of(folder, query):
    with closing(sqlite3.connect(folder / "ledger.db")) as db:
        return db.execute(query).fetchall()


def test_without_a_key_the_manifest_alone_proves_the_ledger(desk, words):
    assert desk(*words).status == 0
    folder = desk.folder / "payments.precheck"
    forge_answer(folder)
    follow_the_advice_of_verify(folder)

    again = desk(*words)

    assert (again.status, said("stores.ledger_not_recorded", tables="answer") in again.err) == (65, True)
    assert desk("show", folder, "--row", "1").status == 65


def test_a_signed_run_that_was_killed_resumes_by_itself(desk, folder, words, signing):
    """Killed before its first manifest, before its signature, and once more after a manifest."""
    calls = json.loads((folder / "manifest.json").read_text())["ledger"]["attempt_count"]
    for gone in (
        ["manifest.json", "manifest.json.sig", "summary.json", "outcomes.csv"],
        ["manifest.json.sig"],
    ):
        for name in gone:
            (folder / name).unlink()
        assert desk(*words, *signing[0]).status == 0
        assert desk("verify", folder, *signing[1]).status == 0
        assert json.loads((folder / "manifest.json").read_text())["ledger"]["attempt_count"] == calls


@pytest.mark.parametrize("has_key", [True, False])
def test_a_signed_folder_is_purged_verified_and_resumed(desk, folder, words, signing, has_key):
    digests = json.loads((folder / "manifest.json").read_text())["ledger"]["digests"]

    assert desk("purge", folder, "--outcomes", *(signing[0] if has_key else ())).status == 0

    assert json.loads((folder / "manifest.json").read_text())["ledger"]["digests"] == digests
    assert desk("verify", folder).status == 0
    assert desk("verify", folder, *signing[1]).status == (0 if has_key else 65)
    assert desk(*words, *signing[0]).status == 0
    assert desk("verify", folder, *signing[1]).status == 0


def test_nothing_is_added_to_a_sealed_ledger_without_the_key(desk, folder, words):
    (folder / "outcomes.csv").unlink()
    refused = desk(*words)
    assert refused.status == 78
    assert said("stores.ledger_needs_signing_key") + "; " + said("advice.name_signing_key") in refused.err


def test_a_folder_that_was_not_signed_is_adopted_by_an_explicit_word_that_is_recorded(desk, words, signing):
    assert desk(*words).status == 0
    folder = desk.folder / "payments.precheck"
    for command in (("report", folder), ("fix", folder), ("split", folder, "--allow-simulated"), words):
        assert desk(*command, *signing[0]).status == 65, command
    assert not (folder / "manifest.json.sig").exists()
    adopt = ("report", folder, "--adopt", "checked by hand")
    assert desk(*adopt).status == 2

    assert desk(*adopt, *signing[0]).status == 0

    verified = desk("verify", folder, *signing[1])
    assert verified.status == 0
    assert said("evidence.adopted_at", reason="checked by hand") in verified.out
    [adoption] = json.loads((folder / "manifest.json").read_text())["adoptions"]
    assert adoption["reason"] == "checked by hand"
    (folder / "outcomes.csv").unlink()
    assert desk(*words, *signing[0]).status == 0
    assert json.loads((folder / "manifest.json").read_text())["adoptions"] == [adoption]
    assert desk("verify", folder, *signing[1]).status == 0


def test_a_folder_that_does_not_hold_is_not_adopted(desk, words, signing):
    assert desk(*words).status == 0
    folder = desk.folder / "payments.precheck"
    forge_manifest_too(folder)
    refused = desk("report", folder, "--adopt", "checked by hand", *signing[0])
    assert (refused.status, said("jobs.not_adopted", what="answers") in refused.err) == (65, True)


def test_a_folder_from_which_signature_and_seals_were_cut_is_not_adopted(desk, folder, words, signing):
    """Neither with the ledger of the signed run, forged, nor with that of a run without the key."""
    adopt = ("report", folder, "--adopt", "checked by hand", *signing[0])
    whole = shutil.copytree(folder, folder.parent / "whole")
    remove_signature_too(folder)
    (folder / "outcomes.csv").unlink()
    assert desk(*adopt).status == 65
    shutil.rmtree(folder)
    shutil.copytree(whole, folder)
    (folder / "manifest.json.sig").unlink()
    assert desk(*adopt).status == 0, "nothing but the signature was removed"
    (folder / "manifest.json.sig").unlink()
    for path in folder.glob("ledger.db*"):
        path.unlink()
    assert desk(*words, "--fresh").status == 0
    assert not (folder / "manifest.json.sig").exists()

    adopted = desk(*adopt)

    assert (adopted.status, said("jobs.signed_here_before") in adopted.err) == (65, True), adopted.err
    assert desk(*words, "--fresh", *signing[0]).status == 0
    assert desk("verify", folder, *signing[1]).status == 0


def test_an_older_signed_state_is_found_on_the_machine_that_signed_a_newer_one(desk, folder, words, signing):
    older = folder.with_name("older")
    shutil.copytree(folder, older)
    split = ("split", folder, "--allow-simulated", *signing[0])
    assert desk(*split).status == 0
    shutil.rmtree(folder)
    older.rename(folder)

    found = desk("verify", folder, *signing[1])

    assert (found.status, "PROBLEM signature: " + said("evidence.older_state") in found.out) == (65, True)
    for command in (split, ("report", folder, *signing[0]), (*words, *signing[0])):
        assert desk(*command).status == 65, command
    assert desk("verify", folder, *signing[1], XDG_STATE_HOME=str(folder.parent / "elsewhere")).status == 0


def test_a_run_that_another_one_of_its_file_has_replaced_is_an_older_state(desk, folder, words, signing):
    """Only where the newer run replaced it: a copy in another folder still verifies."""
    shutil.copytree(folder, kept := folder.with_name("kept"))
    assert desk(*words, *signing[0], "--fresh").status == 0
    assert desk("verify", folder, *signing[1]).status == 0
    assert desk("verify", kept, *signing[1]).status == 0
    shutil.rmtree(folder)
    shutil.copytree(kept, folder)
    found = desk("verify", folder, *signing[1])
    assert (found.status, "PROBLEM signature: " + said("evidence.older_state") in found.out) == (65, True)
    assert desk("split", folder, "--allow-simulated", *signing[0]).status == 65
    assert desk(*words, *signing[0], "--fresh").status == 0
    assert desk("verify", folder, *signing[1]).status == 0


def test_what_does_not_belong_to_the_evidence_is_listed_and_fails_if_it_looks_payable(desk, folder, signing):
    verified = ("verify", folder, *signing[1])
    (folder / ".notes").write_text("x")
    (folder / "more\x1b[2J").mkdir()
    listed = desk(*verified)
    assert listed.status == 0
    assert (
        said("evidence.also_here") + ": " + said("evidence.not_in_evidence", files=".notes, more\\x1b[2J")
        in listed.out
    )

    checked = folder.parent / "payments.csv"
    (folder / "payments.csv").write_bytes(checked.read_bytes())
    assert desk(*verified).status == 0, "the file that was checked, byte by byte"
    shown = "PROBLEM also here: {}: looks like payments but is not part of the evidence"
    for name in ("release.csv", "more\x1b[2J/approved/Release.csv", "payments.csv"):
        path = folder / name
        path.unlink(missing_ok=True)
        path.parent.mkdir(exist_ok=True)
        path.symlink_to(folder / "outcomes.csv")
        found = desk(*verified)
        assert (found.status, shown.format(ascii(name)[1:-1]) in found.out) == (65, True), found.out
        path.unlink()


def test_a_payment_file_that_someone_else_put_there_is_never_signed(desk, folder, signing):
    """Neither with a release, beside it, nor with a list of corrections, where one was made before."""
    fix = ("fix", folder, "--allow-simulated", *signing[0])
    split = ("split", folder, "--allow-simulated", *signing[0])
    assert desk(*fix, "--accept", "close_match", "--reason", "judged").status == 0
    (folder / "release.csv").write_text("forged")
    (folder / "corrected.simulated.csv").write_text("forged")

    assert [desk(*command).status for command in (split, fix)] == [0, 0]

    found = desk("verify", folder, *signing[1])
    assert found.status == 65
    assert "PROBLEM corrected.simulated.csv: " + said("evidence.changed") in found.out
    assert "PROBLEM also here: " + said("evidence.payable_not_in_evidence", files="release.csv") in found.out


def test_a_link_in_the_place_of_a_file_is_not_that_file(desk, folder, signing):
    (folder / "summary.json").rename(folder.parent / "elsewhere.json")
    (folder / "summary.json").symlink_to(folder.parent / "elsewhere.json")
    found = desk("verify", folder, *signing[1])
    assert (found.status, "PROBLEM summary.json: a link;" in found.out) == (65, True)


@pytest.mark.parametrize("content", ['{"name": "an app"}', "no JSON", None])
def test_a_manifest_of_another_program_beside_a_payment_file_is_left_alone(desk, words, content):
    if content is None:
        os.mkfifo(desk.folder / "manifest.json")
    else:
        desk.file("manifest.json", content)
    done = desk(*words)
    assert done.status == 0, done.err


def record(folder, release, change):
    """Have the manifest say of the release file what it is now, and that of the last split what it is not."""
    manifest = json.loads((folder / "manifest.json").read_text())
    split = manifest["splits"][-1]
    now = {"sha256": hashlib.sha256(release.read_bytes()).hexdigest(), "byte_count": release.stat().st_size}
    for file in (*manifest["files"], split["release"]):
        file.update(now if file["name"] == release.name else {})
    change(split)
    (folder / "manifest.json").write_text(json.dumps(manifest))


def change_nothing(split):
    pass


def hold_matches(split):
    split["policy"]["match"] = "hold"


def release_all(split):
    split["held_rows"] = []


def another_account(data):
    return data.replace(b"00012345", b"31926819").replace(
        b"IE64IRCE92050112345678", b"DE12500105170648489890"
    )


@pytest.mark.parametrize("sample", ["payments_mixed.csv", "payments_pain001.xml"])
def test_a_release_file_is_compared_with_what_was_checked_and_decided(desk, sandbox, sample):
    """Whoever had it signed: the key's holder may have been deceived while the split was made."""
    file, folder = shutil.copy(SAMPLES / sample, desk.folder), desk.folder / "run"
    assert desk.ran("run", file, "--out", folder, *sandbox.using("sandbox"), "--quiet").status == 0
    assert desk.ran("split", folder, "--allow-simulated").status == 0
    assert desk("verify", folder, "--input", file).status == 0
    [release] = folder.glob("release.*")
    manifest, data = folder / "manifest.json", release.read_bytes()
    recorded = manifest.read_bytes()

    for edit, change, each in (
        (another_account, change_nothing, "contains payments other than those that were checked"),
        (bytes, hold_matches, "held by the policy, and no recorded decision releases"),
        (bytes, release_all, "payments: its rows are not the ones recorded as held and released"),
    ):
        release.write_bytes(edit(data))
        manifest.write_bytes(recorded)
        record(folder, release, change)

        found = desk("verify", folder, "--input", file)
        assert (found.status, each in found.out) == (65, True), found.out


def lenient(folder):
    """A manifest whose last split released everything, by a policy of the forger."""
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["splits"][-1]["policy"]["no_match"] = "release"
    (folder / "manifest.json").write_text(json.dumps(manifest))


def an_approval(folder):
    said = {"by": "Ada", "approved_by": "Mara", "self_approved": False, "what": "pay", "why": "said so"}
    times = dict.fromkeys(("time", "approved_at"), "2026-01-01T00:00:00.000Z")
    found = json.loads((folder / "approvals.json").read_text())
    (folder / "approvals.json").write_text(json.dumps([*found, said | times | {"rows": [2]}]))


def without_warnings(folder):
    summary = json.loads((folder / "summary.json").read_text())
    (folder / "summary.json").write_text(json.dumps(summary | {"warning_codes": []}))


def another_amount(folder):
    for name in ("release.simulated.csv", "outcomes.csv"):
        path = folder / name
        if path.exists():
            path.write_text(path.read_text().replace("100.00", "9900.00"))


def delete_the_manifest(folder):
    (folder / "manifest.json").unlink()


@pytest.mark.parametrize(
    ("command", "written", "swap", "status"),
    [
        ("report", "report.html", lenient, 0),
        ("report", "manifest.json", lenient, 0),
        ("report", "report.html", an_approval, 65),
        ("split", "approvals.json", an_approval, 65),
        ("split", "release.simulated.csv", another_amount, 65),
        ("run", "outcomes.csv", another_amount, 65),
        ("run", "summary.json", an_approval, 0),
        ("run", "summary.json", without_warnings, 65),
        ("run", "summary.json", delete_the_manifest, 0),
    ],
)
def test_what_is_swapped_while_a_command_works_is_not_signed(
    desk, folder, words, signing, command, written, swap, status
):
    assert desk("split", folder, "--allow-simulated", *signing[0]).status == 0
    wanted = {"report": (folder,), "split": (folder, "--allow-simulated"), "run": words[1:]}[command]
    before = json.loads((folder / "manifest.json").read_text())
    if command == "run":
        follow_the_advice_of_verify(folder)

    with swapped_after("os.rename", folder / written, lambda: swap(folder)):
        assert desk(command, *wanted, *signing[0]).status == status

    found = desk("verify", folder, "--input", words[1], *signing[1])
    manifest = json.loads((folder / "manifest.json").read_text())
    assert found.status != 0 or (
        [*manifest["replaced_splits"], *manifest["splits"]] == before["splits"]
        and manifest["approvals"] == before["approvals"]
    )


def test_a_summary_is_read_once_to_be_proven_and_used(desk, folder, signing):
    path = folder / "summary.json"
    forged = path.read_bytes().replace(b'"profile": "', b'"profile": "lenient ')
    with swapped_after("open", path, lambda: path.write_bytes(forged)):
        assert desk("split", folder, "--allow-simulated", *signing[0]).status == 0
    assert path.read_bytes() == forged


def change_and_record(folder, name, old, new):
    """Change a file of a folder, and have its manifest record that."""
    path, manifest = folder / name, folder / "manifest.json"
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    path.write_text(path.read_text().replace(old, new))
    after = hashlib.sha256(path.read_bytes()).hexdigest()
    manifest.write_text(manifest.read_text().replace(before, after))


def test_payments_are_taken_from_the_folder_of_another_run_as_it_recorded_them(desk, folder, words, signing):
    assert desk("split", folder, "--allow-simulated", *signing[0]).status == 0
    again = ("run", folder / "hold.simulated.csv", *words[2:], "--out", desk.folder / "held", "--fresh")
    assert desk(*again, *signing[0]).status == 0

    change_and_record(folder, "hold.simulated.csv", "25.50", "9925.50")

    refused = desk(*again, *signing[0])
    assert (
        refused.status,
        said("files.manifest_signature_invalid", manifest="manifest.json") in refused.err,
    ) == (65, True), refused.err
    (folder / "hold.simulated.csv").write_text("changed once more")
    refused = desk(*again)
    assert (refused.status, "hold.simulated.csv: " in refused.err) == (65, True), refused.err


def by_a_link(folder, name):
    link = folder.parent / f"payroll_{folder.name}.csv"
    link.symlink_to(folder / f"{name}.simulated.csv")
    return link


def by_a_name_that_is_not_recorded(folder, name):
    return (folder / f"{name}.simulated.csv").rename(folder / f"{name}.csv")


def without_a_manifest(folder, name):
    (folder / "manifest.json").unlink()
    return folder / f"{name}.simulated.csv"


PASSED_OFF = {
    by_a_link: (65, "payroll_payments.precheck.csv: changed since"),
    by_a_name_that_is_not_recorded: (65, "hold.csv: changed since"),
    without_a_manifest: (2, "has not finished"),
}


@pytest.mark.parametrize("how", PASSED_OFF, ids=lambda how: how.__name__)
def test_a_changed_file_is_not_passed_off_as_one_of_no_run(desk, folder, words, signing, how):
    assert desk("split", folder, "--allow-simulated", *signing[0]).status == 0
    held = folder / "hold.simulated.csv"
    held.write_text(held.read_text().replace("25.50", "9925.50"))
    refused = desk("run", how(folder, "hold"), *words[2:], "--out", desk.folder / "held", *signing[0])
    status, said = PASSED_OFF[how]
    assert (refused.status, said in refused.err) == (status, True), refused.err


def test_a_run_with_a_key_is_compared_with_signed_runs_alone(desk, folder, words, signing):
    other = desk.payments([*ROWS, ROWS[0] | {"payment_id": "P3"}], "other.csv")
    compared = ("run", other, *words[2:], "--compare-with", folder, "--fresh")
    assert desk(*compared, *signing[0]).status == 0
    change_and_record(folder, "summary.json", '"profile"', '"profile" ')
    refused = desk(*compared, *signing[0])
    assert (
        refused.status,
        said("files.manifest_signature_invalid", manifest="manifest.json") in refused.err,
    ) == (65, True), refused.err
    (folder / "manifest.json.sig").unlink()
    refused = desk(*compared, *signing[0])
    assert (refused.status, "not signed" in refused.err) == (65, True), refused.err
