"""Writes the reports of banks on a verification of payees, in their dialects; all is invented."""

import io
import zipfile
from dataclasses import dataclass
from typing import NamedTuple
from xml.sax.saxutils import escape

COUNTED = ("RCVC", "RVMC", "RVNM", "RVNA")


@dataclass(frozen=True)
class Said:
    """What is said of one payment."""

    end_to_end_id: str | None = "E2E-1"
    status: str | None = "RCVC"
    names: tuple[str, ...] = ()
    """The name at the bank, in the pieces that the bank writes."""
    instruction_id: str | None = None
    uetr: str | None = None
    account: str | None = None
    amount: str | None = None
    currency: str = "EUR"
    name: str | None = None
    """As it was sent."""


class SaidOfBatch(NamedTuple):
    """What is said of one batch."""

    payments: tuple[Said, ...] = ()
    id: str | None = "BATCH-1"
    status: str | None = None
    count: str | None = None
    sum: str | None = None
    counted: tuple[tuple[str, str], ...] = ()
    """Status and number, of each that is counted."""


@dataclass(frozen=True)
class ReportDialect:
    """How a bank writes."""

    version: str = "pain.002.001.10"
    has_namespace: bool = True
    prefix: str = ""
    indent: bool = True
    encoding: str = "UTF-8"

    @property
    def is_old(self) -> bool:
        """Whether the party stands in the creditor itself."""
        return self.version.endswith(".03")


DIALECTS = {
    ".03": ReportDialect("pain.002.001.03"),
    "German .03": ReportDialect("pain.002.003.03"),
    ".10": ReportDialect(),
    ".12": ReportDialect("pain.002.001.12"),
    ".14": ReportDialect("pain.002.001.14", prefix="ns2:"),
    "no namespace": ReportDialect(has_namespace=False),
    "one line": ReportDialect(indent=False),
    "Western": ReportDialect(encoding="ISO-8859-1"),
}


def report(
    batches: tuple[SaidOfBatch, ...],
    dialect: ReportDialect = ReportDialect(),
    *,
    message_id: str | None = "MESSAGE-1",
    of_file: str | None = None,
    status: str | None = "RVCM",
    count: str | None = None,
    sum: str | None = None,  # noqa: A002
    counted: tuple[tuple[str, str], ...] = (),
    notes: tuple[str, ...] = (),
    report_id: str = "VOP-1",
    created: str = "2026-11-27T09:30:00Z",
) -> bytes:
    """A report on these batches."""
    of_batches = [_batch(batch, dialect) for batch in batches]
    whole = _around(
        "OrgnlGrpInfAndSts",
        _leaf("OrgnlMsgId", message_id),
        _leaf("OrgnlMsgNmId", "pain.001.001.09"),
        _leaf("OrgnlCreDtTm", of_file),
        _leaf("OrgnlNbOfTxs", count),
        _leaf("OrgnlCtrlSum", sum),
        _leaf("GrpSts", status),
        *(_around("StsRsnInf", _leaf("AddtlInf", note)) for note in notes),
        *_counts(counted),
    )
    header = _around("GrpHdr", _leaf("MsgId", report_id), _leaf("CreDtTm", created))
    namespace = f"urn:iso:std:iso:20022:tech:xsd:{dialect.version}"
    said = (
        ""
        if not dialect.has_namespace
        else f' xmlns{":" if dialect.prefix else ""}{dialect.prefix[:-1]}="{namespace}"'
    )
    body = _around("Document", _around("CstmrPmtStsRpt", header, whole, *of_batches))
    if dialect.prefix:
        body = (
            body.replace("</", "\0").replace("<", f"<{dialect.prefix}").replace("\0", f"</{dialect.prefix}")
        )
    opening = f"<{dialect.prefix}Document"
    body = body.replace(f"{opening}>", f"{opening}{said}>", 1)
    if not dialect.indent:
        body = body.replace("\n", "")
    return f'<?xml version="1.0" encoding="{dialect.encoding}"?>\n{body}'.encode(dialect.encoding)


def zipped(*documents: bytes) -> bytes:
    """Documents in a ZIP, as a bank sends several at once."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, document in enumerate(documents, start=1):
            archive.writestr(f"VPZ-{number}.xml", document)
    return file.getvalue()


def _batch(batch: SaidOfBatch, dialect: ReportDialect) -> str:
    return _around(
        "OrgnlPmtInfAndSts",
        _leaf("OrgnlPmtInfId", batch.id),
        _leaf("OrgnlNbOfTxs", batch.count),
        _leaf("OrgnlCtrlSum", batch.sum),
        _leaf("PmtInfSts", batch.status),
        *_counts(batch.counted),
        *(_payment(said, dialect) for said in batch.payments),
    )


def _counts(counted: tuple[tuple[str, str], ...]) -> list[str]:
    return [
        _around("NbOfTxsPerSts", _leaf("DtldNbOfTxs", number), _leaf("DtldSts", status))
        for status, number in counted
    ]


def _payment(said: Said, dialect: ReportDialect) -> str:
    reasons = [_leaf("AddtlInf", name) for name in said.names]
    party = _leaf("Nm", said.name)
    kind = "IBAN" if (said.account or "")[:2].isalpha() else "Othr"
    account = _leaf("IBAN", said.account) if kind == "IBAN" else _around("Othr", _leaf("Id", said.account))
    amount = "" if said.amount is None else f'<InstdAmt Ccy="{said.currency}">{said.amount}</InstdAmt>'
    return _around(
        "TxInfAndSts",
        _leaf("OrgnlInstrId", said.instruction_id),
        _leaf("OrgnlEndToEndId", said.end_to_end_id),
        _leaf("OrgnlUETR", said.uetr),
        _leaf("TxSts", said.status),
        _around("StsRsnInf", _around("Orgtr", _leaf("Nm", "Bank")), *reasons) if reasons else "",
        _filled(
            "OrgnlTxRef",
            _filled("Amt", amount),
            _filled("Cdtr", party if dialect.is_old else _filled("Pty", party)),
            _filled("CdtrAcct", _around("Id", account) if said.account else ""),
        ),
    )


def _leaf(tag: str, text: str | None) -> str:
    return "" if text is None else f"<{tag}>{escape(text)}</{tag}>\n"


def _around(tag: str, *inside: str) -> str:
    return f"<{tag}>\n{''.join(inside)}</{tag}>\n"


def _filled(tag: str, *inside: str) -> str:
    return _around(tag, *inside) if any(inside) else ""
