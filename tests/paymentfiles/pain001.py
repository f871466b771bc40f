"""Writes pain.001 files in every dialect that is read; all people and accounts in them are invented."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

_SILENT = "NOTPROVIDED"
_THREE_DECIMALS = re.compile(r"\.[0-9]{3}$")
"""With one more, nobody takes them for thousands."""


class Other(NamedTuple):
    """A further identification of a payee."""

    id: str
    scheme: str | None = None
    issuer: str | None = None
    proprietary: bool = False


@dataclass(frozen=True)
class Payment:
    """One payment, by what a file can say of it."""

    end_to_end_id: str | None = "E2E-1"
    instruction_id: str | None = None
    uetr: str | None = None
    name: str | None = "Ada Quillon"
    iban: str | None = None
    account: str | None = None
    account_scheme: str | None = None
    proxy: str | None = None
    bic: str | None = None
    sort_code: str | None = None
    clearing: str = "Cd"
    """How the clearing system is named: in Cd, in Prtry, or as a text of its own."""
    clearing_system: str = "GBDSC"
    lei: str | None = None
    organisation_bic: str | None = None
    others: tuple[Other, ...] = ()
    amount: str = "1.00"
    currency: str = "EUR"
    equivalent_in: str | None = None
    """The currency of transfer, where the amount is in another one."""
    references: tuple[str, ...] = ()
    creditor_reference: str | None = None
    ultimate: str | None = None
    supplement: bool = False
    """Whether it carries another program's data, with what looks like a payment in it."""
    comment: str | None = None


@dataclass(frozen=True)
class Batch:
    """Payments under one heading."""

    payments: tuple[Payment, ...]
    id: str | None = "BATCH-1"
    method: str | None = "TRF"
    count: str | None = ""
    """What it says it holds; "": the truth; None: nothing."""
    sum: str | None = ""
    comment: str | None = None


@dataclass(frozen=True)
class Dialect:
    """How a file is written."""

    version: str = "pain.001.001.09"
    namespace: str | None = "urn:iso:std:iso:20022:tech:xsd:{}"
    prefix: str = ""
    encoding: str = "UTF-8"
    declaration: bool = True
    bom: bool = False
    line_end: str = "\n"
    indent: bool = True
    cdata: bool = False
    instruction: bool = False
    envelope: tuple[str, ...] = ("Document",)
    roomy: bool = False
    """Whether tags have blanks and attributes that say nothing."""

    @property
    def number(self) -> int:
        """The last part of the version."""
        return int(self.version.removesuffix(".ch.02").rpartition(".")[2])


DIALECTS = {
    **{f"ISO .{number:02}": Dialect(f"pain.001.001.{number:02}") for number in range(2, 13)},
    "German .002.02": Dialect("pain.001.002.02", "urn:swift:xsd:${}"),
    "German .002.03": Dialect("pain.001.002.03"),
    "German .003.03": Dialect("pain.001.003.03", encoding="ISO-8859-1"),
    "SEPA .de": Dialect("pain.001.001.02", "urn:sepade:xsd:{}"),
    "Swiss": Dialect("pain.001.001.03.ch.02", "http://www.six-interbank-clearing.com/de/{}.xsd"),
    "Italian": Dialect("CBIPaymentRequest.00.04.00", "urn:CBI:xsd:{}", envelope=()),
    "Italian enveloped": Dialect(
        *("CBIPaymentRequest.00.04.01", "urn:CBI:xsd:{}", "PMRQ:"), envelope=("CBIPaymentRequestMsg", "Body")
    ),
    "no namespace": Dialect(namespace=None),
    "no declaration": Dialect(declaration=False),
    "prefixed": Dialect(prefix="ns0:"),
    "byte order mark": Dialect(bom=True),
    "CRLF": Dialect(line_end="\r\n"),
    "one line": Dialect(indent=False),
    "CDATA": Dialect(cdata=True),
    "instructions": Dialect(instruction=True),
    "roomy": Dialect(roomy=True),
    "enveloped": Dialect(envelope=("Envelope", "Body", "Document"), prefix="p:"),
    "Western": Dialect(encoding="windows-1252"),
    "Latin 9": Dialect(encoding="ISO-8859-15"),
    "ASCII": Dialect(encoding="US-ASCII"),
}
"""All in which files can be read and changed."""
UTF_16 = Dialect(encoding="UTF-16")


class _Element(NamedTuple):
    tag: str
    children: "tuple[_Node, ...] | str"
    attributes: str = ""


class _Comment(NamedTuple):
    text: str


class _Instruction(NamedTuple):
    text: str


_Node = _Element | _Comment | _Instruction | None


def document(
    batches: tuple[Batch, ...],
    dialect: Dialect = Dialect(),
    *,
    message_id: str | None = "MESSAGE-1",
    count: str | None = "",
    sum: str | None = "",  # noqa: A002
) -> bytes:
    """A file of these batches; `count` and `sum` as those of a batch."""
    payments = [payment for batch in batches for payment in batch.payments]
    header = _element(
        "GrpHdr",
        _leaf("MsgId", message_id),
        _leaf("CreDtTm", "2026-11-22T02:40:00"),
        *_totals(payments, count, sum),
        _element("InitgPty", _leaf("Nm", "Marrow Mills Ltd")),
    )
    names = {"pain.001.001.02": "pain.001.001.02", "CBI": "CBIPaymentRequest"}
    name = next((names[of] for of in names if dialect.version.startswith(of)), "CstmrCdtTrfInitn")
    node = _element(name, header, *(n for batch in batches for n in _batch(batch, dialect)))
    for tag in reversed(dialect.envelope):
        node = _element(tag, node)
    if dialect.namespace is not None:
        colon = f":{dialect.prefix[:-1]}" if dialect.prefix else ""
        node = node._replace(attributes=f' xmlns{colon}="{dialect.namespace.format(dialect.version)}"')
    text = f'<?xml version="1.0" encoding="{dialect.encoding}"?>\n' if dialect.declaration else ""
    text += "".join(_written(node, dialect, 0)).lstrip("\n") + "\n"
    mark = "\ufeff" if dialect.bom else ""
    return (mark + text.replace("\n", dialect.line_end)).encode(dialect.encoding, "xmlcharrefreplace")


def said_of(payment: Payment) -> dict[str, str | None]:
    """The canonical fields of a payment that hold something."""
    is_uk = payment.iban is None and payment.sort_code is not None and payment.clearing_system == "GBDSC"
    other = next((o for o in payment.others if o.scheme and o.scheme != "LEI" and not o.proprietary), None)
    said = {
        "payment_id": _said(payment.end_to_end_id) or _said(payment.instruction_id),
        "name": _said(payment.name and payment.name.strip()),
        "sort_code": payment.sort_code if is_uk else None,
        "account_number": payment.account if is_uk else None,
        "iban": payment.iban,
        "bic": _said(payment.bic),
        "lei": payment.lei or next((o.id for o in payment.others if o.scheme == "LEI"), None),
        "organisation_bic": payment.organisation_bic,
        "organisation_id": other and other.id,
        "organisation_id_scheme": other and other.scheme,
        "organisation_id_issuer": other and other.issuer,
        "amount": f"{payment.amount}0" if _THREE_DECIMALS.search(payment.amount) else payment.amount,
        "currency": payment.currency,
        "reference": next(iter(payment.references), payment.creditor_reference),
    }
    return {field: value for field, value in said.items() if value}


def write_many(path: Path, payment_count: int, *, per_batch: int) -> None:
    """Write a file of any size, of nearly 1 KB a payment, a fifth of them to the UK, without holding it."""
    amounts = [f"{100 + at * 7919 % 4_000_000}.{at % 100:02}" for at in range(payment_count)]
    frame = document((), count=str(payment_count), sum=f"{sum(map(Decimal, amounts)):f}")
    head, end, tail = frame.partition(b"\n  </CstmrCdtTrfInitn>")
    batch = Batch((), id="@BATCH@", count="@COUNT@", sum="@SUM@")
    heading, closing, _ = "".join(_written(next(_batch(batch, Dialect())), Dialect(), 2)).partition(
        "\n    </PmtInf>"
    )
    euros, pounds = (
        "".join(_written(next(_payment(payment, Dialect())), Dialect(), 3))
        for payment in (replace(_LARGE, iban="DE@CHECK@20050000@IBAN@", bic="COBADEFFXXX"), _LARGE_UK)
    )
    with path.open("wb", buffering=1 << 20) as file:
        file.write(head)
        for first in range(0, payment_count, per_batch):
            part = amounts[first : first + per_batch]
            said = {"BATCH": f"BATCH-{first}", "COUNT": len(part), "SUM": f"{sum(map(Decimal, part)):f}"}
            file.write(_filled(heading, said).encode())
            for at, amount in enumerate(part, start=first):
                file.write(_filled(pounds if at % 5 == 4 else euros, _large(at, amount)).encode())
            file.write(closing.encode())
        file.write(end + tail)


_LARGE = Payment(
    end_to_end_id="E2E-2026-11-@AT@",
    instruction_id="INSTR-@AT@",
    name="@NAME@ @AT@",
    amount="@AMOUNT@",
    references=("Invoice 2026-@AT@ of 2026-11-01, customer 4711, thank you for your business",),
)
_LARGE_UK = replace(_LARGE, sort_code="@SORT@", account="@UK@", currency="GBP")


def _large(at: int, amount: str) -> dict[str, object]:
    return {
        "AT": f"{at:09}",
        "NAME": ("M\u00fcller &amp; S\u00f6hne GmbH", "Ada Quillon", "\u0141ukasz Wi\u015bniewski")[at % 3],
        "AMOUNT": amount,
        "CHECK": 10 + at % 90,
        "IBAN": f"{at % 10**10:010}",
        "SORT": f"{at % 10**6:06}",
        "UK": f"{at % 10**8:08}",
    }


def _filled(template: str, said: dict[str, object]) -> str:
    for name, value in said.items():
        template = template.replace(f"@{name}@", str(value))
    return template


def _totals(payments: list[Payment], count: str | None, total: str | None) -> Iterator[_Node]:
    yield _leaf("NbOfTxs", str(len(payments)) if count == "" else count)
    yield _leaf("CtrlSum", _sum(payments) if total == "" else total)


def _sum(payments: list[Payment]) -> str:
    return f"{sum((Decimal(payment.amount) for payment in payments), Decimal(0)):f}"


def _batch(batch: Batch, dialect: Dialect) -> Iterator[_Node]:
    if batch.comment is not None:
        yield _Comment(batch.comment)
    totals = () if dialect.number == 2 else _totals(list(batch.payments), batch.count, batch.sum)
    day = (_leaf("Dt", "2026-11-25"),) if dialect.number >= 8 else "2026-11-25"
    yield _element(
        "PmtInf",
        _leaf("PmtInfId", batch.id),
        _leaf("PmtMtd", batch.method),
        *totals,
        _element("PmtTpInf", _element("SvcLvl", _leaf("Cd", "SEPA"))),
        _Element("ReqdExctnDt", day),
        _element("Dbtr", _leaf("Nm", "Marrow Mills Ltd")),
        _element("DbtrAcct", _element("Id", _leaf("IBAN", "DE87200500001234567890"))),
        _element("DbtrAgt", _element("FinInstnId", _leaf(_bic_tag(dialect), "BANKDEFFXXX"))),
        _Instruction('erp step="7"') if dialect.instruction else None,
        _leaf("ChrgBr", "SLEV"),
        *(node for payment in batch.payments for node in _payment(payment, dialect)),
    )


def _payment(payment: Payment, dialect: Dialect) -> Iterator[_Node]:
    if payment.comment is not None:
        yield _Comment(payment.comment)
    if dialect.instruction:
        yield _Instruction("erp <CdtTrfTxInf>")
    yield _element(
        "CdtTrfTxInf",
        _element(
            "PmtId",
            _leaf("InstrId", payment.instruction_id),
            _leaf("EndToEndId", payment.end_to_end_id),
            _leaf("UETR", payment.uetr),
        ),
        _element("Amt", _amount(payment)),
        _element("CdtrAgt", _agent(payment, dialect)),
        _creditor(payment, dialect),
        _account(payment, dialect),
        (payment.ultimate and _element("UltmtCdtr", _leaf("Nm", payment.ultimate))) or None,
        _remittance(payment, dialect),
        _supplement() if payment.supplement else None,
    )


def _amount(payment: Payment) -> _Node:
    currency = f' Ccy="{payment.currency}"'
    if payment.equivalent_in is None:
        return _Element("InstdAmt", payment.amount, currency)
    return _element(
        "EqvtAmt", _Element("Amt", payment.amount, currency), _leaf("CcyOfTrf", payment.equivalent_in)
    )


def _agent(payment: Payment, dialect: Dialect) -> _Node:
    system = {
        "Cd": (_leaf("Cd", payment.clearing_system),),
        "Prtry": (_leaf("Prtry", payment.clearing_system),),
        "text": payment.clearing_system,
    }[payment.clearing]
    member = payment.sort_code and _element(
        "ClrSysMmbId", _Element("ClrSysId", system), _leaf("MmbId", payment.sort_code)
    )
    return _element("FinInstnId", _leaf(_bic_tag(dialect), payment.bic), member or None)


def _creditor(payment: Payment, dialect: Dialect) -> _Node:
    lei = _leaf("LEI", payment.lei)
    bic = _leaf("AnyBIC" if dialect.number >= 9 else "BICOrBEI", payment.organisation_bic)
    others = (
        _element(
            "Othr",
            _leaf("Id", other.id),
            other.scheme and _element("SchmeNm", _leaf("Prtry" if other.proprietary else "Cd", other.scheme)),
            _leaf("Issr", other.issuer),
        )
        for other in payment.others
    )
    is_known = payment.lei or payment.organisation_bic or payment.others
    return _element(
        "Cdtr",
        _leaf("Nm", payment.name),
        _element("PstlAdr", _leaf("Ctry", "DE"), _leaf("AdrLine", "Nm IBAN 1")),
        _element("Id", _element("OrgId", bic, lei, *others)) if is_known else None,
    )


def _account(payment: Payment, dialect: Dialect) -> _Node:
    if payment.account is not None and dialect.number == 2 and not payment.account_scheme:
        number = _leaf("BBAN", payment.account)
    elif payment.account is not None:
        scheme = payment.account_scheme and _element("SchmeNm", _leaf("Cd", payment.account_scheme))
        number = _element("Othr", _leaf("Id", payment.account), scheme or None)
    else:
        number = None
    proxy = payment.proxy and _element("Prxy", _leaf("Id", payment.proxy))
    if number is None and payment.iban is None and not proxy:
        return None
    has_id = number is not None or payment.iban is not None
    return _element(
        "CdtrAcct", _element("Id", _leaf("IBAN", payment.iban), number) if has_id else None, proxy or None
    )


def _remittance(payment: Payment, dialect: Dialect) -> _Node:
    tag = "CdtrRef" if dialect.number == 2 else "Ref"
    structured = payment.creditor_reference and _element(
        "Strd", _element("CdtrRefInf", _leaf(tag, payment.creditor_reference))
    )
    if not payment.references and not structured:
        return None
    return _element("RmtInf", *(_leaf("Ustrd", text) for text in payment.references), structured or None)


def _supplement() -> _Node:
    foreign = _element("CdtTrfTxInf", _element("Cdtr", _leaf("Nm", "Nobody")))
    return _element("SplmtryData", _element("Envlp", foreign._replace(attributes=' xmlns="urn:other"')))


def _bic_tag(dialect: Dialect) -> str:
    return "BICFI" if dialect.number >= 9 else "BIC"


def _element(tag: str, *children: "_Node | str") -> _Element:
    return _Element(tag, tuple(child for child in children if child))


def _leaf(tag: str, text: str | None) -> _Node:
    return None if text is None else _Element(tag, text)


def _said(text: str | None) -> str | None:
    return None if text == _SILENT else text


def _written(node: _Node, dialect: Dialect, depth: int) -> Iterator[str]:
    break_ = "\n" + "  " * depth if dialect.indent else ""
    match node:
        case _Comment(text):
            yield f"{break_}<!--{text}-->"
        case _Instruction(text):
            yield f"{break_}<?{text}?>"
        case _Element(tag, str(text), attributes):
            tag, room = dialect.prefix + tag, ' note="a>b"' if dialect.roomy and tag == "Nm" else ""
            shown = _shown(text, dialect)
            if not text and dialect.roomy:
                yield f"{break_}<{tag}{attributes}{room} />"
            else:
                yield f"{break_}<{tag}{attributes}{room}>{shown}</{tag}{' ' if dialect.roomy else ''}>"
        case _Element(tag, children, attributes):
            tag = dialect.prefix + tag
            yield f"{break_}<{tag}{attributes}{' ' if dialect.roomy else ''}>"
            for child in children:
                yield from _written(child, dialect, depth + 1)
            yield f"{break_}</{tag}>"


def _shown(text: str, dialect: Dialect) -> str:
    if dialect.cdata and len(text) > 1:
        half = len(text) // 2
        if text.isascii() or dialect.encoding == "UTF-8":
            return f"{escape(text[:half])}<![CDATA[{text[half:]}]]>"
    return escape(text)
