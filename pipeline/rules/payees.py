"""Payees and their accounts, normalised to compare two files and masked for people."""

import re
from collections.abc import Callable, Iterable, Mapping

import polars as pl

from pipeline.frames import ACCEPTED, PAYEE_KEYS, PAYEES, Accepted, Payees
from pipeline.rules.enumeration import PAYEES_MAX, same_name

KEYED = ("payee_id", "name", "account")  # the columns of `Payees` that are kept as keyed hashes
Hashed = Mapping[str, Callable[[str], bytes]]  # column in `KEYED` -> its hash with one folder's key

HASHED = (pl.when(pl.col("payee_id").is_not_null()).then(pl.col("payee_id").hash()), pl.col("name").hash())
"""Hashed IDs and names of payees for `nobodys_ids`, the same within one process."""
_PAIRS_MAX = 4_000_000  # pairs of IDs and names in memory at a time
_IDENTIFICATIONS = ("lei", "organisation_bic", "organisation_id")
_WORD = re.compile(r"\w+")
_WORD_SHOWN_FROM_CHARS = 4  # first and last character would be most of a shorter word


def payees_of(accepted: Accepted, ids: pl.Series) -> Payees:
    """Make `Payees` from a file's accepted payments; `ids` has the payer's own ID or a blank for each row."""
    found = payees_with(accepted, ids.gather(accepted["row"] - 1))
    return Payees(known_by_id(found.lazy(), HASHED[0], nobodys_ids(lambda: [found.select(HASHED)])).collect())


def payees_with(accepted: Accepted, ids: pl.Series) -> pl.DataFrame:
    """Return `Payees` before `known_by_id`, with identification and ID; `ids` has one for each row.

    Names that differ only in case or white space are equal, and so is a GB IBAN to the UK account in it.
    """
    assert accepted.schema == ACCEPTED
    account, is_gb_iban = pl.col("account"), pl.col("account").str.starts_with("GB")
    return accepted.select(
        "row",
        payee_id=ids.str.strip_chars().str.to_lowercase().replace("", None),
        name=same_name(pl.col("name")),
        account=pl.when(is_gb_iban).then(account.str.slice(8)).otherwise(account),
        secondary_reference=same_name(pl.col("secondary_reference")),
        identification=pl.coalesce(pl.format(f"{field} {{}}", field) for field in _IDENTIFICATIONS),
    )


def nobodys_ids(pairs: Callable[[], Iterable[pl.DataFrame]], pass_count: int = 1) -> pl.Series:
    """Find hashed IDs with more than `PAYEES_MAX` names, such as a company's number at its payroll office.

    `pairs` yields `HASHED` of all payments in pieces, once for each pass, which save memory.
    """
    found = [pl.Series("payee_id", dtype=pl.UInt64)]
    for number in range(pass_count):
        some = (piece.filter(pl.col("payee_id") % pass_count == number).unique() for piece in pairs())
        names = pl.concat(some).group_by("payee_id").agg(pl.col("name").n_unique())
        found.append(names.filter(pl.col("name") > PAYEES_MAX)["payee_id"])
    return pl.concat(found)


def known_by_id(payees: pl.LazyFrame, hashed: pl.Expr, nobodys: pl.Series) -> pl.LazyFrame:
    """Identify payees by their IDs, or by an identification if the hashed ID is in `nobodys`."""
    known = pl.when(~hashed.is_in(nobodys.implode())).then("payee_id")
    return payees.with_columns(payee_id=pl.coalesce(known, "identification")).drop("identification")


def passes_for(row_count: int) -> int:
    """Return how often `nobodys_ids` reads a file with this many payments."""
    return 1 + row_count // _PAIRS_MAX


def keyed(payees: pl.DataFrame, hashed: Hashed) -> pl.DataFrame:
    """Return `PayeeKeys` of `Payees`, one for each row, hashed with the key of a run's folder."""
    assert payees.schema == PAYEES
    # Some UK account numbers are shared; the secondary reference tells the accounts apart.
    account = pl.concat_str("account", "secondary_reference", separator=" ", ignore_nulls=True)
    texts = payees.with_columns(account=account)
    keys = [hashed_keys(texts[column], hashed[column]) for column in KEYED]
    return payees.select("row", *keys, account_shown=masked_account()).select(list(PAYEE_KEYS))


def keyed_ids(payees: pl.DataFrame, hashed: Hashed) -> pl.Series:
    """Return only the `payee_id` of `PayeeKeys`, one for each row of `Payees`."""
    assert payees.schema == PAYEES
    return hashed_keys(payees["payee_id"], hashed["payee_id"])


def hashed_keys(texts: pl.Series, hashed: Callable[[str], bytes]) -> pl.Series:
    """Hash texts to keys; null stays null."""
    # A separate list is a third faster than `map_elements`; only this step takes long.
    keys = [None if text is None else hashed(text) for text in texts.to_list()]
    return pl.Series(texts.name, keys, pl.Binary).bin.reinterpret(dtype=pl.UInt64)


def masked_account() -> pl.Expr:
    """Mask the account of `Payees`, 14 digits or an IBAN, like `identifiers.masked`."""
    account, reference = pl.col("account"), pl.col("secondary_reference")
    country = account.str.extract("^([A-Z]{2})").fill_null("")
    shown = pl.format("{}**{}", country, account.str.tail(4))
    return pl.concat_str(shown, pl.format(" (reference **{})", reference.str.tail(2)), ignore_nulls=True)


def masked_name(name: str) -> str:
    """Mask a name except the first and last character of longer words; word lengths are kept.

    >>> masked_name("Avery Thornwood"), masked_name("Jo O'Neill-Smith")
    ('A***y T*******d', "J* O'N***l-S***h")
    """
    return _WORD.sub(lambda word: _masked_word(word.group()), name)


def _masked_word(word: str) -> str:
    last = word[-1] if len(word) >= _WORD_SHOWN_FROM_CHARS else ""
    return word[0] + "*" * (len(word) - 1 - len(last)) + last
