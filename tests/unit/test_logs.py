"""What a machine that reads the log is told while a run goes on."""

import ast
import re
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path

import pytest
import structlog
from refusals import said
from rich.console import Console
from structlog.testing import capture_logs

import pipeline
from pipeline.cli.logs import PROGRESS_INTERVAL_S, ProgressEvents, log_to_stderr
from pipeline.cli.progress import progress
from pipeline.runs.request import RunProgress, SetStep
from pipeline.stores.values import LeaseHolder
from pipeline.wording import Sentence, speaking
from schemas.outcomes import Outcome


@pytest.fixture(autouse=True)
def _usual_levels():
    """A command that another test called in this process may have been a quiet one."""
    structlog.reset_defaults()


def test_log_tells_every_ten_seconds_what_became_of_the_questions_so_far():
    now = iter([0.0, 1.0, PROGRESS_INTERVAL_S, PROGRESS_INTERVAL_S + 1])
    with capture_logs() as events:
        watch = ProgressEvents(clock=lambda: next(now))
        watch.begin(simulated=True)
        for done_count in (10, 20, 30):
            watch.update(RunProgress(done_count, 40, {Outcome.MATCH: done_count}))
    [event] = events
    assert event == {
        "event": "progress",
        "log_level": "info",
        "done_count": 20,
        "check_count": 40,
        "outcome_counts": {"match": 20},
    }


def test_log_counts_the_parts_of_a_data_set_every_ten_seconds():
    now = iter([0.0, 1.0, PROGRESS_INTERVAL_S, PROGRESS_INTERVAL_S + 1])
    with capture_logs() as events:
        watch = ProgressEvents(clock=lambda: next(now))
        for done_count in (1, 2, 3):
            watch.count(SetStep.WRITTEN, done_count, 4)
    [event] = events
    assert (event["counted"], event["done_count"], event["all_count"]) == ("parts written", 2, 4)


def test_log_tells_whom_a_run_waits_for_and_what_for_when_it_is_to_stop():
    with capture_logs() as events:
        ProgressEvents().wait(LeaseHolder("cop.example:443", 4242, "2030-01-02T03:04:05Z"))
        ProgressEvents().stop(3, 8.0)
    waiting, stopping = events
    assert (waiting["event"], waiting["server"], waiting["pid"]) == (
        "waiting for another run",
        "cop.example:443",
        4242,
    )
    assert (stopping["event"], stopping["requests_in_flight"]) == ("stopping", 3)


class Terminal(StringIO):
    """Standard error of a person."""

    def isatty(self):
        return True


@pytest.mark.parametrize("is_quiet", [False, True])
def test_on_a_terminal_an_event_is_a_sentence_above_the_bar_which_stays_whole(is_quiet):
    terminal = Terminal()
    console = Console(file=terminal, force_terminal=True, width=80)
    with redirect_stderr(terminal):
        log_to_stderr("text", quiet=is_quiet)
        with progress(console, "payments.csv") as watch:
            watch.update(RunProgress(10, 40))
            structlog.get_logger().warning("the ledger's database does not answer", server="db:5432")
            watch.update(RunProgress(20, 40))
    structlog.reset_defaults()

    said = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue())
    lines = [line.strip() for line in re.split(r"[\r\n]+", said) if line.strip()]
    alone = [line for line in lines if "database" in line]
    assert alone == (
        [] if is_quiet else ["precheck: the ledger's database does not answer (server: db:5432)"]
    )


def test_in_a_log_an_event_is_a_line_with_its_time(capsys):
    log_to_stderr("text", quiet=False)
    structlog.get_logger().warning("the ledger's database does not answer", server="db:5432")
    structlog.reset_defaults()
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ the ledger's database does not answer \(server: db:5432\)\n",
        capsys.readouterr().err,
    )


def test_a_log_without_a_terminal_is_in_the_language_of_its_user_and_json_in_english(capsys):
    with speaking("de"):
        for form in ("text", "json"):
            log_to_stderr(form, quiet=False)
            rule = Sentence("apis.not_json").recorded()
            structlog.get_logger().warning("contract breach", rule=rule)
            structlog.reset_defaults()
    text, as_json = capsys.readouterr().err.splitlines()
    rule = said("apis.not_json", "command", "de")
    assert text.partition("Z ")[2] == f"Verletzung des API-Vertrags (rule: {rule})"
    assert '"contract breach"' in as_json
    assert said("apis.not_json") in as_json


VITAL = {
    "a clock": "the wrong clock of this machine, which counts the cap and dates every request",
    "the limit of open files allows fewer requests in flight": "it is raised by an administrator",
    "the client certificate ends soon; request the next": "the next one takes weeks",
    "the scheduler of Dask has no worker yet; the run waits for one": "it would wait for ever",
    "nothing can be asked now": "a worker has no exit status",
    "runs.moved_aside": "where the earlier run is now",
    "jobs.notice_workbook_kept": "where the decisions of a person are now",
    "jobs.notice_not_signed": "the evidence has no signature, and the status is 0",
}
"""What is logged with --quiet too, and what a person does about it."""
PASSES_OR_IS_SAID_ELSEWHERE = {
    *("the ledger's database does not answer; nothing is sent until it does", "no token", "stopping"),
    *("the ledger's database answers again; the run goes on", "asking one question at a time"),
    *("a time stamp of the server is not believed", "the server asks for a pause", "contract breach"),
    *("no more requests in this run", "the server reports a problem", "waiting for another run"),
    *("jobs.notice_helping", "executors.working_on_questions", "jobs.notice_names_not_latin"),
    "jobs.import_nothing_new",  # the reports are there already, so there is nothing to do
}
"""What may be missed with --quiet: it ends by itself, or the exit status or the outcome file says it."""


def warnings_of(source):
    """Each warning and notice of a module: what it says, and whether it is vital."""
    tree = ast.parse(source)
    named = {}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(args=[ast.Constant(value=key), *_])):
                named[name] = key
            case ast.Call(args=[said, *_], keywords=words) if ast.unparse(node.func) in (
                "log.warning",
                "Notice",
            ):
                yield named, said, any(word.arg in {"vital", "is_vital"} for word in words)


def test_what_nothing_else_says_is_logged_with_quiet_too():
    found = {}
    sources = (path.read_text("utf-8") for path in Path(pipeline.__file__).parent.rglob("*.py"))
    for source in (text for text in sources if "log.warning(" in text or "Notice(" in text):
        for named, part, is_vital in [*warnings_of(source)]:
            match part:
                case ast.Constant(value=words) | ast.Call(args=[ast.Constant(value=words), *_]):
                    found[words] = is_vital
                case ast.Call(func=ast.Attribute(ast.Name("clock"), "recorded")):
                    found["a clock"] = is_vital
                case ast.Name(id=name) if name in named:
                    found[named[name]] = is_vital

    assert {part for part, is_vital in found.items() if is_vital} == VITAL.keys()
    assert {part for part, is_vital in found.items() if not is_vital} == PASSES_OR_IS_SAID_ELSEWHERE
