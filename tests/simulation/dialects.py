"""How each simulated provider is asked, and how it answers: CoP by sort code and account, VoP by IBAN."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from pipeline.apis import Api, cop, vop


class Asked(NamedTuple):
    """What a request asks."""

    account: str
    name: str
    account_type: str | None = None


class Dialect(NamedTuple):
    """One API, as its server speaks it."""

    api: Api
    correlation: bytes
    """The header by which a request is known."""
    truths: tuple[str | None, ...]
    """What banks answer: None is a match."""
    asked: Callable[[dict[str, Any]], Asked]
    """What a request asks, by its body."""
    report: Callable[[str | None, int], bytes]
    """The answer to a question, by what the bank says and the row that it is asked about."""
    wrong: list[bytes]
    """Answers that break the contract."""
    without_answer: bytes
    """One that lacks what was asked for."""


NAME = "A Nother Name"
"""What banks return on a close match begins so; the row follows."""


def matched_name(truth: str | None, row: int) -> str | None:
    """The name that a bank returns: on a close match, and each payee's own."""
    return f"{NAME} {row}" if truth in {"MBAM", "PAMM", "BAMM", "CMTC"} else None


@cache
def _cop_report(truth: str | None, row: int) -> bytes:
    report: dict[str, object] = {"matched": truth is None}
    if truth is not None:
        report["reasonCode"] = truth
    if (name := matched_name(truth, row)) is not None:
        report["name"] = name
    return json.dumps({"data": {"verificationReport": report}}).encode()


@cache
def _vop_report(truth: str | None, row: int) -> bytes:
    report = {"partyNameMatch": truth or "MTCH"}
    if (name := matched_name(truth, row)) is not None:
        report["matchedName"] = name
    return json.dumps(report).encode()


COP = Dialect(
    api=cop.API,
    correlation=cop.CORRELATION_HEADER.lower().encode(),
    truths=(None, None, None, "ANNM", "MBAM", "BANM", "PAMM", "AC01", "OPTO", "SCNS"),
    asked=lambda body: Asked(*(body["data"][key] for key in ("identification", "name", "accountType"))),
    report=_cop_report,
    wrong=[
        b'{"data": {"verificationReport": {"matched": true, "reasonCode": "ANNM"}}}',
        b'{"data": {"verificationReport": {"matched": false, "reasonCode": "MBAM"}}}',
        b'{"data": {"verificationReport": {"matched": false, "reasonCode": "ZZZZ"}}}',
        b'{"data": {"verificationReport": {"matched": "true"}}}',
        b"{}",
    ],
    without_answer=b'{"data": {"verificationReport": {}}}',
)
VOP = Dialect(
    api=vop.GATEWAY,
    correlation=vop.CORRELATION_HEADER.lower().encode(),
    truths=(None, None, None, "NMTC", "CMTC", "NOAP"),
    asked=lambda body: Asked(body["partyAccount"]["iban"], body["party"]["name"]),
    report=_vop_report,
    wrong=[
        b'{"partyNameMatch": "MTCH", "matchedName": "A Nother Name"}',
        b'{"partyNameMatch": "CMTC"}',
        b'{"partyNameMatch": "ZZZZ"}',
        b'{"partyIdMatch": "MTCH"}',
        b"{}",
    ],
    without_answer=b'{"partyNameMatch": null}',
)
