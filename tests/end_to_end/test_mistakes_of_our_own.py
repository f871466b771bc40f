"""What nobody foresaw ends with 70, a sentence and a file; 1 is for --fail-on alone, whoever listens."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest
from refusals import said

PAYEE = {"name": "Avery Thornwood", "sort_code": "001122", "account_number": "00012345"}
OTHER = {"name": "Rowan Blackmere", "sort_code": "001122", "account_number": "00012345"}
# A stage that fails for a file of one payment, and says in its error what only the file may say.
SITE_CUSTOMIZE = """
import pipeline.jobs.prepare as prepare

planned = prepare.plan

def plan(accepted, order="file"):
    if accepted.height == 1:
        raise {error}(f"{{accepted['name'][0]}} of {{accepted['account'][0]}}")
    return planned(accepted, order)

prepare.plan = plan
"""

# What compiled code does: an interrupt within it comes out as an error of its own.
SWALLOWED = """
import os
import signal

import pipeline.jobs.prepare as prepare

def plan(*_words):
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    except KeyboardInterrupt:
        raise ValueError("made of an interrupt") from None

prepare.plan = plan
"""


@pytest.fixture
def broken(desk):
    """`broken(error)`: the environment of a command that makes a mistake with every file of one payment."""

    def environment(error):
        folder = desk.folder / "broken"
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(SITE_CUSTOMIZE.format(error=error))
        return {"PYTHONPATH": str(folder)}

    return environment


@pytest.mark.parametrize(
    "error",
    [
        "prepare.pl.exceptions.PanicException",
        pytest.param("KeyError", marks=pytest.mark.nightly),
        pytest.param("AssertionError", marks=pytest.mark.nightly),
    ],
)
def test_70_one_sentence_and_a_file_without_payees(desk, sandbox, broken, error):
    words = ("run", desk.payments([PAYEE]), *sandbox.using("sandbox"), "--fail-on", "no_match")

    finished = desk(*words, **broken(error))

    kind = error.rpartition(".")[2]
    assert finished.status == 70
    [sentence] = finished.err.splitlines()
    assert said("cli.internal_error_report_kept", what=f"{kind} in sitecustomize:8 plan") in sentence
    [path] = re.findall(r"Send (\S+) \(it contains no names", sentence)
    with open(path) as file:  # noqa: PTH123 (the path is the sentence's)
        kept = file.read()
    assert os.stat(path).st_mode & 0o777 == 0o600  # noqa: PTH116 (likewise)
    assert path.startswith(str(desk.folder / "state"))
    assert "called as: run --config --profile --fail-on\n" in kept
    assert kind in kept
    assert re.search(r"pipeline\.jobs\.prepare:\d+ prepare", kept)
    for secret in ("Thornwood", "00012345", "001122", "no_match", str(desk.folder)):
        assert secret not in kept
        assert secret == str(desk.folder) or secret not in sentence


@pytest.mark.parametrize(
    "words",
    [
        (),
        pytest.param(("--log", "json"), marks=pytest.mark.nightly),
        pytest.param(("--quiet", "--log", "json"), marks=pytest.mark.nightly),
    ],
)
def test_70_of_one_file_the_next_is_checked(desk, sandbox, broken, words):
    desk.payments([PAYEE], name="a.csv")
    desk.payments([PAYEE, OTHER], name="b.csv")

    finished = desk(
        *("run", "a.csv", "b.csv", "--out", "out", "--metrics", "m.prom", *sandbox.using("sandbox"), *words),
        **broken("KeyError"),
    )

    assert finished.status == 70
    assert [row["check_outcome"] for row in desk.outcomes("out/b")] == ["match", "no_match"]
    assert "precheck_exit_status 70\n" in (desk.folder / "m.prom").read_text()
    mistake = said("cli.internal_error", what="KeyError").partition(")")[0]
    assert finished.err.count(f"a.csv: {mistake}") == (2 if words else 1)
    if words:
        *events, ended = [json.loads(line) for line in finished.err.splitlines()]
        assert (ended["status"], ended["reason"].count(mistake)) == (70, 1)
        assert [(event["file"], event["status"]) for event in events] == [("a.csv", 70), ("b.csv", 0)]


def test_an_interrupt_that_a_library_makes_an_error_of_is_no_mistake_and_ends_every_file(desk, sandbox):
    (desk.folder / "sitecustomize.py").write_text(SWALLOWED)
    names = [desk.payments([PAYEE], name=name) for name in ("a.csv", "b.csv")]
    finished = desk("run", *names, *sandbox.using("sandbox"), "--quiet", PYTHONPATH=str(desk.folder))
    assert finished.status == 143
    [sentence] = finished.sentences
    assert "mistake" not in sentence
    assert not (desk.folder / "b.precheck" / "outcomes.csv").exists()


def test_70_without_a_place_for_the_file_is_still_a_sentence(desk, sandbox, broken):
    nowhere = {"XDG_STATE_HOME": "/dev/null/state", "TMPDIR": "/dev/null/tmp", **broken("KeyError")}
    finished = desk("plan", desk.payments([PAYEE]), *sandbox.using("sandbox"), **nowhere)
    assert finished.status == 70
    assert "Send /tmp/" in finished.err or said("cli.internal_error") in finished.err


# Nobody listens


@pytest.fixture
def nobody():
    """The end of a pipe whose reader has gone."""
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


@pytest.mark.parametrize(
    ("words", "statuses"),
    [
        (("run", "payments.csv"), {0, 74}),
        pytest.param(("run", "payments.csv", "payments.csv.copy"), {74}, marks=pytest.mark.nightly),
        pytest.param(("run", "payments.csv", "--log", "json"), {74}, marks=pytest.mark.nightly),
        pytest.param(
            ("run", "payments.csv", "--quiet", "--limit", "0", "--metrics", "gone/m.prom"),
            {74, 75},
            marks=pytest.mark.nightly,
        ),
        (("run", "gone.csv"), {65, 74}),
        (("run", "payments.csv", "--nonsense"), {2}),
        (("nonsense",), {2}),
        ((), {2}),
        (("plan", "payments.csv"), {0}),
        (("doctor", "--profile", "nobody"), {74, 78}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_an_error_stream_that_nobody_reads_is_never_1(desk, sandbox, nobody, words, statuses):
    desk.payments([PAYEE, OTHER])
    desk.payments([PAYEE, OTHER], name="payments.csv.copy")
    using = sandbox.using("sandbox") if words and "payments.csv" in words else ()

    with desk.start(*words, *using, stderr=nobody) as running:
        assert running.end().status in statuses


@pytest.mark.parametrize("words", [("--help",), ("run", "--help"), ("--version",), ("explain",), ("schema",)])
def test_an_output_that_nobody_reads_changes_no_status(desk, nobody, words):
    with desk.start(*words, stdout=nobody) as running:
        finished = running.end()
    assert (finished.status, finished.err) == (0, "")


def test_the_watchers_are_told_however_the_error_stream_ends(desk, sandbox, nobody):
    file = desk.payments([PAYEE, OTHER])
    words = ("run", file, *sandbox.using("sandbox"), "--fail-on", "no_match", "--quiet")
    with desk.start(*words, "--metrics", "m.prom", stderr=nobody) as running:
        status = running.end().status
    assert f"precheck_exit_status {status}\n" in (desk.folder / "m.prom").read_text()
    assert len(desk.outcomes()) == 2


@pytest.mark.nightly
def test_no_file_gets_the_number_of_a_closed_stream(desk, sandbox):
    """What is said on a stream that is closed must not be written into the next file that is opened."""
    file = desk.payments([PAYEE, OTHER])
    words = (*("run", file, "--json", "--log", "json"), *sandbox.using("sandbox"))

    done = subprocess.run(
        [
            "/bin/sh",
            "-c",
            'exec "$@" 2>&- <&-',
            "sh",
            sys.executable,
            "-m",
            "payee_precheck",
            *map(str, words),
        ],
        cwd=desk.folder,
        env=desk.environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0
    [line] = done.stdout.splitlines()
    assert json.loads(line)["simulated"] is True
    assert desk("verify", "payments.precheck").status == 0


def test_ctrl_c_before_anything_is_imported_is_130(desk):
    program = "import os, signal, payee_precheck\nfrom pipeline.cli import exit_status\n"
    program += "exit_status.click.Group.make_context = lambda *a, **k: os.kill(os.getpid(), signal.SIGINT)\n"
    done = subprocess.run(
        [sys.executable, "-c", program + "payee_precheck.main()"],
        capture_output=True,
        text=True,
        check=False,
        env=desk.environment,
    )
    assert (done.returncode, done.stdout) == (128 + signal.SIGINT, "")
    assert done.stderr.count("stopped by Ctrl-C") == 1


def test_a_signal_amid_an_import_that_its_sentence_needs_still_ends_the_command(desk):
    program = "import os, signal, sys, types, payee_precheck\nfrom pipeline.cli import exit_status\n"
    program += "def amid(*a, **k):\n    half = types.ModuleType('importlib.readers')\n"
    program += "    sys.modules['importlib.readers'] = half\n    os.kill(os.getpid(), signal.SIGTERM)\n"
    program += "exit_status.click.Group.invoke = amid\n"
    done = subprocess.run(
        [sys.executable, "-c", program + "payee_precheck.main()", "doctor"],
        capture_output=True,
        text=True,
        check=False,
        env=desk.environment,
    )
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGTERM, "", "precheck: SIGTERM\n")


@pytest.mark.parametrize("name", [pytest.param("json", marks=pytest.mark.nightly), "polars"])
def test_a_library_that_is_another_programs_module_ends_in_one_sentence(desk, name):
    """What reports a mistake needs it too; 1 would be read as rows to look at."""
    shadow = desk.folder / "shadow"
    shadow.mkdir()
    (shadow / f"{name}.py").write_text("nothing = None\n")

    finished = desk("run", desk.payments([PAYEE]), PYTHONPATH=str(shadow))

    assert finished.status == 70
    [sentence] = finished.err.splitlines()
    assert "another program's module" in sentence
    assert "unset PYTHONPATH" in sentence
