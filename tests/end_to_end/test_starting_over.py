"""`--fresh` starts over, and never throws away what a real server answered or people decided."""

import json
import re

import pytest
from refusals import said

FOLDER = "payments.precheck"
MOVED = re.compile(r"payments\.precheck\.[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{6}(-[0-9]+)?")


@pytest.fixture
def real(desk, sandbox):
    """The words for a profile whose server counts as a real one."""
    return desk.using(cop=sandbox.section("production", "cop", server="production"))


def moved(desk):
    return sorted(path.name for path in desk.folder.iterdir() if MOVED.fullmatch(path.name))


def written(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith(".lock")}


def test_a_run_with_answers_of_a_real_server_is_moved_aside(desk, real, network_payments):
    file = desk.payments(network_payments(3))
    assert desk("run", file, *real).status == 0
    before = written(desk.folder / FOLDER)

    again = desk("run", file, *real, "--fresh", "--quiet")

    assert again.status == 0
    [aside] = moved(desk)
    assert aside in again.err
    assert "precheck purge" in again.err
    assert written(desk.folder / aside) == before
    assert desk("verify", aside).status == 0


def test_a_simulated_run_never_takes_the_place_of_a_real_one(desk, sandbox, real, network_payments):
    file = desk.payments(network_payments(3))
    assert desk("run", file, *real).status == 0
    before = written(desk.folder / FOLDER)

    forgotten = desk("run", file, *sandbox.using("sandbox"))
    started_over = desk("run", file, *sandbox.using("sandbox"), "--fresh")

    for refused in (forgotten, started_over):
        assert refused.status == 2
        assert "--profile mine" in refused.err
        assert "--fresh" not in refused.err
    assert said("runs.would_replace_real_answers") in started_over.err
    assert written(desk.folder / FOLDER) == before
    assert moved(desk) == []
    assert desk("run", file, *real).status == 0


def test_what_people_made_of_simulated_answers_is_moved_aside_and_the_answers_alone_are_not(
    desk, sandbox, network_payments
):
    file = desk.payments(network_payments(3))
    using = sandbox.using("sandbox")
    assert desk("run", file, *using).status == 0
    assert desk("run", file, *using, "--fresh").status == 0
    assert moved(desk) == []
    assert desk("split", FOLDER, "--by", "Mara", "--allow-simulated").status == 0

    assert desk("run", file, *using, "--fresh").status == 0

    [aside] = moved(desk)
    assert json.loads((desk.folder / aside / "manifest.json").read_bytes())["splits"]
    assert not list((desk.folder / FOLDER).glob("release.*"))


def test_a_pattern_of_a_purge_fits_what_was_moved_aside(desk, real, network_payments):
    file = desk.payments(network_payments(3))
    desk("run", file, *real)
    desk("run", file, *real, "--fresh")
    [aside] = moved(desk)

    purged = desk("purge", "*.precheck", "--outcomes", "--reason", "retention", "--by", "Mara")

    assert purged.status == 0, purged.err
    assert not (desk.folder / aside / "outcomes.csv").exists()
    assert not (desk.folder / FOLDER / "outcomes.csv").exists()


def test_the_folder_that_the_command_stands_in_is_not_moved(desk, real, network_payments):
    file = desk.payments(network_payments(2)).absolute()
    assert desk("run", file, *real, "--out", ".").status == 0

    refused = desk("run", file, *real, "--out", ".", "--fresh")

    assert refused.status == 73
    assert "--out" in refused.err
    assert (desk.folder / "outcomes.csv").exists()
