"""Find rows of a table that are not whole payments: commented out, or one payment spread over two rows."""

import re
from collections.abc import Iterator

import polars as pl

from pipeline.headers.account_patterns import IBAN, PUNCTUATION, is_iban
from pipeline.headers.footers import label_of
from pipeline.headers.words import LEGAL_FORMS, NOT_PAID
from pipeline.rules.placeholders import CELL_ERROR
from pipeline.rules.unasked import ROW_COMMENTED, ROW_CONTINUED

_MARK = r"^(?://|/\*|--\s*[\p{L}\p{N}]|#%s)"
_IN_NAME, _IN_FIRST_CELL = _MARK % "(?:[^0-9]|$)", _MARK % r"\s"  # `#1 Tiles` is a firm, `#2` an id
_ENDS_OPEN = re.compile(
    r".*(?:[&+,/-]| (?:and|und|et|y|e|en|og|och|van|von|de|of|der|di|del|della|für|for|the|la))"
)
_LEGAL_FORM, _WORDS_MAX = re.compile(rf"(.* )?(?:{LEGAL_FORMS})\.?", re.IGNORECASE), 5


def defects_of_rows(payments: pl.DataFrame, original: pl.DataFrame, lacking: pl.Series) -> pl.Series:
    """Return the defect of each row, or null; `lacking` are the rows without an account, in order."""
    none = pl.repeat(None, payments.height, dtype=pl.String, eager=True)
    names, first = payments["name"], original.to_series(0)
    rows = {
        *names.str.contains_any([*NOT_PAID], ascii_case_insensitive=True).arg_true(),
        *_marked(names, _IN_NAME),
    }
    marked = _marked(first, _IN_FIRST_CELL) if first.dtype == pl.String else ()
    rows.update(marked if 2 * len(marked) < payments.height else ())
    spread = {*_ibans(payments), *_names(payments, original, lacking)} - rows
    return none.scatter(sorted(rows), ROW_COMMENTED).scatter(sorted(spread), ROW_CONTINUED)


def _marked(cells: pl.Series, mark: str) -> pl.Series:
    """Return the rows whose cell begins with this mark; few begin with any sign."""
    rows = (cells < "0").arg_true()
    found = cells.gather(rows)
    return rows.filter(found.str.contains(mark) & ~found.str.contains(CELL_ERROR))


def _ibans(payments: pl.DataFrame) -> Iterator[int]:
    """Yield the rows whose IBAN is whole only with the one of the next row, which has no amount."""
    rests = payments.select((pl.col("amount").is_null() & pl.col("name").is_null()).arg_true()).to_series()
    compact = payments["iban"].gather(rests).str.replace_all(PUNCTUATION, "")
    for row in rests.filter(~compact.str.contains(IBAN)):
        above, below = payments["iban"][max(0, row - 1)], payments["iban"][row]
        if row and above and is_iban(above + below) and not is_iban(above):
            yield from (row - 1, row)


def _names(payments: pl.DataFrame, original: pl.DataFrame, lacking: pl.Series) -> Iterator[int]:
    """Yield the rows with a name that goes on in the next row, or begins in the one before.

    A row with only a name may head a group, so its words must show it, or every other row must be like that.
    """
    filled = original[lacking].select(pl.sum_horizontal(pl.all().is_not_null())).to_series()
    names = payments["name"]
    only = lacking.filter((filled == 1) & names.gather(lacking).is_not_null())
    rows = [row for row in only if any(map(str.isalpha, names[row])) and not label_of(names[row])]
    lack = {*lacking}
    payment_count = payments.height - len(lack)
    is_every_other = len(rows) == payment_count > 1 and rows == [*range(1, 2 * payment_count, 2)]
    for row in rows:
        above, below = (
            names[at] if 0 <= at < payments.height and at not in lack else None for at in (row - 1, row + 1)
        )
        if above and (
            is_every_other or _is_rest(names[row], above) or (rows[0] and _is_form_of(names[row], above))
        ):
            yield from (row - 1, row)
        elif below and (
            _is_rest(below, names[row]) or ((form := _LEGAL_FORM.fullmatch(below)) and not form[1])
        ):
            yield from (row, row + 1)


def _is_rest(name: str, above: str) -> bool:
    """True if a name begins like the rest of one, or the one above ends before it does."""
    return _ENDS_OPEN.fullmatch(above) is not None or (_goes_on(name) and not _goes_on(above))


def _goes_on(name: str) -> bool:
    return (name[0].islower() or name[0] in "&+") and len(name.split()) <= _WORDS_MAX


def _is_form_of(name: str, above: str) -> bool:
    return _LEGAL_FORM.fullmatch(name) is not None and not _LEGAL_FORM.fullmatch(above)
