"""`precheck formats`: every format, how it is known, and what is written of it."""

import io

from refusals import said
from rich.console import Console

from pipeline.formats.layouts import BankLayout
from pipeline.formats.registry import INPUT_NAMES, FormatChoice
from pipeline.jobs.columns import known_formats
from pipeline.reports.listings import print_formats
from pipeline.wording import Sentence

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
    hyphens, code, account, name, money = (
        Sentence("formats.shape_sort_code_with_hyphens"),
        Sentence("formats.shape_sort_code"),
        Sentence("formats.shape_account_number"),
        Sentence("formats.shape_name"),
        Sentence("formats.shape_money"),
    )
    payments = Sentence("formats.known_payments", cells=cells(hyphens, account, name, money))
    assert f"cashbacs cashbacs {said('formats.in_full', title='Cashbacs', known_by=payments)}" in words
    payments = Sentence("formats.known_payments", cells=cells("P", code, account, name))
    assert f"northgate northgate {said('formats.in_full', title='northgate', known_by=payments)}" in words
    header = said("formats.known_header", cells=cells("PAYMENT", "HEADER"))
    assert f"santander - Santander Connect Bacs: {header}," in words
    assert said("formats.never_changed", why=Sentence("layouts.hash_total_rule_unknown")) in words


def cells(*shapes):
    return [Sentence("formats.known_cell", what=[shape], cell=at) for at, shape in enumerate(shapes, 1)]


def test_formats_are_one_line_each_unless_more_is_asked_for():
    lines = shown(in_full=False).splitlines()
    assert len(lines) <= len(KNOWN.formats) + 6
    assert lines[0].split()[-1] == "description"
    assert any(line.split()[:3] == ["lloyds", "lloyds", "Lloyds"] for line in lines)
