"""Who hears of a run that needs a person, and what."""

import json
import sys
from functools import partial

import anyio
import pytest
from refusals import said

from pipeline.jobs.notify import notify
from schemas.notification import Notification

SAID = Notification(event="run ended", status=75, reason="2 left.", host="night", ended="2030-01-02")


@pytest.fixture
def told(tmp_path, monkeypatch):
    """Why nobody was notified, by a configuration with this `[notify]`; and what the command read."""

    def sent(*lines, program="", rest="", wait_max_s=60.0):
        monkeypatch.setenv("COP_CLIENT_SECRET", "hunter2")
        code = f"import os, sys; from pathlib import Path; {program}"
        command = f"command = {json.dumps([sys.executable, '-c', code])}" if program else ""
        config = tmp_path / "precheck.toml"
        config.write_text("\n".join((rest, "[notify]", command, *lines)))
        return anyio.run(partial(notify, config, SAID, wait_max_s))

    return sent


def test_a_command_reads_the_notification_and_gets_no_secret(told, tmp_path):
    out = tmp_path / "heard"
    program = f"Path({str(out)!r}).write_text(sys.stdin.read() + os.environ.get('COP_CLIENT_SECRET', ''))"
    assert told(program=program) is None
    assert Notification.model_validate_json(out.read_text()) == SAID


def test_a_mistake_elsewhere_in_the_configuration_hides_no_notification(told, tmp_path):
    program = f"Path({str(tmp_path / 'heard')!r}).touch()"
    assert told(program=program, rest="[profiles.production]\nrate = 20") is None
    assert (tmp_path / "heard").exists()


@pytest.mark.parametrize(
    ("lines", "program", "why"),
    [
        ((), "sys.exit(3)", said("jobs.notify_failed", status=3)),
        ((), "sys.stdin.close()", None),
        ((), "import time; time.sleep(60)", said("jobs.no_answer_within", wait_max_s=0.5)),
        (('command = ["/no/such/program"]',), "", "No such file"),
        (('webhook_env = "NOWHERE"',), "", "NOWHERE"),
        (('webhook_env = "COP_CLIENT_SECRET"',), "", "webhook: it must start with https://"),
        ((), "", said("config.notify_needs_one_target")),
        (('command = ["x"]', 'webhook_env = "Y"'), "", said("config.notify_needs_one_target")),
    ],
)
def test_a_notification_that_fails_is_one_sentence_and_no_error(told, lines, program, why):
    failure = told(*lines, program=program, wait_max_s=0.5 if "sleep" in program else 60.0)
    assert (failure is None) if why is None else (why in failure)
    assert "hunter2" not in str(failure)


def test_without_the_section_nobody_is_notified(tmp_path):
    config = tmp_path / "precheck.toml"
    config.write_text("[layouts]\n")
    assert anyio.run(notify, config, SAID) is None


def test_a_configuration_that_does_not_exist_has_no_notification_that_could_fail(tmp_path):
    assert anyio.run(notify, tmp_path / "gone.toml", SAID) is None
    (tmp_path / "precheck.toml").write_text("[notify")
    assert "precheck.toml" in anyio.run(notify, tmp_path / "precheck.toml", SAID)
