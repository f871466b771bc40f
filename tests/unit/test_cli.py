"""The command as click sees it; what it does with files and servers is in tests/end_to_end."""

import os
import subprocess
import sys
from contextlib import chdir
from inspect import signature
from pathlib import Path

import pytest
from click.testing import CliRunner
from refusals import said

from pipeline.cli.main import main
from pipeline.cli.monitoring import MonitoringTargets, ObservingTargets
from pipeline.cli.run import OUTCOMES, SMALL_BYTES, WARNINGS
from pipeline.errors import OutputError, PrecheckError, most_serious, status_of_summary
from pipeline.jobs.check import RunResult
from pipeline.jobs.fix import FixJob
from pipeline.jobs.purge import PurgeJob
from pipeline.jobs.sharing import WorkerJob
from pipeline.jobs.split import SplitJob
from pipeline.jobs.verify import VerifyJob
from pipeline.runs.request import CheckJob
from pipeline.runs.starting import folders, renamed_folders
from pipeline.sandbox.settings import SandboxSettings
from pipeline.wording import Sentence
from schemas.outcomes import Environment, Outcome, WarningCode
from schemas.summary import InputFile, OutcomeTotal, Summary


@pytest.fixture
def call(tmp_path):
    """`call(words)` in an empty folder, with nothing of the user's in reach."""

    def run(*words):
        runner = CliRunner()
        environment = {
            "PRECHECK_CONFIG": None,
            **{f"XDG_{kind}_HOME": str(tmp_path / kind) for kind in ("STATE", "CONFIG")},
        }
        with chdir(tmp_path):
            return runner.invoke(main, [str(word) for word in words], env=environment)

    return run


def test_fail_on_knows_every_outcome_there_is():
    assert set(WARNINGS) == {code.value for code in WarningCode}
    assert set(OUTCOMES) == {outcome.value for outcome in Outcome}


@pytest.mark.parametrize(
    ("name", "job", "said_otherwise"),
    [
        ("run", CheckJob, {"file", "reusable", "wait_max_s", "language", "account_type"}),
        ("run", MonitoringTargets, set()),
        ("run", ObservingTargets, {"file", "file_interval_s"}),
        ("plan", CheckJob, {
            *("reusable", "format", "limit", "fresh", "retry_unanswered", "many_names_reason", "wait_max_s"),
            *("sign_with", "pain002", "language", "account_type"),
        }),
        ("worker", WorkerJob, set()),
        ("worker", ObservingTargets, {"file", "file_interval_s"}),
        ("fix", FixJob, {"is_identified", "released_in"}),
        ("split", SplitJob, {"is_identified", "released_in", "repeated_rows"}),
        ("purge", PurgeJob, set()),
        ("verify", VerifyJob, {"asks_again"}),
        ("sandbox", SandboxSettings, {"request_wait_s"}),
    ],
)  # fmt: skip
def test_what_a_command_hands_on_by_name_has_an_option_of_that_name(name, job, said_otherwise):
    options = {option.name for option in main.commands[name].params}

    assert set(signature(job).parameters) - options == said_otherwise


@pytest.mark.parametrize("name", sorted(main.commands))
def test_every_option_of_every_command_is_explained(name):
    unexplained = [
        option.name
        for option in main.commands[name].params
        if option.param_type_name == "option" and not option.help and not option.hidden
    ]

    assert not unexplained


def test_run_has_the_options_of_the_contract():
    options = {word for option in main.commands["run"].params for word in option.opts}

    assert options >= {
        "--profile", "--config", "--out", "--map", "--format", "--fail-on",
        "--limit", "--order", "--fresh", "--json", "--quiet",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("pairs", "sentence"),
    [
        (["name"], said("cli.map_pair_malformed", pair="name")),
        (["name="], said("cli.map_pair_malformed", pair="name=")),
        (["=Payee"], said("cli.map_pair_malformed", pair="=Payee")),
        (["payee=Name"], said("cli.map_field_unknown", pair="payee=Name", name="payee")),
        (["name=Payee", "name=Other"], said("cli.map_field_twice", pair="name=Other", name="name")),
    ],
)
def test_a_map_that_cannot_be_meant_is_a_usage_error(call, pairs, sentence):
    done = call("columns", "x.csv", *(word for pair in pairs for word in ("--map", pair)))

    assert done.exit_code == 2
    assert done.stderr.startswith(f"precheck: {sentence}")


def test_a_header_may_hold_an_equals_sign(call):
    done = call("columns", "x.csv", "--map", "name=a=b")

    assert done.exit_code == 65, "the file is missing, and the words are fine"


def test_an_error_of_the_program_is_one_sentence_and_its_status(call):
    done = call("plan", "x.csv")

    assert done.exit_code == 65
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_a_name_with_control_characters_cannot_steer_the_terminal(call):
    done = call("plan", "\x1b[2Jevil.csv")

    assert "\x1b" not in done.stderr
    assert "\\x1b[2Jevil.csv" in done.stderr


def test_every_error_has_a_status_of_the_contract():
    def tree(kind):
        return {kind}.union(*map(tree, kind.__subclasses__()))

    statuses = {error.exit_code for error in tree(PrecheckError) if "exit_code" in vars(error)}
    assert statuses == {2, 65, 70, 73, 74, 75, 76, 77, 78}


def test_one_file_gets_the_folder_that_out_names_and_several_get_one_each_in_it(tmp_path):
    one, two = tmp_path / "jan.csv", tmp_path / "feb.csv"

    assert folders([one], tmp_path / "out") == {one: tmp_path / "out"}
    assert [folder.name for folder in folders([one], None).values()] == ["jan.precheck"]
    assert folders([one, two], tmp_path / "out") == {one: tmp_path / "out/jan", two: tmp_path / "out/feb"}
    assert [str(folder) for folder in folders([one, two], None).values()] == ["jan.precheck", "feb.precheck"]


def share_a_folder(*files):
    return said("runs.results_share_a_folder", alike=files)


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (("x.csv", "x.csv"), said("runs.file_named_twice", file="x.csv")),
        (("a/x.csv", "y.csv", "a/../a/x.csv"), said("runs.file_named_twice", file="a/x.csv")),
        (
            ("x.csv", "x.xlsx"),
            f"{share_a_folder('x.csv', 'x.xlsx')}; {said('advice.check_one_at_a_time')}",
        ),
        (("x.csv", "y.csv", "X.csv"), share_a_folder("x.csv", "X.csv")),
        (("a/x.csv", "b/x.csv", "a-x.csv"), share_a_folder("a/x.csv", "a-x.csv")),
        (("a/x.csv", "b/a/x.csv"), share_a_folder("a/x.csv", "b/a/x.csv")),
    ],
)
@pytest.mark.parametrize("out", [(), ("--out", "results")])
def test_two_files_never_share_a_folder(call, names, out, sentence):
    done = call("run", *names, *out)

    assert done.exit_code == 2
    assert sentence in done.stderr


def test_files_of_one_name_are_told_apart_by_their_folders_and_that_is_said():
    files = [Path(name) for name in ("a/x.csv", "b/x.csv", "c/X.parquet", "c/y.csv")]

    assert [str(folder) for folder in folders(files, Path("out")).values()] == [
        *("out/a-x", "out/b-x", "out/c-X", "out/y")
    ]
    places = folders(files, None)
    assert [str(folder) for folder in places.values()] == [
        *("a-x.precheck", "b-x.precheck", "c-X.precheck", "y.precheck")
    ]
    renamed = [Sentence("runs.file_to_folder", file=file, folder=places[file]) for file in files[:3]]
    assert renamed_folders(places) == Sentence("runs.folders_renamed", folders=renamed)
    assert not renamed_folders(folders(files[2:], None))
    assert not renamed_folders(folders(files[:1], Path("out")))


def test_a_file_beside_others_of_its_name_is_told_apart_by_the_folder_that_it_is_in(tmp_path):
    with chdir(tmp_path):
        places = folders([Path("x.csv"), Path("a/x.csv")], None)
    assert [str(folder) for folder in places.values()] == [f"{tmp_path.name}-x.precheck", "a-x.precheck"]


@pytest.mark.parametrize("words", [("run", ""), ("plan", ""), ("columns", ""), ("run", "x.csv", "--out", "")])
def test_an_empty_name_is_no_folder(call, words):
    done = call(*words)

    assert done.exit_code == 2
    assert said("cli.empty_name") in done.stderr


@pytest.mark.parametrize(
    ("outcomes", "complete", "fail_on", "status"),
    [
        ({"match"}, True, [], 0),
        ({"match", "no_match"}, True, ["no_match"], 1),
        ({"match", "no_match"}, True, ["close_match"], 0),
        ({"match", "deferred"}, False, [], 75),
        ({"match", "no_match", "deferred"}, False, ["no_match"], 75),
        ({"match", "deferred"}, False, ["deferred"], 1),
        ({"unanswered"}, False, ["unanswered"], 1),
    ],
)
def test_the_status_of_a_summary(summary, outcomes, complete, fail_on, status):
    assert status_of_summary(summary(outcomes, complete=complete), fail_on) == status


def test_the_status_of_a_run_is_the_same_for_every_surface(summary):
    given_up = summary({"unanswered"}, complete=False).model_copy(update={"given_up": True})
    assert RunResult(given_up, already_finished=False).exit_code() == 76
    assert (
        RunResult(
            given_up,
            already_finished=False,
            ended_by=OutputError(Sentence("jobs.part_unusable", problem="full")),
        ).exit_code(["match"])
        == 73
    )


@pytest.mark.parametrize(
    ("codes", "status"),
    [
        ([0, 0], 0),
        ([0, 1], 1),
        ([1, 75], 75),
        ([75, 2], 2),
        ([65, 75, 0], 65),
        ([65, 73], 73),
        ([77, 78, 75], 78),
    ],
)
def test_the_most_serious_status_of_several_files_counts(codes, status):
    assert most_serious(codes) == most_serious(codes[::-1]) == status


def test_every_status_has_its_place_among_the_serious_ones():
    def tree(kind):
        return {kind}.union(*map(tree, kind.__subclasses__()))

    codes = {kind.exit_code for kind in tree(PrecheckError) if "exit_code" in vars(kind)}
    assert all(most_serious([code, 0]) == code for code in codes)


@pytest.fixture
def summary():
    def build(outcomes, *, complete):
        return Summary(
            tool_version="1",
            profile="mine",
            environment=Environment.TEST,
            simulated=False,
            started="",
            finished="",
            input=InputFile(
                name="", sha256="", byte_count=0, row_count=0, format="csv", encoding="utf-8", columns={}
            ),
            outcomes=[
                OutcomeTotal(outcome=outcome, row_count=outcome.value in outcomes, totals=[])
                for outcome in Outcome
            ],
            codes=[],
            routes=[],
            calls=[],
            saved_call_count=0,
            attention=[],
            attention_count=0,
            warnings=[],
            warning_count=0,
            complete=complete,
            next_step=None,
        )

    return build


def test_polars_works_in_one_thread_if_all_files_are_small(tmp_path):
    small, large = tmp_path / "small.csv", tmp_path / "large.csv"
    small.write_bytes(b"x")
    large.write_bytes(b"x" * (SMALL_BYTES + 1))
    program = (
        "import os, sys; from pathlib import Path; from pipeline.cli.run import spare_threads as spare\n"
        "for other in sys.argv[2:]:\n"
        "    spare([Path(sys.argv[1]), Path(other)])\n"
        "    print(os.environ.pop('POLARS_MAX_THREADS', None))"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("POLARS_")}
    words = [sys.executable, "-c", program, small, small, large, tmp_path / "missing"]
    assert subprocess.check_output(words, env=environment, text=True).split() == ["1", "None", "None"]


@pytest.mark.parametrize(("given", "threads"), [({}, "1"), ({"POLARS_MAX_THREADS": "3"}, "3")])
def test_the_desk_has_one_thread_of_polars_and_its_checks_have_what_the_user_says(given, threads):
    program = (
        "import os; from pipeline.cli.desk import _import_polars as load; load(); import polars as pl;"
        " print(pl.thread_pool_size(), *(name for name in os.environ if name[:5] in ('_RJEM', 'POLAR')))"
    )
    settings = ("_RJEM", "POLARS")  # polars sets some itself
    environment = {name: value for name, value in os.environ.items() if not name.startswith(settings)}
    words = [sys.executable, "-c", program]
    assert subprocess.check_output(words, env=environment | given, text=True).split() == [threads, *given]
