"""Reasons not to check a payment other than rules about its fields: its row's `defect`, or the profile."""

from collections.abc import Mapping

from pipeline.frames import Meaning
from pipeline.wording import Sentence
from schemas.outcomes import Action, Outcome

ROW_BLANK = "ROW_BLANK"
ROW_TOO_LONG = "ROW_TOO_LONG"
ROW_MERGED = "ROW_MERGED"
ROW_COMMENTED, ROW_CONTINUED = "ROW_COMMENTED", "ROW_CONTINUED"
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


_COUNTRIES = ("AU", "CZ", "DE", "DK", "HU", "IE", "IN", "NO", "PL", "SE", "US")
_ELSEWHERE: Mapping[str, Sentence] = {
    "?": Sentence("rule.account_in_unknown"),
    **{country: Sentence(f"rule.account_in_{country.lower()}") for country in _COUNTRIES},
    "IBAN": Sentence("rule.account_with_iban"),
    "no IBAN": Sentence("rule.account_without_iban"),
}
"""Country, or group of countries -> what the account is, and how to check it."""
COUNTRIES_KNOWN = frozenset(_ELSEWHERE)
_BY_COUNTRY = {elsewhere(country): sentence for country, sentence in _ELSEWHERE.items()}

OF_THE_ACCOUNT = (CHEQUE, PROXY, ACCOUNT_ELSEWHERE, ACCOUNT_SIGNS_DIFFER, *_BY_COUNTRY)
"""Codes that switch off all rules about the account."""


def _by_code(*codes: str) -> dict[str, Sentence]:
    return {code: Sentence(f"rule.{code.lower()}") for code in codes}


SENTENCES: Mapping[str, Sentence] = {
    **_by_code(ROW_BLANK, ROW_TOO_LONG, ROW_MERGED, ROW_COMMENTED, ROW_CONTINUED),
    **_by_code(LINE_TOO_LONG, LINE_TOO_SHORT),
    **_by_code(AMOUNT_MALFORMED, CODE_UNKNOWN, DAY_MALFORMED, CHEQUE, DIRECT_DEBIT, PROXY),
    **_by_code(ACCOUNT_ELSEWHERE),
    **_BY_COUNTRY,
    **_by_code(ACCOUNT_SIGNS_DIFFER, SORT_CODES_DIFFER, ELEMENT_TWICE),
}
"""Each completes "row 17: ..." and says what to do. A code with several sentences has keys `CODE/case`."""


def code_of(defect: str) -> str:
    """Return the code in a key of `SENTENCES`.

    >>> code_of("ACCOUNT_ELSEWHERE/PL"), code_of("CHEQUE")
    ('ACCOUNT_ELSEWHERE', 'CHEQUE')
    """
    return defect.partition("/")[0]


OUT_OF_REACH, OUT_OF_ALPHABET = "OUT_OF_REACH", "OUT_OF_ALPHABET"
_BY_THE_PROFILE = Sentence("explain.profile_excludes_row")
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
