"""The local rules: what must be true of a payment before anyone is asked about it.

A rule is a row of a table. Its condition is about cleaned and routed payments (stages/validate.py);
its sentence completes "row 17, sort_code: ..." and says what to do. Sources: the APIs' own limits (API
reference, "Resources and their fields"), and practice: what spreadsheets do to account numbers.
"""

from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

from pipeline.frames import RouteReason
from pipeline.rules.amounts import AMBIGUOUS, AMOUNT, MANY_DECIMALS, ZERO
from pipeline.rules.currencies import CURRENCY, DECIMALS, OTHER, USUAL_CURRENCIES
from pipeline.rules.identifiers import SCIENTIFIC
from pipeline.rules.modulus import ModulusState
from pipeline.rules.payee_names import ANY_INVISIBLE, INVISIBLE, LOST_FORMULA, NO_NAME
from pipeline.rules.unasked import OUT_OF_ALPHABET, OUT_OF_REACH, SENTENCES, UNASKED
from schemas.cop import NAME_LENGTH_MAX, SECONDARY_REFERENCE_LENGTH_MAX, AccountType
from schemas.vop import SchemeCode


class Rule(NamedTuple):
    """One thing that must not be; a condition that cannot be decided counts as broken."""

    field: str
    code: str
    broken: pl.Expr
    sentence: str


HAS_IDENTIFICATION = pl.any_horizontal(pl.col("lei", "organisation_bic", "organisation_id").is_not_null())
"""Whether a payment can be asked about by an identification."""

_CONTROL = r"[\x00-\x1f\x7f-\x9f]"
_DATE = r"^(19|20)[0-9]{2}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])(T[0-9:]+)?$"
"""What a spreadsheet makes of 01-02-03, once the hyphens are gone."""
_REPLACEMENT = "\ufffd"
_PRIVATE_USE = r"\p{Co}"
_ERROR = r"^(?i:#(N/A|GETTING_DATA|NAME\?|(REF|VALUE|DIV/0|NULL|NUM|SPILL|CALC|FIELD|BUSY)!))$"
_ERROR_SENTENCE = "the error of a spreadsheet formula instead of a value; correct the formula"


def _has(field: str) -> pl.Expr:
    return pl.col(field).is_not_null()


def _present(field: str, condition: pl.Expr) -> pl.Expr:
    """A rule about a value, for rows that have one."""
    return _has(field) & condition


def _shape(field: str, pattern: str) -> pl.Expr:
    """A rule about how a value must look; a spreadsheet's error breaks a rule of its own (CELL_ERROR)."""
    return _present(field, ~pl.col(field).str.contains(f"{pattern}|{_ERROR}"))


def _iban(fault: str) -> pl.Expr:
    return (pl.col("iban_fault") == fault).fill_null(value=False) & ~_is_error("iban")


def _is_error(field: str) -> pl.Expr:
    return pl.col(field).str.contains(_ERROR).fill_null(value=False)


def _fault(column: str, fault: str) -> pl.Expr:
    return (pl.col(f"{column}_fault") == fault).fill_null(value=False) & ~_is_error(column)


def _bic_rules(field: str) -> list[Rule]:
    return [
        Rule(
            field,
            f"{field.upper()}_FORMAT",
            _fault(field, "FORMAT"),
            "not a BIC of 8 or 11 characters; correct or empty it",
        ),
        Rule(
            field,
            f"{field.upper()}_FORMAT",
            _fault(field, "COUNTRY"),
            "no BIC: its fifth and sixth characters are no country; correct or empty it",
        ),
    ]


def _text_rules(field: str, *, column: str | None = None, invisible: str = ANY_INVISIBLE) -> list[Rule]:
    """The rules of free text that goes to an API, kept in a column of the field's name or another."""
    column = column or field
    return [
        Rule(
            field,
            "CONTROL_CHARACTER",
            _present(column, pl.col(column).str.contains(_CONTROL)),
            "holds a control character; type it again",
        ),
        Rule(
            field,
            "INVISIBLE_CHARACTER",
            _present(column, pl.col(column).str.contains(invisible)),
            "holds an invisible or direction-changing character; type it again",
        ),
        Rule(
            field,
            "DAMAGED_TEXT",
            _present(column, pl.col(column).str.contains(_REPLACEMENT, literal=True)),
            "holds the replacement character of a wrong encoding; export the file again as UTF-8",
        ),
        Rule(
            field,
            "DAMAGED_TEXT",
            _present(column, pl.col(column).str.contains(_PRIVATE_USE)),
            "holds a character of private use, which one program alone can read; type it again",
        ),
        Rule(field, "CELL_ERROR", _present(column, _is_error(column)), _ERROR_SENTENCE),
    ]


_DEFECT_RULES = [
    Rule("row", code, pl.col("defect").eq_missing(code), sentence) for code, sentence in SENTENCES.items()
]
DEFECTS = tuple(rule.code for rule in _DEFECT_RULES)
"""What a reader can find wrong with a row as a whole."""
_ERROR_RULES = [
    Rule(field, "CELL_ERROR", _present(field, _is_error(field)), _ERROR_SENTENCE)
    for field in (
        *("sort_code", "account_number", "iban", "account_type", "bic"),
        *("lei", "organisation_bic", "organisation_id_scheme", "amount", "currency"),
    )
]
_ACCOUNT_RULES = [
    Rule(
        "account_number",
        "ACCOUNT_MISSING",
        ~_has("iban") & ~_has("sort_code") & ~_has("account_number"),
        "no account; give an IBAN, or a sort code and an account number",
    ),
    Rule(
        "iban",
        "ACCOUNT_AMBIGUOUS",
        _has("iban") & (_has("sort_code") | _has("account_number")),
        "an IBAN as well as a sort code or account number; leave the one that is to be paid",
    ),
    Rule(
        "sort_code",
        "SORT_CODE_MISSING",
        _has("account_number") & ~_has("sort_code") & ~_has("iban"),
        "an account number without a sort code; add the sort code",
    ),
    Rule(
        "account_number",
        "ACCOUNT_NUMBER_MISSING",
        _has("sort_code") & ~_has("account_number") & ~_has("iban"),
        "a sort code without an account number; add the account number",
    ),
    Rule(
        "sort_code",
        "SORT_CODE_DAMAGED",
        _present(
            "sort_code",
            pl.col("sort_code").str.contains(r"^[0-9]{1,5}$")
            | pl.col("sort_code").str.contains(SCIENTIFIC)
            | pl.col("sort_code").str.contains(_DATE),
        ),
        "no longer 6 digits: leading zeros were cut, or it was rounded or made a date, as spreadsheets do; "
        "take it from its source, digit by digit",
    ),
    Rule(
        "sort_code",
        "SORT_CODE_FORMAT",
        _shape("sort_code", rf"^[0-9]{{1,6}}$|{SCIENTIFIC}|{_DATE}"),
        "not 6 digits; hyphens and spaces may stand between them, nothing else",
    ),
    Rule(
        "account_number",
        "ACCOUNT_NUMBER_DAMAGED",
        _present(
            "account_number",
            pl.col("account_number").str.contains(r"^[0-9]{1,7}$")
            | pl.col("account_number").str.contains(SCIENTIFIC),
        ),
        "no longer 8 digits: leading zeros were cut, or it was rounded, as spreadsheets do; take it from its "
        "source, digit by digit",
    ),
    Rule(
        "account_number",
        "ACCOUNT_NUMBER_FORMAT",
        _shape("account_number", rf"^[0-9]{{1,8}}$|{SCIENTIFIC}"),
        "not 8 digits; ask the payee for the 8-digit account number",
    ),
    Rule(
        "iban",
        "IBAN_DAMAGED",
        _iban("SCIENTIFIC"),
        "the IBAN has become a rounded number, as in a spreadsheet; take it from its source as text",
    ),
    Rule(
        "iban",
        "IBAN_FORMAT",
        _iban("FORMAT"),
        "not an IBAN: two letters, two digits and at most 30 letters or digits",
    ),
    Rule(
        "iban",
        "IBAN_COUNTRY",
        _iban("COUNTRY"),
        "no country has IBANs that start like this; check the first two letters",
    ),
    Rule(
        "iban",
        "IBAN_LENGTH",
        _iban("LENGTH"),
        "not as long as IBANs of its country are; look for a lost or doubled character",
    ),
    Rule(
        "iban",
        "IBAN_STRUCTURE",
        _iban("STRUCTURE"),
        "letters and digits do not stand where IBANs of its country have them; look for O and 0, I and 1",
    ),
    Rule(
        "iban",
        "IBAN_CHECK_DIGITS",
        _iban("CHECKSUM"),
        "the check digits do not fit; look for a mistyped or swapped character",
    ),
]
_FAILS_MODULUS = pl.col("modulus").eq_missing(ModulusState.FAILS)
MODULUS_RULES = [
    Rule(
        "account_number",
        "MODULUS",
        _FAILS_MODULUS & ~_has("iban"),
        "no account of this sort code can have this number (UK modulus check); look for a mistyped or "
        "swapped digit in both, or ask the payee",
    ),
    Rule(
        "iban",
        "MODULUS",
        _FAILS_MODULUS & _has("iban"),
        "no account of the sort code in it can have the number in it (UK modulus check); ask the payee for "
        "the IBAN again",
    ),
]
"""The rules that the user's own tables decide."""
_PAYEE_RULES = [
    Rule(
        "name",
        "NAME_MISSING",
        ~_has("name") & ~pl.col("by_identification"),
        "no payee name; add it (for an IBAN, an identification such as a LEI will do)",
    ),
    Rule(
        "name",
        "NAME_TOO_LONG",
        _present("name", pl.col("name").str.len_chars() > NAME_LENGTH_MAX),
        f"longer than {NAME_LENGTH_MAX} characters; shorten it",
    ),
    *_text_rules("name", invisible=INVISIBLE),
    Rule(
        "name",
        "NAME_FORMULA",
        _present("name", pl.col("name").str.contains(LOST_FORMULA)),
        "a spreadsheet formula instead of the name that it stood for; put the name in its place",
    ),
    Rule(
        "name",
        "NAME_NO_NAME",
        _present("name", ~pl.col("name").str.contains(LOST_FORMULA) & pl.col("name").str.contains(NO_NAME)),
        "a sign without any letter, or a telephone number; write the payee's name",
    ),
    Rule(
        "account_type",
        "ACCOUNT_TYPE",
        _shape("account_type", "^(Personal|Business)$"),
        "neither Personal nor Business; write one of them, or leave it empty",
    ),
    Rule(
        "secondary_reference",
        "SECONDARY_REFERENCE_TOO_LONG",
        _present(
            "secondary_reference",
            pl.col("secondary_reference").str.len_chars() > SECONDARY_REFERENCE_LENGTH_MAX,
        ),
        f"longer than {SECONDARY_REFERENCE_LENGTH_MAX} characters; shorten it",
    ),
    *_text_rules("secondary_reference"),
    *_bic_rules("bic"),
    Rule(
        "lei",
        "LEI_CHECK_DIGITS",
        _present("lei_fault", ~_is_error("lei")),
        "not a LEI: 20 characters with check digits that fit; look for a mistyped character",
    ),
    *_bic_rules("organisation_bic"),
    Rule(
        "organisation_id",
        "ORGANISATION_ID_MISSING",
        ~_has("organisation_id")
        & (pl.col("organisation_id_scheme").is_not_null() | pl.col("organisation_id_issuer").is_not_null()),
        "an identification scheme or issuer without the identification; add it",
    ),
    *(
        Rule(
            field,
            "IDENTIFICATION_TOO_LONG",
            _present(field, pl.col(field).str.len_chars() > 140),
            "longer than 140 characters; shorten it",
        )
        for field in ("organisation_id", "organisation_id_issuer")
    ),
    *_text_rules("organisation_id"),
    *_text_rules("organisation_id_issuer"),
    Rule(
        "reference",
        "REFERENCE_TOO_LONG",
        _present("remittance", pl.col("remittance").str.len_chars() > 140),
        "longer than 140 characters, which is too long to be sent; shorten it",
    ),
    *_text_rules("reference", column="remittance"),
    Rule(
        "organisation_id_scheme",
        "IDENTIFICATION_SCHEME",
        _present(
            "organisation_id_scheme",
            ~pl.col("organisation_id_scheme").is_in(list(SchemeCode)) & ~_is_error("organisation_id_scheme"),
        ),
        f"not one of {', '.join(SchemeCode)}",
    ),
]
_MONEY_RULES = [
    Rule(
        "amount",
        "AMOUNT_AMBIGUOUS",
        _present("amount", pl.col("amount").str.contains(AMBIGUOUS)),
        "could mean thousands or decimals; for thousands write it like 1500.00, for decimals like 1.50, or "
        "like 1.5000 if the currency has three decimals",
    ),
    Rule(
        "amount",
        "AMOUNT_FORMAT",
        _shape("amount", f"{AMOUNT}|{AMBIGUOUS}|{MANY_DECIMALS}"),
        "not a readable amount; write at most 18 digits and a decimal point, such as 1234.56, and any "
        "currency beside it as a three-letter code, such as 1234.56 USD",
    ),
    Rule(
        "amount",
        "AMOUNT_NEGATIVE",
        _present(
            "amount",
            pl.col("amount").str.starts_with("-")
            & pl.col("amount").str.contains(f"{AMOUNT}|{AMBIGUOUS}|{MANY_DECIMALS}")
            & ~pl.col("amount").str.contains(ZERO),
        ),
        "negative, which a payment cannot be; correct it, or delete the row",
    ),
    Rule(
        "amount",
        "AMOUNT_ZERO",
        _present("amount", pl.col("amount").str.contains(ZERO)),
        "zero, which a payment cannot be; correct it, or delete the row",
    ),
    Rule(
        "amount",
        "AMOUNT_DECIMALS",
        _fault("amount", DECIMALS)
        | _present(
            "amount",
            pl.col("amount").str.contains(MANY_DECIMALS) & ~pl.col("amount").str.contains(AMOUNT),
        ),
        "more decimal places than its currency has (most have two, JPY none, BHD three); correct the amount "
        "or the currency",
    ),
    Rule(
        "currency",
        "CURRENCY_FORMAT",
        _shape("currency", CURRENCY),
        "not a currency of three letters, such as GBP",
    ),
    Rule(
        "currency",
        "CURRENCY_UNKNOWN",
        pl.col("currency_fault").is_not_null(),
        "no currency of a payment has this code (ISO 4217); correct it",
    ),
    Rule(
        "amount",
        "AMOUNT_CURRENCY",
        _fault("amount", OTHER),
        "the sign or code beside it is of another currency than the currency column; correct the one that is "
        "wrong",
    ),
]
_BY_ITS_DIGITS = pl.col("route_reason") == RouteReason.GB_IBAN
_ROUTE_RULES = [
    Rule(
        "iban",
        "NO_API",
        pl.col("to").is_null() & _has("iban") & ~_BY_ITS_DIGITS,
        "the profile has no API for IBANs; add a [vop] section",
    ),
    Rule(
        "iban",
        "NO_API",
        pl.col("to").is_null() & _has("iban") & _BY_ITS_DIGITS,
        'the profile has no API for GB IBANs; add a [cop] section, or set gb_iban_to = "vop"',
    ),
    Rule(
        "sort_code",
        "NO_API",
        pl.col("to").is_null() & ~_has("iban") & _has("sort_code"),
        "the profile has no API for UK accounts; add a [cop] section",
    ),
    Rule(
        "bic",
        "RESPONDER_BIC_UNKNOWN",
        pl.col("needs_responder_bic") & pl.col("responder_bic").is_null() & pl.col("iban_fault").is_null(),
        "VoP Standard needs the bank's BIC and none is known for this IBAN; add a bic column, or the bank "
        "to the profile's bic_table",
    ),
]
_UNASKED_RULES = [
    Rule(field, code, pl.col("unasked") == code, UNASKED[code].reason)
    for field, code in (("iban", OUT_OF_REACH), ("name", OUT_OF_ALPHABET))
]
"""The last ones: where a row breaks another rule, it is rejected, whoever could be asked about it."""

NAME_RULES = tuple(rule for rule in _PAYEE_RULES if rule.field == "name" and rule.code != "NAME_MISSING")
"""The rules that concern the name alone."""
RULES: tuple[Rule, ...] = (
    *_DEFECT_RULES,
    *_ERROR_RULES,
    *_ACCOUNT_RULES,
    *MODULUS_RULES,
    *_PAYEE_RULES,
    *_MONEY_RULES,
    *_ROUTE_RULES,
    *_UNASKED_RULES,
)


# Which rows a rule is asked of: most values of most files are plainly right.

PLAIN: Mapping[str, pl.Expr] = {
    "name": pl.col("name").str.contains(r"^[A-Za-zÀ-ɏ][ -~À-ɏ]*$")
    & (pl.col("name").str.len_bytes() <= NAME_LENGTH_MAX),
    "account_type": pl.col("account_type").is_in(list(AccountType)),
    "sort_code": pl.col("sort_code").str.contains(r"^[0-9]{6}$"),
    "account_number": pl.col("account_number").str.contains(r"^[0-9]{8}$"),
    "iban": pl.col("iban_fault").is_null(),
    "lei": pl.col("lei_fault").is_null(),
    "bic": pl.col("bic_fault").is_null(),
    "organisation_bic": pl.col("organisation_bic_fault").is_null(),
    "amount": (pl.col("money") > 0).fill_null(value=False) & pl.col("amount_fault").is_null(),
    "currency": pl.col("currency").is_in(USUAL_CURRENCIES),
}
"""Field -> what its values look like that break no rule about this field alone."""


def _by_suspects() -> list[tuple[pl.Expr, list[int]]]:
    """The positions of the rules, by the rows that can break them.

    A rule about one field alone is asked of the rows whose value is there and not plain, any other of all.
    """
    positions: dict[str, list[int]] = {}
    for position, rule in enumerate(RULES):
        fields = {column.removesuffix("_fault") for column in rule.broken.meta.root_names()}
        positions.setdefault(fields.pop() if len(fields) == 1 else "", []).append(position)
    nothing = pl.lit(value=False)
    return [
        (_has(field) & ~PLAIN.get(field, nothing) if field else pl.lit(value=True), mine)
        for field, mine in positions.items()
    ]


RULES_BY_SUSPECTS = _by_suspects()
"""Which rows can break some rules, and the positions of these in `RULES`."""
