"""A mistake of our own is recorded, whatever it came after."""

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
