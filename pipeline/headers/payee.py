"""Choose the most explicit column of payees' names; refuse the file if two of one rank differ.

The ranks, the most explicit first: the account holder, the payee's role, the subject of the list, a plain
name, a name in parts, a company. An employer next to an employee, a contact person, a bank and our own side
are never the payee.
"""

from collections.abc import Sequence
from functools import partial
from itertools import product

from pipeline.headers import unread_names
from pipeline.headers.cells import SAMPLE_ROWS, ColumnCells
from pipeline.headers.choice import (
    PART_OF_THE_NAME,
    ColumnChoice,
    ColumnsRefused,
    either,
    pair,
    quoted,
    refuse_differing,
    rule_of,
)
from pipeline.headers.meaning import USERS, Rank, Side, What, is_column_of, meaning
from pipeline.headers.names import (
    Candidate,
    NameColumns,
    doubts,
    found,
    may_be_codes,
    refuse_codes,
    without_codes,
)
from pipeline.headers.parties import party_of, payee_id_header
from pipeline.headers.spelling import cue_of, cues_of, fold, tokens_of, words_with
from pipeline.headers.unread_names import are_parties
from pipeline.headers.words import BANK_NAMES, PLACES, REFUNDS, Cue
from pipeline.wording import ANY_COLUMN, ColumnPair, Sentence
from schemas.payments import FIELDS

_OURS = rule_of("the same in every row where the payee differs, so taken for your own")
_BESIDE_ACCOUNTS = ("account_type", "secondary_reference", "bic")
_UK_ACCOUNT = {"sort_code", "account_number"}
_PLACES = frozenset(map(fold, PLACES))
_REFUNDS = tuple(map(fold, REFUNDS))


def choose(cells: ColumnCells, accounts: Sequence[str] = ()) -> list[ColumnChoice]:
    """Choose the columns of the payee's name, if any; `Landlord IBAN` among `accounts` shows who is paid.

    Raises ColumnsRefused: two columns could be the payee and differ in a row.
    """
    seen = found(cells)
    parties = {one for header in accounts if (one := party_of(header)) is not None}
    party = min(parties) if len(parties) == 1 else None  # the party that the headers of the account name
    names = [_of_bank_account(name, seen, cells) for name in seen.whole]
    names = names if party is None else _with_kind(names, cells, party, accounts)
    names = unread_names.with_payment_names(names, accounts, cells, seen)
    why_not = dict.fromkeys(seen.codes, rule_of("no name in its cells"))
    for left_of, why in (
        (partial(_or_parents, seen=seen, party=party), rule_of("of a party other than the account holder")),
        (partial(_without_payer, party=party, accounts=accounts), _OURS),
        (_without_ledger_account, rule_of("an account name; another column names the bank account")),
        (
            partial(_of_party, party=party, accounts=accounts),
            rule_of("of a party other than the account holder"),
        ),
        (partial(without_codes, seen=seen), rule_of("logins or codes of people named in another column")),
    ):
        left = left_of(names, cells)
        why_not |= {header: why for name in names if name not in left for header in name.headers}
        names = left
    _refuse_plain_account_name(names, seen.companies, cells)
    if not any(_is_of(name, party) for name in names):
        _refuse_parent(seen, names, cells)
    names.sort(key=lambda name: name.rank)
    if names and names[0].rank is Rank.PLAIN:
        _refuse_other_parts(names, cells)
    if not any(_is_of(name, party) for name in names[:1]):
        _refuse_plain_name(names, cells)
    chosen = _of_the_first_rank(names, cells)
    is_partial = bool(chosen) and (chosen[0].rank is Rank.HOLDER or chosen[0].is_instead)
    if is_partial and _is_empty_in_a_row(chosen, cells):
        others = [name for name in names if name.rank > chosen[0].rank]
        _refuse_plain_name(others, cells)
        chosen += _of_the_first_rank(others, cells)
    is_said = bool(chosen) and (chosen[0].rank in (Rank.HOLDER, Rank.PAYEE) or _is_of(chosen[0], party))
    chosen = _with_company(chosen, seen, cells, is_stated=is_said)
    chosen = chosen or _only_person(seen, cells)
    if not chosen:
        return unread_names.payee_in_other_words(cells) or _empty(cells)
    _refuse_banks(chosen, cells)
    _refuse_payers(chosen[0], cells, is_stated=is_said or party is not None)
    refuse_codes(chosen, names, cells)
    is_explicit = chosen[0].says_role and chosen[0].rank is not Rank.SUBJECT
    is_stated = is_explicit or _is_of(chosen[0], party) or unread_names.is_named_twice(chosen[0], cells)
    is_bound = is_stated and not may_be_codes(chosen[0], cells)
    unread_names.refuse(chosen, accounts, cells, seen, is_bound=is_bound)
    if seen.seconds and any(candidate.rank is not Rank.HOLDER for candidate in chosen):
        first, second = chosen[0].headers, seen.seconds[0]
        pairs = [pair("name", first), pair("name", (*first, second))]
        raise either("name", [first, (second,)], cells, what=PART_OF_THE_NAME, pairs=pairs)
    why = rule_of("the employer, never the payee") if seen.has_person else _OURS
    for company in seen.companies:
        if company not in chosen and (seen.has_person or cells.is_constant(company.headers)):
            why_not |= dict.fromkeys(company.headers, why)
    named = (*seen.whole, *seen.companies, *seen.parents)
    candidates = tuple(header for candidate in named for header in candidate.headers)
    return [
        ColumnChoice(
            "name",
            tuple(candidate.headers for candidate in chosen),
            chosen[0].meant.rule,
            candidates,
            notes=doubts(chosen, cells),
            rules={header: candidate.meant.rule for candidate in chosen for header in candidate.headers},
            why_not=why_not,
        )
    ]


# The owner of the account.


def _of_bank_account(name: Candidate, seen: NameColumns, cells: ColumnCells) -> Candidate:
    """Take `Account name` for a bank account's if a sort code and an account number are next to it.

    Behind them, it also shares words with another name, as an account of a ledger does not.
    """
    if name.rank is not Rank.HOLDER or not name.meant.plain:
        return name
    [header] = name.headers
    whats = {one: meaning(one).what for one in cells.headers}
    block = [
        one
        for one, what in whats.items()
        if one == header or (what not in _BESIDE_ACCOUNTS and cells.is_filled(one))
    ]
    place = block.index(header)
    before, after = ({whats[one] for one in block[max(0, at) : at + 2]} for at in (place - 2, place + 1))
    around = [whats[one] for one in block[max(0, place - 1) : place + 2]]
    is_inside = around[0] == "sort_code" and around[-1] == "account_number"
    is_of_bank = (is_inside or after == _UK_ACCOUNT) and are_parties(header, cells)
    others = seen.whole if before == _UK_ACCOUNT and is_column_of(Cue.ACCOUNT, header) else []
    is_of_bank |= any(
        other is not name and cells.share_words(name.headers, other.headers, share=0.5) for other in others
    )
    return name._replace(meant=name.meant._replace(plain=False)) if is_of_bank else name


def _is_of(name: Candidate, party: str | None) -> bool:
    return party is not None and party in (name.kind_of, party_of(name.headers[0]))


def _or_parents(
    names: list[Candidate], _cells: ColumnCells, *, seen: NameColumns, party: str | None
) -> list[Candidate]:
    """Keep only the parents if the account is theirs: a plain name is then a child's."""
    if party not in (Cue.PARENT.value, Cue.RELATIVE.value):
        return names
    return [*seen.parents, *(name for name in names if name.rank in (Rank.HOLDER, Rank.PAYEE))]


def _with_kind(
    names: list[Candidate], cells: ColumnCells, party: str, accounts: Sequence[str]
) -> list[Candidate]:
    """Take `Lead tenant` for the owner of `Tenant sort code`: in English, the last word is who it is."""
    words = {word for one in accounts if is_column_of(Cue.SORT_CODE, one) for word in tokens_of(one)}
    kinds = [
        Candidate((header,), Rank.SUBJECT, meaning(last), party)
        for header in cells.headers
        for *before, last in [["", *tokens_of(header)]]
        if last in words and party_of(last) == party and before[1:] and not any(map(cue_of, before))
        if are_parties(header, cells) and cells.varies([header])
    ]
    return names if len(kinds) != 1 or any(_is_of(name, party) for name in names) else [*names, *kinds]


def _of_party(
    names: list[Candidate], cells: ColumnCells, *, party: str | None, accounts: Sequence[str]
) -> list[Candidate]:
    """Drop the names of parties other than the account's owner, and agencies of the people named.

    Raises ColumnsRefused: all names are other parties', or the payee's role names another party in a row.
    """
    if party is None:
        is_of_people = any(_are_people(name, cells) for name in names)
        return [name for name in names if not (is_of_people and name.meant.subject is Cue.AGENCY)]
    left = [name for name in names if name.kind_of or party_of(name.headers[0]) in (None, party)]
    if names and not left:
        account = next(header for header in accounts if party_of(header) == party)
        raise ColumnsRefused(
            Sentence(
                "headers.account_of_other_party",
                account=quoted(account),
                names="+".join(map(quoted, names[0].headers)),
            ),
            Sentence("headers.name_right_column", column=ColumnPair("name", ANY_COLUMN)),
            field="name",
            candidates=[header for name in names for header in name.headers],
        )
    theirs = [name for name in left if _is_of(name, party)]
    for payee in (name for name in left if name.rank is Rank.PAYEE and name not in theirs):
        refuse_differing("name", payee.headers, (name.headers for name in theirs), cells)
    return left


def _are_people(name: Candidate, cells: ColumnCells) -> bool:
    """True for names in parts, and for people of an unstated party or employees."""
    is_theirs = name.rank in (Rank.SUBJECT, Rank.PLAIN) and name.meant.subject in (None, Cue.PERSON)
    is_one = is_theirs and name.meant.side is not Side.OURS and cells.varies(name.headers)
    return name.rank is Rank.PART or (is_one and are_parties(name.headers[0], cells))


# Names that are never the payee, and undecidable cases.


def _without_payer(
    names: Sequence[Candidate], cells: ColumnCells, *, party: str | None, accounts: Sequence[str]
) -> list[Candidate]:
    """Drop unmarked names that are constant while a marked one varies: they are ours.

    If the accounts vary, names in parts count as marked beside a constant shop, agency or the like. A
    constant payee beside suppliers and accounts that vary may be their customer, and is refused.
    """
    has_accounts = bool(accounts) and cells.varies(accounts)
    varying = [name for name in names if cells.varies(name.headers)]
    marked = [name for name in varying if name.rank in (Rank.PAYEE, Rank.SUBJECT)]
    has_parts = has_accounts and any(name.rank is Rank.PART for name in varying)
    ours = {Rank.HOLDER, Rank.PLAIN, Rank.SUBJECT} if marked else {Rank.SUBJECT} if has_parts else set()
    left = []
    for name in names:
        is_constant = cells.is_constant(name.headers) and not _is_of(name, party)
        if is_constant and has_accounts and name.rank is Rank.PAYEE:
            suppliers = [one.headers for one in marked if one.meant.subject is Cue.SUPPLIER]
            if suppliers:
                raise either("name", [name.headers, *suppliers], cells)
        if not is_constant or name.rank not in ours or name.meant.side is Side.PAYEE:
            left.append(name)
    return left


def _without_ledger_account(names: Sequence[Candidate], cells: ColumnCells) -> list[Candidate]:
    """Drop plain account names of a ledger, if every row has the name of a bank account."""
    of_banks = [
        name
        for name in names
        if name.rank is Rank.HOLDER
        and not name.meant.plain
        and not cells.is_constant(name.headers)
        and not _is_empty_in_a_row([name], cells)
    ]
    if not of_banks:
        return list(names)
    return [name for name in names if name.rank is not Rank.HOLDER or not name.meant.plain]


def _refuse_plain_account_name(
    names: Sequence[Candidate], companies: Sequence[Candidate], cells: ColumnCells
) -> None:
    """Refuse an account name unlike the payee's: it may be a ledger account, or ours."""
    for holder in (name for name in names if name.rank is Rank.HOLDER):
        for other in () if _is_confirmed(holder, names, cells) else (*names, *companies):
            if _are_two(holder, other, cells):
                raise either("name", [holder.headers, other.headers], cells)


def _is_confirmed(holder: Candidate, names: Sequence[Candidate], cells: ColumnCells) -> bool:
    """True if the account name equals the name of a payee or of the list's subject in every row."""
    return cells.varies(holder.headers) and any(
        name.rank in (Rank.PAYEE, Rank.SUBJECT)
        and not cells.joined(name.headers).has_nulls()
        and not cells.joined(holder.headers).has_nulls()
        and not cells.differ(name.headers, holder.headers)
        for name in names
    )


def _are_two(holder: Candidate, other: Candidate, cells: ColumnCells) -> bool:
    """True if the holder and another name may be two parties, and either could be the one to pay."""
    # A company that is the same in every row while a name varies is the payer.
    is_same = other.rank is Rank.COMPANY and cells.is_constant(other.headers)
    if other.rank is Rank.HOLDER or (is_same and cells.varies(holder.headers)):
        return False
    if (
        holder.meant.plain
        and not holder.is_instead
        and other.rank in (Rank.PAYEE, Rank.SUBJECT, Rank.COMPANY)
    ):
        return cells.differ(holder.headers, other.headers)
    if other.rank in (Rank.PLAIN, Rank.PART):
        is_same = cells.is_constant(holder.headers) and cells.varies(other.headers)
        return is_same or (holder.meant.plain and not cells.share_words(holder.headers, other.headers))
    return False


def _refuse_other_parts(names: Sequence[Candidate], cells: ColumnCells) -> None:
    """Refuse a whole name and one in parts with no common word: they are two people."""
    plain, parts = ([name.headers for name in names if name.rank is rank] for rank in (Rank.PLAIN, Rank.PART))
    for one, other in product(plain, parts):
        if not cells.share_words(one, other):
            raise either("name", [one, other], cells)


def _refuse_plain_name(names: Sequence[Candidate], cells: ColumnCells) -> None:
    """Refuse a plain name that is neither the agency's nor the tenant's: it may be the payee's."""
    if not names or names[0].meant.subject not in (Cue.PARTY, Cue.AGENCY, Cue.CUSTOMER):
        return
    ranks = (Rank.PART,) if names[0].meant.subject is Cue.CUSTOMER else (Rank.PLAIN, Rank.PART)
    for other in (name for name in names if name.rank in ranks):
        is_party = other.rank is Rank.PART or are_parties(other.headers[0], cells)
        if (
            is_party
            and cells.varies(other.headers)
            and not _are_banks(other.headers, cells)
            and (
                cells.are(names[0].headers[0], "^[^ ]+$")  # may be a part of the other name
                or not cells.share_words(names[0].headers, other.headers)
            )
        ):
            raise either("name", [names[0].headers, other.headers], cells)


def _are_banks(headers: Sequence[str], cells: ColumnCells) -> bool:
    [first, *rest] = headers
    sample = cells.joined(headers).drop_nulls().head(SAMPLE_ROWS) if rest else cells.sample(first)
    return 2 * int(sample.str.contains(BANK_NAMES).sum()) > len(sample)


def _only_person(seen: NameColumns, cells: ColumnCells) -> list[Candidate]:
    """Return a parent, relative or user if no other column may name people."""
    people = {header for header in cells.headers if _may_be_people(header, cells)}
    users = [
        Candidate((header,), Rank.SUBJECT, meant._replace(rule=USERS))
        for header in people
        if ((meant := meaning(header)).what == What.USER or _is_place(header, cells))
        and cells.varies([header])
    ]
    only = [
        name
        for name in (*seen.parents, *users)
        if people == {*name.headers} or (not people and len(name.headers) > 1)
    ]
    return only if len(only) == 1 else []


def _is_place(header: str, cells: ColumnCells) -> bool:
    """True if a header says just `School` or `Club name`, and none names or numbers people."""
    words = [word for word in tokens_of(header) if word not in words_with(Cue.NAME)]
    is_place = len(words) == 1 and words[0] in _PLACES
    people = {Cue.PERSON, Cue.PARTY, Cue.CUSTOMER, Cue.GIVEN, Cue.FAMILY, Cue.INITIALS, Cue.OTHER_PERSON}
    is_of_people = any(people & {*map(cue_of, tokens_of(one))} for one in cells.headers)
    is_of_keys = any(_may_number_people(one) for one in cells.headers) or payee_id_header(cells.headers)
    return is_place and not is_of_people and not is_of_keys


def _may_number_people(header: str) -> bool:
    """True if a header is for the numbers of anything but places and payments, such as `Claim ref`."""
    cues = {word: cue_of(word) for word in tokens_of(header) if word not in _PLACES}
    numbers = {Cue.NUMBER, Cue.ID, Cue.REFERENCE}
    return (
        meaning(header).what not in FIELDS
        and not numbers.isdisjoint(cues.values())
        and not {*cues.values()} <= numbers
    )


def _may_be_people(header: str, cells: ColumnCells) -> bool:
    is_bank = not words_with(Cue.BANK).isdisjoint(tokens_of(header)) or _are_banks((header,), cells)
    is_named = meaning(header).what == What.NEVER or are_parties(header, cells)
    return is_named and not is_bank and meaning(header).side is not Side.OURS


def _refuse_parent(found: NameColumns, names: Sequence[Candidate], cells: ColumnCells) -> None:
    """Refuse a pupil's parent, who may own the account; others' parents are contacts or identify them."""
    if found.has_person or any(name.rank is Rank.HOLDER for name in names):
        return
    for parent in found.parents:
        is_relative = parent.meant.subject is Cue.RELATIVE
        for name in (name for name in names if not is_relative or name.meant.subject is Cue.PARTY):
            refuse_differing("name", name.headers, [parent.headers], cells)


def _refuse_banks(chosen: Sequence[Candidate], cells: ColumnCells) -> None:
    """Refuse `Name` in a list of bank accounts: it may be the bank's name, which is not a payee."""
    [first, *_] = chosen
    if first.rank not in (Rank.PLAIN, Rank.HOLDER) or first.meant.side is Side.PAYEE or cells.row_count == 1:
        return
    [header] = first.headers
    if _are_banks(first.headers, cells):
        raise ColumnsRefused(
            Sentence("headers.names_of_banks", header=quoted(header)),
            Sentence("headers.say_which_has_payee", column=ColumnPair("name", ANY_COLUMN)),
            Sentence("headers.say_that_banks_are_paid", column=pair("name", first.headers)),
            field="name",
            candidates=first.headers,
        )


def _refuse_payers(name: Candidate, cells: ColumnCells, *, is_stated: bool) -> None:
    """Refuse payers unlike the customers or the like in a list of refunds: they may own the accounts.

    Your own companies are the same in many rows, and an employee's payer is the employer.
    """
    is_stated |= name.meant.subject is Cue.PERSON
    if is_stated or not any(words in fold(header) for header in cells.headers for words in _REFUNDS):
        return
    payers = [
        (header,)
        for header in cells.headers
        if meaning(header).what == "name" and meaning(header).side is Side.OURS
        if 2 * (filled := cells.text(header).drop_nulls()).n_unique() > len(filled) and cells.row_count > 1
    ]
    refuse_differing("name", name.headers, payers, cells)


def _of_the_first_rank(names: Sequence[Candidate], cells: ColumnCells) -> list[Candidate]:
    """Return the candidates of the most explicit rank: one, or several that agree in every row."""
    if not names:
        return []
    first, *rest = [name for name in names if name.rank is names[0].rank]
    marked = [name for name in (first, *rest) if name.meant.side is Side.PAYEE]
    if marked and len(marked) < len(rest) + 1 and not any(name.is_instead for name in marked):
        first, *rest = marked
    # A seller's legal name counts, not its shop's.
    legal = [name for name in (first, *rest) if Cue.FULL in cues_of(name.headers[0])]
    of_one = len({party_of(name.headers[0]) for name in (first, *rest)}) == 1
    if legal and of_one and first.rank is Rank.SUBJECT:
        first, *rest = legal
    refuse_differing("name", first.headers, (other.headers for other in rest), cells)
    return [first, *rest]


def _with_company(
    chosen: list[Candidate], found: NameColumns, cells: ColumnCells, *, is_stated: bool
) -> list[Candidate]:
    """Add a company column for rows that have a company instead of a name."""
    if found.has_person or (is_stated and not _is_empty_in_a_row(chosen, cells)):
        return chosen
    vary = any(cells.varies(name.headers) for name in (*chosen, *found.companies))
    others = [name for name in found.companies if not (vary and cells.is_constant(name.headers))]
    companies = _of_the_first_rank(others, cells)
    if not is_stated:
        for company in companies:
            for name in chosen:
                refuse_differing("name", name.headers, [company.headers], cells)
    return [*chosen, *companies]


def _is_empty_in_a_row(chosen: Sequence[Candidate], cells: ColumnCells) -> bool:
    return cells.first_filled([candidate.headers for candidate in chosen]).has_nulls()


def _empty(cells: ColumnCells) -> list[ColumnChoice]:
    """Choose an empty column of names if no other exists: each row is then rejected for its missing name."""
    for header in cells.headers:
        meant = meaning(header)
        if meant.what == "name" and meant.side is not Side.OURS and not cells.is_filled(header):
            return [ColumnChoice("name", ((header,),), meant.rule)]
    return []
