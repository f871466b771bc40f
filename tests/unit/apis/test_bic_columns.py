"""A column headed as BICs: a mistyped BIC among others is told, words that never were any refuse no row."""

import polars as pl
import pytest

from pipeline.rules.identifiers import bic_column_is_none


def is_none(*cells):
    return bic_column_is_none(pl.Series("bic", cells, dtype=pl.String))


@pytest.mark.parametrize(
    "cells",
    [
        ("Barclays", "Lloyds", None),
        ("MULTIPLE", "PERSONAL"),
        ("SUPPLIER", "SUPPLIER", "SUPPLIER"),
        ("dividend", "DIVIDEND"),
        ("BUSINESS", "Salary", None),
        ("37040044", "37040044"),
        ("QUILDEF",),
    ],
)
def test_words_in_a_bank_column_are_no_bics(cells):
    assert is_none(*cells)


@pytest.mark.parametrize(
    "cells",
    [
        ("DEUTDEFF", "DEUTDEFF"),
        ("deut de ff", "deut de ff"),
        ("QUILDEFF", "MARWDEFF"),
        ("QUILDE12", "QUILDE12"),
        ("QUILDEFF500", "QUILDEFF500"),
        ("QUILDEFF", "MARWDEFF", "QUILDEF"),
        ("SUPPLIER",),
        (None, None),
        (),
    ],
)
def test_column_with_bics_in_it_stays_one_with_all_its_mistakes(cells):
    assert not is_none(*cells)
