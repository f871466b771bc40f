"""What columns without headers are taken for, by their cells alone, and what is said of it."""

import pytest

from pipeline.headers.guesses import by_place, guesses_of, pairs_of
from pipeline.wording import Sentence, SurfaceKind, words

IBAN, OTHER = "DE89370400440532013000", "FR76 3000 3012 3400 0048 2100 733"


def looks(*lines):
    cells = by_place(lines)
    return guesses_of(cells), cells.headers


@pytest.mark.parametrize(
    ("lines", "maps"),
    [
        ([("Avery Thornwood", "00-11-22", "00012345", "2,450.00")],
         "--map name=#1 --map sort_code=#2 --map account_number=#3 --map amount=#4"),
        ([("1", "Imre Falkner", OTHER, "BNPAFRPPXXX", "1200,00", "EUR", "Business")],
         "--map name=#2 --map iban=#3 --map bic=#4 --map amount=#5 --map currency=#6 --map account_type=#7"),
        ([("12-34-56 12345678", "10.5"), (IBAN, "11"), ("12345678", "12")],
         "--map account_number=#1 --map amount=#2"),
        # A day is no account, and what is the same in every row is no payee, where something else is.
        ([("Mills Ltd", "Avery Thornwood", "20260101", "261127", "001122", "00012345"),
          ("Mills Ltd", "Imre Falkner", "20260101", "261127", "200415", "31926819")],
         "--map name=#2 --map sort_code=#5 --map account_number=#6"),
        ([("20260101", "200415", "Avery Thornwood")],
         "--map account_number=#1 --map sort_code=#2 --map name=#3"),
        ([("20260302", IBAN, "Avery Thornwood")], "--map iban=#2 --map name=#3"),
        # Nobody chooses between two who could be paid.
        ([("Avery Thornwood", "Rowan Blackmere", IBAN), ("Imre Falkner", "Luc Verrier", OTHER)],
         "--map iban=#3, and --map name=#1 or --map name=#2"),
        # A word of eight letters is no BIC of another country than the IBAN's.
        ([("SUPPLIER", IBAN)], "--map iban=#2"),
        ([("27.11.2026", "x", "7")], ""),
    ],
)  # fmt: skip
def test_the_cells_say_which_place_is_which_field(lines, maps):
    found, headers = looks(*lines)
    pairs = pairs_of(found, headers)
    assert (words(pairs, SurfaceKind.COMMAND) if pairs else "") == maps


def test_most_cells_decide_and_two_that_could_be_it_name_each_other():
    found, _ = looks(
        ("001122", "Avery Thornwood", "Rowan Blackmere"),
        ("001133", "Imre Falkner", "Luc Verrier"),
        ("x", "Solo", "Duo"),
    )
    assert found["#1"].field == "sort_code"
    assert (found["#2"].field, found["#2"].others, found["#3"].others) == ("name", ("#3",), ("#2",))


def test_one_account_beside_several_names_is_never_proposed():
    found, headers = looks(("40000188888888", "Avery Thornwood"), ("40000188888888", "Imre Falkner"))
    assert str(pairs_of(found, headers)) == "name=#2"
    assert found["#1"].words == Sentence("column.the_same_in_every_row_perhaps_your_own_account")


def test_what_is_left_out_says_why():
    found, _ = looks(
        ("Mills Ltd", "Avery Thornwood", "2026-11-27", "", "ab12"),
        ("Mills Ltd", "Imre Falkner", "2026-11-28", "", "cd34"),
    )
    assert [(look.field, look.words) for look in found.values()] == [
        (None, Sentence("column.the_same_in_every_row_a_text_or_your_own_name")),
        ("name", Sentence("column.cells_look_like", kinds=[Sentence("column.names")])),
        (None, Sentence("column.cells_look_like", kinds=[Sentence("column.dates")])),
        (None, Sentence("column.empty_in_every_row")),
        (None, Sentence("column.its_cells_hold_nothing_to_check")),
    ]
