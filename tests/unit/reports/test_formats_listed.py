"""`precheck formats`: every format, how it is known, and what is written of it."""

import io

from rich.console import Console

from pipeline.formats.layouts import BankLayout
from pipeline.formats.registry import INPUT_NAMES, FormatChoice
from pipeline.jobs.columns import known_formats
from pipeline.reports.listings import print_formats

OWN = BankLayout.model_validate(
    {
        "separator": ";",
        "payments": [
            {
                "tags": {1: "P"},
                "columns": {"sort_code": 2, "account_number": 3, "name": 4},
            }
        ],
    }
)
KNOWN = known_formats(FormatChoice(layouts={"northgate": OWN}))


def shown(*, in_full=True):
    out = io.StringIO()
    print_formats(KNOWN, Console(file=out, width=80), in_full=in_full)
    return out.getvalue()


def test_every_format_is_listed_with_what_is_written_of_it():
    written = {each.name: each.written_as for each in KNOWN.formats}
    assert list(written) == [*INPUT_NAMES, "northgate"]
    others = {"santander": None}
    assert written == {name: others.get(name, name) for name in written}
    assert [each.name for each in KNOWN.formats if each.is_own] == ["northgate"]
    assert KNOWN.compressions == ["gzip", "zip"]


def test_how_a_format_is_known_stands_beside_it_at_80_columns():
    lines = shown().splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in shown()
    words = " ".join(shown().split())
    assert "cashbacs cashbacs Cashbacs: lines with cells 1 (sort code with hyphens), 2 (account" in words
    assert "northgate northgate northgate: lines with cells 1 (P), 2 (sort code), 3 (account" in words
    assert "santander - Santander Connect Bacs: a line with cells 1 (PAYMENT), 2 (HEADER)," in words
    assert "never changed, as the rule for the hash total in its trailer is not known" in words


def test_formats_are_one_line_each_unless_more_is_asked_for():
    lines = shown(in_full=False).splitlines()
    assert len(lines) <= len(KNOWN.formats) + 6
    assert lines[0].split()[-1] == "description"
    assert any(line.split()[:3] == ["lloyds", "lloyds", "Lloyds"] for line in lines)
