"""Whether a column that is headed as BICs holds any: "Bank code" may head words, such as SUPPLIER."""

import polars as pl

from pipeline.rules.identifiers import bic11, bic_faults, compact

_HEAD_OFFICE = 8
"""Characters of a BIC without its branch."""


def bic_column_is_none(written: pl.Series) -> bool:
    """Whether no value of the column can be meant as a BIC.

    So it is where none has the form of one; and where one word alone has it, stands there again and again or
    beside other words, and is no known bank: BUSINESS has the form of a bank in Niger.

    Args:
        written: the cells of the column; nulls do not count.
    """
    codes = bic11(compact(written.drop_nulls()))
    possible = codes.filter(bic_faults(codes).is_null()).unique()
    if codes.is_empty() or possible.len() > 1:
        return False
    return possible.is_empty() or (codes.len() > 1 and _is_only_a_word(possible.item()))


def _is_only_a_word(bic: str) -> bool:
    is_word = bic.isalpha() and bic.endswith("XXX")
    return is_word and bic[:_HEAD_OFFICE] not in _banks()


def _banks() -> frozenset[str]:
    """The banks of schwifty's registry, which has no branch alone; asked once for a file at most."""
    from schwifty import registry

    return frozenset(bank.bic[:_HEAD_OFFICE] for bank in registry.get_all_banks() if bank.bic)
