"""Which bank answers for an IBAN: needed by VoP Standard, where the requester names the responder.

Source of the built-in directory: schwifty's registry of bank codes. It is public, incomplete and
older than the scheme's own directory, so a BIC from the file or from the user's table goes first.
"""

import polars as pl

Directory = dict[str, str]
"""The start of an IBAN without its check digits, such as `DE10010010` -> BIC11; the longest start wins."""


def registry_bics(ibans: pl.Series) -> pl.DataFrame:
    """The BIC11 that the registry has for every distinct IBAN.

    Args:
        ibans: valid compact IBANs; nulls are passed over.

    Returns:
        One row per distinct value: `iban` and `registry_bic`, null where the registry knows none.
    """
    from schwifty import IBAN

    distinct = ibans.alias("iban").drop_nulls().unique()
    known: dict[str, str | None] = {}
    found: list[str | None] = []
    for text in distinct.to_list():
        iban = IBAN(text, allow_invalid=True)
        bank = iban.country_code + iban.bank_code + iban.branch_code
        if bank not in known:
            bic = iban.bic
            known[bank] = None if bic is None else str(bic).ljust(11, "X")
        found.append(known[bank])
    return pl.DataFrame({"iban": distinct, "registry_bic": pl.Series(found, dtype=pl.String)})


def directory_bics(ibans: pl.Series, directory: Directory) -> pl.DataFrame:
    """The BIC11 that the user's own table has for every distinct IBAN.

    Returns:
        One row per distinct value: `iban` and `directory_bic`, null where the table has none.
    """
    distinct = ibans.alias("iban").drop_nulls().unique().to_frame()
    bank = pl.concat_str(pl.col("iban").str.slice(0, 2), pl.col("iban").str.slice(4))
    found = pl.lit(None, dtype=pl.String)
    for start in sorted(directory, key=len):
        found = pl.when(bank.str.starts_with(start)).then(pl.lit(directory[start])).otherwise(found)
    return distinct.select("iban", found.alias("directory_bic"))
