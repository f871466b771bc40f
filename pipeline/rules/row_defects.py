"""What a reader can find wrong with a row as a whole, so that its payment cannot be checked.

A format says the code of each row (`defect` of the `Payments`); the sentence is the same whatever the format.
"""

from collections.abc import Mapping

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
