"""The layouts of UK banks and bureaus that this program knows, a row each.

They are read the same way as a user's own (`model`). Where a bank's description leaves something open, no
more is recognised than what it says.
"""

from collections.abc import Mapping

from pipeline.formats.layouts.model import BankLayout, OtherLine, PaymentLine, Shape, SummaryLine

_STERLING = "GBP"
_DEBITS = ("01", "17", "18", "19")

LAYOUTS: Mapping[str, BankLayout] = {
    "bankline": BankLayout(
        title="NatWest and RBS Bankline",  # H001 to H003, then T001 to T082
        separator=",",
        name_length_max=35,
        payments=(
            PaymentLine(
                tags={4: "01"},
                shapes={13: Shape.UK_ACCOUNT, 19: Shape.DATE_OF_DAY_FIRST},
                columns={"amount": 17, "sort_code": 25, "account_number": 31, "name": 33, "reference": 37},
                currency=_STERLING,
                code=4,
                booked_by=(19, 13),
                cells_min=85,
                cells_max=85,
            ),
            PaymentLine(
                tags={4: "04"},
                shapes={13: Shape.UK_ACCOUNT, 19: Shape.DATE_OF_DAY_FIRST},
                columns={"amount": 17, "bic": 25, "iban": 31, "name": 33, "reference": 37},
                code=4,
                booked_by=(19, 13),
                cells_min=85,
                cells_max=85,
            ),
        ),
    ),
    "barclays": BankLayout(
        title="Barclays SIF",
        separator=",",
        name_characters="bacs",
        payments=(
            PaymentLine(
                tags={6: ("99", "99/")},
                columns={"sort_code": 1, "name": 2, "account_number": 3, "amount": 4, "reference": 5},
                currency=_STERLING,
                code=6,
                cells_min=6,
                cells_max=6,
            ),
        ),
    ),
    "bank-of-scotland": BankLayout(
        title="Bank of Scotland Faster Payments",
        separator=",",
        name_length_max=18,
        header=SummaryLine(tags={1: "H"}, shapes={2: Shape.DATE}),
        payments=(
            PaymentLine(
                tags={1: "FPS"},
                shapes={2: Shape.DATE, 5: Shape.UK_ACCOUNT},
                columns={"amount": 3, "name": 6, "account_number": 7, "sort_code": 8, "reference": 9},
                currency=_STERLING,
                booked_by=(2, 5),
                cells_min=9,
                cells_max=9,
            ),
        ),
        trailer=SummaryLine(tags={1: "T"}),
    ),
    "cashbacs": BankLayout(
        title="Cashbacs",
        separator=",",
        payments=(
            PaymentLine(
                shapes={1: Shape.SORT_CODE_WITH_HYPHENS},
                columns={"sort_code": 1, "account_number": 2, "name": 3, "amount": 4},
                currency=_STERLING,
                cells_min=4,
                cells_max=5,
            ),
        ),
    ),
    "lloyds": BankLayout(
        title="Lloyds batch",
        separator=",",
        name_length_max=18,
        header=SummaryLine(tags={1: "H"}, shapes={2: Shape.DATE}, count=4, sum=5),
        batch=SummaryLine(tags={1: "D"}, shapes={3: Shape.UK_ACCOUNT}, label=2),
        payments=(
            PaymentLine(
                tags={1: "C"},
                shapes={7: Shape.YES_OR_NO},
                columns={
                    "name": 2,
                    "account_number": 3,
                    "sort_code": 4,
                    "reference": 5,
                    "amount": 6,
                    "payment_id": 9,
                },
                currency=_STERLING,
                cells_min=6,
                cells_max=9,
            ),
        ),
        trailer=SummaryLine(tags={1: "T"}, is_optional=True),
    ),
    "paygate": BankLayout(
        title="Paygate BACS payment editor",
        separator=",",
        name_length_max=18,
        name_characters="bacs",
        payments=(
            PaymentLine(
                tags={5: "99"},
                shapes={6: Shape.SORT_CODE, 7: Shape.ACCOUNT_NUMBER, 10: Shape.DATE_WITH_SLASHES},
                columns={"sort_code": 1, "account_number": 2, "name": 3, "amount": 4, "reference": 9},
                currency=_STERLING,
                code=5,
                booked_by=(10, 6, 7),
                cells_min=9,
                cells_max=10,
            ),
        ),
        others=(OtherLine(what="direct debit", tags={5: _DEBITS}),),
    ),
    "rbs-autopay": BankLayout(
        title="RBS Autopay and PTX",
        separator=",",
        name_length_max=18,
        name_characters="bacs",
        payments=(
            PaymentLine(
                tags={6: "99"},
                shapes={2: Shape.CAPITALS, 5: Shape.DAY_OF_YEAR},
                columns={"reference": 1, "name": 2, "account_number": 3, "sort_code": 4, "amount": 7},
                currency=_STERLING,
                code=6,
                booked_by=(5,),
                cells_min=7,
                cells_max=7,
            ),
        ),
        others=(OtherLine(what="direct debit", tags={6: _DEBITS}),),
    ),
    "santander": BankLayout(
        title="Santander Connect Bacs",
        separator=",",
        name_characters="bacs",
        header=SummaryLine(tags={1: "PAYMENT", 2: "HEADER"}, shapes={3: Shape.DATE_OF_DAY_FIRST}),
        payments=(
            PaymentLine(
                tags={1: "PAYMENT", 2: "BACS"},
                shapes={3: Shape.UK_ACCOUNT, 8: Shape.DATE_OF_DAY_FIRST},
                columns={"name": 4, "sort_code": 5, "account_number": 6, "amount": 7, "reference": 9},
                currency=_STERLING,
                booked_by=(8, 3),
                cells_min=9,
                cells_max=10,
            ),
        ),
        trailer=SummaryLine(tags={1: "PAYMENT", 2: "TRAILER"}, count=4),
        unknown_total="the trailer has a hash total whose rule is not known",
    ),
}
