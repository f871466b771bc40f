"""Refuse names if a column that no header links to the account may hold the payees.

A column with an unknown header may hold the payees, so a name next to it is used only if a header or the
cells show that it is the payee's. A word that only the headers of a name and an account share links the two,
even if it is unknown: `Zorblex name` and `Zorblex IBAN`.
"""

from collections.abc import Collection, Sequence

import polars as pl

from pipeline.headers import parties
from pipeline.headers.account import unread_ibans
from pipeline.headers.account_patterns import IBAN, PUNCTUATION, holds_account
from pipeline.headers.cells import SAMPLE_ROWS, ColumnCells, comparable
from pipeline.headers.choice import PART_OF_THE_NAME, ColumnChoice, either, pair, refuse_differing
from pipeline.headers.meaning import HeaderMeaning, Rank, Side, What, meaning
from pipeline.headers.names import Candidate, NameColumns, may_be_codes
from pipeline.headers.spelling import cue_of, is_ours, known_and_unknown, tokens_of
from pipeline.headers.words import PARTY_NAMES, Cue

_LIKE_A_NAME = r"^\p{Lu}[\p{L}'.-]*(?: \p{L}[\p{L}'.&-]*){1,4}$"
_MOSTLY = 0.75
_ONE_WORD = r"^\p{Lu}\p{Ll}+(?:-\p{Lu}\p{Ll}+)?$"
_LIKE_A_WORD = r"^\p{Lu}[\p{L}'. -]+$"
_ACCOUNTS, _OF_BANK = ("iban", "account_number"), ("sort_code", "bic")
_ROLES = (Rank.HOLDER, Rank.PAYEE)
_WHOLE = (*_ROLES, Rank.PLAIN, Rank.COMPANY, None)
ONLY_ACCOUNT = "the only account in the file"
SHARED_WORD = "the headers of the name and the account share a word"
_OF_PAYMENT = HeaderMeaning("name", "the payee's role", rank=Rank.PAYEE, says_name=True)


def refuse(
    chosen: Sequence[Candidate],
    accounts: Sequence[str],
    cells: ColumnCells,
    seen: NameColumns,
    *,
    is_bound: bool,
) -> None:
    """Refuse names (`ColumnsRefused`) if another column may have the payees, and differs in a row.

    `is_bound` is true if a header shows that the chosen names are the payees'.
    """
    _refuse_same_name(chosen, cells)
    _refuse_owner(chosen, accounts, cells, seen)
    _refuse_empty(chosen, cells)
    if not is_bound or chosen[0].rank is not Rank.HOLDER:
        _refuse_unknown_name(chosen, cells, is_bound=is_bound)
    _refuse_part(chosen, cells)
    _refuse_owner_of_repeated(chosen, accounts, cells)


def bound_by_word(cells: ColumnCells, taken: Collection[str], *, has_name: bool) -> list[ColumnChoice]:
    """Choose the columns of accounts, and of a name, whose headers share an unknown word.

    Choose none if several such words could be the payee's, or if another column may hold the accounts.
    `taken` are the fields that are assigned already; `has_name` is true if `--map` names the name. If no name
    has the word, valid accounts of no known party are chosen if it `may_own` them.

    Raises ColumnsRefused: another column is headed as names, and differs in a row.
    """
    words, fields = _accounts_of_one(cells)
    names = [one for one in _unread(cells) if words <= one[2] and _may_name(one[1], one[0], cells)]
    name = (_whole([one for one, *_ in names]) if all(its == words for *_, its in names) else None) or ()
    if not names:
        of_parties = any(meaning(_rest_and_owner(header)[0]).subject is not None for header in fields)
        texts = cells.joined([*fields]).drop_nulls().head(SAMPLE_ROWS) if fields else ()
        if has_name or of_parties or not all(map(holds_account, texts)):
            return []
    elif not (fields and name) or cells.is_constant(name):
        return []
    is_holder = bool(name) and meaning(_rest_and_owner(name[0])[0]).rank is Rank.HOLDER
    for header in cells.headers if name and not has_name else ():
        meant = meaning(header)
        is_less = is_holder and meant.rank not in (Rank.HOLDER, Rank.PAYEE)
        if meant.what == "name" and meant.side is not Side.OURS and not is_less:
            refuse_differing("name", name, [(header,)], cells)
    rule = SHARED_WORD if name else ONLY_ACCOUNT
    found: dict[str, tuple[str, ...]] = {field: (header,) for header, field in fields.items()}
    found |= {"name": name} if name and not has_name else {}
    return [ColumnChoice(field, (headers,), rule) for field, headers in found.items() if field not in taken]


def may_own(name: ColumnChoice, accounts: Sequence[ColumnChoice], cells: ColumnCells) -> bool:
    """True for one payee or holder for each account; the account beside an employee may be a bailiff's."""
    held = [header for choice in accounts for [header] in choice.sources]
    [first, *others], meant = name.sources, meaning(name.sources[0][0])
    pairs = pl.DataFrame({"name": cells.joined(first), "account": cells.joined(held)}).drop_nulls()
    is_one_each = pairs["name"].n_unique() == pairs["account"].n_unique() == pairs.unique().height > 1
    return is_one_each and not others and meant.rank in _ROLES and not meant.plain


def _unread(cells: ColumnCells) -> list[tuple[str, str, frozenset[str]]]:
    """Return the filled columns without meaning, or of a company, with `_rest_and_owner`."""
    filled = filter(cells.is_filled, cells.headers)
    return [(one, *_rest_and_owner(one)) for one in filled if meaning(one).what in (None, What.COMPANY)]


def _accounts_of_one(cells: ColumnCells) -> tuple[frozenset[str], dict[str, str]]:
    """Return the unknown words above the only accounts that vary, and the field of each of their columns.

    Return none if other accounts have such words, a field has two columns, or others of IBANs are unread.
    """
    found: dict[frozenset[str], dict[str, str]] = {}
    for header, known, words in _unread(cells):
        if words and (field := _account_of(known, header, cells)) is not None:
            found.setdefault(words, {})[header] = field
    for words, fields in [*found.items()]:
        numbers = [header for header, field in fields.items() if field in _ACCOUNTS]
        if not numbers or any(cells.is_constant([number]) for number in numbers):
            del found[words]
    [(words, fields), *others] = [*found.items()] or [(frozenset[str](), {})]
    is_one = not others and len({*fields.values()}) == len(fields) and fields.keys() >= {*unread_ibans(cells)}
    return (words, fields) if is_one else (frozenset(), {})


def name_in_parts(cells: ColumnCells) -> tuple[str, ...] | None:
    """Return the given and family name of the only party with unknown words and a name in parts."""
    parts = [header for header in cells.headers if _is_part(_rest_and_owner(header)[0], header)]
    owners = {_rest_and_owner(header)[1] for header in parts}
    return _whole(parts) if len(owners) == 1 else None


def payee_in_other_words(cells: ColumnCells) -> list[ColumnChoice]:
    """Choose the only column whose header has payee next to unknown words, such as `Garnishee payee`."""
    headers = [
        header
        for header in cells.headers
        if parties.names_unknown_payee(header) and are_parties(header, cells)
    ]
    is_one = len(headers) == 1 and not is_ours(headers[0]) and not cells.is_constant(headers)
    return [ColumnChoice("name", (tuple(headers),), "the payee's role")] if is_one else []


def with_payment_names(
    names: Sequence[Candidate], accounts: Sequence[str], cells: ColumnCells, seen: NameColumns
) -> list[Candidate]:
    """Add the names whose headers share a payment word with all accounts: `payout_name` and `payout_iban`.

    Raises ColumnsRefused: such names have no word in common with any other.
    """
    bound = [
        header
        for header in cells.headers
        if accounts and all(_payment_words(header) <= _payment_words(account) for account in accounts)
    ]
    parts = [
        [one for one in bound if parties.beside_payment(one) == {cue}] for cue in (Cue.GIVEN, Cue.FAMILY)
    ]
    whole = [(one,) for one in bound if parties.names_payment(one) and are_parties(one, cells)]
    whole += zip(*parts, strict=False)
    found = [Candidate(one, Rank.PAYEE, _OF_PAYMENT) for one in whole if cells.varies(one)]
    companies = [name for name in seen.companies if not cells.is_constant(name.headers)]
    others = [name for name in (*names, *companies) if name.rank not in (Rank.HOLDER, Rank.PAYEE)]
    for name in found:
        if others and not any(cells.share_words(name.headers, one.headers, share=0.5) for one in others):
            raise either("name", [name.headers, others[0].headers], cells)
    return [*names, *found]


def _payment_words(header: str) -> set[str]:
    return {token for token in tokens_of(header) if cue_of(token) is Cue.PAYMENT}


def _rest_and_owner(header: str) -> tuple[str, frozenset[str]]:
    """Return a header without the words for its owner (unknown, or else a company), and those words."""
    known, words = known_and_unknown(header)
    owner = set() if words else {word for word in known.split() if cue_of(word) is Cue.COMPANY}
    rest = " ".join(word for word in known.split() if word not in owner)
    return rest, frozenset(_stem(parties.without_name(word)) for word in words | owner)


def _may_name(known: str, header: str, cells: ColumnCells) -> bool:
    """True if a column may hold the names of the party in its header, or parts of them."""
    rank = meaning(known).rank
    says_name = rank is not None or all(cue_of(word) is Cue.FILLER for word in known.split())
    looks = (PARTY_NAMES, _LIKE_A_NAME) if says_name else (PARTY_NAMES,)
    is_whole = rank in _WHOLE and any(are_parties(header, cells, look) for look in looks)
    is_party = meaning(header).what == What.COMPANY or parties.is_of_unknown(header)
    return (is_party and is_whole) or _is_part(known, header)


def _is_part(known: str, header: str) -> bool:
    return meaning(known).what in (What.GIVEN, What.FAMILY) and parties.is_of_unknown(header)


def _whole(headers: Sequence[str]) -> tuple[str, ...] | None:
    """Return one whole name, or a given name with its family name."""
    parts = {meaning(_rest_and_owner(header)[0]).what for header in headers}
    if len(headers) == 2 and parts == {What.GIVEN, What.FAMILY}:
        return tuple(
            sorted(headers, key=lambda header: meaning(_rest_and_owner(header)[0]).what != What.GIVEN)
        )
    return (headers[0],) if len(headers) == 1 and not parts & {What.GIVEN, What.FAMILY} else None


def is_named_twice(name: Candidate, cells: ColumnCells) -> bool:
    """True if another column, of the subject of the list or a party in unknown words, has the same names."""
    return cells.varies(name.headers) and any(
        header not in name.headers
        and (parties.names_unknown_party(header) or meaning(header).subject is not None)
        and not cells.text(header).has_nulls()
        and not cells.differ(name.headers, [header])
        for header in cells.headers
    )


def _account_of(known: str, header: str, cells: ColumnCells) -> str | None:
    """Return the account field that the known words of a header mean."""
    meant = meaning(known)
    if meant.what not in (*_ACCOUNTS, *_OF_BANK) or meant.side is Side.OURS:
        return None
    is_iban = meant.what == "account_number" and cells.are(header, IBAN, without=PUNCTUATION)
    return "iban" if is_iban else meant.what


def _stem(word: str) -> str:
    """Return the common stem of word forms, such as `stypendysta` and `stypendysty`."""
    bare = next((word.removesuffix(end) for end in ("es", "s") if word.endswith(end) and len(word) > 5), word)
    return bare[:-2] if len(bare) > 6 else bare


def _refuse_same_name(chosen: Sequence[Candidate], cells: ColumnCells) -> None:
    """Refuse a constant name next to names with an unknown header: it may be the payer's."""
    [first, *_] = chosen
    if not cells.is_constant(first.headers):
        return
    for header in cells.headers:
        sample = cells.sample(header)
        is_unread = meaning(header).what is None and len(sample) > 0
        if is_unread and sample.str.contains(_LIKE_A_NAME).all() and cells.varies([header]):
            raise either("name", [first.headers, (header,)], cells)


def _refuse_owner(
    chosen: Sequence[Candidate], accounts: Sequence[str], cells: ColumnCells, seen: NameColumns
) -> None:
    """Refuse an owner with a vague header: a company's, or one that shares a word with a column."""
    words = frozenset[str]().union(*(known_and_unknown(header)[1] for header in accounts))
    is_unsaid = any(meaning(header).what is None for header in accounts)
    companies = {header for name in seen.companies for header in name.headers if is_unsaid}
    for header in cells.headers:
        has_word = meaning(header).what is None and not words.isdisjoint(known_and_unknown(header)[1])
        is_owner = has_word or (header in companies and not cells.is_constant([header]))
        if is_owner and cells.are(header, _LIKE_A_NAME) and cells.differ(chosen[0].headers, [header]):
            raise either("name", [chosen[0].headers, (header,)], cells)


def _refuse_empty(chosen: Sequence[Candidate], cells: ColumnCells) -> None:
    """Refuse a name that is missing or incomplete in rows that have another, unread name."""
    [first, *_] = chosen
    parts = [part for part in first.headers if first.rank is Rank.PART and cells.text(part).has_nulls()]
    if not parts and not first.is_instead:
        return
    sources = [parts[:1]] if parts else [name.headers for name in chosen]
    lacking = cells.where(cells.first_filled(sources).is_null())
    look, is_name = (
        (_LIKE_A_WORD, parties.names_unknown_party) if parts else (_LIKE_A_NAME, parties.is_of_unknown)
    )
    for header in filter(is_name, cells.headers):
        if lacking.are(header, look) and not lacking.text(header).has_nulls():
            whole = ["+".join(header if part in parts[:1] else part for part in first.headers)]
            if not parts:
                whole = ["|".join(["+".join(name.headers) for name in chosen] + [header])]
            name_pairs = [pair("name", first.headers), pair("name", whole)]
            raise either("name", [first.headers, (header,)], cells, pairs=name_pairs)


def _refuse_part(chosen: Sequence[Candidate], cells: ColumnCells) -> None:
    """Refuse people of one word beside an unknown header with such words: both may be parts of a name."""
    [first, *_] = chosen
    is_one = first.rank is Rank.PLAIN or first.meant.subject is Cue.PERSON
    for header in filter(parties.is_of_unknown, cells.headers if is_one and len(first.headers) == 1 else ()):
        if all(cells.are(one, _ONE_WORD) and cells.varies([one]) for one in (header, *first.headers)):
            raise either("name", [first.headers, (header,)], cells, what=PART_OF_THE_NAME)


def _refuse_unknown_name(chosen: Sequence[Candidate], cells: ColumnCells, *, is_bound: bool) -> None:
    """Refuse a name that no header links to the account, if names under an unknown header may be the payees'.

    An employee's name is not linked (`Employee` next to `Issuing authority`); a holder's or payee's name is.
    But another name that only some rows have may be a substitute payee.
    """
    is_paid = chosen[0].says_role and not may_be_codes(chosen[0], cells)
    for header in cells.headers:
        says_name = parties.names_unknown_payee(header) or (
            not is_paid and parties.names_unknown_party(header)
        )
        if not says_name and not parties.is_of_unknown(header):
            continue
        # If no header says that a column has names, most of its cells must look like names.
        is_named = are_parties(header, cells, *((_LIKE_A_NAME, 0.5) if says_name else ()))
        if not is_named or cells.is_constant([header]) or (is_bound and not cells.text(header).has_nulls()):
            continue
        other = Candidate((header,), Rank.PLAIN, meaning(header))
        for name in chosen:
            is_other_form = name.rank is Rank.HOLDER and cells.share_words(name.headers, other.headers)
            if cells.differ(name.headers, [header]) and not is_other_form:
                raise either("name", [name.headers, (header,)], cells)


def _refuse_owner_of_repeated(
    chosen: Sequence[Candidate], accounts: Sequence[str], cells: ColumnCells
) -> None:
    """Refuse names that share an account, if another column may name its owner."""
    if not accounts:
        return
    read, is_one = {header for name in chosen for header in name.headers}, cells.is_constant(accounts)
    may_own = [
        header
        for header in cells.headers
        if header not in read
        and (parties.is_of_unknown(header) or meaning(header).what in ("name", What.COMPANY, What.PARENT))
        and are_parties(header, cells)
        and (is_one or not cells.is_constant([header]))
    ]
    for header in may_own:
        rows = pl.DataFrame(
            {
                "account": comparable(cells.joined(accounts)),
                "name": comparable(cells.first_filled([name.headers for name in chosen])),
                "other": comparable(cells.text(header)),
            }
        ).drop_nulls("account")
        shared = rows.filter(pl.col("name").n_unique().over("account") > 1)
        owners = shared.group_by("account").agg(pl.col("other").n_unique(), lacks=pl.col("other").has_nulls())
        if owners.height > 0 and not owners["lacks"].any() and (owners["other"] == 1).all():
            raise either("name", [chosen[0].headers, (header,)], cells)


def are_parties(header: str, cells: ColumnCells, look: str = PARTY_NAMES, share: float = _MOSTLY) -> bool:
    """True if most cells look like names of people and firms."""
    sample = cells.sample(header)
    return len(sample) > 0 and int(sample.str.contains(look).sum()) >= share * len(sample)
