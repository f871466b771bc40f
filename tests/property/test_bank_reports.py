"""A bank's report means what another XML parser reads in it; our own comes back as it was written."""

from dataclasses import replace

import polars as pl
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from paymentfiles.pain001 import Batch, Payment, document
from paymentfiles.pain002 import DIALECTS, Said, SaidOfBatch, report

from pipeline.errors import InputError
from pipeline.executors.from_report import CODES, ReceivedReport, reported_answers, reported_rows
from pipeline.formats import pain002
from pipeline.formats.pain001 import message_of, reading
from pipeline.frames import CHECKS, OUTCOMES
from pipeline.reports import pain002 as written

IBANS = ("DE89370400440532013000", "NL91ABNA0417164300", "FR1420041010050500013M02606", "BE68539007547034")
STATUSES = ("RCVC", "RVMC", "RVNM", "RVNA", "RVNC", "PDNG", "ACCP")
NAME = st.text("abc öß&<'\"é-", min_size=1, max_size=230).map(str.strip).filter(bool)
FINAL = {"RCVC": "MTCH", "RVMC": "CMTC", "RVNM": "NMTC", "RVNA": "NOAP"}


def payments(count):
    return tuple(
        Payment(end_to_end_id=f"E-{at}", iban=IBANS[at % 4], amount=f"{at + 1}.00") for at in range(count)
    )


def read(data):
    return message_of(pl.concat(reading.parse(data)))


def answers(message, *documents):
    """The answers that the product takes from these reports, in the order of the payments."""
    data = b"".join(documents)
    said = pain002.reports_of(pl.concat(pain002.parse(data, ends=pain002.ends_of(documents))))
    count = message.payments.height
    numbers = pl.int_range(1, count + 1, dtype=pl.UInt32, eager=True)
    empty = {name: pl.lit(None, kind) for name, kind in CHECKS.items()}
    checks = pl.DataFrame({"check": numbers}).with_columns(**empty | {"check": "check", "name": pl.lit("A")})
    received = ReceivedReport("r.xml", data, "", said, 0)
    verdicts = reported_rows(message, [received]).verdicts
    return reported_answers(checks.select(list(CHECKS)), message.locations["row"], verdicts)


def read_by_another_parser(documents, count):
    """The code and the name of each payment by its end-to-end id, read with lxml; final statuses win."""
    found = {}
    for data in documents:
        for one in etree.fromstring(data).iter("{*}TxInfAndSts"):
            row = int(one.findtext("{*}OrgnlEndToEndId").removeprefix("E-"))
            status = one.findtext("{*}TxSts")
            name = "".join(line.text or "" for line in one.iterfind("{*}StsRsnInf/{*}AddtlInf"))
            code = FINAL.get(status) or {"RVNC": "RVNC", "PDNG": "PDNG"}.get(status, "REPORT_STATUS")
            if found.get(row, ("", None))[0] not in FINAL.values() or code in FINAL.values():
                found[row] = (code, name.strip() if status == "RVMC" else None)
        root = etree.fromstring(data)
        whole = root.find("{*}CstmrPmtStsRpt/{*}OrgnlGrpInfAndSts")
        if whole.findtext("{*}GrpSts") == "RCVC" and whole.findtext("{*}OrgnlNbOfTxs") == str(count):
            found |= {row: ("MTCH", None) for row in range(count) if row not in found}
    return [found.get(row, ("NOT_IN_REPORT", None)) for row in range(count)]


@st.composite
def reports(draw):
    """The number of payments, and what a bank reports of them: at once or in pieces, first unfinished."""
    count = draw(st.integers(1, 6))
    dialect = DIALECTS[draw(st.sampled_from(sorted(DIALECTS)))]
    if draw(st.booleans()) and draw(st.booleans()):
        said = draw(st.sampled_from([str(count), str(count + 1)]))
        return count, [report((), dialect, status="RCVC", count=said)]
    statuses = draw(st.lists(st.sampled_from(STATUSES), min_size=count, max_size=count))
    listed = []
    for at, status in enumerate(statuses):
        name = draw(NAME) if status == "RVMC" else draw(st.sampled_from(["", "terms"]))
        names = tuple(written.pieces(name)) if name else ()
        confirmed = draw(st.booleans())
        account, amount = (IBANS[at % 4], f"{at + 1}.00") if confirmed else (None, None)
        listed.append(Said(f"E-{at}", status, names, account=account, amount=amount, name="Ada Quillon"))
    documents = [report((SaidOfBatch(tuple(listed)),), dialect)]
    if draw(st.booleans()):
        pending = [replace(one, status="PDNG", names=()) for one in listed]
        documents.insert(0, report((SaidOfBatch(tuple(pending)),), dialect, status="PDNG"))
    if count > 1 and draw(st.booleans()):
        parts = [SaidOfBatch((one,)) for one in listed]
        documents[-1:] = [report((part,), dialect) for part in parts]
    return count, documents


@given(reports())
@examples(300)
def test_another_parser_reads_the_same_in_every_dialect(found):
    count, documents = found
    message = read(document((Batch(payments(count)),)))

    read_here = answers(message, *documents).select("code", "matched_name").rows()

    expected = read_by_another_parser(documents, count)
    assert [code for code, _ in read_here] == [code for code, _ in expected]
    for (_, name), (code, there) in zip(read_here, expected, strict=True):
        if code == "CMTC" and there[:1] not in "\"'":
            assert name == there


OUTCOME = {
    "match": ("MTCH", "MTCH"),
    "close_match": ("CMTC", "CMTC"),
    "no_match": ("NMTC", "NMTC"),
    "not_possible": ("NOAP", "NOAP"),
    "deferred": ("DAILY_CAP", "RVNC"),
    "unanswered": ("NETWORK", "RVNC"),
}
"""Outcome -> its code, and what comes back."""


@given(st.lists(st.tuples(st.sampled_from(sorted(OUTCOME)), NAME), min_size=1, max_size=6))
@examples(200)
def test_our_own_report_comes_back_as_it_was_written(decided):
    message = read(document((Batch(payments(len(decided))),)))
    rows = [
        {
            "check_outcome": word,
            "check_code": OUTCOME[word][0],
            "check_matched_name": name if word == "close_match" else None,
        }
        for word, name in decided
    ]
    columns = ("check_outcome", "check_code", "check_matched_name")
    outcomes = pl.DataFrame(rows, schema={column: OUTCOMES[column] for column in columns}).with_columns(
        check_api=pl.lit("vop_gateway")
    )
    heading = written.ReportHeading("PRECHECK-1", "2026-11-22T02:40:00Z", simulated=False)

    back = answers(message, b"".join(written.report(message, outcomes, heading)))

    assert back["code"].to_list() == [OUTCOME[word][1] for word, _ in decided]
    for name, row in zip(back["matched_name"], rows, strict=True):
        if not (row["check_matched_name"] or "").startswith(('"', "'")):
            assert name == row["check_matched_name"]


WHOLE = report(
    (SaidOfBatch(tuple(Said(f"E-{at}", account=IBANS[at], amount=f"{at + 1}.00") for at in range(3))),),
    status="RCVC",
    count="3",
)


@given(st.integers(0, len(WHOLE) - 1))
@examples(400)
def test_a_report_that_was_cut_answers_nothing(length):
    message = read(document((Batch(payments(3)),)))
    try:
        found = answers(message, WHOLE[:length])
    except InputError:
        return
    assert length >= len(WHOLE.rstrip())
    assert set(found["code"]) == {"MTCH"}


def test_every_final_status_has_the_code_of_the_scheme():
    assert {str(status): code for status, code in CODES.items()} == FINAL
