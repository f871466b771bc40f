"""A mistake of our own is recorded, whatever it came after."""

import os
import re
import signal
from pathlib import Path

import pytest
from refusals import says

from pipeline.cli import exit_status
from pipeline.cli.exit_status import recorded_crash
from pipeline.wording import Sentence


def test_an_error_that_is_among_its_own_causes_is_recorded(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    first, second = KeyError("secret"), TypeError("secret")
    first.__context__, second.__context__ = second, first

    crash = recorded_crash(first)

    says(crash, "cli.internal_error_report_kept", what=re.compile("^KeyError in "))
    [kept] = tmp_path.rglob("precheck-mistake-*.txt")
    text = kept.read_text()
    assert text.count("KeyError") == text.count("TypeError") == 1
    assert "secret" not in text


def test_a_folder_that_another_user_keeps_is_named_and_is_no_mistake_of_ours(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    denied = PermissionError(13, "Permission denied", "precheck.toml")
    error = exit_status.about_one_file(denied, "payroll.csv")
    assert error.exit_code == 73
    path, user = str(Path.cwd() / "precheck.toml"), os.geteuid()
    says(error, Sentence("cli.no_access_to_folder", path=path, user=user, reason="system.eacces"))
    assert not list(tmp_path.rglob("*"))


@pytest.fixture
def stop():
    """What signals stop, while the test lasts."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGXCPU)
    before = {number: signal.getsignal(number) for number in numbers}
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may have been started to outlive a terminal
    yield exit_status.stoppable()
    for number, handler in before.items():
        signal.signal(number, handler)


def test_an_interrupt_that_compiled_code_loses_stops_what_is_asked_next(stop):
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)
    assert stop.first is not None
    assert stop.first.exit_code == 143


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGXCPU])
def test_a_signal_that_comes_more_than_once_for_one_reason_stops_a_run_once(stop, number):
    assert callable(signal.getsignal(number)), "it would end the tests"
    with stop.watched():
        signal.raise_signal(number)
        signal.raise_signal(number)
    assert stop.first.exit_code == 128 + number
    assert not stop.is_urgent
