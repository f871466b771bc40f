"""The local rules: conditions on cleaned and routed payments before any check (stages/validate.py).

Each rule's sentence completes "row 17, sort_code: ..." and says what to do. Sources: the APIs' own limits
(API reference, "Resources and their fields"), and practice: what spreadsheets do to account numbers.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import polars as pl

from pipeline.frames import RouteReason
from pipeline.rules.amounts import AMBIGUOUS, AMOUNT, DEBIT_OR_CREDIT, MANY_DECIMALS, ZERO
from pipeline.rules.currencies import CURRENCY, DECIMALS, OTHER, USUAL_CURRENCIES
from pipeline.rules.identifiers import HYPHENS, SCIENTIFIC
from pipeline.rules.modulus import ModulusState
from pipeline.rules.payee_names import ANY_INVISIBLE, INVISIBLE, LOST_FORMULA, NO_NAME, TRUTH_VALUES
from pipeline.rules.placeholders import CELL_ERROR
from pipeline.rules.unasked import OUT_OF_ALPHABET, OUT_OF_REACH, SENTENCES, UNASKED, code_of
from pipeline.wording import Sentence
from schemas.cop import NAME_LENGTH_MAX, SECONDARY_REFERENCE_LENGTH_MAX, AccountType
from schemas.vop import SchemeCode


class Rule(NamedTuple):
    """A forbidden condition; a null condition counts as broken."""

    field: str
    code: str
    broken: pl.Expr
    own_sentence: Sentence | None = None  # why the row is rejected, if not the code's sentence
    among: pl.Expr | None = None  # rows that can break it, if few

    @property
    def sentence(self) -> Sentence:
        """Why the row is rejected."""
        return self.own_sentence or Sentence(f"rule.{self.code.lower()}")


HAS_IDENTIFICATION = pl.any_horizontal(pl.col("lei", "organisation_bic", "organisation_id").is_not_null())
"""True if a payment has a usable identification."""

_CONTROL = r"[\x00-\x1f\x7f-\x9f]"
_DATE = (
    r"^(?:(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])(?:T[0-9:]+)?|[0-9]{1,2}[./][0-9]{1,2}[./][0-9]{4}"
    r"|[0-9]{0,2}(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z.]*[0-9]{2,4})$"
)
"""A sort code such as 01-02-03 that a spreadsheet turned into a date, without hyphens."""
_REPLACEMENT = "\ufffd"
_PRIVATE_USE = r"\p{Co}"
_WORD, _IS_WORD = r"^\P{N}*$", "rule.word_for_account"
_SORT_CODE_LIKE = rf"^[0-9]{{2}}([./:_{HYPHENS}])[0-9]{{2}}[./:_{HYPHENS}][0-9]{{2}}$"
_8_AMONG_OTHERS = r"^(?:.*[^0-9])?[0-9](?:[^0-9A-Za-z]?[0-9]){7}(?:[^0-9].*)?$"
"""Eight digits, as of an account number, with other characters before, between or after them."""
_ERROR_SENTENCE = Sentence("rule.cell_error")


def _has(field: str) -> pl.Expr:
    return pl.col(field).is_not_null()


def _present(field: str, condition: pl.Expr) -> pl.Expr:
    return _has(field) & condition


def _matches(field: str, pattern: str) -> pl.Expr:
    return _present(field, pl.col(field).str.contains(pattern))


def _shape(field: str, pattern: str) -> pl.Expr:
    """Return a condition on the form of a value; spreadsheet errors break another rule (CELL_ERROR)."""
    return _present(field, ~pl.col(field).str.contains(f"{pattern}|{CELL_ERROR}"))


def _holds_digit(field: str) -> pl.Expr:
    return pl.col(field).str.contains("[0-9]").fill_null(value=False)


def _is_word(field: str) -> pl.Expr:
    return pl.col(field).str.contains(_WORD) & ~_is_error(field)


def _is_error(field: str) -> pl.Expr:
    return pl.col(field).str.contains(CELL_ERROR).fill_null(value=False)


def _fault(column: str, fault: str) -> pl.Expr:
    return (pl.col(f"{column}_fault") == fault).fill_null(value=False) & ~_is_error(column)


def _bic_rules(field: str) -> list[Rule]:
    return [
        Rule(field, f"{field.upper()}_FORMAT", _fault(field, "FORMAT"), Sentence("rule.bic_format")),
        Rule(field, f"{field.upper()}_FORMAT", _fault(field, "COUNTRY"), Sentence("rule.bic_country")),
    ]


def _text_rules(field: str, *, column: str | None = None, invisible: str = ANY_INVISIBLE) -> list[Rule]:
    """Return the rules of free text for an API; `column` is its column if not named like the field."""
    column = column or field
    return [
        Rule(field, "CONTROL_CHARACTER", _matches(column, _CONTROL)),
        Rule(field, "INVISIBLE_CHARACTER", _matches(column, invisible)),
        Rule(field, "DAMAGED_TEXT", _matches(column, _REPLACEMENT)),
        Rule(field, "DAMAGED_TEXT", _matches(column, _PRIVATE_USE), Sentence("rule.private_use")),
        Rule(field, "CELL_ERROR", _present(column, _is_error(column)), _ERROR_SENTENCE),
    ]


def _too_long(
    field: str, code: str, length_max: int, *, column: str | None = None, key: str = "rule.too_long"
) -> Rule:
    column = column or field
    is_too_long = _present(column, pl.col(column).str.len_chars() > length_max)
    return Rule(field, code, is_too_long, Sentence(key, length_max=length_max))


_DEFECT_RULES = [
    Rule("row", code_of(key), pl.col("defect").eq_missing(key), sentence)
    for key, sentence in SENTENCES.items()
]
DEFECTS = tuple(SENTENCES)  # defects of a whole row that a reader found
_ERROR_RULES = [
    Rule(field, "CELL_ERROR", _present(field, _is_error(field)), _ERROR_SENTENCE)
    for field in (
        *("sort_code", "account_number", "iban", "account_type", "bic"),
        *("lei", "organisation_bic", "organisation_id_scheme", "amount", "currency"),
    )
]


def _format_rules(field: str, other: str, sentences: Mapping[str, str]) -> Iterator[Rule]:
    """Yield rules for values of a wrong form, by pattern; values that match `other` break other rules."""
    for pattern, key in sentences.items():
        is_so = _matches(field, pattern) & ~pl.col(field).str.contains(f"{other}|{CELL_ERROR}")
        yield Rule(field, f"{field.upper()}_FORMAT", is_so, Sentence(key))
    yield Rule(field, f"{field.upper()}_FORMAT", _shape(field, "|".join([other, *sentences])))


_NO_IBAN = ~_has("iban")
_ACCOUNT_RULES = [
    *(
        Rule(field, "INVISIBLE_CHARACTER", _matches(field, ANY_INVISIBLE))
        for field in ("sort_code", "account_number", "iban")
    ),
    Rule("account_number", "ACCOUNT_MISSING", _NO_IBAN & ~_has("sort_code") & ~_has("account_number")),
    Rule(
        "iban",
        "ACCOUNT_AMBIGUOUS",
        _holds_digit("iban") & (_holds_digit("sort_code") | _holds_digit("account_number")),
        among=_has("iban") & (_has("sort_code") | _has("account_number")),
    ),
    Rule("sort_code", "SORT_CODE_MISSING", _has("account_number") & ~_has("sort_code") & _NO_IBAN),
    Rule("account_number", "ACCOUNT_NUMBER_MISSING", _has("sort_code") & ~_has("account_number") & _NO_IBAN),
    Rule("sort_code", "SORT_CODE_DAMAGED", _matches("sort_code", rf"^[0-9]{{1,5}}$|{SCIENTIFIC}|{_DATE}")),
    *_format_rules(
        "sort_code",
        rf"^[0-9]{{1,6}}$|{SCIENTIFIC}|{_DATE}|{ANY_INVISIBLE}",
        {_WORD: _IS_WORD, r"^[0-9]{8}$": "rule.is_account_number"},
    ),
    Rule(
        "account_number",
        "ACCOUNT_NUMBER_DAMAGED",
        _matches("account_number", rf"^[0-9]{{1,7}}$|{SCIENTIFIC}"),
    ),
    *_format_rules(
        "account_number",
        rf"^[0-9]{{1,8}}$|{SCIENTIFIC}|{ANY_INVISIBLE}",
        {_WORD: _IS_WORD, _SORT_CODE_LIKE: "rule.is_sort_code", _8_AMONG_OTHERS: "rule.more_than_digits"},
    ),
    Rule("iban", "IBAN_DAMAGED", _fault("iban", "SCIENTIFIC")),
    Rule("iban", "IBAN_FORMAT", _present("iban", _is_word("iban")), Sentence(_IS_WORD)),
    Rule(
        "iban",
        "IBAN_FORMAT",
        _fault("iban", "FORMAT") & ~pl.col("iban").str.contains(ANY_INVISIBLE) & ~_is_word("iban"),
    ),
    Rule("iban", "IBAN_COUNTRY", _fault("iban", "COUNTRY")),
    Rule("iban", "IBAN_LENGTH", _fault("iban", "LENGTH")),
    Rule("iban", "IBAN_STRUCTURE", _fault("iban", "STRUCTURE")),
    Rule("iban", "IBAN_CHECK_DIGITS", _fault("iban", "CHECKSUM")),
]
_FAILS_MODULUS = pl.col("modulus").eq_missing(ModulusState.FAILS)
MODULUS_RULES = [
    Rule("account_number", "MODULUS", _FAILS_MODULUS & ~_has("iban")),
    Rule("iban", "MODULUS", _FAILS_MODULUS & _has("iban"), Sentence("rule.modulus_iban")),
]
"""Rules that depend on the user's tables."""
_PAYEE_RULES = [
    Rule("name", "NAME_MISSING", ~_has("name") & ~pl.col("by_identification")),
    _too_long("name", "NAME_TOO_LONG", NAME_LENGTH_MAX),
    *_text_rules("name", invisible=INVISIBLE),
    Rule("name", "NAME_FORMULA", _matches("name", LOST_FORMULA)),
    Rule(
        "name",
        "NAME_NO_NAME",
        _present("name", pl.col("name").is_in(TRUTH_VALUES))
        | (_matches("name", NO_NAME) & ~_matches("name", LOST_FORMULA)),
    ),
    Rule(
        "account_type",
        "ACCOUNT_TYPE",
        pl.col("takes_account_type") & _shape("account_type", "^(Personal|Business)$"),
    ),
    _too_long("secondary_reference", "SECONDARY_REFERENCE_TOO_LONG", SECONDARY_REFERENCE_LENGTH_MAX),
    *_text_rules("secondary_reference"),
    *_bic_rules("bic"),
    Rule("lei", "LEI_CHECK_DIGITS", _present("lei_fault", ~_is_error("lei"))),
    *_bic_rules("organisation_bic"),
    Rule(
        "organisation_id",
        "ORGANISATION_ID_MISSING",
        ~_has("organisation_id") & (_has("organisation_id_scheme") | _has("organisation_id_issuer")),
    ),
    _too_long("organisation_id", "IDENTIFICATION_TOO_LONG", 140),
    _too_long("organisation_id_issuer", "IDENTIFICATION_TOO_LONG", 140),
    *_text_rules("organisation_id"),
    *_text_rules("organisation_id_issuer"),
    _too_long("reference", "REFERENCE_TOO_LONG", 140, column="remittance", key="rule.remittance_too_long"),
    *_text_rules("reference", column="remittance"),
    Rule(
        "organisation_id_scheme",
        "IDENTIFICATION_SCHEME",
        _present(
            "organisation_id_scheme",
            ~pl.col("organisation_id_scheme").is_in(list(SchemeCode)) & ~_is_error("organisation_id_scheme"),
        ),
        Sentence("rule.identification_scheme", schemes=list(SchemeCode)),
    ),
]
_ANY_AMOUNT = f"{AMOUNT}|{AMBIGUOUS}|{MANY_DECIMALS}"
_MONEY_RULES = [
    Rule("amount", "AMOUNT_AMBIGUOUS", _matches("amount", AMBIGUOUS)),
    *_format_rules("amount", _ANY_AMOUNT, {DEBIT_OR_CREDIT: "rule.amount_mark"}),
    Rule(
        "amount",
        "AMOUNT_NEGATIVE",
        _matches("amount", "^-") & _matches("amount", _ANY_AMOUNT) & ~_matches("amount", ZERO),
    ),
    Rule("amount", "AMOUNT_ZERO", _matches("amount", ZERO)),
    Rule(
        "amount",
        "AMOUNT_DECIMALS",
        _fault("amount", DECIMALS) | (_matches("amount", MANY_DECIMALS) & ~_matches("amount", AMOUNT)),
    ),
    Rule("currency", "CURRENCY_FORMAT", _shape("currency", CURRENCY)),
    Rule("currency", "CURRENCY_UNKNOWN", pl.col("currency_fault").is_not_null()),
    Rule("amount", "AMOUNT_CURRENCY", _fault("amount", OTHER)),
]
_BY_ITS_DIGITS = pl.col("route_reason") == RouteReason.GB_IBAN
_NO_ROUTE = pl.col("to").is_null()
_ROUTE_RULES = [
    Rule("iban", "NO_API", _NO_ROUTE & _has("iban") & ~_BY_ITS_DIGITS, Sentence("rule.no_api_for_ibans")),
    Rule("iban", "NO_API", _NO_ROUTE & _has("iban") & _BY_ITS_DIGITS, Sentence("rule.no_api_for_gb_ibans")),
    Rule(
        "sort_code",
        "NO_API",
        _NO_ROUTE & _NO_IBAN & _has("sort_code"),
        Sentence("rule.no_api_for_uk_accounts"),
    ),
    Rule(
        "bic",
        "RESPONDER_BIC_UNKNOWN",
        pl.col("needs_responder_bic") & pl.col("responder_bic").is_null() & pl.col("iban_fault").is_null(),
    ),
]
_UNASKED_RULES = [
    Rule(field, code, pl.col("unasked") == code, UNASKED[code].reason)
    for field, code in (("iban", OUT_OF_REACH), ("name", OUT_OF_ALPHABET))
]
"""The last rules; a row that breaks another rule is rejected even if an API could check it."""

NAME_RULES = tuple(rule for rule in _PAYEE_RULES if rule.field == "name" and rule.code != "NAME_MISSING")
"""Rules that concern only the name."""
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


# Rules apply only to suspicious values, because most values of most files are plainly valid.

PLAIN: Mapping[str, pl.Expr] = {
    # An internet address has @ or a colon, and an IBAN has digits early.
    "name": pl.col("name").str.contains(
        r"^[A-Za-zÀ-ɏ](?:[ -/;-?A-~À-ɏ]{0,2}|[ -/;-?A-~À-ɏ]{3}[ -9;-?A-~À-ɏ]*)$"
    )
    & (pl.col("name").str.len_bytes() <= NAME_LENGTH_MAX)
    & ~pl.col("name").is_in(TRUTH_VALUES),
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
"""Field -> form of values that break no rule for a single field."""


def _by_suspects() -> list[tuple[pl.Expr, list[int]]]:
    """Return the indexes of rules by the rows that can break them; rules of one field skip plain values."""
    positions: dict[str, list[int]] = {}
    for position, rule in enumerate(RULES):
        columns = {*rule.broken.meta.root_names()} - {"takes_account_type"}
        fields = {column.removesuffix("_fault") for column in columns}
        if rule.among is None:
            positions.setdefault(fields.pop() if len(fields) == 1 else "", []).append(position)
    nothing = pl.lit(value=False)
    return [
        *(
            (_has(field) & ~PLAIN.get(field, nothing) if field else pl.lit(value=True), mine)
            for field, mine in positions.items()
        ),
        *((rule.among, [position]) for position, rule in enumerate(RULES) if rule.among is not None),
    ]


RULES_BY_SUSPECTS = _by_suspects()  # rows that can break some rules, and these rules' indexes in `RULES`
