"""Reasons not to check a payment other than rules about its fields: its row's `defect`, or the profile."""

from collections.abc import Mapping

from pipeline.frames import Meaning
from pipeline.wording import Sentence
from schemas.outcomes import Action, Outcome

ROW_BLANK = "ROW_BLANK"
ROW_TOO_LONG = "ROW_TOO_LONG"
ROW_MERGED = "ROW_MERGED"
LINE_TOO_LONG = "LINE_TOO_LONG"
LINE_TOO_SHORT = "LINE_TOO_SHORT"
AMOUNT_MALFORMED = "AMOUNT_MALFORMED"
CODE_UNKNOWN = "CODE_UNKNOWN"
DAY_MALFORMED = "DAY_MALFORMED"
CHEQUE = "CHEQUE"
DIRECT_DEBIT = "DIRECT_DEBIT"
PROXY = "PROXY"
ACCOUNT_ELSEWHERE = "ACCOUNT_ELSEWHERE"
SORT_CODES_DIFFER = "SORT_CODES_DIFFER"
ELEMENT_TWICE = "ELEMENT_TWICE"

ACCOUNT_SIGNS_DIFFER = "ACCOUNT_SIGNS_DIFFER"


def elsewhere(country: str) -> str:
    """Return the key of the sentence about a domestic account in a country or group of countries."""
    return f"{ACCOUNT_ELSEWHERE}/{country}"


_ELSEWHERE: Mapping[str, Sentence] = {
    "?": Sentence("rule.account_in_unknown"),
    "AU": Sentence("rule.account_in_au"),
    "CZ": Sentence("rule.account_in_cz"),
    "DE": Sentence("rule.account_in_de"),
    "DK": Sentence("rule.account_in_dk"),
    "HU": Sentence("rule.account_in_hu"),
    "IE": Sentence("rule.account_in_ie"),
    "IN": Sentence("rule.account_in_in"),
    "NO": Sentence("rule.account_in_no"),
    "PL": Sentence("rule.account_in_pl"),
    "SE": Sentence("rule.account_in_se"),
    "US": Sentence("rule.account_in_us"),
    "IBAN": Sentence("rule.account_with_iban"),
    "no IBAN": Sentence("rule.account_without_iban"),
}
"""Country, or group of countries -> what the account is, and how to check it."""
COUNTRIES_KNOWN = frozenset(_ELSEWHERE)
_BY_COUNTRY = {elsewhere(country): sentence for country, sentence in _ELSEWHERE.items()}

OF_THE_ACCOUNT = (CHEQUE, PROXY, ACCOUNT_ELSEWHERE, ACCOUNT_SIGNS_DIFFER, *_BY_COUNTRY)
"""Codes that switch off all rules about the account."""

SENTENCES: Mapping[str, Sentence] = {
    ROW_BLANK: Sentence("rule.row_blank"),
    ROW_TOO_LONG: Sentence("rule.row_too_long"),
    ROW_MERGED: Sentence("rule.row_merged"),
    LINE_TOO_LONG: Sentence("rule.line_too_long"),
    LINE_TOO_SHORT: Sentence("rule.line_too_short"),
    AMOUNT_MALFORMED: Sentence("rule.amount_malformed"),
    CODE_UNKNOWN: Sentence("rule.code_unknown"),
    DAY_MALFORMED: Sentence("rule.day_malformed"),
    CHEQUE: Sentence("rule.cheque"),
    DIRECT_DEBIT: Sentence("rule.direct_debit"),
    PROXY: Sentence("rule.proxy"),
    ACCOUNT_ELSEWHERE: Sentence("rule.account_elsewhere"),
    **_BY_COUNTRY,
    ACCOUNT_SIGNS_DIFFER: Sentence("rule.account_signs_differ"),
    SORT_CODES_DIFFER: Sentence("rule.sort_codes_differ"),
    ELEMENT_TWICE: Sentence("rule.element_twice"),
}
"""Each completes "row 17: ..." and says what to do. A code with several sentences has keys `CODE/case`."""


def code_of(defect: str) -> str:
    """Return the code in a key of `SENTENCES`.

    >>> code_of("ACCOUNT_ELSEWHERE/PL"), code_of("CHEQUE")
    ('ACCOUNT_ELSEWHERE', 'CHEQUE')
    """
    return defect.partition("/")[0]


OUT_OF_REACH, OUT_OF_ALPHABET = "OUT_OF_REACH", "OUT_OF_ALPHABET"
_BY_THE_PROFILE = Sentence("explain.by_the_profile")
UNASKED: Mapping[str, Meaning] = {
    OUT_OF_REACH: Meaning(
        Outcome.NOT_POSSIBLE,
        Action.ASK_PAYEE,
        Sentence("rule.out_of_reach"),
        _BY_THE_PROFILE,
        Sentence("explain.ask_or_add_country"),
    ),
    OUT_OF_ALPHABET: Meaning(
        Outcome.NOT_POSSIBLE,
        Action.ASK_PAYEE,
        Sentence("rule.out_of_alphabet"),
        _BY_THE_PROFILE,
        Sentence("explain.name_in_latin"),
    ),
}
"""The code and reason of a valid payment that the profile excludes."""
