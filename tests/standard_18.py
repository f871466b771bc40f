"""Standard 18 files for tests: made by the table of the standard, without the code under test."""

import random
from collections import defaultdict
from dataclasses import dataclass, replace

PENCE_MAX = 99_999_999_999
NAMES = ("ADA QUILLON", "Z MARROW & SONS", "TEASEL GARDENS LTD", "B. O-BRIEN/HOLT", "QUILLON AND MARROW")


@dataclass(frozen=True)
class Payment:
    """One credit; or whatever its code says."""

    sort_code: str = "112233"
    account: str = "12345678"
    pence: int = 12_345
    name: str = "ADA QUILLON"
    reference: str = "INVOICE 1"
    code: str = "99"
    originator: str = "40000188888888"
    day: str = ""

    def record(self) -> str:
        text = (
            f"{self.sort_code}{self.account}0{self.code}{self.originator}    {self.pence:011d}"
            f"{'QUILLON MILLS':18}{self.reference:18}{self.name:18}{self.day}"
        )
        assert len(text) in {100, 106}
        return text


@dataclass(frozen=True)
class File:
    """A file of payments, their contras, and labels around them."""

    payments: tuple[Payment, ...]
    labels: bool = True
    contras: bool = True
    line_end: str = "\r\n"
    last_line_end: bool = True
    pad_to: int = 0

    def lines(self) -> list[str]:
        records = [payment.record() for payment in self.payments]
        if self.contras:
            records += [contra.record() for contra in contras_of(self.payments)]
        padded = [record.ljust(self.pad_to) for record in records]
        return labelled(padded, self.payments, self.contras) if self.labels else padded

    def data(self) -> bytes:
        text = self.line_end.join(self.lines())
        return (text + self.line_end * self.last_line_end).encode("ascii")

    def of(self, *payments: Payment) -> "File":
        return replace(self, payments=payments)


def contras_of(payments):
    """One contra for each account and day, and more where one has no room."""
    sums = defaultdict(int)
    for payment in payments:
        if payment.code == "99":
            sums[payment.originator, payment.day] += payment.pence
    for (originator, day), pence in sums.items():
        parts = [PENCE_MAX] * (pence // PENCE_MAX) + [pence % PENCE_MAX] * (pence % PENCE_MAX > 0)
        for part in parts:
            yield Payment(
                originator[:6], originator[6:], part, "QUILLON MILLS", "CONTRA", "17", originator, day
            )


def labelled(records, payments, has_contras):
    contras = list(contras_of(payments)) if has_contras else []
    credits_ = [payment for payment in payments if payment.code == "99"]
    debits = contras + [payment for payment in payments if payment.code in {"01", "17", "18", "19"}]
    multi = any(payment.day for payment in payments)
    length = 106 if multi else 100
    start = "A123456S  1123456000007" + "00010001" + " " * 6 + " 26330" + " 26337" + " "
    blocks = -(-len(records) // 20)
    hdr2 = f"HDR2F{length * 20:05d}{length:05d}{'':35}00{'':28}"
    work = "4 MULTI  " if multi else "1 DAILY  "
    debit, credit = (sum(each.pence for each in side) for side in (debits, credits_))
    return [
        f"VOL1000007{'':31}123456{'':32}1",
        f"HDR1{start}000000{'':20}",
        hdr2,
        f"UHL1 26330999999    00{'':6}{work}007{'':7}AUDIT01{'':26}",
        *records,
        f"EOF1{start}{blocks:06d}{'':20}",
        f"EOF2{hdr2[4:]}",
        f"UTL1{debit:013d}{credit:013d}{len(debits):07d}{len(credits_):07d}{'':36}",
    ]


def any_file(seed: int, *, count_max: int = 30) -> File:
    """A file of any shape, with payments of any size; the same for the same seed."""
    rng = random.Random(seed)
    multi = rng.random() < 0.5
    originators = [f"{rng.randrange(10**14):014d}" for _ in range(rng.randrange(1, 4))]
    payments = tuple(
        Payment(
            sort_code=f"{rng.randrange(10**6):06d}",
            account=f"{rng.randrange(10**8):08d}",
            pence=rng.choice([1, rng.randrange(10**7), rng.randrange(PENCE_MAX // 3), PENCE_MAX]),
            name=rng.choice(NAMES),
            reference=rng.choice(["", "PAY 1", "CONTRA ACCOUNT"]),
            originator=rng.choice(originators),
            day=f" 26{rng.randrange(330, 333)}" if multi else "",
        )
        for _ in range(rng.randrange(1, count_max))
    )
    return File(
        payments,
        labels=rng.random() < 0.7,
        contras=rng.random() < 0.8,
        line_end=rng.choice(["\r\n", "\n"]),
        last_line_end=rng.random() < 0.8,
        pad_to=0 if multi else rng.choice([0, 106, 111]),
    )
