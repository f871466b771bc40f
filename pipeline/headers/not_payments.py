"""Recognise files that look like payment files but are not.

A check of a bank statement would check the user; one of direct debits, the debtors.
"""

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from itertools import product

import polars as pl

from pipeline.headers import words as lists
from pipeline.headers.cells import ColumnCells
from pipeline.headers.choice import quoted
from pipeline.headers.meaning import CANONICAL, Rank, Side, What, meaning
from pipeline.headers.spelling import cue_of, cues_of, fold, tokens_of
from pipeline.headers.words import Cue
from pipeline.wording import ANY_COLUMN, ColumnPair, Sentence

_CREDITOR_ID = r"^[A-Z]{2}[0-9]{2}[A-Z0-9]{3}[A-Z0-9]{1,28}$"
"""AT-02 of the SEPA Direct Debit rulebooks: country, check digits, business code, national identifier."""
_DEBIT_CUES_MIN = 2
_INSISTED_ON = ("name", "iban", "sort_code", "account_number")
_MANDATE = re.compile(r"\b(?:RUM|UMR)\b")
"""A unique mandate reference, in capitals: `rum` is a room in Swedish."""
_DEBIT_HEADERS, _MEMBERS = (tuple(map(fold, words)) for words in (lists.DEBIT_HEADERS, lists.MEMBERS))
_DEBIT_CELLS, _DEBIT_REFERENCES = (
    frozenset(map(fold, words)) for words in (lists.DEBIT_CELLS, lists.DEBIT_REFERENCES)
)
_DUES, _PAYOUTS, _SETTINGS = (
    tuple(map(fold, words)) for words in (lists.DUES, lists.PAYOUTS + lists.REFUNDS, lists.SETTINGS)
)
_PAYERS, _CHARGES, _AID, _UNPAID = (
    tuple(map(fold, words)) for words in (lists.PAYERS, lists.CHARGES, lists.AID, lists.UNPAID)
)
_OWN, _OWN_ENDS = frozenset(map(fold, lists.OWN_ACCOUNTS)), tuple(map(fold, lists.OWN_ENDS))
_DATEV_KIND = "adressattyp"  # header of DATEV's master data, which holds debtors as well as creditors
_PARTNERS = lists.PARTNERS
_IDS, _PAID = {Cue.NAME, Cue.ID, Cue.NUMBER, Cue.CODE}, {Cue.PERSON, Cue.SUPPLIER, Cue.THEIRS, Cue.NET}
_ACCOUNTS_MIN = 3
_DEBIT = (What.MANDATE, What.COLLECTION, What.SEQUENCE, What.CREDITOR_ID)
_CUES = (*_DEBIT, What.BALANCE, What.BOOKED, What.DIRECTION)
_CODES = re.compile(r"(?:transaction|trans|tran|txn|t|bacs|bacstransaction)(?:code|type)")
_DIRECT_DEBIT_CODES = ("1", "01", "17", "18", "19", "0N", "0C", "0S")
"""Bacs codes of direct debits and their instructions; `1` is `01` without its zero."""
_VALUE_DAY, _DAY = "valuta", r"^[0-9]{1,4}[-./][0-9]{1,2}[-./][0-9]{2,4}$"
_IN_BRACKETS = re.compile(r"\(([^()]+)\)")
_AMOUNT = r"^[-+(]?[0-9][0-9 .,'\u00a0]*\)?-?$"
_RECEIVED, _TEXTS_MAX = tuple(map(fold, lists.WAYS_RECEIVED)), 20
_INTO, _OUT, _EITHER = (
    frozenset(fold(one) or one for one in some) for some in (lists.WAYS_IN, lists.WAYS_OUT, lists.WAYS)
)


def insist(headers: Sequence[str]) -> Sentence:
    """Return the advice for such a file, with its own headers if they are known."""
    of = {field: [header for header in headers if meaning(header).what == field] for field in _INSISTED_ON}
    if of["iban"] and not of["sort_code"]:
        of["account_number"] = []
    if len(of["name"]) > 1:
        of["name"] = [ANY_COLUMN]  # which of several names is the payee's, only the user knows
    pairs = [ColumnPair(field, some[0]) for field, some in of.items() if some]
    unknown = [ColumnPair(field, ANY_COLUMN) for field in _INSISTED_ON[:2]]
    return Sentence("headers.give_payments_or_name_columns", columns=pairs or unknown)


def why_not_payments(cells: ColumnCells) -> Sentence | None:
    """Return why a file holds no payments to others; None if no filled column shows it."""
    cues = {header: what for header in cells.headers if (what := _cue_of(header)) in _CUES}
    filled = {header: what for header, what in cues.items() if cells.is_filled(header)}
    debit = [header for header, what in filled.items() if what in _DEBIT and _is_cue(header, what, cells)]
    # A mandate's ID and its date are two cues.
    kinds = {header if filled[header] == What.MANDATE else filled[header] for header in debit}
    sure = _debit_codes(cells) or [header for header in cells.headers if _is_of_debits(header, cells)]
    sure = sure or _debits_of_members([header for header in cells.headers if cells.is_filled(header)])
    if sure or len(kinds) >= _DEBIT_CUES_MIN:
        return Sentence(
            "headers.direct_debits", columns=list(map(quoted, list(dict.fromkeys([*sure, *debit]))[:2]))
        )
    booked = [header for header, what in filled.items() if what == What.BOOKED]
    both_ways = [header for header, what in filled.items() if what == What.DIRECTION]
    of_statement = (_has_date, _pays_both_ways, _has_one_account)
    if booked and (not _names_payee(cells) or any(shows(cells) for shows in of_statement)):
        both_ways += booked
    balances = [
        header
        for header in cells.headers
        if filled.get(header) == What.BALANCE
        or _says_money_came_in(header, cells)
        or (header in both_ways and _goes_both_ways(header, cells))
    ]
    # `Valuta` above other cells than dates means a currency.
    valued = [header for header in cells.headers if fold(header) == _VALUE_DAY and cells.are(header, _DAY)]
    if balances and not (set(filled.values()) <= {What.BALANCE} and _owes_suppliers(cells)):
        return Sentence("headers.bank_statement", column=quoted(balances[0]))
    if booked and len(days := [*booked, *valued]) > 1:
        return Sentence("headers.statement_of_two_days", columns=list(map(quoted, days[:2])))
    # A credit note or two, without any other sign, do not make a statement.
    signed = _of_both_signs(cells, above=0 if both_ways else 0.5)
    if signed is not None:
        return Sentence("headers.statement_of_both_signs", column=quoted([*both_ways, signed][0]))
    if (sides := _columns_of_two_ways(cells)) is not None:
        return Sentence("headers.statement_of_two_columns", columns=list(map(quoted, sides)))
    return _why_list_of_accounts(cells)


def names_debits(header: str) -> bool:
    """True if a header alone shows direct debits, as `Mandat vom` and `directDebitDate` do."""
    is_mandate = _MANDATE.search(header) is not None
    return is_mandate or any(words in fold(header) for words in _DEBIT_HEADERS)


def titles_debits(title: str) -> bool:
    """True if a title announces direct debits, and not refunds of them or payments without them.

    >>> [titles_debits(title) for title in ("SEPA-Lastschriften", "Direct Credit", "Direct debit refunds")]
    [True, False, False]
    """
    return _announces_debits(title, r"\bdd\b(?<!mm dd)(?! mm)|^collections?\b")


def _announces_debits(text: str, short: str = "(?!)") -> bool:
    """True if a text has a word for direct debits, or what `short` matches, and no word against it."""
    text = " ".join(tokens_of(text))
    is_candidate = any(words in text for words in _phrases(lists.DEBIT_TITLES)) or re.search(short, text)
    # Building the pattern takes time, and few texts need it.
    return bool(is_candidate) and _debit_titles(short).search(text) is not None


@cache
def _phrases(listed: tuple[str, ...]) -> list[str]:
    return [" ".join(tokens_of(phrase)) for phrase in listed]


@cache
def _debit_titles(short: str) -> re.Pattern[str]:
    titles, others, before = (
        "|".join(_phrases(each))
        for each in (lists.DEBIT_TITLES, lists.NO_DEBIT_TITLES, lists.NOT_BEFORE_DEBITS)
    )
    negated = rf"(?:{before}) (?:(?:by|on|via|per|par|por|the|les|de|sepa) )*(?:{titles})"
    return re.compile(rf"^(?!.*\b(?:{others})\b)(?!.*\b{negated}).*?(?:{titles}|{short})")


def _is_of_debits(header: str, cells: ColumnCells) -> bool:
    """True if a filled column shows that all payments are direct debits."""
    is_filled = cells.is_filled(header)
    if not is_filled or names_debits(header):
        return is_filled
    is_way = meaning(header).what is None  # a payee or a reference may have such words
    return all(
        fold(word) in _DEBIT_CELLS or (is_way and _announces_debits(word))
        for word in cells.first_values(header)
    )


def _debits_of_members(filled: Sequence[str]) -> list[str]:
    """Return a column of debits and one of members or renewals, in a list without a payee, wage or refund."""
    debits = [header for header in filled if fold(header) in _DEBIT_REFERENCES]
    members = _with_any(_MEMBERS, filled) if debits else []
    return [debits[0], members[0]] if members and not _are_paid(filled, _PAYOUTS) else []


def _charges_to_payers(filled: Sequence[str]) -> list[str]:
    """Return a column of the people who owe and one of what they owe, unless the list also pays people."""
    charges = _with_any(_CHARGES, filled)
    payers = _with_any(_PAYERS, filled) if charges else []
    others = [header for header in filled if header not in charges]
    return [payers[0], charges[0]] if payers and not _are_paid(others, _PAYOUTS + _AID) else []


def _owed_by_customers(filled: Sequence[str]) -> list[str]:
    """Return the column of customers, the only names, and one of what they owe, unless they are paid."""
    unpaid = _with_any(_UNPAID, filled)
    names = [header for header in filled if meaning(header).what == "name"] if unpaid else []
    are_customers = bool(names) and all(meaning(header).subject is Cue.CUSTOMER for header in names)
    # The total of a bill is no net sum that is paid.
    is_owed = are_customers and not _are_paid(filled, _PAYOUTS + _AID, cues=_PAID - {Cue.NET})
    return [names[0], unpaid[0]] if is_owed else []


def _with_any(phrases: Sequence[str], headers: Sequence[str]) -> list[str]:
    return [header for header in headers if any(words in fold(header) for words in phrases)]


def _are_paid(headers: Sequence[str], payouts: Sequence[str], *, cues: AbstractSet[Cue] = _PAID) -> bool:
    """True if a header shows that people in the list, or others, are paid."""
    tokens = tokens_of(" ".join(headers))
    return bool(_with_any(payouts, headers)) or not cues.isdisjoint(map(cue_of, tokens))


def _named(cells: ColumnCells, what: str) -> list[str]:
    """Return the filled columns with this meaning."""
    return [header for header in cells.headers if meaning(header).what == what and cells.is_filled(header)]


def _has_phrase(header: str, phrases: Sequence[str]) -> bool:
    text = f" {' '.join(tokens_of(header))} "
    return any(f" {' '.join(tokens_of(phrase))} " in text for phrase in phrases)


def _why_list_of_accounts(cells: ColumnCells) -> Sentence | None:
    """Return why a file of purchases on credit or without amounts, or from one account, pays no others."""
    filled = [header for header in cells.headers if cells.is_filled(header)]
    # A borrower who is paid gives no deposit.
    credit = [
        next((header for header in filled if _has_phrase(header, words)), None) for words in lists.CREDIT
    ]
    if all(credit):
        return Sentence(
            "headers.purchases_on_credit", columns=[quoted(header) for header in credit if header]
        )
    payers, own = _charges_to_payers(filled) or _owed_by_customers(filled), _only_account(cells)
    if not payers and (own or _named(cells, "amount")):
        return Sentence("headers.only_own_account", column=quoted(own[0])) if own else None
    dues, payouts, settings = (_with_any(some, filled) for some in (_DUES, _PAYOUTS, _SETTINGS))
    lists_staff = any(cue_of(token) is Cue.PERSON for header in cells.headers for token in tokens_of(header))
    if not lists_staff and not any(cells.are(header, "[1-9]") for header in payouts):
        payers = payers or dues[:2]
    if payers:
        return Sentence("headers.list_of_payers", columns=list(map(quoted, payers)))
    if settings:
        return Sentence("headers.own_settings", columns=list(map(quoted, settings[:2])))
    if partners := _columns_of_partners(filled, cells):
        return Sentence("headers.customers_and_suppliers", columns=list(map(quoted, partners)))
    owners = [header for header in filled if _is_one_owner(header, cells) or _labels_accounts(header, cells)]
    return Sentence("headers.own_accounts", column=quoted(owners[0])) if owners else None


def _columns_of_partners(filled: Sequence[str], cells: ColumnCells) -> list[str]:
    """Return the column that has words for customers and suppliers, or one for each, never both in a row.

    DATEV's master data always has both.
    """
    by_cue: dict[Cue | None, list[str]] = {Cue.CUSTOMER: [], Cue.SUPPLIER: []}
    for header in filled:
        values = () if meaning(header).what not in (None, "account_type") else cells.sample(header).unique()
        if fold(header) == _DATEV_KIND or {_partner(value) for value in values} == set(by_cue):
            return [header]
        by_cue.get(_partner(header), []).append(header)
    for pair in product(*by_cue.values()):
        if (cells.text(pair[0]).is_null() | cells.text(pair[1]).is_null()).all():
            return list(pair)
    return []


def _partner(text: str) -> Cue | None:
    """Return whether a text is just a word for customers or suppliers, as `Kreditor` and `client_id` are."""
    cues = {_PARTNERS.get(token) or cue_of(token) for token in tokens_of(text)} - _IDS
    return only if len(cues) == 1 and isinstance(only := next(iter(cues)), Cue) else None


def _is_one_owner(header: str, cells: ColumnCells) -> bool:
    """True if one holder has all accounts, at least three, in a list without other names."""
    meant = meaning(header)
    is_holder = meant.what == "name" and meant.rank is Rank.HOLDER and cells.is_constant([header])
    accounts = [*_named(cells, "iban"), *_named(cells, "account_number")]
    others = [other for other in _named(cells, "name") if cells.varies([other])]
    differ = any(cells.text(account).n_unique() == cells.row_count for account in accounts)
    return is_holder and not others and differ and cells.row_count >= _ACCOUNTS_MIN


def _labels_accounts(header: str, cells: ColumnCells) -> bool:
    """True if most of the only names are labels of accounts, such as `Main account` and `Girokonto`."""
    others = any(cells.varies([other]) for other in _named(cells, "name") if other != header)
    is_only = meaning(header).what in ("name", "account_number") and not others
    names = set(cells.sample(header)) if is_only else set()
    labels = [name for name in names if _OWN.intersection(tokens_of(name)) or fold(name).endswith(_OWN_ENDS)]
    return len(labels) > max(1, len(names) / 2) and cells.row_count >= _ACCOUNTS_MIN


def _cue_of(header: str) -> str | None:
    """Return the meaning of a header; `Mandate status` and the like belong to a mandate."""
    what = meaning(header).what
    return What.MANDATE if what is None and Cue.MANDATE in map(cue_of, tokens_of(header)) else what


def transaction_code(headers: Sequence[str]) -> str | None:
    """Return the column of Bacs transaction codes, if there is one."""
    return next((header for header in headers if _CODES.fullmatch(fold(header))), None)


def are_direct_debits(header: str, codes: pl.Series) -> pl.Series:
    """Flag the transaction codes of direct debits; in a column of types, `1` may mean anything."""
    known = _DIRECT_DEBIT_CODES[1:] if fold(header).endswith("type") else _DIRECT_DEBIT_CODES
    return codes.str.strip_chars().str.to_uppercase().is_in(known)


def _debit_codes(cells: ColumnCells) -> list[str]:
    """Return the column of transaction codes if each row is a direct debit."""
    header = transaction_code(cells.headers)
    if header is None or not cells.is_filled(header):
        return []
    return [header] if are_direct_debits(header, cells.text(header)).fill_null(value=False).all() else []


def _is_cue(header: str, what: str, cells: ColumnCells) -> bool:
    """True if the cells fit the header: `Creditor ID` may be a vendor number, `Sequence` a count."""
    if what == What.SEQUENCE:
        return not cells.are(header, r"^[0-9]+$")
    if what != What.CREDITOR_ID:
        return True
    compact = cells.sample(header).str.replace_all(r"[\s-]", "").str.to_uppercase()
    return bool(compact.str.contains(_CREDITOR_ID).any())


def _names_payee(cells: ColumnCells) -> bool:
    """True if a column names payees; a name repeated in every row is the statement's owner."""
    return any(
        meaning(header).rank in (Rank.HOLDER, Rank.PAYEE)
        and meaning(header).side is not Side.OURS
        and not cells.is_constant([header])
        for header in _named(cells, "name")
    )


def _owes_suppliers(cells: ColumnCells) -> bool:
    """True if a balance is what is owed to the suppliers, each with its own IBAN, and no row has a date."""
    of_suppliers = [header for header in cells.headers if meaning(header).subject is Cue.SUPPLIER]
    vary = (any(cells.varies([header]) for header in some) for some in (of_suppliers, _named(cells, "iban")))
    return all(vary) and not _has_date(cells)


def _has_date(cells: ColumnCells) -> bool:
    """True if a column is called just `Date`, which next to a value date is the booking date."""
    return any(cells.is_filled(header) and cues_of(header) == {Cue.DATE} for header in cells.headers)


def _has_one_account(cells: ColumnCells) -> bool:
    """True if an account not marked as the payee's is the same in every row: it is the statement's."""
    accounts = [*_named(cells, "iban"), *_named(cells, "account_number")]
    unmarked = [header for header in accounts if meaning(header).side is not Side.PAYEE]
    return any(cells.is_constant([header]) for header in unmarked)


def _only_account(cells: ColumnCells) -> list[str]:
    """Return the only account if it is the same in three or more rows, each of another payee: the payer's."""
    accounts = [*_named(cells, "iban"), *_named(cells, "account_number")]
    if len(accounts) != 1 or not _has_one_account(cells) or meaning(accounts[0]).rule == CANONICAL:
        return []
    names = [cells.text(header).n_unique() for header in _named(cells, "name")]
    return accounts if cells.row_count >= _ACCOUNTS_MIN and {*names} == {cells.row_count} else []


def _pays_both_ways(cells: ColumnCells) -> bool:
    """True if a party pays in one row and is paid in another."""
    names = _named(cells, "name")
    payers = [cells.text(header).unique() for header in names if meaning(header).side is Side.OURS]
    payees = [cells.text(header) for header in names if meaning(header).side is not Side.OURS]
    return any(payee.is_in(payer.drop_nulls().implode()).any() for payer in payers for payee in payees)


def _columns_of_two_ways(cells: ColumnCells) -> tuple[str, str] | None:
    """Return the columns of money out and money in, if each row has an amount in one of them."""
    out, into = (
        [header for header in cells.headers if _is_amount_of(side, header, cells)]
        for side in (Cue.OURS, Cue.MARK)
    )
    for debit, credit in product(out, into):
        if (cells.text(debit).is_null() ^ cells.text(credit).is_null()).all():
            return debit, credit
    return None


def _is_amount_of(side: Cue, header: str, cells: ColumnCells) -> bool:
    """True if a header such as `Debit` or `D (debit)` names only a side and its cells are amounts."""
    texts = [] if meaning(header).rule == CANONICAL else [header, *_IN_BRACKETS.findall(header)]
    is_side = any({side} <= cues <= {side, Cue.AMOUNT, Cue.FILLER} for cues in map(cues_of, texts))
    return is_side and cells.are(header, _AMOUNT)


def _says_money_came_in(header: str, cells: ColumnCells) -> bool:
    """True for words for both ways, as `Income` and `Expense`, or texts such as `Payment received`.

    Half of the texts say it, or one beside amounts of both signs. A status may be that of an invoice.
    """
    said = {fold(word) for word in cells.first_values(header)}
    if said <= _INTO | _OUT and not said.isdisjoint(_INTO) and not said.isdisjoint(_OUT):
        return True
    if meaning(header).what not in (None, "reference") or _has_phrase(header, lists.STATUS):
        return False
    texts = cells.sample(header).head(_TEXTS_MAX).to_list()
    count = sum(fold(text).startswith(_RECEIVED) for text in texts)
    return count > 0 and (2 * count >= len(texts) or _of_both_signs(cells) is not None)


def _goes_both_ways(header: str, cells: ColumnCells) -> bool:
    """True if the cells, not all alike, state only whether money came in or went out."""
    words = {fold(word) or word for word in cells.sample(header)}
    return words <= _INTO | _OUT | _EITHER and cells.text(header).drop_nulls().n_unique() > 1


def _of_both_signs(cells: ColumnCells, *, above: float = 0) -> str | None:
    """Return the column of amounts with more than this share negative, but not all."""
    for header in cells.headers:
        if meaning(header).what == "amount":
            amounts = cells.text(header).drop_nulls()
            likely = (amounts < "0") | (amounts >= "\u2212") | amounts.str.ends_with("-")
            negative_count = len(amounts.filter(likely).str.contains(r"^[(\-\u2212]|-$").arg_true())
            if above * len(amounts) < negative_count < len(amounts):
                return header
    return None
