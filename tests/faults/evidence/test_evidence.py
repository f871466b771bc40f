"""I: evidence that is forged, approvals that are talked round, desks and databases of others."""

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from postgres import RUNNER
from signers import key_files

TESTS = Path(__file__).parents[2]
MADE = ("corrected", "hold")
ANNA, ALL, UP = "anna@example.com", "all@example.com", "up@example.com"


def of(module):
    """The attacks that a module of tests has; they are tried there one by one, by day."""
    return runpy.run_path(str(TESTS / module))


def test_i1_a_forged_folder_is_neither_used_nor_signed(desk, sandbox, tell):
    forgery = of("end_to_end/test_forged_evidence.py")
    attacks = ["forge_answer", "delete_an_answer", "add_an_answer_to_an_older_run", "forge_manifest_too"]
    attacks += ["remove_signature_too", "remove_manifest_too", "as_killed_before_a_manifest"]
    attacks += ["as_killed_before_the_signature", "as_never_begun"]
    private, public = key_files(desk, "signing")
    survived, calls = 0, 0
    for number, attack in enumerate(attacks):
        file = desk.payments(forgery["ROWS"], name=f"file{number}.csv")
        words = ("run", file, *sandbox.using("sandbox"), "--quiet", "--sign-with", private)
        folder = desk.folder / f"file{number}.precheck"
        assert desk(*words).status == 0
        forgery[attack](folder)
        if (folder / "outcomes.csv").exists():
            forgery["follow_the_advice_of_verify"](folder)
        before, calls_before = forgery["contents"](folder), sandbox.call_count
        again, found = desk(*words), desk("verify", folder, "--input", file, "--signed-by", public)
        calls += sandbox.call_count - calls_before
        is_refused = again.status == 65 and found.status in (2, 65, 74)
        survived += is_refused and forgery["contents"](folder) == before
    figure = f"refused with 65, {survived} of {len(attacks)} folders untouched; calls {calls}"
    what = "ledger, decisions, manifest and signature forged, then the advice of verify followed"
    tell("I1", what, tried=len(attacks), survived=survived, figure=figure, goal="65, nothing signed, calls 0")
    assert calls == 0


def test_i2_no_answer_of_a_forged_folder_is_used_again(desk, sandbox, tell):
    reuse, forgery = of("end_to_end/test_reuse.py"), of("end_to_end/test_forged_evidence.py")
    january = desk.payments([reuse["MATCH"], reuse["NO_MATCH"]], name="january.csv")
    assert desk("run", january, *sandbox.using("sandbox")).status == 0
    folder = desk.folder / "january.precheck"
    forgery["forge_answer"](folder)
    before = sandbox.call_count
    file = desk.payments([reuse["NO_MATCH"]], name="february.csv")
    done = desk("run", file, *sandbox.using("sandbox"), "--reuse-from", folder)
    is_held = done.status == 65 and str(folder) in done.err and sandbox.call_count == before
    figure, goal = f"exit {done.status}, calls {sandbox.call_count - before}", "65 naming the folder, calls 0"
    tell("I2", "answers of a forged folder", tried=1, survived=int(is_held), figure=figure, goal=goal)


def test_i2_no_payment_of_a_changed_file_of_another_run_is_checked(desk, sandbox, tell):
    """The attacker removes the manifest, renames the file, or reaches it by a link."""
    forgery, (private, _) = of("end_to_end/test_forged_evidence.py"), key_files(desk, "signing")
    file, profile = desk.payments(forgery["ROWS"]), (*sandbox.using("sandbox"), "--quiet")
    assert desk("run", file, *profile, "--sign-with", private).status == 0
    whole = desk.folder / "payments.precheck"
    fix = ("fix", whole, "--accept", "close_match", "--reason", "judged", "--allow-simulated")
    assert desk(*fix, "--sign-with", private).status == 0
    assert desk("split", whole, "--allow-simulated", "--sign-with", private).status == 0
    honest = [
        desk(
            "run",
            whole / f"{name}.simulated.csv",
            *profile,
            "--out",
            desk.folder / f"{name}.honest",
            "--sign-with",
            private,
        ).status
        for name in MADE
    ]
    before, said = sandbox.call_count, []
    for name in MADE:
        for how in forgery["PASSED_OFF"]:
            folder = shutil.copytree(whole, desk.folder / f"{name}-{how.__name__}")
            path = folder / f"{name}.simulated.csv"
            path.write_text(path.read_text().replace("25.50", "9925.50"))
            words = (
                "run",
                how(folder, name),
                *profile,
                "--out",
                desk.folder / "again",
                "--sign-with",
                private,
            )
            said.append(desk(*words).status)
    survived = sum(status in (2, 65) for status in said)
    figure = f"refused with {sorted({*said})}, calls {sandbox.call_count - before}; unchanged ones {honest}"
    what = "a corrected or held file of another run, changed, and its manifest or name too"
    tell("I2", what, tried=len(said), survived=survived, figure=figure, goal="2 or 65, calls 0; then 0")
    assert (sandbox.call_count, honest) == (before, [0, 0])


def test_i3_a_form_of_an_old_page_does_nothing(team_desk, tell):
    shaping = of("end_to_end/at_the_desk/test_who_shaped_a_file.py")
    at = team_desk.person(UP).checked(shaping["MIXED"])
    rita = team_desk.person(shaping["RITA"])
    old = {"shown": rita.shown(at, "review"), "decision": "hold", "group": "fix_name", "confirmed": "yes"}
    old_release = {"shown": team_desk.person(ANNA).shown(at)}
    fields = {"decision": "release", "reason": "phoned"}
    assert rita.post(f"/files/{at}/rows/10", fields).status == 303
    before = team_desk.decisions(at)
    said = [rita.post(f"/files/{at}/{act}", old).status for act in ("groups", "hand-over")]
    said.append(team_desk.person(ANNA).post(f"/files/{at}/release", old_release).status)
    said.append(rita.post(f"/files/{at}/rows/10", old | {"shown": ""}).status)
    survived = sum(status == 409 for status in said)
    assert team_desk.decisions(at) == before
    what = "approval, hand-over, group and row from a page that is old"
    tell(
        "I3", what, tried=len(said), survived=survived, figure=f"answers {said}", goal="409, nothing decided"
    )


def test_i4_who_shaped_a_file_does_not_approve_it(team_desk, tell):
    acts = of("end_to_end/at_the_desk/test_who_shaped_a_file.py")["ACTS"]
    said = []
    for act in acts:
        at = act(team_desk)
        shown = {"shown": team_desk.person(ANNA).shown(at)}
        said.append(team_desk.person(ALL).post(f"/files/{at}/release", shown).status)
    survived = sum(status == 403 for status in said)
    what = "approval by one who shaped the file, by each act"
    tell(
        "I4", what, tried=len(said), survived=survived, figure=f"403 for {survived}", goal="403 for each act"
    )


def test_i5_another_user_of_the_computer_does_nothing_at_ones_own_desk(own_desk, mara, tell):
    if os.geteuid() != 0:
        pytest.skip("only root can be another user")
    script = of("end_to_end/at_the_desk/test_access.py")["_AND_AWAY"]
    [(name, value)] = mara.cookies.items()
    request = (
        f"POST /sample HTTP/1.1\r\nHost: 127.0.0.1:{own_desk.port}\r\nOrigin: {own_desk.origin}\r\n"
        f"Cookie: {name}={value}\r\nContent-Length: 0\r\n\r\n"
    )
    before = len(own_desk.done())
    for how in ("closed", "reset"):
        command = [sys.executable, "-I", "-S", "-c", script, str(own_desk.port), how, request]
        subprocess.run(command, check=True, timeout=60)
    assert mara.get("/").status == 200
    done = len(own_desk.done()) - before
    what = "requests of another user with the session cookie, closed or reset at once"
    tell("I5", what, tried=40, survived=40 - done, figure=f"{done} done", goal="0")


def test_i6_a_workers_role_sets_nothing_back(ledger_desk, tell):
    attacks = of("contract/stores/test_a_workers_role.py")
    attacks["spend"](ledger_desk)
    survived = 0
    with ledger_desk.postgres.connect(ledger_desk.database, RUNNER) as db:
        for statement in attacks["STATEMENTS"]:
            try:
                db.execute(statement.format(scope=attacks["SCOPE"]))
            except psycopg.Error:
                survived += 1
        for call in attacks["CALLS"]:
            db.execute(f"SELECT precheck.{call}".format(scope=attacks["SCOPE"]))
            survived += attacks["left"](ledger_desk) == 0
    tried = len(attacks["STATEMENTS"]) + len(attacks["CALLS"])
    [(units, intents)] = ledger_desk.rows(
        "SELECT (SELECT sum(count) FROM precheck.units), (SELECT count(*) FROM precheck.intent)"
    )
    what, goal = (
        "statements and calls with a worker's password, at a cap of 10",
        "refused, or no unit is left",
    )
    figure = f"units {units}, intents {intents}, 0 left after each"
    tell("I6", what, tried=tried, survived=survived, figure=figure, goal=goal)


def test_i7_a_release_file_that_was_not_approved_is_not_handed_out(own_desk, mara, tell):
    at = mara.checked(of("end_to_end/at_the_desk/test_who_shaped_a_file.py")["MIXED"])
    assert mara.approve(at, hold_undecided="yes").status == 303
    run = own_desk.folder(at) / "run.precheck"
    [release] = run.glob("release*.csv")
    whole, said = release.read_bytes(), []
    for forged in (whole.replace(b"GBP", b"EUR"), whole[:-20], b"", re.sub(rb"[1-9]\.00", b"9.00", whole)):
        release.write_bytes(forged)
        said.append(mara.get(f"/files/{at}/download/{release.name}").status)
    release.unlink()
    release.symlink_to(own_desk.home / "audit.jsonl")
    said.append(mara.get(f"/files/{at}/download/{release.name}").status)
    (run / "release.csv").write_bytes(whole)
    said.append(mara.get(f"/files/{at}/download/release.csv").status)
    survived = sum(status in (404, 409) for status in said)
    what = "release file changed, cut, emptied, linked or put beside"
    tell("I7", what, tried=len(said), survived=survived, figure=f"answers {said}", goal="none handed out")


def test_i7_nothing_is_written_where_another_user_can_replace_it(desk, sandbox, tell):
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder to another user")
    share, ours = desk.folder / "share", desk.folder / "ours"
    for folder in (share, ours, share / "theirs", share / "open", share / "theirs" / "ours"):
        folder.mkdir(mode=0o700)
    (share / "link").symlink_to(ours)
    os.chown(share / "theirs", 4711, 4711)
    os.chown(share / "link", 4711, 4711, follow_symlinks=False)
    (share / "open").chmod(0o777)
    share.chmod(0o1777)
    file, before, said = (
        desk.payments(of("end_to_end/test_forged_evidence.py")["ROWS"]),
        sandbox.call_count,
        [],
    )
    for place in ("open", "theirs", "theirs/ours", "link"):
        folder = share / place
        said.append(desk("run", file, *sandbox.using("sandbox"), "--out", folder).status)
        said.append(desk("desk", "--home", folder, "--port", "0", "--no-browser").status)
    calls = sandbox.call_count - before
    untouched = not [path for path in share.rglob("*") if path.is_file()] and not [*ours.iterdir()]
    own = desk("run", file, *sandbox.using("sandbox"), "--quiet", "--out", share / "own").status
    figure = f"exits {sorted({*said})}, calls {calls}; {own} for a folder of one's own"
    what = "a folder that all can write to, or that another user made or linked in a shared one"
    survived = sum(status == 73 for status in said) if untouched else 0
    tell("I7", what, tried=len(said), survived=survived, figure=figure, goal="73, nothing written; then 0")
    assert (own, calls) == (0, 0)


def test_i7_a_killed_desk_leaves_no_half_upload(tmp_path, serve_desk, tell):
    at_desk = of("end_to_end/at_the_desk/test_way_of_a_file.py")
    at_desk["test_a_killed_desk_leaves_no_half_upload"](tmp_path, serve_desk)
    tell("I7", "desk killed amid an upload", tried=1, survived=1, figure="0 halves left", goal="0, on record")
