"""Find the columns of the payee's account, by cells as well as headers.

A column of our side is never used; one marked as the payee's outranks an unmarked one.
"""

from collections.abc import Mapping, Sequence
from itertools import product

import polars as pl

from pipeline.headers.account_patterns import IBAN, PUNCTUATION, is_iban
from pipeline.headers.account_signs import are_of_uk, kinds_of_codes, may_hold_sort_codes
from pipeline.headers.cells import SAMPLE_ROWS, ColumnCells
from pipeline.headers.choice import THE_PAYEES_ACCOUNT, ColumnChoice, either, pair, refuse_differing, rule_of
from pipeline.headers.meaning import (
    BARE_ACCOUNT,
    UNKNOWN,
    HeaderMeaning,
    Rank,
    Side,
    What,
    is_code_of_bank,
    is_column_of,
    meaning,
)
from pipeline.headers.names import NAME_WITHOUT_DIGITS
from pipeline.headers.spelling import cues_of, fold
from pipeline.headers.words import Cue
from pipeline.wording import Sentence

CODE_OF_BANK = "a bank's code, read as the sort code of UK accounts"
IN_PARTS = "an IBAN over several columns"
_DIGITS = r"^[0-9]{6,10}$|^[0-9]{14}$"
"""Pattern of a UK account number, even a damaged one, alone or with its sort code."""
_SORT_CODE = r"^[0-9]{5,6}$"
_IBAN_START, _PARTS_MAX = r"^[A-Za-z]{2}([0-9]{2}[A-Za-z0-9]{0,12})?$", 9
_SIX_DIGITS = r"^[0-9]{6}$"
_EIGHT_DIGITS = r"^[0-9]{8}$"
_MONEY, _WITHOUT_CENTS = r"^[-+]?[0-9][0-9., ]*[.,][0-9]{2}$", "[.,]00$"
_FIELDS = ("iban", "account_number", "sort_code")
_NUMBER = HeaderMeaning("account_number", "the header says account")
_CREDIT = ("credit", "kredit", "crediteur")
_WORDS = {
    "iban": Sentence("headers.the_payees_iban"),
    "account_number": THE_PAYEES_ACCOUNT,
    "sort_code": Sentence("headers.the_payees_sort_code"),
}


def choose(cells: ColumnCells, mapped: Mapping[str, Sequence[tuple[str, ...]]]) -> list[ColumnChoice]:
    """Choose the columns of the payee's account that `--map` leaves open.

    Raises ColumnsRefused: two columns could be the account and differ in a row.
    """
    if mapped.keys().isdisjoint(_FIELDS) and (parts := _iban_in_parts(cells)):
        return [ColumnChoice("iban", (parts,), IN_PARTS)]
    candidates = {
        header: meant
        for header in cells.headers
        if (meant := _by_look(meaning(header), header, cells)).what in _FIELDS
    }
    if "sort_code" in _whats(candidates) and "account_number" not in _whats(candidates):
        candidates |= {header: _NUMBER for header in cells.headers if _is_number(header, cells)}
    # An employer's account is the payer's, unless it is the only one.
    payees = {header: meant for header, meant in candidates.items() if meant.subject is not Cue.EMPLOYER}
    candidates = payees if {"iban", "account_number"} & _whats(payees) else candidates
    theirs = {header: meant for header, meant in candidates.items() if meant.side is not Side.OURS}
    theirs = _without_bare(theirs, cells)
    filled = {header: meant for header, meant in theirs.items() if cells.is_filled(header)}
    # If no column has accounts, an empty one is read: each row then reports what is missing.
    has_accounts = bool({"iban", "account_number"} & _whats(filled))
    kept = _marked_first(filled, cells) if has_accounts else {} if unread_ibans(cells) else theirs
    bare = [header for header, meant in candidates.items() if _is_bare(meant) and header not in theirs]
    why_not = dict.fromkeys(bare, rule_of("no stated owner, so taken for your own next to the payee's"))
    choices = []
    for field in _left_to_headers(cells, mapped):
        of_field = [header for header, meant in kept.items() if meant.what == field]
        if field == "account_number" and _are_in_books(of_field, kept, cells):
            continue
        if of_field:
            others = tuple(header for header, meant in candidates.items() if meant.what == field)
            choices.append(_one(field, of_field, others, cells)._replace(why_not=why_not))
        elif field == "sort_code":
            choices += _sort_code_of_bank({**mapped, **_sources(choices)}, cells)
    _refuse_unread_accounts(choices, cells)
    _refuse_same_account(_sources(choices), cells)
    return choices


def _iban_in_parts(cells: ColumnCells) -> tuple[str, ...]:
    """Return adjacent columns whose cells together are IBANs in each row, if no column alone has IBANs."""
    starts = [
        at
        for at, header in enumerate(cells.headers)
        if cells.are(header, _IBAN_START, without=PUNCTUATION) and meaning(header).side is not Side.OURS
    ]
    if starts and any(cells.are(header, IBAN, without=PUNCTUATION) for header in cells.headers):
        return ()
    for at, count in product(starts, range(2, _PARTS_MAX)):
        parts = cells.headers[at : at + count]
        whole = cells.joined(parts).drop_nulls().head(SAMPLE_ROWS)
        if all(map(is_iban, whole)) and not cells.is_constant(parts):
            return parts
    return ()


def _is_number(header: str, cells: ColumnCells) -> bool:
    """True if `Number` or `Account code` next to a sort code has account numbers."""
    is_bare = cues_of(header) - {Cue.FILLER} in ({Cue.NUMBER}, {Cue.ACCOUNT, Cue.CODE})
    return is_bare and cells.are(header, _EIGHT_DIGITS, without=PUNCTUATION)


def _are_in_books(
    numbers: Sequence[str], candidates: Mapping[str, HeaderMeaning], cells: ColumnCells
) -> bool:
    """True if several columns of numbers differ, but each row has an IBAN of its own and no sort code."""
    ibans = [header for header, meant in candidates.items() if meant.what == "iban"]
    return (
        len(numbers) > 1
        and any(cells.varies([header]) and not cells.text(header).has_nulls() for header in ibans)
        and "sort_code" not in _whats(candidates)
        and not any(cells.sample(header).str.contains("[A-Za-z]{2}[0-9]{2}").any() for header in numbers)
    )


def _left_to_headers(cells: ColumnCells, mapped: Mapping[str, Sequence[tuple[str, ...]]]) -> Sequence[str]:
    """Return the fields that `--map` leaves open: next to a mapped account, at most a sort code."""
    if not mapped.keys() & {"iban", "account_number"}:
        return [field for field in _FIELDS if field not in mapped]
    if "sort_code" in mapped:
        return ()
    headers = [header for parts in mapped.get("iban", ()) for header in parts]
    is_iban = "account_number" not in mapped and all(
        cells.are(header, IBAN, without=PUNCTUATION) for header in headers
    )
    return () if is_iban else ("sort_code",)


def _sources(choices: Sequence[ColumnChoice]) -> dict[str, Sequence[tuple[str, ...]]]:
    return {choice.field: choice.sources for choice in choices}


def _sort_code_of_bank(
    sources: Mapping[str, Sequence[tuple[str, ...]]], cells: ColumnCells
) -> list[ColumnChoice]:
    """Choose a column of bank codes if each has six digits and its account number has eight.

    Rows with an IBAN need no code; another column may name the kind of each code, as `sort_code` or `aba`.
    In a file of several countries, one row with such a code and a sign for the UK is enough.
    """
    numbers = sources.get("account_number") or sources.get("iban")
    if numbers is None:
        return []
    number = cells.first_filled(numbers).str.replace_all(PUNCTUATION, "")
    is_iban = number.str.contains(IBAN).fill_null(value=True)
    may_be = "iban" not in sources or _are_british(cells.first_filled(sources["iban"]).filter(~is_iban))
    codes = []
    for header in cells.headers:
        kinds = kinds_of_codes(header, cells)
        if kinds is not None or (may_be and is_code_of_bank(header)):
            rows = ~is_iban & (True if kinds is None else (kinds == "GB").fill_null(value=False))
            eights = number.filter(rows).head(SAMPLE_ROWS).str.contains(_EIGHT_DIGITS)
            if cells.where(rows).are(header, _SIX_DIGITS, without=PUNCTUATION) and eights.all():
                codes.append(header)
                continue
        if kinds is None and may_hold_sort_codes(header):
            is_shaped = cells.text(header).str.replace_all(PUNCTUATION, "").str.contains(_SIX_DIGITS)
            if (is_shaped & number.str.contains(_EIGHT_DIGITS) & are_of_uk(cells)).any():
                codes.append(header)
    if not codes:
        return []
    found = tuple((header,) for header in codes)
    refuse_differing("sort_code", found[0], found[1:], cells, what=_WORDS["sort_code"])
    return [ColumnChoice("sort_code", found, CODE_OF_BANK)]


def _are_british(ibans: pl.Series) -> bool:
    """True if the IBANs of a column are GB IBANs, which may have sort codes next to them."""
    return bool(ibans.drop_nulls().str.to_uppercase().str.contains(r"^\s*(?:IBAN:?)?\s*GB").all())


def _refuse_same_account(sources: Mapping[str, Sequence[tuple[str, ...]]], cells: ColumnCells) -> None:
    """Refuse an IBAN and a UK account if one is constant and the other varies: the first may be ours."""
    if not {"iban", "account_number"} <= sources.keys():
        return
    iban, number = (sources[field][0] for field in ("iban", "account_number"))
    sort_code = sources["sort_code"][0] if "sort_code" in sources else ()
    # Without a sort code it may be the payee's number for us, unless the rows pay different payees.
    is_second = bool(sort_code) or _pays_several(cells)
    is_ours_iban = cells.is_constant(iban) and cells.varies((*sort_code, *number)) and is_second
    is_ours_number = bool(sort_code) and cells.is_constant((*sort_code, *number)) and cells.varies(iban)
    if is_ours_iban or is_ours_number:
        pairs = [pair("iban", iban), pair("account_number", number)]
        raise either("iban", [iban, number], cells, what=THE_PAYEES_ACCOUNT, pairs=pairs)


def _pays_several(cells: ColumnCells) -> bool:
    """True if the payees' names differ between rows."""
    return any(
        meaning(header).rank is not None and meaning(header).side is not Side.OURS and cells.varies([header])
        for header in cells.headers
    )


def _by_look(meant: HeaderMeaning, header: str, cells: ColumnCells) -> HeaderMeaning:
    """Read account numbers as IBANs if all cells are IBANs; columns of names or money are no accounts."""
    if meant.what == "iban" and cells.are(header, NAME_WITHOUT_DIGITS):
        return UNKNOWN
    if meant.what == "account_number" and cells.are(header, _MONEY) and not cells.are(header, _WITHOUT_CENTS):
        return UNKNOWN  # `Credit on account`
    if meant.what == What.COUNTER and cells.varies([header]) and cells.are(header, IBAN, without=PUNCTUATION):
        return meant._replace(what="iban")
    is_holders = meant.rank is Rank.HOLDER and is_column_of(Cue.IBAN, header)  # `IBAN of account owner`
    if (meant.what == "account_number" or is_holders) and cells.are(header, IBAN, without=PUNCTUATION):
        return meant._replace(what="iban")
    return meant


def _refuse_unread_accounts(choices: Sequence[ColumnChoice], cells: ColumnCells) -> None:
    """Refuse a column of IBANs with an unknown header: it may be the payee's, unless it is constant."""
    chosen = next((choice for choice in choices if choice.field in ("iban", "account_number")), None)
    if chosen is None:
        return
    first = chosen.sources[0]
    for header in unread_ibans(cells):
        if cells.differ(first, [header]):
            raise either("iban", [first, (header,)], cells, what=THE_PAYEES_ACCOUNT)


def unread_ibans(cells: ColumnCells) -> list[str]:
    """Return the columns of IBANs that vary and whose headers have no meaning."""
    return [
        header
        for header in cells.headers
        if meaning(header).what is None
        and not is_column_of(Cue.INTERMEDIARY, header)
        and cells.are(header, IBAN, without=PUNCTUATION)
        and not cells.is_constant([header])
    ]


def _whats(candidates: Mapping[str, HeaderMeaning]) -> set[str | None]:
    return {meant.what for meant in candidates.values()}


def _without_bare(candidates: dict[str, HeaderMeaning], cells: ColumnCells) -> dict[str, HeaderMeaning]:
    """Drop `Konto` next to a payee's column: it is ours, as in `Konto; Empfänger; IBAN`."""
    payee_is_marked = any(
        meant.side is Side.PAYEE
        for header in cells.headers
        if (meant := meaning(header)).what in {*_FIELDS, "name"}
    )
    if not payee_is_marked:
        return candidates
    return {header: meant for header, meant in candidates.items() if not _is_bare(meant)}


def _is_bare(meant: HeaderMeaning) -> bool:
    return meant.plain and meant.rule == BARE_ACCOUNT


def _marked_first(candidates: Mapping[str, HeaderMeaning], cells: ColumnCells) -> dict[str, HeaderMeaning]:
    """Drop columns without any account, and unmarked ones if others are marked as the payee's."""
    marked = {header for header, meant in candidates.items() if meant.side is Side.PAYEE}
    kinds = {candidates[header].what for header in marked}
    # An unmarked sort code belongs to the unmarked account number next to it.
    are_pairs = any(
        meant.what == "account_number" for header, meant in candidates.items() if header not in marked
    )
    kept = {}
    for header, meant in candidates.items():
        beaten = header not in marked and (
            meant.what in kinds
            or (meant.what == "sort_code" and are_pairs and "account_number" in kinds)
            or ("iban" in kinds and meant.what != "iban")
            # An unmarked IBAN next to a marked account number may be ours, if it is constant.
            or ("account_number" in kinds and meant.what == "iban" and not cells.varies([header]))
        )
        if not beaten:
            kept[header] = meant
    return kept


def _one(field: str, headers: Sequence[str], others: tuple[str, ...], cells: ColumnCells) -> ColumnChoice:
    """Choose the column of a field; several only if their values agree in every row."""
    _refuse_ledger_accounts(field, headers, others, cells)
    look = _SORT_CODE if field == "sort_code" else f"{_DIGITS}|{IBAN}"
    bare = {header: cells.sample(header).str.replace_all(PUNCTUATION, "") for header in headers}
    looking = [header for header in headers if bare[header].str.contains(look).any()] or list(headers)
    # A supplier's account may be its number in our books, unless it is an IBAN.
    said = [header for header in looking if not _is_vague(meaning(header), field)]
    sources = tuple((header,) for header in _without_own(said or looking, cells))
    first, *rest = sources
    refuse_differing(field, first, rest, cells, what=_WORDS[field])
    return ColumnChoice(field, sources, meaning(first[0]).rule, others)


def _is_vague(meant: HeaderMeaning, field: str) -> bool:
    return meant.plain and (field != "iban" or meant.rule == BARE_ACCOUNT)


def _without_own(headers: list[str], cells: ColumnCells) -> list[str]:
    """Drop an account that is the same in every row, next to a supplier's, employee's or counter account."""
    theirs = [
        header
        for header in headers
        if meaning(header).subject in (Cue.SUPPLIER, Cue.PERSON) or meaning(header).what == What.COUNTER
    ]
    if not any(cells.varies([header]) for header in theirs):
        return headers
    return [header for header in headers if header in theirs or not cells.is_constant([header])]


def _refuse_ledger_accounts(
    field: str, headers: Sequence[str], others: Sequence[str], cells: ColumnCells
) -> None:
    """Refuse `Creditor account` next to another account number: it may be a ledger account."""
    unsaid = [(other,) for other in others if other not in headers and meaning(other).side is Side.UNSAID]
    for header in headers if field == "account_number" else ():
        if any(word in fold(header) for word in _CREDIT):
            refuse_differing(field, (header,), unsaid, cells, what=THE_PAYEES_ACCOUNT)
