"""The report that bank software reads, read back by another parser and held to the rules of its schema."""

import re
from dataclasses import replace

import polars as pl
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from paymentfiles.pain001 import DIALECTS, Batch, Payment, document

from pipeline.formats import pain001
from pipeline.formats.pain001 import reading
from pipeline.formats.pain002 import SIMULATED
from pipeline.reports.pain002 import NAMESPACE, SAME_CODES, ReportHeading, pieces, report

IBAN = "NL91ABNA0417164300"
ADA = Payment(instruction_id="I-1", iban=IBAN, bic="ABNANL2A", uetr="00000000-0000-4000-8000-000000000001")
UK = Payment(end_to_end_id="NOTPROVIDED", account="00112233", sort_code="001122", currency="GBP")
HEADING = ReportHeading("PRECHECK-20261122-1", "2026-11-22T02:40:00Z", simulated=False)
STATUSES = {
    "match": "RCVC",
    "close_match": "RVMC",
    "no_match": "RVNM",
    "not_possible": "RVNA",
    "rejected": "RVNA",
    "deferred": "RVNC",
    "unanswered": "RVNC",
}
CHILDREN = {
    "Document": ["CstmrPmtStsRpt"],
    "CstmrPmtStsRpt": ["GrpHdr", "OrgnlGrpInfAndSts", "OrgnlPmtInfAndSts*"],
    "GrpHdr": ["MsgId", "CreDtTm"],
    "OrgnlGrpInfAndSts": [
        *("OrgnlMsgId", "OrgnlMsgNmId", "OrgnlCreDtTm?", "OrgnlNbOfTxs?", "OrgnlCtrlSum?"),
        *("GrpSts", "StsRsnInf?", "NbOfTxsPerSts*"),
    ],
    "OrgnlPmtInfAndSts": [
        *("OrgnlPmtInfId", "OrgnlNbOfTxs?", "OrgnlCtrlSum?", "PmtInfSts", "NbOfTxsPerSts*", "TxInfAndSts*"),
    ],
    "NbOfTxsPerSts": ["DtldNbOfTxs", "DtldSts"],
    "TxInfAndSts": [
        *("OrgnlInstrId?", "OrgnlEndToEndId?", "OrgnlUETR?", "TxSts", "StsRsnInf?", "OrgnlTxRef?"),
    ],
    "StsRsnInf": ["Rsn?", "AddtlInf*"],
    "Rsn": ["Prtry"],
    "OrgnlTxRef": ["Amt?", "CdtrAgt?", "Cdtr?", "CdtrAcct?"],
    "Amt": ["InstdAmt"],
    "CdtrAgt": ["FinInstnId"],
    "FinInstnId": ["BICFI?", "ClrSysMmbId?"],
    "ClrSysMmbId": ["ClrSysId", "MmbId"],
    "ClrSysId": ["Cd"],
    "Cdtr": ["Pty"],
    "Pty": ["Nm"],
    "CdtrAcct": ["Id"],
    "Id": ["IBAN?", "Othr?"],
    "Othr": ["Id"],
}
"""Of the schema, as far as it is used: the order of the children; ? and * as in the schema's own words."""
MAX_35, STATUS = r".{1,35}", r"RCVC|RVMC|RVNM|RVNA|RVNC"
TEXTS = {
    **dict.fromkeys(("MsgId", "OrgnlMsgId", "OrgnlMsgNmId", "OrgnlPmtInfId", "OrgnlInstrId"), MAX_35),
    **dict.fromkeys(("OrgnlEndToEndId", "Prtry", "MmbId", "Cd"), MAX_35),
    **dict.fromkeys(("CreDtTm", "OrgnlCreDtTm"), r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ?"),
    **dict.fromkeys(("OrgnlNbOfTxs", "DtldNbOfTxs"), r"[0-9]{1,15}"),
    **dict.fromkeys(("GrpSts", "PmtInfSts"), r"RCVC|RVCM|RVNC"),
    **dict.fromkeys(("TxSts", "DtldSts"), STATUS),
    "OrgnlUETR": r"[a-f0-9]{8}-[a-f0-9]{4}-4[a-f0-9]{3}-[89ab][a-f0-9]{3}-[a-f0-9]{12}",
    "OrgnlCtrlSum": r"[0-9]{1,13}(\.[0-9]{1,17})?",
    "AddtlInf": r".{1,105}",
    "InstdAmt": r"[0-9]{1,13}(\.[0-9]{1,5})?",
    "BICFI": r"[A-Z0-9]{4}[A-Z]{2}[A-Z0-9]{2}([A-Z0-9]{3})?",
    "Nm": r".{1,140}",
    "IBAN": r"[A-Z]{2}[0-9]{2}[a-zA-Z0-9]{1,30}",
    "Id": r".{1,34}",
}


def local(node):
    return etree.QName(node).localname


def require_valid(node):
    """Hold a report to the schema: order, how often, what the texts may be."""
    assert node.tag == f"{{{NAMESPACE}}}{local(node)}"
    tags = [local(child) for child in node]
    if not tags:
        assert re.fullmatch(TEXTS[local(node)], node.text, re.DOTALL), (local(node), node.text)
        assert dict(node.attrib) == {} or re.fullmatch("[A-Z]{3}", node.attrib["Ccy"])
        return
    pattern = "".join(
        f"({child.rstrip('?*')} ){'' if child[-1] not in '?*' else child[-1]}"
        for child in CHILDREN[local(node)]
    )
    assert re.fullmatch(pattern, "".join(f"{tag} " for tag in tags)), (local(node), tags)
    assert local(node) != "Id" or len(tags) == 1
    for child in node:
        require_valid(child)


def outcomes_of(*rows):
    columns = ("check_outcome", "check_code", "check_matched_name", "check_api")
    filled = [(outcome, code, name, api) for outcome, code, name, api in rows]
    return pl.DataFrame(filled, schema=dict.fromkeys(columns, pl.String), orient="row")


def tree_of(batches, outcomes, heading=HEADING, **said):
    message = pain001.message_of(pl.concat(list(reading.parse(document(batches, **said)))))
    root = etree.fromstring(b"".join(report(message, outcomes, heading)))
    require_valid(root)
    return root


def texts(node, path):
    return [found.text for found in node.iterfind("/".join(f"{{*}}{tag}" for tag in path.split("/")))]


def counts(level):
    found = texts(level, "NbOfTxsPerSts/DtldSts"), texts(level, "NbOfTxsPerSts/DtldNbOfTxs")
    return dict(zip(found[0], map(int, found[1]), strict=True))


MATCH = ("match", "MTCH", None, "vop_gateway")
CLOSE = ("close_match", "CMTC", "Ada Q. Quillon & Co", "vop_gateway")
NO = ("no_match", "NMTC", None, "vop_gateway")
LATER = ("deferred", "DAILY_CAP", None, "vop_gateway")
BAD = ("rejected", "IBAN_CHECK_DIGITS", None, None)


def test_a_report_says_of_each_payment_what_came_of_it():
    root = tree_of((Batch((ADA, ADA)), Batch((ADA, UK), id="BATCH-2")), outcomes_of(MATCH, CLOSE, NO, MATCH))
    message = root[0]
    assert texts(message, "OrgnlGrpInfAndSts/OrgnlMsgId") == ["MESSAGE-1"]
    assert texts(message, "OrgnlGrpInfAndSts/OrgnlMsgNmId") == ["pain.001.001.09"]
    assert texts(message, "OrgnlGrpInfAndSts/OrgnlCreDtTm") == ["2026-11-22T02:40:00"]
    assert texts(message, "OrgnlGrpInfAndSts/OrgnlNbOfTxs") == ["4"]
    assert texts(message, "OrgnlGrpInfAndSts/OrgnlCtrlSum") == ["4.00"]
    assert texts(message, "OrgnlGrpInfAndSts/GrpSts") == ["RVCM"]
    assert texts(message, "OrgnlPmtInfAndSts/OrgnlPmtInfId") == ["BATCH-1", "BATCH-2"]
    assert texts(message, "OrgnlPmtInfAndSts/PmtInfSts") == ["RVCM", "RVCM"]
    assert [counts(level) for level in message[1:]] == [
        {"RCVC": 2, "RVMC": 1, "RVNM": 1, "RVNA": 0},
        {"RCVC": 1, "RVMC": 1, "RVNM": 0, "RVNA": 0},
        {"RCVC": 1, "RVMC": 0, "RVNM": 1, "RVNA": 0},
    ]
    payment = "OrgnlPmtInfAndSts/TxInfAndSts"
    assert texts(message, f"{payment}/TxSts") == ["RCVC", "RVMC", "RVNM", "RCVC"]
    assert texts(message, f"{payment}/StsRsnInf/AddtlInf") == ["Ada Q. Quillon & Co"]
    assert texts(message, f"{payment}/StsRsnInf/Rsn/Prtry") == ["CMTC", "NMTC"]
    assert texts(message, f"{payment}/OrgnlInstrId") == ["I-1"] * 3
    assert texts(message, f"{payment}/OrgnlEndToEndId") == ["E2E-1", "E2E-1", "E2E-1", "NOTPROVIDED"]
    assert texts(message, f"{payment}/OrgnlUETR") == [ADA.uetr] * 3
    assert texts(message, f"{payment}/OrgnlTxRef/Cdtr/Pty/Nm") == ["Ada Quillon"] * 4
    assert texts(message, f"{payment}/OrgnlTxRef/CdtrAcct/Id/IBAN") == [IBAN] * 3
    assert texts(message, f"{payment}/OrgnlTxRef/CdtrAcct/Id/Othr/Id") == ["00112233"]
    assert texts(message, f"{payment}/OrgnlTxRef/CdtrAgt/FinInstnId/ClrSysMmbId/MmbId") == ["001122"]
    assert texts(message, f"{payment}/OrgnlTxRef/CdtrAgt/FinInstnId/BICFI") == ["ABNANL2A"] * 3
    assert texts(message, f"{payment}/OrgnlTxRef/Amt/InstdAmt") == ["1.00"] * 4


@pytest.mark.parametrize(
    ("rows", "status"),
    [
        ([MATCH, MATCH], "RCVC"),
        ([MATCH, CLOSE], "RVCM"),
        ([MATCH, BAD], "RVCM"),
        ([MATCH, ("not_possible", "OUT_OF_REACH", None, None)], "RVCM"),
        ([NO, LATER], "RVNC"),
        ([MATCH, ("unanswered", "NETWORK", None, "cop")], "RVNC"),
    ],
)
def test_a_message_is_complete_once_every_payment_is_and_a_match_once_all_are(rows, status):
    root = tree_of((Batch((ADA, ADA)),), outcomes_of(*rows))
    assert texts(root[0], "OrgnlGrpInfAndSts/GrpSts") == [status]
    assert texts(root[0], "OrgnlPmtInfAndSts/PmtInfSts") == [status]


@pytest.mark.parametrize(
    ("simulated", "api", "lines"), [(False, "cop", 1), (True, "cop", 2), (True, None, 1)]
)
def test_a_report_says_what_it_is_not(simulated, api, lines):
    heading = HEADING._replace(simulated=simulated)
    root = tree_of((Batch((ADA,)),), outcomes_of(("match", "MTCH", None, api)), heading)
    told = texts(root[0], "OrgnlGrpInfAndSts/StsRsnInf/AddtlInf")
    assert len(told) == lines
    assert (SIMULATED in told) is simulated
    assert (SAME_CODES in told) is (api == "cop")


def test_what_the_schema_does_not_allow_is_left_out_and_the_rest_is_told():
    odd = Payment(
        instruction_id="i" * 36,
        end_to_end_id="e" * 35,
        uetr="NONE",
        name="n" * 141,
        iban="NL 91",
        bic="abc",
        amount="1.123456",
        currency="eur",
    )
    root = tree_of(
        (Batch((odd,), id="b" * 36, count="many", sum=None),),
        outcomes_of(("rejected", "x" * 36, None, None)),
        message_id=None,
        count=None,
        sum=None,
    )
    assert [local(node) for node in root.iter() if local(node) == "OrgnlTxRef"] == []
    assert texts(root[0], "OrgnlGrpInfAndSts/OrgnlMsgId") == ["NOTPROVIDED"]
    assert texts(root[0], "OrgnlPmtInfAndSts/OrgnlPmtInfId") == ["NOTPROVIDED"]
    assert texts(root[0], "OrgnlPmtInfAndSts/TxInfAndSts/OrgnlEndToEndId") == ["e" * 35]
    assert texts(root[0], "OrgnlPmtInfAndSts/TxInfAndSts/TxSts") == ["RVNA"]


@pytest.mark.parametrize("dialect", ["Swiss", "German .003.03", "no namespace", "ISO .02", "prefixed"])
def test_a_report_names_the_version_that_it_is_about(dialect):
    root = tree_of((Batch((ADA,)),), outcomes_of(MATCH), dialect=DIALECTS[dialect])
    version = DIALECTS[dialect].version if DIALECTS[dialect].namespace else "pain.001"
    assert texts(root[0], "OrgnlGrpInfAndSts/OrgnlMsgNmId") == [version]


NAMES = st.text(st.sampled_from("Aé&<>  x"), min_size=1, max_size=300).map(str.strip).filter(bool)
ROWS = st.tuples(st.sampled_from(list(STATUSES)), st.sampled_from(["CMTC", "A&B", None]), NAMES, st.none())


@examples(60)
@given(st.lists(st.lists(ROWS, min_size=1, max_size=4), min_size=1, max_size=4))
def test_every_payment_is_reported_once_and_every_name_comes_back_whole(rows):
    batches = tuple(
        Batch(tuple(replace(ADA, end_to_end_id=f"{at}-{nth}") for nth in range(len(batch))), id=f"B{at}")
        for at, batch in enumerate(rows)
    )
    flat = [row for batch in rows for row in batch]
    root = tree_of(batches, outcomes_of(*flat))
    reported = list(root.iter("{*}TxInfAndSts"))
    assert [texts(node, "OrgnlEndToEndId")[0] for node in reported] == [
        payment.end_to_end_id for batch in batches for payment in batch.payments
    ]
    for node, (outcome, _, name, _) in zip(reported, flat, strict=True):
        assert texts(node, "TxSts") == [STATUSES[outcome]]
        lines = texts(node, "StsRsnInf/AddtlInf")
        assert "".join(lines) == (name if outcome == "close_match" else "")
    for level, batch in zip(root[0][2:], rows, strict=True):
        assert sum(counts(level).values()) == len(batch)
        assert sum(local(node) == "TxInfAndSts" for node in level) == len(batch)


@given(NAMES)
def test_no_piece_of_a_name_begins_or_ends_with_a_space(name):
    cut = pieces(name)
    assert "".join(cut) == name
    assert all(0 < len(piece) <= 105 for piece in cut)
    if " " * 105 not in name:
        assert all(piece == piece.strip() for piece in cut)


def test_a_character_that_xml_cannot_hold_does_not_spoil_the_report():
    root = tree_of((Batch((ADA,)),), outcomes_of(("close_match", "CMTC", "Ada\x00\ufffe\x1b Q", None)))
    assert texts(root[0], "OrgnlPmtInfAndSts/TxInfAndSts/StsRsnInf/AddtlInf") == ["Ada\ufffd\ufffd\ufffd Q"]
