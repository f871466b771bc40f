"""A mistake of our own is recorded, whatever it came after."""

import signal

import pytest

from pipeline.cli import exit_status
from pipeline.cli.crashes import recorded_crash


def test_an_error_that_is_among_its_own_causes_is_recorded(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    first, second = KeyError("secret"), TypeError("secret")
    first.__context__, second.__context__ = second, first

    said = str(recorded_crash(first))

    assert "a mistake of precheck itself (KeyError in " in said
    [kept] = tmp_path.rglob("precheck-mistake-*.txt")
    text = kept.read_text()
    assert text.count("KeyError") == text.count("TypeError") == 1
    assert "secret" not in text


def test_an_interrupt_that_compiled_code_loses_stops_what_is_asked_next():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        stop = exit_status.stoppable()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        assert stop.first is not None
        assert stop.first.exit_code == 143
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
