"""Choose the columns of fields that are not sent: of two candidates, the more explicit one is read.

Fields that are sent are stricter: if two columns for an identification or a secondary reference differ, the
file is refused.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import polars as pl

from pipeline.headers.cells import ColumnCells
from pipeline.headers.choice import ColumnChoice, either, quoted
from pipeline.headers.guesses import are_amounts
from pipeline.headers.meaning import IN_HUNDREDTHS, Side, What, meaning
from pipeline.headers.spelling import fold, known_and_unknown, tokens_of
from pipeline.headers.words import CURRENCIES, TAXES, VAT
from pipeline.rules.account_types import account_type_in, tells_no_holder
from pipeline.rules.amounts import read_amounts
from pipeline.wording import Sentence
from schemas.payments import FIELDS

_SIDE_FIELDS = ("payment_id", "account_type", "bic", "amount", "currency", "reference")
_OTHERS = (*_SIDE_FIELDS, "name", "iban", "sort_code", "account_number")
_PARTS_OF_QUESTIONS = tuple(field for field in FIELDS if field not in _OTHERS)
_CURRENCY = r"^(?:[A-Za-z]{3}|[£€$])$"
_WHOLE_NUMBER = r"^-?[0-9]+(?:[.,]00?)?$"
_OF_PAYMENTS = ("paymentcurrency", "payoutcurrency", "settlementcurrency", "targetcurrency")
_CENT = 0.0101


def choose(cells: ColumnCells, mapped: Mapping[str, object]) -> list[ColumnChoice]:
    """Choose the columns of all fields but name and account; a choice without a source is only a note."""
    fields = (field for field in (*_SIDE_FIELDS, *_PARTS_OF_QUESTIONS) if field not in mapped)
    found = ((field, _candidates(field, cells)) for field in fields)
    return [_one(field, candidates, cells) for field, candidates in found if candidates]


def _candidates(field: str, cells: ColumnCells) -> list[str]:
    """Return the columns that could be a field, the most explicit first."""
    there = [one for one in cells.headers if meaning(one).what == field and _fits(field, one, cells)]
    if field == "amount" and not there:
        priced = [header for header in cells.headers if _has_price(header, cells)]
        there = priced if len(priced) == 1 else []
    if field == "currency":
        there = [*there, *_chosen_currency(cells)]
    # Our own reference still counts; our account type, bank or amount is not the payee's.
    if field not in ("payment_id", "reference"):
        there = [header for header in there if meaning(header).side is not Side.OURS]
    filled = [header for header in there if cells.is_filled(header)]
    found = sorted(
        filled or there[:1],
        key=lambda header: (-(meaning(header).side is Side.PAYEE), -meaning(header).explicit),
    )
    is_stated = field != "amount" or not filled or meaning(found[0]).explicit == 2  # as `Payment amount`
    return found if is_stated else [*_with_vat(found[0], cells), *found]


def _with_vat(net: str, cells: ColumnCells) -> list[str]:
    """Return the column that adds the VAT, in another column as an amount or a rate, in every row."""
    vats = [one for one in cells.headers if not VAT.isdisjoint(tokens_of(one) + tokens_of(one.lower()))]
    money = partial(_money, cells=cells)
    for header in cells.headers if vats else ():
        is_other = header != net and are_amounts(cells.sample(header).to_list())
        added = money(header) - money(net) if is_other else pl.Series([0.0])
        for tax in map(money, vats if (added > 0).any() else ()):
            is_tax = ((added - tax).abs() < _CENT) | ((added - money(net) * tax / 100).abs() < _CENT)
            if is_tax.fill_null(value=False).all():
                return [header]
    return []


def _money(header: str, cells: ColumnCells) -> pl.Series:
    """Return the numbers of a column, to compare columns: as floats, and 0 for empty cells."""
    return read_amounts(cells.text(header).str.strip_chars(" %").fill_null("0")).money.cast(pl.Float64)


def _fits(field: str, header: str, cells: ColumnCells) -> bool:
    """True if the cells of a column fit the field of its header."""
    sample = cells.sample(header)
    if not len(sample):
        return True
    if field == "account_type" and header != field:  # elsewhere it is a word for ledger accounts
        return "=" in header or any(
            account_type_in(word) is not None or tells_no_holder(word) for word in sample
        )
    if meaning(header).rule == IN_HUNDREDTHS:
        return cells.are(header, _WHOLE_NUMBER)
    if meaning(header).explicit == 3:  # the header is the field's name
        return True
    if field == "amount" and meaning(header).explicit == 0:
        return are_amounts(sample.to_list())
    # `To pay` may be yes or no.
    look = {"currency": _CURRENCY, "amount": "[0-9]"}.get(field, "")
    return bool(sample.str.contains(look).any())


def _has_price(header: str, cells: ColumnCells) -> bool:
    """True if unknown words and a currency or amount head amounts, as `Session fee (EUR)` does; no tax."""
    known, unknown = known_and_unknown(header)
    is_priced = unknown.isdisjoint(TAXES) and (
        meaning(known).what == "amount" or not CURRENCIES.keys().isdisjoint(tokens_of(header))
    )
    return meaning(header).what is None and is_priced and are_amounts(cells.sample(header).to_list())


def _chosen_currency(cells: ColumnCells) -> list[str]:
    """Return the column that a currency choice names, as `source` in every row of `amountCurrency` does."""
    choices = {
        fold(header).removesuffix("code"): header
        for header in cells.headers
        if meaning(header).what == What.CHOICE
    }
    header = choices.get("amountcurrency")
    if header is None:
        return [choices[of] for of in _OF_PAYMENTS if of in choices and _fits("currency", choices[of], cells)]
    words = {fold(word) for word in cells.text(header).drop_nulls().unique()}
    if len(words) == 1 and (named := choices.get(f"{min(words)}currency")) is not None:
        return [named]
    return [header] if cells.sample(header).str.contains(_CURRENCY).any() else []


def _one(field: str, candidates: Sequence[str], cells: ColumnCells) -> ColumnChoice:
    first, *rest = candidates
    differing = [other for other in rest if cells.differ([first], [other])]
    if differing and field in _PARTS_OF_QUESTIONS:
        raise either(
            field,
            [(first,), (differing[0],)],
            cells,
            what=Sentence("headers.the_field", field=Sentence(f"field.{field}")),
        )
    if differing and field == "bic" and meaning(first).side is meaning(differing[0]).side:
        note = Sentence("headers.neither_is_the_bic", one=quoted(first), other=quoted(differing[0]))
        return ColumnChoice(field, (), meaning(first).rule, tuple(candidates), (note,))
    what = Sentence(f"field.{field}")
    notes = tuple(
        Sentence("headers.kept_beside", read=quoted(first), field=what, kept=quoted(other))
        for other in differing[:1]
    )
    return ColumnChoice(field, ((first,),), meaning(first).rule, tuple(candidates), notes)
