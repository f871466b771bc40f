"""Why a payment is not asked about, beside the rules of its fields: its row as a whole, or the profile.

A format says the code of each row (`defect` of the `Payments`); the sentence is the same whatever the format.
"""

from collections.abc import Mapping

from schemas.outcomes import Action, Meaning, Outcome

ROW_BLANK = "ROW_BLANK"
ROW_TOO_LONG = "ROW_TOO_LONG"
ROW_TOO_SHORT = "ROW_TOO_SHORT"
ROW_MERGED = "ROW_MERGED"
LINE_TOO_LONG = "LINE_TOO_LONG"
LINE_TOO_SHORT = "LINE_TOO_SHORT"
AMOUNT_MALFORMED = "AMOUNT_MALFORMED"
CODE_UNKNOWN = "CODE_UNKNOWN"
DAY_MALFORMED = "DAY_MALFORMED"
CHEQUE = "CHEQUE"
PROXY = "PROXY"
ACCOUNT_ELSEWHERE = "ACCOUNT_ELSEWHERE"
SORT_CODES_DIFFER = "SORT_CODES_DIFFER"
ELEMENT_TWICE = "ELEMENT_TWICE"

OF_THE_ACCOUNT = (CHEQUE, PROXY, ACCOUNT_ELSEWHERE)
"""With these, no rule about the account has anything to add."""

SENTENCES: Mapping[str, str] = {
    ROW_BLANK: "the row is empty; delete it",
    ROW_TOO_LONG: "the row has more cells than the header; quote cells that hold the delimiter",
    ROW_TOO_SHORT: "the row has fewer cells than the header; fill in the missing delimiters",
    ROW_MERGED: "the row has merged cells, whose value stands in the first of them alone; unmerge them and "
    "fill each",
    LINE_TOO_LONG: "the line has more than a payment of this layout; correct it where the file is made",
    LINE_TOO_SHORT: "the line has less than a payment of this layout; correct it where the file is made",
    AMOUNT_MALFORMED: "the amount has characters that are no digits; correct it where the file is made",
    CODE_UNKNOWN: "the transaction code is none that this program knows; correct it where the file is made",
    DAY_MALFORMED: "the processing day is no day, as bYYDDD; correct it where the file is made",
    CHEQUE: "a cheque, which has no account to check; pay by credit transfer, or leave it out",
    PROXY: "the account is given by a proxy, such as a phone number, which cannot be checked; "
    "give its IBAN, or sort code and account number",
    ACCOUNT_ELSEWHERE: "the account is neither an IBAN nor a UK account, and no API checks it; give its IBAN",
    SORT_CODES_DIFFER: "the account number begins with another sort code than that of the bank; "
    "correct the one that is wrong",
    ELEMENT_TWICE: "an element that may stand once stands twice, and banks may take either; remove one",
}
"""Each completes "row 17: ..." and says what to do."""


OUT_OF_REACH, OUT_OF_ALPHABET = "OUT_OF_REACH", "OUT_OF_ALPHABET"
_BY_THE_PROFILE = "anything about the payee or the account: no bank was asked, as the profile wants it."
UNASKED: Mapping[str, Meaning] = {
    OUT_OF_REACH: Meaning(
        Outcome.NOT_POSSIBLE,
        Action.ASK_PAYEE,
        "from a country that is not in the profile's vop_countries, so no bank was asked",
        _BY_THE_PROFILE,
        "Ask the payee, by a contact that you knew before this payment; or, if the country's banks take part "
        "in VoP, add it to vop_countries.",
    ),
    OUT_OF_ALPHABET: Meaning(
        Outcome.NOT_POSSIBLE,
        Action.ASK_PAYEE,
        'has letters that VoP may not carry between banks, and the profile has vop_names = "latin", so no '
        "bank was asked",
        _BY_THE_PROFILE,
        "Give the name in Latin letters where the payee has one, and check again; or ask the payee, by a "
        "contact that you knew before this payment.",
    ),
}
"""The code and reason of a payment that breaks no rule and that the profile excludes."""
