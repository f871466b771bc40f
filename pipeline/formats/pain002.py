"""pain.002 as a verification-of-payee report: its statuses, and a reader for banks' reports.

Elements are matched by local name in any namespace, in all versions from .03 on. A bank's report is
untrusted, so a child process reads it under the same limits as a pain.001. `executors.from_report` joins it
with the payments. Sources: ISO 20022, external code sets; public reports of banks.
"""

from collections.abc import Iterator, Sequence
from enum import IntEnum, StrEnum
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import polars as pl

from pipeline.errors import InputError
from pipeline.formats.edits import Bytes
from pipeline.formats.xml_stream import DEPTH_MAX, Element, XmlStream, too_deep
from pipeline.wording import Sentence
from schemas.outcomes import Outcome

LINE_CHARS_MAX = 105  # maximum length of a line of additional information in the schema (Max105Text)


class Status(StrEnum):
    """The reported status of a payment. Source: ISO 20022, ExternalPaymentTransactionStatus1Code."""

    MATCH = "RCVC"
    CLOSE_MATCH = "RVMC"
    NO_MATCH = "RVNM"
    NOT_APPLICABLE = "RVNA"
    NOT_COMPLETED = "RVNC"


SIMULATED = "SIMULATED by a sandbox: no bank was asked. Release no payment by this report."
"""The note in our report on a simulated run."""
WITH_MISMATCHES = "RVCM"  # for a message or a batch, never for a payment
PENDING = "PDNG"
STATUSES = {
    Outcome.MATCH: Status.MATCH,
    Outcome.CLOSE_MATCH: Status.CLOSE_MATCH,
    Outcome.NO_MATCH: Status.NO_MATCH,
    Outcome.NOT_POSSIBLE: Status.NOT_APPLICABLE,
    Outcome.REJECTED: Status.NOT_APPLICABLE,
    Outcome.DEFERRED: Status.NOT_COMPLETED,
    Outcome.UNANSWERED: Status.NOT_COMPLETED,
}
OF_VERIFICATION = (*(status.value for status in Status), WITH_MISMATCHES, PENDING)
"""A report without any of these is about the payment itself, not its verification."""

_TEXT = pl.String()
TRANSACTIONS = {
    "message": pl.UInt32(),  # counted from 0 over all messages of a file
    "batch": pl.UInt32(),  # within its message, counted from 1
    **dict.fromkeys(("instruction_id", "end_to_end_id", "uetr", "status", "name"), _TEXT),
    **dict.fromkeys(("amount", "currency", "account", "payee"), _TEXT),
}
"""The result for one payment. `name` is its additional information, joined; the last four columns were sent
to the bank. IDs, status and currency have no surrounding blanks; an ID that says nothing is null."""
COUNTED = {"status": _TEXT, "count": _TEXT, "sum": _TEXT}
LEVELS = {
    "message": pl.UInt32(),
    "batch": pl.UInt32(),  # 0: the message itself
    **dict.fromkeys(("report_id", "created", "id", "file_created", "status", "count", "sum"), _TEXT),
    "counted": pl.List(pl.Struct(COUNTED)),
    "notes": pl.List(pl.String()),
}
"""The result for a message and for each batch: `id`, `file_created` as in the file, `notes` for people."""
_PARTS = {**TRANSACTIONS, "levels": pl.List(pl.Struct(LEVELS))}

_IDS = ("instruction_id", "end_to_end_id", "uetr")
_NO_ID = {"instruction_id": ["", "NOTPROVIDED"], "end_to_end_id": [""], "uetr": [""]}
_BLOCK_HEIGHT = 4096
_SEARCHED_DEPTH = 8
_AT = {column: at for at, column in enumerate(TRANSACTIONS)}


class StatusReports(NamedTuple):
    """The messages of one file."""

    transactions: pl.DataFrame  # `TRANSACTIONS`, in the order of the file
    levels: pl.DataFrame  # `LEVELS`, each message before its batches


def reports_of(parts: pl.DataFrame) -> StatusReports:
    """Return the reports in the parts that `parse` yields."""
    levels = parts["levels"].drop_nulls().explode().struct.unnest().match_to_schema(LEVELS)
    return StatusReports(parts.filter(pl.col("levels").is_null()).select(list(TRANSACTIONS)), levels)


def parse(data: Bytes, *, ends: str) -> Iterator[pl.DataFrame]:
    """Read the joined documents of a file, which end at these offsets; `files.confined` calls this.

    Raises InputError: a document is not a pain.002, or is unsafe or ambiguous.
    """
    places = [0, *map(int, ends.split(","))]
    message_count = 0
    for number, (start, end) in enumerate(pairwise(places), start=1):
        try:
            reader = _Reader(data if len(places) == 2 else data[start:end], message_count)
            yield from reader.parts()
        except InputError as error:
            if len(places) == 2:
                raise
            raise InputError(Sentence("formats.document_of_zip", number=number, why=error.reason)) from None
        message_count = reader.message_count


def ends_of(documents: Sequence[bytes]) -> str:
    """Return the ends of joined documents in the form that `parse` takes."""
    return ",".join(map(str, accumulate(map(len, documents))))


class _Kind(IntEnum):
    NOTHING = 0  # leads to elements that are read, or to none
    TEXT = 1  # text of a payment
    STATED = 2  # text of a level
    TRANSACTION = 3
    LEVEL = 4
    COUNTED = 5
    MESSAGE = 6


_OF_TRANSACTION = {
    "OrgnlInstrId": "instruction_id",
    "OrgnlEndToEndId": "end_to_end_id",
    "OrgnlUETR": "uetr",
    "TxSts": "status",
    "StsRsnInf/AddtlInf": "name",
    "OrgnlTxRef/Amt/InstdAmt": "amount",
    "OrgnlTxRef/Amt/EqvtAmt/Amt": "amount",
    "OrgnlTxRef/Cdtr/Nm": "payee",
    "OrgnlTxRef/Cdtr/Pty/Nm": "payee",
    "OrgnlTxRef/CdtrAcct/Id/IBAN": "account",
    "OrgnlTxRef/CdtrAcct/Id/Othr/Id": "account",
}
_OF_LEVEL = {"OrgnlNbOfTxs": "count", "OrgnlCtrlSum": "sum", "StsRsnInf/AddtlInf": "notes"}
_OF_COUNT = {"DtldNbOfTxs": "count", "DtldSts": "status", "DtldCtrlSum": "sum"}
_PLACES = {"TxInfAndSts": _Kind.TRANSACTION, "OrgnlPmtInfAndSts": _Kind.LEVEL}


def _tree() -> Element:
    """Return the parent of a document's root element."""
    unread, message = Element(), Element(_Kind.MESSAGE)
    message.otherwise = unread
    message["GrpHdr"] = Element()
    message["GrpHdr"].add_texts({"MsgId": "report_id", "CreDtTm": "created"}, _Kind.STATED, unread, {})
    for name, ids in (
        ("OrgnlGrpInfAndSts", {"OrgnlMsgId": "id", "OrgnlCreDtTm": "file_created", "GrpSts": "status"}),
        ("OrgnlPmtInfAndSts", {"OrgnlPmtInfId": "id", "PmtInfSts": "status"}),
    ):
        level, counted = Element(_Kind.LEVEL), Element(_Kind.COUNTED)
        level.add_texts(ids | _OF_LEVEL, _Kind.STATED, unread, {})
        counted.add_texts(_OF_COUNT, _Kind.STATED, unread, {})
        message[name], level["NbOfTxsPerSts"] = level, counted
    transaction = message["OrgnlPmtInfAndSts"]["TxInfAndSts"] = Element(_Kind.TRANSACTION)
    transaction.add_texts(_OF_TRANSACTION, _Kind.TEXT, unread, _AT)
    envelope = [Element() for _ in range(_SEARCHED_DEPTH)]
    for outer, inner in pairwise([*envelope, unread]):
        outer.otherwise = inner
        outer["CstmrPmtStsRpt"] = message
    return envelope[0]


class _Reader:
    """Parses one document and holds what was found since the last block."""

    def __init__(self, data: Bytes, message_count: int) -> None:
        self.message_count = message_count  # number of messages in all documents so far
        self._stream = XmlStream(data)
        self._rows: list[list[object]] = []
        self._levels: list[dict[str, Any]] = []
        self._stated: dict[str, Any] = {}  # texts found so far in the current level, or in one of its counts
        self._walk()

    def parts(self) -> Iterator[pl.DataFrame]:
        """Yield `_PARTS`; the last row is not a payment."""
        before = self.message_count
        for _ in self._stream.steps():
            if len(self._rows) >= _BLOCK_HEIGHT:
                yield self._part()
        if self.message_count == before:
            raise InputError(Sentence("formats.not_a_status_report"))
        yield self._part()
        last = {"levels": [self._levels]}
        yield pl.DataFrame({column: last.get(column, [None]) for column in _PARTS}, schema=_PARTS)

    def _part(self) -> pl.DataFrame:
        columns = dict(zip(TRANSACTIONS, zip(*self._rows, strict=True), strict=True)) if self._rows else {}
        self._rows.clear()
        cleaned = {column: pl.col(column).str.strip_chars() for column in (*_IDS, "status", "currency")}
        cleaned |= {column: cleaned[column].replace(_NO_ID[column], None) for column in _IDS}
        return pl.DataFrame(columns, schema=TRANSACTIONS).with_columns(
            **cleaned, levels=pl.lit(None, _PARTS["levels"])
        )

    def _enter(self, state: Element, tag: str) -> Element:
        """Return the tree element of a tag at its first occurrence, and cache it."""
        name = tag.rpartition(":")[2]
        entered = state[tag] = state.get(name, state.otherwise)
        if entered.kind is not _PLACES.get(name, entered.kind):
            line = self._stream.parser.CurrentLineNumber
            raise InputError(Sentence("pain001.payment_out_of_place", element=name, line=line))
        return entered

    def _twice(self) -> InputError:
        line = self._stream.parser.CurrentLineNumber
        return InputError(Sentence("formats.report_element_repeated", line=line))

    def _walk(self) -> None:  # noqa: C901, PLR0915 - the inner loop, where a call costs as much as the rest
        """Follow the parser through the tree of elements and record what is found."""
        parser, text = self._stream.parser, self._stream.text
        hear, forget, rows = text.append, text.clear, self._rows
        state = _tree()
        is_text = _Kind.TEXT
        stack: list[Element] = []
        push, pop = stack.append, stack.pop
        blank: list[Any] = [None] * len(TRANSACTIONS)
        payment = blank
        name_at, currency_at, amount_at = _AT["name"], _AT["currency"], _AT["amount"]
        message: dict[str, Any] = {}
        batch_count = 0

        def start(tag: str, attributes: Sequence[str]) -> None:
            nonlocal state, payment
            push(state)
            entered = state.get(tag)
            if entered is None:
                entered = self._enter(state, tag)
            if entered is state:  # elements that are not read may contain themselves
                if len(stack) > DEPTH_MAX:
                    raise too_deep(parser.CurrentLineNumber)
                return
            state = entered
            kind = entered.kind
            if not kind:
                return
            if kind is is_text:
                forget()
                parser.CharacterDataHandler = hear
                if attributes and entered.column == amount_at:
                    payment[currency_at] = dict(zip(*[iter(attributes)] * 2, strict=True)).get("Ccy")
            elif kind is _Kind.TRANSACTION:
                payment = blank.copy()
                payment[0], payment[1] = self.message_count - 1, batch_count
            else:
                opened(kind)

        def opened(kind: int) -> None:
            nonlocal message, batch_count
            forget()
            if kind is _Kind.STATED:
                parser.CharacterDataHandler = hear
            elif kind is _Kind.MESSAGE:
                message = self._stated = {"message": self.message_count, "batch": 0}
                self._levels.append(message)
                self.message_count, batch_count = self.message_count + 1, 0
            elif kind is _Kind.COUNTED:
                counted: dict[str, Any] = {}
                self._stated.setdefault("counted", []).append(counted)
                push_level(counted)
            elif "OrgnlMsgId" in state:
                push_level(message)
            else:
                batch_count += 1
                level: dict[str, Any] = {"message": self.message_count - 1, "batch": batch_count}
                self._levels.append(level)
                push_level(level)

        above: list[dict[str, Any]] = []

        def push_level(level: dict[str, Any]) -> None:
            above.append(self._stated)
            self._stated = level

        def end(tag: str) -> None:  # noqa: ARG001 - the parser's own signature
            nonlocal state
            kind = state.kind
            if not kind:
                pass
            elif kind is is_text:
                parser.CharacterDataHandler = None
                column = state.column
                value = text[0] if len(text) == 1 else self._stream.text_so_far()
                if payment[column] is None:
                    payment[column] = value
                elif column == name_at:
                    payment[column] += value
                else:
                    raise self._twice()
            elif kind is _Kind.TRANSACTION:
                rows.append(payment)
            elif kind is _Kind.STATED:
                parser.CharacterDataHandler = None
                stated(state.what, self._stream.text_so_far().strip())
            elif kind is not _Kind.MESSAGE:
                self._stated = above.pop()
            state = pop()

        def stated(what: str, value: str) -> None:
            if what == "notes":
                self._stated.setdefault(what, []).append(value)
            elif self._stated.setdefault(what, value) != value:
                raise self._twice()

        parser.StartElementHandler = start
        parser.EndElementHandler = end
