"""Files in the layouts of banks, made from the same payments, without the code under test."""

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True)
class Payee:
    """One payment, whatever layout it stands in."""

    name: str = "ADA QUILLON"
    sort_code: str = "112233"
    account: str = "12345678"
    amount: str = "123.45"
    reference: str = "INVOICE 1"


ADA = Payee()
ZOE = Payee("Z MARROW & SONS", "445566", "87654321", "200.05", "INVOICE 2")
BO = Payee("BO TEASEL", "778899", "11112222", "7.00", "INVOICE 3")
THREE = (ADA, ZOE, BO)


def total(payees):
    return f"{sum(Decimal(payee.amount) for payee in payees):.2f}"


def _bankline(payees):
    for payee in payees:
        cells = [""] * 85
        cells[3], cells[12], cells[16], cells[18] = "01", "40000188888888", payee.amount, "26112026"
        cells[24], cells[30], cells[32], cells[36] = (
            payee.sort_code,
            payee.account,
            payee.name,
            payee.reference,
        )
        yield ",".join(cells)


def _barclays(payees):
    for each in payees:
        yield f"{each.sort_code},{each.name},{each.account},{each.amount},Payroll,99"


def _bank_of_scotland(payees):
    yield "H,20261126,COMPANY1"
    for each in payees:
        yield (
            f"FPS,20261126,{each.amount},Quillon Mills,400001-88888888,{each.name},{each.account},"
            f"{each.sort_code},{each.reference}"
        )
    yield "T"


def _cashbacs(payees):
    for each in payees:
        code = "-".join(each.sort_code[at : at + 2] for at in (0, 2, 4))
        yield f'"{code}","{each.account}","{each.name}","{each.amount}"'


def _lloyds(payees):
    yield f"H,20261126,PAYROLL,{len(payees)},{total(payees)}"
    yield "D,MONTHLY,400001-88888888"
    for at, each in enumerate(payees, start=1):
        cells = ("C", each.name, each.account, each.sort_code, each.reference, each.amount, "N", "20261126")
        yield ",".join((*cells, f"E2E{at}"))


def _paygate(payees):
    for each in payees:
        yield (
            f"{each.sort_code},{each.account},{each.name},{each.amount},99,400001,88888888,QUILLON MILLS,"
            f"{each.reference},26/11/2026"
        )


def _rbs_autopay(payees):
    for each in payees:
        yield f"{each.reference},{each.name},{each.account},{each.sort_code},26330,99,{each.amount}"


def _santander(payees):
    yield "PAYMENT,HEADER,26112026,LONDON,0001"
    for each in payees:
        yield (
            f"PAYMENT,BACS,40000188888888,{each.name},{each.sort_code},{each.account},{each.amount},26112026,"
            f"{each.reference},/ABC"
        )
    yield f"PAYMENT,TRAILER,000123456789012,{len(payees)}"


MAKERS = {
    "bankline": _bankline,
    "barclays": _barclays,
    "bank-of-scotland": _bank_of_scotland,
    "cashbacs": _cashbacs,
    "lloyds": _lloyds,
    "paygate": _paygate,
    "rbs-autopay": _rbs_autopay,
    "santander": _santander,
}
"""Layout -> its lines."""
WRITABLE = tuple(name for name in MAKERS if name != "santander")


def bank_file(layout, payees=THREE, *, line_end="\r\n", encoding="utf-8"):
    """The bytes of a file in one of the layouts."""
    return "".join(line + line_end for line in MAKERS[layout](payees)).encode(encoding)
