"""The recipes of docs/operations.md, run as they stand: what they end with, and what their logs hold then."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from aiohttp import web
from desk import WARM
from refusals import said

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "operations.md").read_text("utf-8")
SCRIPT, SERVICE, DAG = (
    (DOCS / "deployment" / name).read_text("utf-8")
    for name in ("nightly.sh", "payee-precheck.service", "airflow_dag.py")
)
[CRON] = re.findall(r"^0 2 \* \* 1-5 +(.*)$", PAGE, re.MULTILINE)
MATCH = {"name": "Avery Thornwood", "sort_code": "001122", "account_number": "00012345"}
NO_MATCH = MATCH | {"name": "Rowan Blackmere"}
SAID = {
    0: "payroll.csv: every row is a match",
    1: "payroll.csv: review the rows of checked/",
    75: "payroll.csv: not finished; run the same command again",
    76: "payroll.csv: stopped with 76; see the log",
    77: "payroll.csv: stopped with 77; see the log",
}
# Airflow as far as the page uses it: a task runs when the task before it has, and a circuit may be cut short.
AIRFLOW = {
    "exceptions.py": """
class AirflowException(Exception): ...
class AirflowFailException(AirflowException): ...
""",
    "sdk.py": """
class Task:
    def __init__(self, call): self.call = call
    def __call__(self, *before): return Step(lambda: self.call(*(step.run() for step in before)))

class Step:
    def __init__(self, run): self.run = run
    def __rshift__(self, step): return step.run() if self.run() else None

def task(*calls, **options): return Task(*calls) if calls else Task
task.short_circuit = Task
def dag(**options): return lambda call: call
""",
    "__init__.py": "",
}


async def login_page(request):
    echo = {"x-fapi-interaction-id": request.headers.get("x-fapi-interaction-id", "")}
    return web.Response(text="<form>", content_type="text/html", headers=echo)


@pytest.fixture(params=[0, *(pytest.param(status, marks=pytest.mark.nightly) for status in (1, 75, 76, 77))])
def night(desk, sandbox, misbehaving, network_payments, request):
    """A folder as the page wants it, and the status that a night there ends with."""
    status = request.param
    secret = desk.file("wrong-secret", "wrong")
    secret.chmod(0o600)
    changes = {75: {"daily_cap": 1}, 77: {"client_secret_file": str(secret)}}.get(status, {})
    rows = {0: [MATCH], 76: network_payments(60)}.get(status, [MATCH, NO_MATCH])
    desk.payments(rows, name="payroll.csv")
    with misbehaving(login_page) as url:
        if status == 76:
            changes = {"base_url": url, "attempts_max": 2}
        desk.configuration("precheck.toml", production={"cop": sandbox.section("sandbox", "cop", **changes)})
        script = desk.file("nightly.sh", SCRIPT)
        script.chmod(0o700)
        (desk.folder / "node_exporter").mkdir()
        # Whoever sets this for all programs must not reach ours.
        (desk.folder / "strangers").mkdir()
        (desk.folder / "strangers" / "pipeline.py").write_text("raise SystemExit('a stranger')\n")
        yield Night(desk, status)


class Night:
    """Where the page says /srv/payments, this folder; where it says /opt/precheck/bin, ours."""

    def __init__(self, desk, status):
        self.desk, self.status = desk, status
        self.programs = Path(sys.executable).parent

    def start_no_interpreter(self):
        """From here on, `precheck` is a fork of a process that has imported it."""
        self.programs = self.desk.folder / "programs"
        self.programs.mkdir()
        WARM.install(self.programs)

    def here(self, text):
        places = {
            "/srv/payments": str(self.desk.folder),
            "/opt/precheck/bin": str(Path(sys.executable).parent),
            "/var/lib/node_exporter": str(self.desk.folder / "node_exporter"),
        }
        for place, ours in places.items():
            text = text.replace(place, ours)
        return text

    def run(self, words, **changes):
        """Run words to their end; what they say on both streams, as one text."""
        environment = {
            "PATH": f"{self.programs}:/usr/bin:/bin",
            "HOME": str(self.desk.folder / "home"),
            "PYTHONPATH": str(self.desk.folder / "strangers"),
            **changes,
        }
        done = subprocess.run(
            words,
            env=environment,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=120,
        )
        assert "Traceback" not in done.stdout
        return done

    def require_told(self, journal):
        """The JSON lines of a journal say how the file went, and nothing else."""
        *events, ended = [json.loads(line) for line in journal.splitlines() if line.startswith("{")]
        assert [(file["file"], file["status"]) for file in ended["files"]] == [("payroll.csv", self.status)]
        last = events[-1]
        assert {(event["file"], event["status"]) for event in events[-1:]} == {("payroll.csv", self.status)}
        assert all(event["level"] == "error" or event["event"] == "file finished" for event in events)
        if self.status in {76, 77}:
            assert last["level"] == "error"
            assert {76: "application/json", 77: "client_id"}[self.status] in last["event"]
            return
        assert [event["event"] for event in events] == ["file finished"]
        counts = {0: {"match": 1}, 1: {"match": 1, "no_match": 1}, 75: {"match": 1, "deferred": 1}}
        assert {key: count for key, count in last["row_counts"].items() if count} == counts[self.status]
        assert last["simulated"] is True
        assert "SIMULATED" in last["note"]
        assert (said("executors.left_by_cap") in (last["next_step"] or "")) is (self.status == 75)


@pytest.mark.nightly
def test_the_service_leaves_this_in_its_journal(night):
    [line] = re.findall(r"^ExecStart=(.*)$", SERVICE, re.MULTILINE)
    [settings] = re.findall(r"^Environment=(.*)$", SERVICE, re.MULTILINE)
    environment = dict(word.split("=", 1) for word in shlex.split(night.here(settings)))

    done = night.run(shlex.split(night.here(line)), **environment)

    assert done.returncode == night.status
    assert done.stdout.splitlines()[-1].startswith(SAID[night.status])
    night.require_told(done.stdout)
    metrics = (night.desk.folder / "node_exporter" / "payee-precheck.prom").read_text()
    assert f"precheck_exit_status {night.status}\n" in metrics


@pytest.mark.parametrize(
    "night", [75, pytest.param(76, marks=pytest.mark.nightly)], indirect=True
)  # the script is that of the service
def test_cron_leaves_this_in_the_log_and_mails_the_rest(night):
    done = night.run(["/bin/sh", "-c", night.here(CRON)])

    log = (night.desk.folder / "precheck.log").read_text()
    assert done.returncode == night.status
    assert done.stdout.startswith(SAID[night.status])
    assert done.stdout.count("\n") == 1
    assert all(line.startswith("precheck: ") for line in log.splitlines())
    if night.status == 75:
        simulated, left = log.splitlines()
        assert "SIMULATED" in simulated
        assert said("executors.left_by_cap") in left
    else:
        assert "application/json" in log


@pytest.mark.nightly
def test_airflow_ends_its_task_so_and_shows_this(night):
    folder = night.desk.folder / "dags"
    for name, text in AIRFLOW.items():
        (folder / "airflow").mkdir(parents=True, exist_ok=True)
        (folder / "airflow" / name).write_text(text)
    (folder / "nightly.py").write_text(night.here(DAG))

    program = "import airflow.exceptions as known\ntry: import nightly\n"
    program += "except known.AirflowException as end: print('Airflow:', type(end).__name__, end)\n"
    done = night.run([sys.executable, "-c", program], PYTHONPATH=str(folder))

    night.require_told(done.stdout)
    assert SAID[night.status] in done.stdout
    last = done.stdout.splitlines()[-1]
    ends = {
        0: SAID[0],
        1: "review the rows of outcomes.csv",
        75: "Airflow: AirflowException not finished (75)",
        76: "Airflow: AirflowFailException stopped with 76",
        77: "Airflow: AirflowFailException stopped with 77",
    }
    assert last.startswith(ends[night.status])


def test_a_ping_and_metrics_that_fail_are_told_however_quiet_it_is(desk, sandbox):
    file = desk.payments([MATCH])
    words = (*("--metrics", "gone/m.prom", "--ping", "https://127.0.0.1:1/x"), *sandbox.using("sandbox"))

    text = desk("run", file, "--quiet", *words)
    lines = desk("run", file, "--quiet", "--log", "json", *words)

    assert text.status == lines.status == 0
    assert text.err.count("the ping was not taken") == 2
    assert text.err.count("the metrics file cannot be written") == 1
    assert [json.loads(line)["event"] for line in lines.err.splitlines()] == [
        "the ping was not taken",
        "file finished",
        "the metrics file cannot be written",
        "the ping was not taken",
        "run ended",
    ]


@pytest.mark.parametrize("night", [75], indirect=True)
def test_a_night_resumes_the_unfinished_check_of_a_file_that_was_touched(night, sandbox):
    file, script = night.desk.folder / "payroll.csv", [str(night.desk.folder / "nightly.sh"), "payroll.csv"]
    os.utime(file, (1_700_000_000, 1_700_000_000))
    assert night.run(script).returncode == 75
    [folder] = (night.desk.folder / "checked").iterdir()
    asked = len(sandbox.questions())
    os.utime(file)
    night.start_no_interpreter()

    again = night.run(script)

    assert again.returncode == 75, "its cap is used up"
    assert f"payroll.csv: resuming the unfinished check in checked/{folder.name}\n" in again.stdout
    assert [path.name for path in (night.desk.folder / "checked").iterdir()] == [folder.name]
    assert len(sandbox.questions()) == asked
    said = file.read_text()
    file.write_text(said + "Ada Quillon,112233,00000001\n")
    assert "resuming" not in night.run(script).stdout
    assert len(list((night.desk.folder / "checked").iterdir())) == 2
    file.write_text(said)
    os.utime(folder, (1_700_000_000, 1_700_000_000))
    assert "resuming" in night.run([*script, "--reuse-max-age", "9999d"]).stdout
    os.utime(folder, (1_700_000_000, 1_700_000_000))
    assert "resuming" not in night.run(script).stdout, "its answers are too old"
    checked = list((night.desk.folder / "checked").iterdir())
    assert len(checked) == 3
    for summary in (path / "summary.json" for path in checked):
        summary.write_text(summary.read_text().replace('"complete": false', '"complete": true'))
    os.utime(file, (1_600_000_000, 1_600_000_000))
    assert "resuming" not in night.run(script).stdout, "what is finished is not resumed"


@pytest.mark.nightly
@pytest.mark.parametrize("night", [0], indirect=True)
def test_a_night_checks_a_finished_file_of_another_date_anew(night):
    file, script = night.desk.folder / "payroll.csv", [str(night.desk.folder / "nightly.sh"), "payroll.csv"]
    os.utime(file, (1_700_000_000, 1_700_000_000))
    assert night.run(script).returncode == 0
    os.utime(file)
    assert night.run(script).returncode == 0
    assert len(list((night.desk.folder / "checked").iterdir())) == 2
