"""Payees and their accounts: normalised for comparing two files, and masked for people."""

import re
from collections.abc import Callable, Mapping

import polars as pl

from pipeline.frames import ACCEPTED, PAYEE_KEYS, PAYEES, Accepted, Payees
from pipeline.rules.enumeration import PAYEES_MAX, same_name

KEYED = ("payee_id", "name", "account")
"""The columns of `Payees` that are kept as keyed hashes."""
Hashed = Mapping[str, Callable[[str], bytes]]
"""Keyed hashes of one folder, for each column in `KEYED`."""

_IDENTIFICATIONS = ("lei", "organisation_bic", "organisation_id")
_WORD = re.compile(r"\w+")
_WORD_SHOWN_FROM_CHARS = 4
"""In shorter words a first and a last character would be most of it."""


def payees_of(accepted: Accepted, ids: pl.Series | None) -> Payees:
    """Make `Payees` of the payments that can be asked about.

    Names are one if they differ in case or white space only, and a GB IBAN is one with the sort code and
    account number in it. An id beside more than `PAYEES_MAX` names identifies no payee: a company's number
    at its payroll office, say.

    Args:
        accepted: `Accepted`.
        ids: what the payer's own system knows the payee of every row of the file by, null or blank where it
            says nothing; None if the file has no such column.
    """
    assert accepted.schema == ACCEPTED
    account, is_gb_iban = pl.col("account"), pl.col("account").str.starts_with("GB")
    ids_folded = pl.lit(None, pl.String) if ids is None else _folded(ids.gather(accepted["row"] - 1))
    identification = pl.coalesce(pl.format(f"{field} {{}}", field) for field in _IDENTIFICATIONS)
    payees = accepted.select(
        "row",
        payee_id=ids_folded,
        name=same_name(pl.col("name")),
        account=pl.when(is_gb_iban).then(account.str.slice(8)).otherwise(account),
        secondary_reference=same_name(pl.col("secondary_reference")),
        identification=identification,
    )
    names = payees.drop_nulls("payee_id").group_by("payee_id").agg(pl.col("name").n_unique())
    nobodys = names.filter(pl.col("name") > PAYEES_MAX)["payee_id"]
    is_somebodys = ~pl.col("payee_id").is_in(nobodys.implode())
    payees = payees.with_columns(
        payee_id=pl.coalesce(pl.when(is_somebodys).then("payee_id"), "identification")
    ).drop("identification")
    assert payees.schema == PAYEES
    return Payees(payees)


def _folded(ids: pl.Series) -> pl.Series:
    return ids.str.strip_chars().str.to_lowercase().replace("", None)


def keyed(payees: pl.DataFrame, hashed: Hashed) -> pl.DataFrame:
    """`PayeeKeys` of `Payees`, one for each row, hashed as in the folder that keeps those to compare with."""
    assert payees.schema == PAYEES
    # Behind some UK account numbers are many accounts; the secondary reference tells them apart.
    account = pl.concat_str("account", "secondary_reference", separator=" ", ignore_nulls=True)
    texts = payees.with_columns(account=account)
    keys = [_keys(texts[column], hashed[column]) for column in KEYED]
    return payees.select("row", *keys, account_shown=masked_account()).select(list(PAYEE_KEYS))


def keyed_ids(payees: pl.DataFrame, hashed: Hashed) -> pl.Series:
    """The `payee_id` of `PayeeKeys` alone, one for each row of `Payees`."""
    assert payees.schema == PAYEES
    return _keys(payees["payee_id"], hashed["payee_id"])


def _keys(texts: pl.Series, hashed: Callable[[str], bytes]) -> pl.Series:
    # A list of its own is a third quicker than `map_elements`, and nothing but this takes long.
    keys = [None if text is None else hashed(text) for text in texts.to_list()]
    return pl.Series(texts.name, keys, pl.Binary).bin.reinterpret(dtype=PAYEE_KEYS[texts.name])


def masked_account() -> pl.Expr:
    """The account of `Payees`, which is 14 digits or an IBAN, as `identifiers.masked` shows it."""
    account, reference = pl.col("account"), pl.col("secondary_reference")
    country = account.str.extract("^([A-Z]{2})").fill_null("")
    shown = pl.format("{}**{}", country, account.str.tail(4))
    return pl.concat_str(shown, pl.format(" (reference **{})", reference.str.tail(2)), ignore_nulls=True)


def masked_name(name: str) -> str:
    """A name by the first and last character of its longer words, and by how long each of them is.

    >>> masked_name("Avery Thornwood"), masked_name("Jo O'Neill-Smith")
    ('A***y T*******d', "J* O'N***l-S***h")
    """
    return _WORD.sub(lambda word: _masked_word(word.group()), name)


def _masked_word(word: str) -> str:
    last = word[-1] if len(word) >= _WORD_SHOWN_FROM_CHARS else ""
    return word[0] + "*" * (len(word) - 1 - len(last)) + last
