"""The unit in the documentation of the desk."""

import re
import shlex
import tomllib
from pathlib import Path

from systemd_units import needs_systemd, systemd_on

from pipeline.cli.desk import desk
from pipeline.config.file import DeskSection

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE = (DOCS / "desk.md").read_text("utf-8")
UNIT = (DOCS / "deployment" / "precheck-desk.service").read_text("utf-8")
[TOLD] = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


def test_the_command_of_the_unit_is_understood():
    [line] = re.findall(r"^ExecStart=(.*)$", UNIT, re.MULTILINE)
    program, command, *options = shlex.split(line)
    assert (Path(program).name, command) == ("precheck", desk.name)
    assert desk.make_context("desk", options).params["socket"] == Path("/run/precheck/desk.sock")


def test_a_restart_of_the_unit_leaves_checks_running():
    assert re.findall(r"^KillMode=(.*)$", UNIT, re.MULTILINE) == ["process"]


def test_the_configuration_of_the_page_is_understood_and_its_table_has_every_key():
    told = DeskSection.model_validate(tomllib.loads(TOLD)["desk"])
    assert told.host == "payments.example"
    keys = set(re.findall(r"^\| `([a-z_]+)` \|", PAGE, re.MULTILINE))
    assert keys == set(DeskSection.model_fields) - {"roles"}


@needs_systemd
def test_systemd_takes_the_unit(tmp_path):
    assert systemd_on(UNIT, tmp_path / "precheck-desk.service") == (0, "")
