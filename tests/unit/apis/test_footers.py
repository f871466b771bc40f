"""Rows below the payments that are none, and labels that say so."""

from decimal import Decimal

import polars as pl
import pytest
from refusals import said
from tables import for_each

from pipeline.frames import PAYMENTS
from pipeline.headers.footers import (
    FOOTERS_MAX,
    LabelKind,
    footers_of,
    label_of,
    likely_payment_count,
    subtotals_of,
)
from pipeline.wording import Sentence
from schemas.row_positions import RowPositions

LINES = RowPositions(unit="line", stretches=[(1, 2, 1)])
FIELDS = ("payment_id", "name", "sort_code", "account_number", "amount", "currency")
ADA = ("P1", "Ada Quillon", "12-34-56", "12345678", "100.00", "GBP")
BO = ("P2", "Bo Marrow", "12-34-56", "12345679", "50.00", "GBP")
EURO = ("P3", "Zoe Quillon", "12-34-56", "12345670", "7.00", "EUR")
TOTAL = (None, "Total", None, None, "150.00", None)
BLANK = (None,) * 6


def ended(*rows, places=LINES):
    """How a table of these rows ends."""
    return footers_of(*table(rows), places)


def table(rows):
    """`frames.PAYMENTS` of these rows, and the rows."""
    original = pl.DataFrame(rows, schema=dict.fromkeys(FIELDS, pl.String), orient="row")
    defects = ["ROW_BLANK" if row == BLANK else None for row in rows]
    numbered = original.with_columns(
        pl.int_range(1, len(rows) + 1, dtype=pl.UInt32).alias("row"), pl.Series("defect", defects, pl.String)
    )
    payments = numbered.select(
        pl.col(name) if name in numbered.columns else pl.lit(None, kind).alias(name)
        for name, kind in PAYMENTS.items()
    )
    return payments, original


@for_each(
    ("cell", "kind"),
    [
        ("Total", LabelKind.TOTAL),
        ("Totals:", LabelKind.TOTAL),
        ("*** GRAND TOTAL ***", LabelKind.TOTAL),
        ("Total: £1,500.00", LabelKind.TOTAL),
        ("Total (GBP)", LabelKind.TOTAL),
        ("Summe", LabelKind.TOTAL),
        ("Gesamtbetrag: 1.500,00 EUR", LabelKind.TOTAL),
        ("TOTAL GENERAL", LabelKind.TOTAL),
        ("Totale", LabelKind.TOTAL),
        ("Totaal", LabelKind.TOTAL),
        ("Razem", LabelKind.TOTAL),
        ("Summa", LabelKind.TOTAL),
        ("I alt", LabelKind.TOTAL),
        ("Yhteensä", LabelKind.TOTAL),
        ("YHTEENSA", LabelKind.TOTAL),
        ("Celkem", LabelKind.TOTAL),
        ("Összesen", LabelKind.TOTAL),
        ("Σύνολο", LabelKind.TOTAL),
        ("ΣΥΝΟΛΟ", LabelKind.TOTAL),
        ("Total (3 payments)", LabelKind.TOTAL),
        ("Total (3 payments): £150.00", LabelKind.TOTAL),
        ("Summa totalt", LabelKind.TOTAL),
        ("I alt til udbetaling", LabelKind.TOTAL),
        ("Totalt å betale", LabelKind.TOTAL),
        ("Maksettava yhteensä", LabelKind.TOTAL),
        ("Celkem k úhradě", LabelKind.TOTAL),
        ("Utalandó összesen", LabelKind.TOTAL),
        ("TOTAL DE PLATĂ", LabelKind.TOTAL),
        ("ΣΥΝΟΛΟ ΠΛΗΡΩΜΩΝ", LabelKind.TOTAL),
        ("Total a transferir", LabelKind.TOTAL),
        ("Întocmit: Ada Quillon", LabelKind.NOTE),
        ("Zwischensumme", LabelKind.SUBTOTAL),
        ("Sous-total", LabelKind.SUBTOTAL),
        ("Number of payments: 3", LabelKind.COUNT),
        ("No. of records 3", LabelKind.COUNT),
        ("Anzahl der Überweisungen", LabelKind.COUNT),
        ("Nombre de virements : 3", LabelKind.COUNT),
        ("Prepared by Ada Quillon", LabelKind.NOTE),
        ("Erstellt von:", LabelKind.NOTE),
        ("Firma: Ada", LabelKind.NOTE),
        ("End of report", LabelKind.NOTE),
        ("*** EOF ***", LabelKind.NOTE),
    ],
)
def test_a_whole_cell_is_a_label(cell, kind):
    assert label_of(cell).kind is kind


@pytest.mark.parametrize(
    "cell",
    [
        "Total Energies", "Totals Ltd", "Total Ltd", "TotalEnergies", "Sum Up Ltd", "Count Dracula",
        "Summer Ada", "Firma Quillon", "Endsleigh", "Signed Copies Ltd", "Prepared", "Grand Total Wine",
        "Razem Foundation", "Total (3 Ltd)", "Întocmit Ada", "Verificat SRL", "", "Number of payments three",
    ],
)  # fmt: skip
def test_a_name_that_starts_like_a_label_is_none(cell):
    assert label_of(cell) is None


def test_a_total_is_no_payment_and_agrees_with_the_payments():
    found = ended(ADA, BO, TOTAL)
    [total] = found.rows
    assert found.payment_count == 2
    assert (total.row, total.place, total.kind, total.label, total.agrees) == (3, 4, "total", "total", True)
    agrees = Sentence("footer.total_agrees", money=Sentence("footer.amount", amount=Decimal("150.00")))
    place, label = Sentence("footer.line", number=4), Sentence("footer.label", label="total")
    assert total.sentence == said("footer.not_a_payment_because", place=place, label=label, why=agrees)


def test_a_total_that_differs_is_told_with_both_sums():
    [total] = ended(ADA, BO, (None, "Total", None, None, "160.00", "GBP")).rows
    assert total.agrees is False
    money, found = (
        Sentence("footer.amount_with_currency", amount=Decimal(amount), currency="GBP")
        for amount in ("160.00", "150.00")
    )
    assert said("footer.total_differs", money=money, found=found) in total.sentence


def test_a_count_is_compared_with_the_number_of_payments():
    [right] = ended(ADA, BO, ("Number of payments: 2", *BLANK[1:])).rows
    [wrong] = ended(ADA, BO, ("Number of payments", "3", *BLANK[2:])).rows
    [endless] = ended(ADA, BO, ("Number of payments", *BLANK[1:-1], 5000 * "1")).rows
    assert endless.payment_count is None
    assert (right.payment_count, right.agrees) == (2, True)
    assert (wrong.payment_count, wrong.agrees) == (3, False)


def test_an_amount_alone_is_no_payment_where_it_is_the_sum_of_two_rows_or_more():
    assert ended(ADA, BO, (None, None, None, None, "150.00", None)).payment_count == 2
    assert ended(ADA, BO, BO, (None, None, None, None, "100", None)).payment_count == 3
    assert ended(ADA, BO, (None, None, None, None, "150.01", None)).payment_count == 3
    assert ended(ADA, (None, None, None, None, "100.00", None)).payment_count == 2


def test_totals_are_compared_by_currency():
    pounds, euros = (
        (None, "Total", None, None, "150.00", "GBP"),
        ("Total EUR", None, None, None, "7.00", None),
    )
    assert [row.agrees for row in ended(ADA, BO, EURO, pounds, euros).rows] == [True, True]
    assert [row.agrees for row in ended(ADA, BO, EURO, (*pounds[:4], "157.00", "GBP")).rows] == [False]


def test_a_subtotal_is_the_sum_of_the_last_payments():
    subtotal = (None, "Subtotal", None, None, "50.00", None)
    assert [row.agrees for row in ended(ADA, BO, subtotal, TOTAL).rows] == [True, True]


@pytest.mark.parametrize(
    "row",
    [
        ("Total", "Total", "12-34-56", "12345678", "150.00", "GBP"),
        ("Total", None, None, "12345678", "150.00", None),
        ("Total", None, None, "1234567", "150.00", None),  # a spreadsheet took a zero
        ("Prepared by", None, "12-34-56", None, None, None),
        ("Prepared on", None, "20260628", None, None, None),
        ("Total", "DE89370400440532013000", None, None, "150.00", None),  # in the wrong column
    ],
)
def test_a_row_that_has_an_account_is_never_left_out(row):
    assert ended(ADA, BO, row) == (3, [])


def test_a_row_that_names_a_payee_is_never_left_out():
    assert ended(ADA, BO, (None, "Total Energies", None, None, "150.00", None)).payment_count == 3
    assert ended(ADA, BO, ("Total", "Zoe Quillon", None, None, "150.00", None)).payment_count == 3


def test_a_total_among_the_payments_is_a_row():
    assert ended(ADA, TOTAL, BO) == (3, [])


def subtotals(*rows, places=LINES):
    """The lines of the subtotals among these rows, and their labels."""
    payments, original = table(rows)
    accounts = pl.coalesce("account_number", "sort_code").str.contains("[0-9]").fill_null(value=False)
    found = subtotals_of(payments, original, payments.select((~accounts).arg_true()).to_series(), places)
    assert all(row.kind == "subtotal" and row.agrees for row in found)
    return [(row.place, row.label) for row in found]


def sum_of(amount, label=None, name=None):
    return (label, name, None, None, amount, None)


@pytest.mark.parametrize(
    ("row", "label"),
    [
        (sum_of("150.00", "Subtotal"), "subtotal"),
        (sum_of("150.00", "Subtotal Sales"), "subtotal"),
        (sum_of("150.00", "Sales Total"), "total"),
        (sum_of("150.00", None, "Total Sales"), "total"),
        (sum_of("150,00", None, "Zwischensumme Vertrieb:"), "zwischensumme"),
        (sum_of("150.00", "Vertrieb Ergebnis"), "ergebnis"),
        (sum_of("150.00", "Carried forward"), "carried forward"),
        (sum_of("150.00"), None),
        (sum_of("150.00", "Sales"), None),
    ],
)
def test_a_row_among_the_payments_that_adds_up_those_above_is_a_subtotal(row, label):
    assert subtotals(ADA, BO, row, EURO) == [(4, label)]


def test_groups_of_groups_and_running_totals_add_up():
    one, two = sum_of("150.00", "Team 1 total"), sum_of("57.00", "Team 2 total")
    assert subtotals(ADA, BO, one, BO, EURO, two, sum_of("207.00", "Sales total"), ADA) == [
        (4, "total"),
        (7, "total"),
        (8, "total"),
    ]
    assert subtotals(ADA, BO, sum_of("150.00"), BO, sum_of("200.00", "Carried forward"), ADA) == [
        (4, None),
        (6, "carried forward"),
    ]
    assert subtotals(ADA, sum_of("100.00", "Ada Total"), BO, sum_of("50.00", "Bo Total"), ADA)[1] == (
        5,
        "total",
    )


def test_the_total_of_all_payments_is_left_to_the_footers_unless_these_would_take_it_for_a_payment():
    assert subtotals(ADA, BO, TOTAL) == subtotals(ADA, BO, sum_of("150.00")) == []
    assert subtotals(ADA, sum_of("100.00", "A total"), BO, sum_of("50.00", "B total"), TOTAL) == [
        (3, "total"),
        (5, "total"),
    ]
    assert subtotals(ADA, BO, sum_of("150.00", None, "Total Sales"), TOTAL) == [(4, "total")]


@pytest.mark.parametrize(
    "row",
    [
        sum_of("151.00", "Subtotal"),  # it adds up nothing: some payment may be missing
        sum_of("150.00", None, "Zoe Quillon"),
        sum_of("150.00", None, "Totalise Ltd"),
        sum_of("150.00", "P4", "Zoe Quillon"),
        ("Subtotal", None, "12-34-56", "12345678", "150.00", None),
        ("Subtotal", None, None, "1234567", "150.00", None),
        ("Subtotal DE89370400440532013000", None, None, None, "150.00", None),
        ("P4", None, None, None, "150.00", "GBP"),  # a payment that lacks its payee and account
    ],
)
def test_a_row_that_may_be_a_payment_is_no_subtotal(row):
    assert subtotals(ADA, BO, row, EURO) == []


def test_one_amount_again_is_a_subtotal_only_with_a_word_for_it():
    assert subtotals(ADA, sum_of("100.00"), BO) == subtotals(ADA, BLANK, sum_of("100.00"), BO) == []
    assert subtotals(ADA, BO, sum_of("0.00", "Subtotal"), EURO) == []


def test_subtotals_are_not_looked_for_without_positions_or_rows_that_lack_an_account():
    assert subtotals(ADA, BO, sum_of("150.00", "Subtotal"), EURO, places=None) == []
    assert subtotals(ADA, BO, EURO) == []


def test_blank_rows_and_single_texts_go_with_the_footer():
    found = ended(ADA, BO, BLANK, TOTAL, BLANK, (None, "Confidential", None, None, None, None))
    assert found.payment_count == 2
    assert [(row.row, row.kind) for row in found.rows] == [(4, "total"), (6, "note")]


def test_blank_rows_at_the_end_are_no_rows():
    assert ended(ADA, BO, *[BLANK] * 2 * FOOTERS_MAX) == (2, [])
    assert ended(ADA, BLANK, BO, BLANK) == (3, [])
    assert ended(BLANK, BLANK) == (0, [])


def test_texts_without_a_footer_are_rows():
    assert ended(ADA, BO, (None, "Confidential", None, None, None, None)) == (3, [])


RULE = ("-----", "----------", "---", None, "======", None)


def test_a_separator_below_the_payments_is_named_and_no_payment():
    found = ended(ADA, BO, RULE, TOTAL, ("____", *[None] * 5))
    assert [(row.row, row.kind, row.label) for row in found.rows] == [
        (3, "note", "-----"),
        (4, "total", "total"),
        (5, "note", "____"),
    ]
    assert found.rows[1].agrees
    assert likely_payment_count(pl.DataFrame([ADA, BO, RULE], schema=[*FIELDS], orient="row")) == 2


def test_a_row_with_a_payee_beside_a_separator_stays():
    assert ended(ADA, BO, (None, "Ada Quillon", "---", "---", "---", None)) == (3, [])
    assert ended(ADA, RULE, BO).payment_count == 3


@for_each(
    "cell",
    [
        "(2 rows)",
        "2 rows selected.",
        "(2 rows affected)",
        "2 rows in set (0.00 sec)",
        "2 record(s) selected.",
        "(2 Zeilen)",
        "(2 lignes)",
        "(2 filas)",
        "(2 righe)",
        "(2 rader)",
        "2 payments",
        "2 rows",
    ],
)
def test_a_number_of_rows_as_databases_write_it_is_compared_with_the_payments(cell):
    found = ended(ADA, BO, (cell, *[None] * 5))
    assert [(row.kind, row.payment_count, row.agrees) for row in found.rows] == [("count", 2, True)]
    assert not ended(ADA, RULE, BO, ADA, (cell, *[None] * 5)).rows[0].agrees


@for_each("cell", ["2 rows more", "rows 2 Ltd", "2 Row Street", "2rows", "2 rows selected by Ada"])
def test_other_texts_with_numbers_are_no_count(cell):
    assert label_of(cell) is None


def test_only_the_last_rows_are_looked_at():
    assert ended(ADA, BO, *[TOTAL] * FOOTERS_MAX).payment_count == 2
    assert ended(ADA, BO, *[TOTAL] * (FOOTERS_MAX + 1)).payment_count == 3


def test_who_prepared_the_file_is_not_quoted():
    [note] = ended(ADA, BO, ("Prepared by", "Zoe Quillon", *BLANK[2:])).rows
    place, label = Sentence("footer.line", number=4), Sentence("footer.label", label="prepared by")
    assert note.sentence == said("footer.not_a_payment", place=place, label=label)


def test_who_prepared_the_file_and_when_may_stand_in_any_column():
    assert ended(ADA, BO, ("Prepared by", None, None, "Zoe Quillon", None, None)).payment_count == 2
    assert ended(ADA, BO, ("Prepared on", None, "28.06.2026 10:30", None, None, None)).payment_count == 2


@for_each(
    "row",
    [
        ("P3", "Cara Nim", None, None, "30.00", "Approved by"),  # the note is in another column of a payment
        ("P3", "Cara Nim", None, None, None, "Signed"),
        ("Approved by", "Cara Nim", None, None, "30.00", None),
        ("P3", "Cara Nim", "TBC", "TBC", None, "Prepared by"),
        ("P3", "Cara Nim", None, None, "150.00", "Total"),
        ("P3", "Cara Nim", None, "1234", "30.00", "2 payments"),
        ("Total", "Notes", None, "1234567", "150.00", None),
    ],
)
def test_a_note_or_total_beside_a_payee_hides_no_payment(row):
    assert ended(ADA, BO, row) == (3, [])


@for_each(
    ("cells", "label", "count", "amount"),
    [
        (("TRAILER", "2", "150.00"), "trailer", 2, None),
        (("TRL", None, "150.00"), "trl", None, "150.00"),
        ((None, "Trailer record", "2"), "trailer record", 2, None),
        (("99", "2", "150.00"), "99", 2, None),
        (("9", None, "150,00"), "9", None, "150.00"),
        (("T", "000002"), "T", 2, None),
    ],
)
def test_a_trailer_with_the_counts_and_sums_of_the_payments_is_no_payment(cells, label, count, amount):
    found = ended(ADA, BO, (*cells, *BLANK[len(cells) :]))
    [trailer] = found.rows
    assert (found.payment_count, trailer.label, trailer.payment_count, trailer.agrees) == (
        2,
        label,
        count,
        True,
    )
    assert trailer.amount == (None if amount is None else Decimal(amount))


@for_each(
    "cells",
    [
        ("99", "3", "150.00"),
        ("99", "2", "100.00"),
        ("T", "12345678", "150.00"),
        ("Ada", "Bo", "150.00"),
        ("Ada", None, "12-34-56", "12345678", "150.00"),
        ("ABCD", "2", "150.00"),
        ("99",),
    ],
)
def test_a_code_without_the_counts_and_sums_of_the_payments_is_a_row(cells):
    assert ended(ADA, BO, (*cells, *BLANK[len(cells) :])) == (3, [])


def test_a_trailer_that_counts_other_payments_is_told():
    [trailer] = ended(ADA, BO, ("TRAILER", "3", *BLANK[2:])).rows
    assert (trailer.payment_count, trailer.agrees) == (3, False)


def test_a_row_of_a_format_without_lines_is_told_by_its_number():
    [total] = ended(ADA, BO, TOTAL, places=None).rows
    assert total.place is None
    assert total.sentence.startswith(said("footer.not_a_payment", place=Sentence("footer.row", number=3)))


def test_no_column_is_judged_by_what_looks_like_a_footer():
    table = pl.DataFrame({"a": ["x", "Total", "Prepared by"], "b": ["y", None, "Ada"]})
    assert likely_payment_count(table) == 1
    assert (
        likely_payment_count(pl.DataFrame({"a": ["x", "Total"], "b": ["y", "GB29NWBK60161331926819"]})) == 2
    )
