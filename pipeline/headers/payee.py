"""Which column names who is paid: the most explicit one, and a refusal where two of one rank differ.

The ranks, from the most explicit: who owns the account, the payee's role, whom the list is about, a plain
name, a name in parts, a company. An employer beside an employee, a contact person, a bank and everything of
our side are never the payee.
"""

import re
from collections.abc import Sequence
from functools import partial

import polars as pl

from pipeline.headers.cells import SAMPLE_ROWS, ColumnCells, comparable
from pipeline.headers.choice import (
    PART_OF_THE_NAME,
    THE_PAYEE,
    ColumnChoice,
    ColumnsRefused,
    either,
    pair,
    quoted,
    rule_of,
)
from pipeline.headers.codes import doubts, may_be_codes, refuse_codes, without_codes
from pipeline.headers.meaning import COMPANY, PARENT, Rank, Side, meaning
from pipeline.headers.names import Candidate, NameColumns, found
from pipeline.headers.parties import (
    is_of_unknown,
    names_unknown_party,
    names_unknown_payee,
    party_of,
    unknown_words,
)
from pipeline.headers.spelling import fold, tokens_of
from pipeline.headers.words import Cue
from pipeline.wording import ANY_COLUMN, ColumnPair, Sentence

_LIKE_A_NAME = r"^\p{Lu}[\p{L}'.-]*(?: \p{L}[\p{L}'.&-]*){1,4}$"
_WORD = r"\p{Lu}[\p{L}\p{N}'\u2019./-]*,?"
_LIKE_A_PARTY = (
    rf"^{_WORD}(?: (?:{_WORD}|[&+]|d[aeiou]s?|del|della|der|den|di|du|la|le|of|and|und|et|og|och|van|von|vom"
    r"|zu|zum|ten|ter|y|e|i|a\.?s\.?|s\.?r\.?o\.?|z|o\.?o\.?|s\.?p\.?a?\.?))+$"
)
"""Two words or more, each with a capital but for particles and legal forms: no text about a payment."""
_MOSTLY = 0.75
_LONG_WORD = r"[\p{L}]{3,}"
_LIKE_A_WORD = r"^\p{Lu}[\p{L}'. -]+$"
_IS_INSTEAD = re.compile(r"^(?:altern|abw|deviating|different|permitted)")
"""How the header of a substitute payee begins, in the rows in which one is named."""
_IF = frozenset("if falls wenn si se indien als jeśli hvis om jos pokud ha dacă αν".split())  # noqa: SIM905, RUF001
"""And how one continues that is empty elsewhere: `Payee (if not the pupil)`."""
_BANK = (
    r"(?i)^(?:.*[\s(])?(?:\p{L}*bank(?:en|a)?|banc[ao]|banque|\p{L}*sparkasse|caixa|pankki|τράπεζα|spořitelna"
    r"|takarékszövetkezet|building society)(?:[\s,.)].*)?$"
)


_OURS = rule_of("the same in every row where the payee differs, so taken for your own")


def choose(cells: ColumnCells, accounts: Sequence[str] = ()) -> list[ColumnChoice]:
    """Where the payee's name is read from; nothing where no column names one.

    Args:
        cells: The columns that `--map` does not name.
        accounts: The headers of the account that is asked about: `Landlord IBAN` shows who is paid.

    Raises:
        ColumnsRefused: two columns could be the payee and differ in a row.
    """
    seen = found(cells)
    party = _party_of(accounts)
    names, why_not = list(seen.whole), dict.fromkeys(seen.codes, rule_of("no name in its cells"))
    for left_of, why in (
        (partial(_without_payer, party=party), _OURS),
        (
            _without_ledger_account,
            rule_of("an account's name, and another column has that of a bank account"),
        ),
        (partial(_of_party, party=party, accounts=accounts), rule_of("of another party than the account")),
        (partial(without_codes, seen=seen), rule_of("logins or codes of those whom another column names")),
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
    if names and names[0].meant.subject is Cue.PARTY and not _is_of(names[0], party):
        _refuse_plain_name(names, cells)
    chosen = _of_the_first_rank(names, cells)
    if chosen and _answers_in_some_rows(chosen[0]) and _is_empty_in_a_row(chosen, cells):
        chosen += _of_the_first_rank([name for name in names if name.rank > chosen[0].rank], cells)
    chosen = _with_company(chosen, seen, cells, is_said=bool(chosen) and _is_said(chosen[0], party))
    if not chosen:
        return _empty(cells)
    _refuse_same_name(chosen, cells)
    _refuse_owner(chosen, accounts, cells, seen)
    _refuse_empty(chosen, cells)
    _refuse_banks(chosen, cells)
    refuse_codes(chosen, names, cells)
    is_explicit = _says_role(chosen[0]) and chosen[0].rank is not Rank.SUBJECT
    is_bound = (is_explicit or _is_of(chosen[0], party)) and not may_be_codes(chosen[0], cells)
    if not is_bound or chosen[0].rank is not Rank.HOLDER:
        _refuse_unknown_name(chosen, cells, is_bound=is_bound)
    _refuse_owner_of_repeated(chosen, accounts, cells)
    if any(candidate.rank is not Rank.HOLDER for candidate in chosen):
        _refuse_second_line(chosen, seen.seconds, cells)
    others = tuple(
        header for candidate in (*seen.whole, *seen.companies, *seen.parents) for header in candidate.headers
    )
    return [
        ColumnChoice(
            "name",
            tuple(candidate.headers for candidate in chosen),
            chosen[0].meant.rule,
            others,
            notes=doubts(chosen, cells),
            rules={header: candidate.meant.rule for candidate in chosen for header in candidate.headers},
            why_not={**why_not, **_companies_not_read(seen, chosen, cells)},
        )
    ]


def _companies_not_read(
    seen: NameColumns, chosen: Sequence[Candidate], cells: ColumnCells
) -> dict[str, Sentence]:
    """Header -> why it is not the payee, of companies."""
    companies = [company for company in seen.companies if company not in chosen]
    ours = [company for company in companies if cells.is_constant(company.headers)]
    return {
        **{header: _OURS for name in ours for header in name.headers},
        **{
            header: rule_of("the employer, never the payee")
            for name in companies
            if seen.has_person
            for header in name.headers
        },
    }


def _is_said(name: Candidate, party: str | None) -> bool:
    """Whether a header shows that this is who is paid: its own, or that of the account."""
    return name.rank in (Rank.HOLDER, Rank.PAYEE) or _is_of(name, party)


def _says_role(name: Candidate) -> bool:
    """Whether a name stands under a role that is paid, and not only under `Name`, `Company` or `Tenant`."""
    if name.rank is Rank.HOLDER:
        return not name.meant.plain
    return name.rank is Rank.PAYEE or (name.rank is Rank.SUBJECT and name.meant.subject in _PAID)


_PAID = (Cue.PERSON, Cue.SUPPLIER, Cue.CUSTOMER)


# Whose the account is.


def _party_of(accounts: Sequence[str]) -> str | None:
    """The party that the headers of an account name, where they name one."""
    parties = {party for header in accounts if (party := party_of(header)) is not None}
    return min(parties) if len(parties) == 1 else None


def _is_of(name: Candidate, party: str | None) -> bool:
    return party is not None and party_of(name.headers[0]) == party


def _of_party(
    names: list[Candidate], cells: ColumnCells, *, party: str | None, accounts: Sequence[str]
) -> list[Candidate]:
    """Without the names of other parties than the one whose account is asked about.

    Raises:
        ColumnsRefused: all are of others, or the payee's role names another party in a row.
    """
    if party is None:
        return names
    left = [name for name in names if party_of(name.headers[0]) in (None, party)]
    if names and not left:
        account = next(header for header in accounts if party_of(header) == party)
        raise ColumnsRefused(
            Sentence(
                "headers.account_of_others",
                account=quoted(account),
                names="+".join(map(quoted, names[0].headers)),
            ),
            Sentence("headers.name_right_column", column=ColumnPair("name", ANY_COLUMN)),
            field="name",
            candidates=[header for name in names for header in name.headers],
        )
    theirs = [name for name in left if _is_of(name, party)]
    for payee in (name for name in left if name.rank is Rank.PAYEE and name not in theirs):
        for name in theirs:
            if cells.differ(payee.headers, name.headers):
                raise either("name", [payee.headers, name.headers], cells, what=THE_PAYEE)
    return left


# What is never the payee, and what cannot be decided.


def _without_payer(names: Sequence[Candidate], cells: ColumnCells, *, party: str | None) -> list[Candidate]:
    """Without unmarked names that are the same in every row where a marked one differs: they are ours."""
    marked = [
        name for name in names if name.rank in (Rank.PAYEE, Rank.SUBJECT) and cells.varies(name.headers)
    ]
    if not marked:
        return list(names)
    return [
        name
        for name in names
        if name in marked
        or name.meant.side is Side.PAYEE
        or _is_of(name, party)
        or not cells.is_constant(name.headers)
        or name.rank not in (Rank.HOLDER, Rank.PLAIN, Rank.SUBJECT)
    ]


def _without_ledger_account(names: Sequence[Candidate], cells: ColumnCells) -> list[Candidate]:
    """Without the plain account names of a ledger, where every row has the name of a bank account."""
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


def _answers_in_some_rows(name: Candidate) -> bool:
    """Whether an empty cell of this name leaves the answer to the next rank."""
    return name.rank is Rank.HOLDER or _is_instead(name)


def _is_instead(name: Candidate) -> bool:
    [header, *_] = name.headers
    return bool(_IS_INSTEAD.match(fold(header))) or not _IF.isdisjoint(tokens_of(header))


def _refuse_plain_account_name(
    names: Sequence[Candidate], companies: Sequence[Candidate], cells: ColumnCells
) -> None:
    """An account name that differs from the payee's may be that of an account in the books, or our own."""
    for holder in (name for name in names if name.rank is Rank.HOLDER):
        for other in (*names, *companies):
            if _are_two(holder, other, cells):
                raise either("name", [holder.headers, other.headers], cells, what=THE_PAYEE)


def _are_two(holder: Candidate, other: Candidate, cells: ColumnCells) -> bool:
    """Whether a holder and another name may be two parties that could both be paid."""
    if other.rank is Rank.HOLDER or (other.rank is Rank.COMPANY and _is_the_payers(other, holder, cells)):
        return False
    if (
        holder.meant.plain
        and not _is_instead(holder)
        and other.rank in (Rank.PAYEE, Rank.SUBJECT, Rank.COMPANY)
    ):
        return cells.differ(holder.headers, other.headers)
    if other.rank in (Rank.PLAIN, Rank.PART):
        is_same = cells.is_constant(holder.headers) and cells.varies(other.headers)
        return is_same or (holder.meant.plain and not _share_words(holder, other, cells))
    return False


def _refuse_other_parts(names: Sequence[Candidate], cells: ColumnCells) -> None:
    """A whole name and one in parts that have nothing in common are two people."""
    for plain in (name for name in names if name.rank is Rank.PLAIN):
        for parts in (name for name in names if name.rank is Rank.PART):
            if not _share_words(plain, parts, cells):
                raise either("name", [plain.headers, parts.headers], cells, what=THE_PAYEE)


def _refuse_plain_name(names: Sequence[Candidate], cells: ColumnCells) -> None:
    """A plain `Name` that has nothing in common with the agency's or the tenant's may be of whom is paid."""
    for plain in (name for name in names if name.rank is Rank.PLAIN and cells.varies(name.headers)):
        is_party = _are_parties(plain.headers[0], cells) and not _are_banks(plain.headers, cells)
        if is_party and not _share_words(names[0], plain, cells):
            raise either("name", [names[0].headers, plain.headers], cells, what=THE_PAYEE)


def _are_parties(header: str, cells: ColumnCells, look: str = _LIKE_A_PARTY, share: float = _MOSTLY) -> bool:
    """Whether most cells look like names of people and firms."""
    sample = cells.sample(header)
    return len(sample) > 0 and int(sample.str.contains(look).sum()) >= share * len(sample)


def _are_banks(headers: Sequence[str], cells: ColumnCells) -> bool:
    sample = cells.joined(headers).drop_nulls().head(SAMPLE_ROWS)
    return 2 * int(sample.str.contains(_BANK).sum()) > len(sample)


def _is_the_payers(company: Candidate, name: Candidate, cells: ColumnCells) -> bool:
    """Whether a company is the same in every row, where a name is not: it pays."""
    return cells.is_constant(company.headers) and cells.varies(name.headers)


def _share_words(one: Candidate, other: Candidate, cells: ColumnCells) -> bool:
    """Whether in every row the two have a word in common, as two forms of one name have."""
    words = [
        cells.joined(name.headers).str.to_lowercase().str.extract_all(_LONG_WORD).alias(side)
        for side, name in (("one", one), ("other", other))
    ]
    common = pl.col("one").list.set_intersection("other").list.len()
    return bool(pl.DataFrame(words).drop_nulls().select((common > 0).all()).item())


def _refuse_parent(found: NameColumns, names: Sequence[Candidate], cells: ColumnCells) -> None:
    """A parent beside a pupil may own the account; beside an employee it is whom to call."""
    if found.has_person or any(name.rank is Rank.HOLDER for name in names):
        return
    for parent in found.parents:
        for name in names:
            if cells.differ(parent.headers, name.headers):
                raise either("name", [name.headers, parent.headers], cells, what=THE_PAYEE)


def _refuse_same_name(chosen: Sequence[Candidate], cells: ColumnCells) -> None:
    """One name in every row, beside names with an unknown header, may be the payer's."""
    [first, *_] = chosen
    if not cells.is_constant(first.headers):
        return
    for header in cells.headers:
        sample = cells.sample(header)
        is_unread = meaning(header).what is None and len(sample) > 0
        if is_unread and sample.str.contains(_LIKE_A_NAME).all() and cells.varies([header]):
            raise either("name", [first.headers, (header,)], cells, what=THE_PAYEE)


def _refuse_owner(
    chosen: Sequence[Candidate], accounts: Sequence[str], cells: ColumnCells, seen: NameColumns
) -> None:
    """An account whose header says too little may be of a company, or of a column that shares a word."""
    words = set[str]().union(*map(unknown_words, accounts))
    is_unsaid = any(meaning(header).what is None for header in accounts)
    companies = {header for name in seen.companies for header in name.headers if is_unsaid}
    for header in cells.headers:
        has_word = meaning(header).what is None and not words.isdisjoint(unknown_words(header))
        is_owner = has_word or (header in companies and not cells.is_constant([header]))
        if is_owner and cells.are(header, _LIKE_A_NAME) and cells.differ(chosen[0].headers, [header]):
            raise either("name", [chosen[0].headers, (header,)], cells, what=THE_PAYEE)


def _refuse_empty(chosen: Sequence[Candidate], cells: ColumnCells) -> None:
    """A name that stands elsewhere in some rows, or lacks a part in them, beside unread names there."""
    [first, *_] = chosen
    parts = [part for part in first.headers if first.rank is Rank.PART and cells.text(part).has_nulls()]
    if not parts and not _is_instead(first):
        return
    sources = [parts[:1]] if parts else [name.headers for name in chosen]
    lacking = cells.where(cells.first_filled(sources).is_null())
    look, is_name = (_LIKE_A_WORD, names_unknown_party) if parts else (_LIKE_A_NAME, is_of_unknown)
    for header in filter(is_name, cells.headers):
        if lacking.are(header, look) and not lacking.text(header).has_nulls():
            whole = ["+".join(header if part in parts[:1] else part for part in first.headers)]
            if not parts:
                whole = ["|".join(["+".join(name.headers) for name in chosen] + [header])]
            said = [pair("name", first.headers), pair("name", whole)]
            raise either("name", [first.headers, (header,)], cells, what=THE_PAYEE, pairs=said)


def _refuse_banks(chosen: Sequence[Candidate], cells: ColumnCells) -> None:
    """A `Name` in a list of bank accounts may be the bank's name, which must not be checked as a payee."""
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


def _refuse_unknown_name(chosen: Sequence[Candidate], cells: ColumnCells, *, is_bound: bool) -> None:
    """Beside a name that no header binds to the account, names under an unknown header may be the payees'.

    An employee's is one: `Employee` beside `Issuing authority`. A holder's and a payee's are bound to it;
    beside a payee's, a name that stands in some rows only may be of whom is paid there instead.
    """
    is_paid = _says_role(chosen[0]) and not may_be_codes(chosen[0], cells)
    for header in cells.headers:
        says_name = names_unknown_payee(header) or (not is_paid and names_unknown_party(header))
        if not says_name and not is_of_unknown(header):
            continue
        # Where no header says that these are names, most cells must look so.
        is_named = _are_parties(header, cells, *((_LIKE_A_NAME, 0.5) if says_name else ()))
        if not is_named or cells.is_constant([header]) or (is_bound and not cells.text(header).has_nulls()):
            continue
        other = Candidate((header,), Rank.PLAIN, meaning(header))
        for name in chosen:
            is_other_form = name.rank is Rank.HOLDER and _share_words(name, other, cells)
            if cells.differ(name.headers, [header]) and not is_other_form:
                raise either("name", [name.headers, (header,)], cells, what=THE_PAYEE)


def _refuse_owner_of_repeated(
    chosen: Sequence[Candidate], accounts: Sequence[str], cells: ColumnCells
) -> None:
    """Refuse where names share an account and another column may name its owner."""
    may_own = _other_names(chosen, cells) if accounts else []
    if accounts and not cells.is_constant(accounts):
        may_own = [header for header in may_own if not cells.is_constant([header])]
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
            raise either("name", [chosen[0].headers, (header,)], cells, what=THE_PAYEE)


def _other_names(chosen: Sequence[Candidate], cells: ColumnCells) -> list[str]:
    """The other columns that hold names of parties, known ones and unknown."""
    read = {header for name in chosen for header in name.headers}
    return [
        header
        for header in cells.headers
        if header not in read
        and (is_of_unknown(header) or meaning(header).what in ("name", COMPANY, PARENT))
        and _are_parties(header, cells)
    ]


def _refuse_second_line(chosen: Sequence[Candidate], seconds: Sequence[str], cells: ColumnCells) -> None:
    for second in seconds:
        first = chosen[0].headers
        raise either(
            "name",
            [first, (second,)],
            cells,
            what=PART_OF_THE_NAME,
            pairs=[pair("name", first), pair("name", (*first, second))],
        )


def _of_the_first_rank(names: Sequence[Candidate], cells: ColumnCells) -> list[Candidate]:
    """The candidates of the most explicit rank: one, or several that agree in every row that has both."""
    if not names:
        return []
    first, *rest = [name for name in names if name.rank is names[0].rank]
    marked = [name for name in (first, *rest) if name.meant.side is Side.PAYEE]
    if marked and len(marked) < len(rest) + 1:
        first, *rest = marked
    for other in rest:
        if cells.differ(first.headers, other.headers):
            raise either("name", [first.headers, other.headers], cells, what=THE_PAYEE)
    return [first, *rest]


def _with_company(
    chosen: list[Candidate], found: NameColumns, cells: ColumnCells, *, is_said: bool
) -> list[Candidate]:
    """The names, and a company where the row has one instead of a name."""
    if found.has_person or (is_said and not _is_empty_in_a_row(chosen, cells)):
        return chosen
    companies = _of_the_first_rank(found.companies, cells)
    if not companies:
        return chosen
    if not chosen:
        return companies
    if all(any(_is_the_payers(company, name, cells) for name in chosen) for company in companies):
        return chosen
    if not is_said:
        for company in companies:
            for name in chosen:
                if cells.differ(name.headers, company.headers):
                    raise either("name", [name.headers, company.headers], cells, what=THE_PAYEE)
    return [*chosen, *companies]


def _is_empty_in_a_row(chosen: Sequence[Candidate], cells: ColumnCells) -> bool:
    return cells.first_filled([candidate.headers for candidate in chosen]).has_nulls()


def _empty(cells: ColumnCells) -> list[ColumnChoice]:
    """A column of names without any, where there is no other: each row is reported as lacking its name."""
    for header in cells.headers:
        meant = meaning(header)
        if meant.what == "name" and meant.side is not Side.OURS and not cells.is_filled(header):
            return [ColumnChoice("name", ((header,),), meant.rule)]
    return []
