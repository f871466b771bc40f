"""Payees and their accounts: normalised for comparing two files, and masked for people."""

import re
from collections.abc import Callable, Iterable, Mapping

import polars as pl

from pipeline.frames import ACCEPTED, PAYEE_KEYS, PAYEES, Accepted, Payees
from pipeline.rules.enumeration import PAYEES_MAX, same_name

KEYED = ("payee_id", "name", "account")
"""The columns of `Payees` that are kept as keyed hashes."""
Hashed = Mapping[str, Callable[[str], bytes]]
"""Keyed hashes of one folder, for each column in `KEYED`."""

HASHED = (pl.when(pl.col("payee_id").is_not_null()).then(pl.col("payee_id").hash()), pl.col("name").hash())
"""Ids and names of payees for `nobodys_ids`, within one process."""
_PAIRS_MAX = 4_000_000
"""Ids and names in memory at once."""
_IDENTIFICATIONS = ("lei", "organisation_bic", "organisation_id")
_WORD = re.compile(r"\w+")
_WORD_SHOWN_FROM_CHARS = 4
"""Shorter words are masked completely: a first and last character would be most of them."""


def payees_of(accepted: Accepted, ids: pl.Series) -> Payees:
    """Make `Payees` of the payments of a file that can be asked about, as `payees_with` and `nobodys_ids`.

    Args:
        accepted: `Accepted`.
        ids: what the payer's own system knows the payee of every row of the file by, null or blank where it
            says nothing.
    """
    found = payees_with(accepted, ids.gather(accepted["row"] - 1))
    return Payees(known_by_id(found.lazy(), HASHED[0], nobodys_ids(lambda: [found.select(HASHED)])).collect())


def payees_with(accepted: Accepted, ids: pl.Series) -> pl.DataFrame:
    """`Payees` before `known_by_id`, with the identification beside the id; the ids are those of these rows.

    Names are one if they differ in case or white space only, and a GB IBAN is one with the sort code and
    account number in it.
    """
    assert accepted.schema == ACCEPTED
    account, is_gb_iban = pl.col("account"), pl.col("account").str.starts_with("GB")
    identification = pl.coalesce(pl.format(f"{field} {{}}", field) for field in _IDENTIFICATIONS)
    return accepted.select(
        "row",
        payee_id=_folded(ids),
        name=same_name(pl.col("name")),
        account=pl.when(is_gb_iban).then(account.str.slice(8)).otherwise(account),
        secondary_reference=same_name(pl.col("secondary_reference")),
        identification=identification,
    )


def nobodys_ids(pairs: Callable[[], Iterable[pl.DataFrame]], pass_count: int = 1) -> pl.Series:
    """Hashed ids with more than `PAYEES_MAX` names, such as a company's number at its payroll office.

    The pairs are `HASHED` of all payments, piece by piece, which are gone through again and again so that
    fewer are in memory at once.
    """
    found = [pl.Series("payee_id", dtype=pl.UInt64)]
    for number in range(pass_count):
        some = (piece.filter(pl.col("payee_id") % pass_count == number).unique() for piece in pairs())
        names = pl.concat(some).group_by("payee_id").agg(pl.col("name").n_unique())
        found.append(names.filter(pl.col("name") > PAYEES_MAX)["payee_id"])
    return pl.concat(found)


def known_by_id(payees: pl.LazyFrame, hashed: pl.Expr, nobodys: pl.Series) -> pl.LazyFrame:
    """Payees by their ids, or by an identification if the id is one of `nobodys`, hashed the same way."""
    known = pl.when(~hashed.is_in(nobodys.implode())).then("payee_id")
    return payees.with_columns(payee_id=pl.coalesce(known, "identification")).drop("identification")


def passes_for(row_count: int) -> int:
    """How often `nobodys_ids` reads a file of this many payments."""
    return 1 + row_count // _PAIRS_MAX


def _folded(ids: pl.Series) -> pl.Series:
    return ids.str.strip_chars().str.to_lowercase().replace("", None)


def keyed(payees: pl.DataFrame, hashed: Hashed) -> pl.DataFrame:
    """`PayeeKeys` of `Payees`, one for each row, hashed with the key of a run's folder."""
    assert payees.schema == PAYEES
    # Some UK account numbers hold many accounts, distinguished by the secondary reference.
    account = pl.concat_str("account", "secondary_reference", separator=" ", ignore_nulls=True)
    texts = payees.with_columns(account=account)
    keys = [hashed_keys(texts[column], hashed[column]) for column in KEYED]
    return payees.select("row", *keys, account_shown=masked_account()).select(list(PAYEE_KEYS))


def keyed_ids(payees: pl.DataFrame, hashed: Hashed) -> pl.Series:
    """Only the `payee_id` of `PayeeKeys`, one for each row of `Payees`."""
    assert payees.schema == PAYEES
    return hashed_keys(payees["payee_id"], hashed["payee_id"])


def hashed_keys(texts: pl.Series, hashed: Callable[[str], bytes]) -> pl.Series:
    """Texts as keys; null is none."""
    # A list of its own is a third quicker than `map_elements`, and nothing but this takes long.
    keys = [None if text is None else hashed(text) for text in texts.to_list()]
    return pl.Series(texts.name, keys, pl.Binary).bin.reinterpret(dtype=pl.UInt64)


def masked_account() -> pl.Expr:
    """The account of `Payees`, 14 digits or an IBAN, masked as by `identifiers.masked`."""
    account, reference = pl.col("account"), pl.col("secondary_reference")
    country = account.str.extract("^([A-Z]{2})").fill_null("")
    shown = pl.format("{}**{}", country, account.str.tail(4))
    return pl.concat_str(shown, pl.format(" (reference **{})", reference.str.tail(2)), ignore_nulls=True)


def masked_name(name: str) -> str:
    """A name masked but for the first and last character of longer words; word lengths are kept.

    >>> masked_name("Avery Thornwood"), masked_name("Jo O'Neill-Smith")
    ('A***y T*******d', "J* O'N***l-S***h")
    """
    return _WORD.sub(lambda word: _masked_word(word.group()), name)


def _masked_word(word: str) -> str:
    last = word[-1] if len(word) >= _WORD_SHOWN_FROM_CHARS else ""
    return word[0] + "*" * (len(word) - 1 - len(last)) + last
