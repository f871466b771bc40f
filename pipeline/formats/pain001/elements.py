"""The elements of a pain.001 that are read, as a tree to walk along with the parser.

Names are local: real files have a dozen namespaces, or none. What is not in the tree is passed over, with
everything in it, so that a payment within a payment's supplementary data is none. Source: the schemas
pain.001.001.02 to .12, and the dialects of German, Swiss and other banks, by their public examples.
"""

from enum import IntEnum

FIELDS_BY_PATH = {
    "PmtId/EndToEndId": "end_to_end_id",
    "PmtId/InstrId": "instruction_id",
    "PmtId/UETR": "uetr",
    "Amt/InstdAmt": "amount",
    "Amt/EqvtAmt/Amt": "equivalent",
    "Cdtr/Nm": "name",
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
    "CdtrAgt/FinInstnId/ClrSysMmbId/MmbId": "clearing_member",
    "CdtrAgt/FinInstnId/ClrSysMmbId/ClrSysId/Cd": "clearing_code",
    "CdtrAgt/FinInstnId/ClrSysMmbId/ClrSysId/Prtry": "clearing_code",
    "CdtrAgt/FinInstnId/ClrSysMmbId/ClrSysId": "clearing_text",  # some write the code without Cd
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
"""What is read of a payment, by its path below CdtTrfTxInf."""

TEXTS = (
    *dict.fromkeys(column for column in FIELDS_BY_PATH.values() if not column.startswith("other_")),
    *("organisation_id", "organisation_id_scheme", "organisation_id_issuer"),
    *("amount_currency", "equivalent_currency", "twice"),
)
"""The columns of a payment as it stands in the file. `twice`: an element of which there can be one only."""
_OTHERS = ("other_id", "other_scheme", "other_issuer")
"""Of one further identification while it is read; a payee may have many."""
INDEX = {column: at for at, column in enumerate((*TEXTS, *_OTHERS))}
REPEATABLE = frozenset(INDEX[column] for column in ("remittance", "creditor_reference"))
"""Of these the first counts."""
CURRENCY_OF = {INDEX["amount"]: INDEX["amount_currency"], INDEX["equivalent"]: INDEX["equivalent_currency"]}
"""Where the attribute Ccy of an amount goes."""

SEARCHED_DEPTH = 8
"""How deep in an envelope the message may lie."""


class Kind(IntEnum):
    """What a reader must do at an element; nothing at most of them."""

    NOTHING = 0
    ENVELOPE = 1
    MESSAGE = 2
    HEADER = 3
    BATCH = 4
    PAYMENT = 5
    IDENTIFICATION = 6
    SIBLING = 7  # of payments or batches, and of no interest but for where it ends
    TEXT = 8  # goes into a column of a payment
    STATED = 9  # a text of a level


class Element(dict[str, "Element"]):
    """An element that is read, or leads to some: its children by local name."""

    __slots__ = ("column", "kind", "otherwise", "what")

    def __init__(self, kind: Kind = Kind.NOTHING) -> None:
        super().__init__()
        self.kind = kind
        self.column = 0
        """Where in a payment a text goes."""
        self.what = ""
        """What a level says by a text."""
        self.otherwise = self
        """Where a child that is not named leads."""


PASSED = Element()
"""What is not read, at any depth."""


def tree() -> Element:
    """The element above the outermost one of a file."""
    siblings = Element(Kind.SIBLING)
    siblings.otherwise = PASSED
    payment = _within(Element(Kind.PAYMENT), {path: INDEX[column] for path, column in FIELDS_BY_PATH.items()})
    payment["Cdtr"]["Id"]["OrgId"]["Othr"].kind = Kind.IDENTIFICATION
    header = _level(Kind.HEADER, {"MsgId": "id", "CreDtTm": "created"}, otherwise=PASSED)
    batch = _level(Kind.BATCH, {"PmtInfId": "id", "PmtMtd": "method"}, otherwise=siblings)
    batch["CdtTrfTxInf"] = payment
    message = Element(Kind.MESSAGE)
    message.otherwise = siblings
    message["GrpHdr"], message["PmtInf"] = header, batch
    top = Element(Kind.ENVELOPE)
    for name in ("CstmrCdtTrfInitn", "pain.001.001.02"):
        top[name] = message
    return top


def _level(kind: Kind, names: dict[str, str], *, otherwise: Element) -> Element:
    level = Element(kind)
    level.otherwise = otherwise
    for name, what in (names | {"NbOfTxs": "count", "CtrlSum": "sum"}).items():
        level[name] = Element(Kind.STATED)
        level[name].what, level[name].otherwise = what, PASSED
    return level


def _within(parent: Element, columns: dict[str, int]) -> Element:
    parent.otherwise = PASSED
    for path, column in columns.items():
        element = parent
        for name in path.split("/"):
            element = element.setdefault(name, Element())
            element.otherwise = PASSED
        element.kind, element.column = Kind.TEXT, column
    return parent
