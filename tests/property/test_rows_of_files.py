"""Titles above and totals below a table change none of its payments, whatever they are."""

import tempfile
from decimal import Decimal
from pathlib import Path

from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from pipeline.stages.read import read

HEADERS = ("payment_id", "name", "sort_code", "account_number", "amount", "currency")
NAMES = ["Ada Quillon", "Total Energies", "Summe", "Prepared by Chefs Ltd", "Name", "Marrow\nLtd"]
PAYMENTS = st.tuples(
    st.sampled_from(["P1", "", "Total"]),
    st.sampled_from(NAMES),
    st.sampled_from(["123456", "12-34-56"]),
    st.integers(10_000_000, 99_999_999).map(str),
    st.integers(1, 10**7).map(lambda pence: f"{Decimal(pence) / 100:.2f}"),
    st.just("GBP"),
)
TITLES = st.lists(
    st.sampled_from(
        [
            ("Payroll of June",),
            (),
            ("", ""),
            ("Company", "Quillon Mills"),
            ("Run", "2026-11-22"),
            ("Payee", "", "Bank"),
        ]
    ),
    max_size=20,
)
NOTES = [("Prepared by Zoe",), ("Checked by:", "Zoe Marrow"), ("", "End of report"), ("Confidential",), ()]


def source_of(rows):
    def cell(text):
        return f'"{text}"' if "\n" in text else text

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pay.csv"
        path.write_text("".join(",".join(map(cell, row)) + "\n" for row in rows))
        return read(path, mapping={})


@examples(150)
@given(
    st.lists(PAYMENTS, min_size=2, max_size=8),
    TITLES,
    st.sampled_from([None, ("", "Total"), ("Total",), ("", "")]),
    st.lists(st.sampled_from(NOTES), max_size=4),
    st.integers(0, 1),
)
def test_payments_are_conserved_under_titles_and_totals(rows, titles, total, notes, missing):
    """The same payments, in order; each at its line; the total right, unless it was made wrong."""
    alone = source_of([HEADERS, *rows])
    said = sum(Decimal(row[4]) for row in rows) + missing
    footer = [] if total is None else [(*total, *[""] * (4 - len(total)), f"{said:.2f}"), *notes]
    # An amount without a label that is no sum is a row like any other.
    is_row = total == ("", "") and missing
    dressed = source_of([*titles, HEADERS, *rows, *footer])
    if is_row:
        assert dressed.payments.height > alone.payments.height
        return
    assert dressed.payments.equals(alone.payments)
    assert dressed.original.equals(alone.original)
    shift = len(titles)
    assert [dressed.positions.of(row) - alone.positions.of(row) for row in (1, len(rows))] == [shift, shift]
    told = [row for row in dressed.not_payments if row.amount is not None]
    assert [row.agrees for row in told] == ([] if total is None else [not missing])
