"""The elements of a pain.001 that are read, as a tree for the parser to follow.

Names are local: real files have a dozen namespaces, or none. Elements outside the tree are skipped, but a
payment or a batch in them is refused; in supplementary data it is counted. Source: the schemas
pain.001.001.02 to .12, and public examples of banks' dialects.
"""

from enum import IntEnum
from itertools import pairwise

from pipeline.formats.pain001.versions import CREDIT_TRANSFERS
from pipeline.formats.xml_stream import Element

FIELDS_BY_PATH = {
    "PmtId/EndToEndId": "end_to_end_id",
    "PmtId/InstrId": "instruction_id",
    "PmtId/UETR": "uetr",
    "Amt/InstdAmt": "amount",
    "Amt/EqvtAmt/Amt": "equivalent",
    "Cdtr/Nm": "name",
    "Cdtr/PstlAdr/AdrLine": "address_lines",
    "Cdtr/PstlAdr/TwnNm": "town",
    "Cdtr/PstlAdr/Ctry": "country",
    "CdtrAcct/Id/IBAN": "iban",
    "CdtrAcct/Id/Othr/Id": "account",
    "CdtrAcct/Id/Othr/SchmeNm/Cd": "account_scheme",
    "CdtrAcct/Id/Othr/SchmeNm/Prtry": "account_scheme",
    "CdtrAcct/Id/BBAN": "account",  # .02
    "CdtrAcct/Id/PrtryAcct/Id": "account",  # .02
    "CdtrAcct/Prxy/Id": "proxy",
    "CdtrAgt/FinInstnId/BIC": "bic",  # to .08
    "CdtrAgt/FinInstnId/BICFI": "bic",
    "CdtrAgt/FinInstnId/CmbndId/BIC": "bic",  # .02
    "CdtrAgt/FinInstnId/PstlAdr/Ctry": "agent_country",
    "CdtrAgt/FinInstnId/NmAndAdr/PstlAdr/Ctry": "agent_country",  # .02
    "CdtrAgt/FinInstnId/CmbndId/PstlAdr/Ctry": "agent_country",  # .02
    "CdtrAgt/FinInstnId/ClrSysMmbId/MmbId": "clearing_member",
    "CdtrAgt/FinInstnId/ClrSysMmbId/ClrSysId/Cd": "clearing_code",
    "CdtrAgt/FinInstnId/ClrSysMmbId/ClrSysId/Prtry": "clearing_code",
    "CdtrAgt/FinInstnId/ClrSysMmbId/ClrSysId": "clearing_text",  # some files omit the Cd element
    "Cdtr/Id/OrgId/LEI": "lei",
    "Cdtr/Id/OrgId/AnyBIC": "organisation_bic",
    "Cdtr/Id/OrgId/BICOrBEI": "organisation_bic",  # .03 to .08
    "Cdtr/Id/OrgId/BEI": "organisation_bic",  # .02
    "Cdtr/Id/OrgId/Othr/Id": "other_id",
    "Cdtr/Id/OrgId/Othr/SchmeNm/Cd": "other_scheme",
    "Cdtr/Id/OrgId/Othr/SchmeNm/Prtry": "other_scheme",
    "Cdtr/Id/OrgId/Othr/Issr": "other_issuer",
    "RmtInf/Ustrd": "remittance",
    "RmtInf/Strd/CdtrRefInf/Ref": "creditor_reference",
    "RmtInf/Strd/CdtrRefInf/CdtrRef": "creditor_reference",  # .02
}
"""Fields of a payment by path below CdtTrfTxInf."""

OF_PAYER = {
    "DbtrAcct/Id/IBAN": "payer_iban",
    "Dbtr/PstlAdr/AdrLine": "payer_address_lines",
    "Dbtr/PstlAdr/TwnNm": "payer_town",
    "Dbtr/PstlAdr/Ctry": "payer_country",
}
"""Fields of the payer by path below PmtInf."""

TEXTS = (
    *dict.fromkeys(column for column in FIELDS_BY_PATH.values() if not column.startswith("other_")),
    *("organisation_id", "organisation_id_scheme", "organisation_id_issuer"),
    *("amount_currency", "equivalent_currency", "twice"),
)
"""The columns of a payment, as in the file. `twice` is a repeated element that must be unique."""
_OTHERS = ("other_id", "other_scheme", "other_issuer")
"""Columns of one more identification, used while reading; a payee may have many."""
INDEX = {column: index for index, column in enumerate((*TEXTS, *_OTHERS))}
REPEATABLE = frozenset(
    INDEX[column] for column in ("remittance", "creditor_reference", "address_lines", "town", "country")
)
"""Repeatable elements: the first one counts, except that address lines are joined."""
CURRENCY_OF = {INDEX["amount"]: INDEX["amount_currency"], INDEX["equivalent"]: INDEX["equivalent_currency"]}
"""The column for the attribute Ccy of an amount."""

_TOTALS = {"NbOfTxs": "count", "CtrlSum": "sum"}
BATCH, PAYMENT, SUPPLEMENT = "PmtInf", "CdtTrfTxInf", "SplmtryData"

SEARCHED_DEPTH = 8  # how deep to search an envelope for the message


class Kind(IntEnum):
    """What a reader does at an element; nothing at most elements."""

    NOTHING = 0
    ENVELOPE = 1
    MESSAGE = 2
    HEADER = 3
    BATCH = 4
    PAYMENT = 5
    IDENTIFICATION = 6
    SIBLING = 7  # next to payments or batches; only its end matters
    TEXT = 8  # text for a column of a payment
    STATED = 9  # text of a level
    DATA_PAYMENT = 10  # looks like a payment in another program's data


def tree() -> Element:
    """Return the parent of a file's root element."""
    unread, header_unread = Element(), _above_batches()
    siblings, header_siblings = Element(Kind.SIBLING), _above_batches(Kind.SIBLING)
    siblings.otherwise, header_siblings.otherwise = unread, header_unread
    payment, header, batch = Element(Kind.PAYMENT), _above_batches(Kind.HEADER), Element(Kind.BATCH)
    payment.add_texts(FIELDS_BY_PATH, Kind.TEXT, unread, INDEX)
    payment["Cdtr"]["Id"]["OrgId"]["Othr"].kind = Kind.IDENTIFICATION
    header.add_texts({"MsgId": "id", "CreDtTm": "created"} | _TOTALS, Kind.STATED, header_unread, {})
    of_batch = {"PmtInfId": "id", "PmtMtd": "method", "ReqdExctnDt": "executed"}
    batch.add_texts(of_batch | _TOTALS | OF_PAYER, Kind.STATED, unread, {})
    for path in OF_PAYER:
        batch[path.split("/")[0]].kind = Kind.SIBLING
    header.otherwise, batch.otherwise = header_unread, siblings
    batch[PAYMENT] = payment
    message = _above_batches(Kind.MESSAGE)
    message.otherwise = header_siblings
    message["GrpHdr"], message[BATCH] = header, batch
    envelope = [_above_batches(Kind.ENVELOPE) for _ in range(SEARCHED_DEPTH)]
    for outer, inner in pairwise([*envelope, header_unread]):
        outer.otherwise = inner
        outer.update(dict.fromkeys(CREDIT_TRANSFERS, message))
    parents = (unread, payment, siblings, batch, message, header, header_unread, header_siblings, *envelope)
    for parent in parents:
        parent[SUPPLEMENT] = _supplement(parent)
    return envelope[0]


def _above_batches(kind: Kind = Kind.NOTHING) -> Element:
    element = Element(kind)
    element.is_header = True
    return element


def _supplement(parent: Element) -> Element:
    """Return the element for another program's data."""
    data, payment, batch = Element(), Element(Kind.DATA_PAYMENT), Element(Kind.DATA_PAYMENT)
    data[PAYMENT] = batch[PAYMENT] = payment
    data[BATCH] = batch
    payment.otherwise = batch.otherwise = data
    outermost = Element(parent.otherwise.kind if parent.otherwise.kind is Kind.SIBLING else Kind.NOTHING)
    outermost[PAYMENT], outermost[BATCH], outermost.otherwise = payment, batch, data
    for element in (data, payment, batch, outermost):
        element.is_supplement, element.is_header = True, parent.is_header or parent.kind is Kind.BATCH
    return outermost
