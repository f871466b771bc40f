"""How each simulated provider is asked, and how it answers: CoP by sort code and account, VoP by IBAN."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from pipeline.apis import Api, cop, vop


class Dialect(NamedTuple):
    """One API, as its server speaks it."""

    api: Api
    correlation: bytes
    """The header by which a request is known."""
    truths: tuple[str | None, ...]
    """What banks answer: None is a match."""
    account: Callable[[dict[str, Any]], str]
    """That a request asks about, by its body."""
    report: Callable[[str | None], bytes]
    """The answer to a question, by what the bank says."""
    wrong: list[bytes]
    """Answers that break the contract."""
    without_answer: bytes
    """One that lacks what was asked for."""


@cache
def _cop_report(truth: str | None) -> bytes:
    report: dict[str, object] = {"matched": truth is None}
    if truth is not None:
        report["reasonCode"] = truth
    if truth in {"MBAM", "PAMM", "BAMM"}:
        report["name"] = "A Nother Name"
    return json.dumps({"data": {"verificationReport": report}}).encode()


@cache
def _vop_report(truth: str | None) -> bytes:
    report = {"partyNameMatch": truth or "MTCH"}
    if truth == "CMTC":
        report["matchedName"] = "A Nother Name"
    return json.dumps(report).encode()


COP = Dialect(
    api=cop.API,
    correlation=cop.CORRELATION_HEADER.lower().encode(),
    truths=(None, None, None, "ANNM", "MBAM", "BANM", "PAMM", "AC01", "OPTO", "SCNS"),
    account=lambda body: body["data"]["identification"],
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
    account=lambda body: body["partyAccount"]["iban"],
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
