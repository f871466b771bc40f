"""The report for bank software, from a pain.001 to a pain.002 in the folder of the run."""

import hashlib
import json

import pytest
from lxml import etree
from paymentfiles.pain001 import Batch, Dialect, Payment, document
from refusals import said

pytestmark = pytest.mark.usefixtures("in_this_process")

FIRST = Payment(end_to_end_id="E-1", name="Imogen Farraday", iban="DE89370400440532013000", amount="20.00")
LAST = Payment(end_to_end_id="E-2", name="Averi Thornwood", amount="5.00")
"""Which has no account."""
REPORT = "pay.precheck/pain002.simulated.xml"


@pytest.fixture
def file(desk):
    return desk.file("pay.xml", document((Batch((FIRST,)), Batch((LAST,), id="B-2")), Dialect()))


def texts(desk, *tags):
    """The texts of elements of the report, as bank software would read it."""
    root = etree.fromstring((desk.folder / REPORT).read_bytes())
    return {tag: [element.text for element in root.iter(f"{{*}}{tag}")] for tag in tags}


def manifest_of(desk):
    manifest = json.loads((desk.folder / "pay.precheck" / "manifest.json").read_text())
    return {file["name"]: file["sha256"] for file in manifest["files"]}


def test_a_run_writes_it_beside_its_other_files(desk, sandbox, file):
    finished = desk("run", file, *sandbox.using("sandbox"), "--pain002")

    assert finished.status == 0
    assert REPORT in finished.out
    found = texts(desk, "MsgId", "OrgnlMsgId", "OrgnlEndToEndId", "TxSts")
    assert found["OrgnlMsgId"] == ["MESSAGE-1"]
    assert found["OrgnlEndToEndId"] == ["E-1", "E-2"]
    assert found["TxSts"][1] == "RVNA"
    [message_id] = found["MsgId"]
    assert message_id.startswith("PRECHECK-")
    assert len(message_id) == 35
    content = (desk.folder / REPORT).read_bytes()
    assert manifest_of(desk)["pain002.simulated.xml"] == hashlib.sha256(content).hexdigest()


@pytest.mark.nightly
def test_it_is_made_later_without_asking_and_with_an_id_of_its_own(desk, sandbox, file):
    using = sandbox.using("sandbox")
    assert desk("run", file, *using, "--pain002", "--quiet").status == 0
    before = texts(desk, "MsgId", "TxSts")

    assert desk("report", "pay.precheck", "--pain002").status == 0

    after = texts(desk, "MsgId", "TxSts")
    assert after["TxSts"] == before["TxSts"]
    assert after["MsgId"] != before["MsgId"]
    assert desk("verify", "pay.precheck").status == 0


def test_a_finished_run_that_has_none_gets_one_and_sends_nothing(desk, sandbox, file):
    using = sandbox.using("sandbox")
    assert desk("run", file, *using, "--quiet").status == 0
    assert not (desk.folder / REPORT).exists()

    finished = desk("run", file, *using, "--pain002", "--json", "--quiet")

    assert finished.status == 0
    assert [call["request_count"] for call in json.loads(finished.out)["calls"]] == [0]
    assert "pain002.simulated.xml" in manifest_of(desk)


@pytest.mark.nightly
def test_a_run_that_finds_more_removes_one_that_says_less(desk, sandbox, file):
    using = sandbox.using("sandbox")
    assert desk("run", file, *using, "--pain002", "--limit", "0", "--quiet").status == 75
    assert texts(desk, "GrpSts") == {"GrpSts": ["RVNC"]}

    assert desk("run", file, *using, "--quiet").status == 0

    assert not (desk.folder / REPORT).exists()
    assert desk("verify", "pay.precheck").status == 0


def test_it_needs_the_very_file_that_was_checked(desk, sandbox, file):
    assert desk("run", file, *sandbox.using("sandbox"), "--quiet").status == 0
    moved = file.rename(desk.folder / "elsewhere.xml")

    missing = desk("report", "pay.precheck", "--pain002")
    found = desk("report", "pay.precheck", "--pain002", "--input", moved)
    moved.write_bytes(moved.read_bytes().replace(b"Farraday", b"Faraday"))
    changed = desk("report", "pay.precheck", "--pain002", "--input", moved)

    assert (missing.status, found.status, changed.status) == (2, 0, 65)
    assert said("advice.name_input") in missing.sentences[0]
    assert said("runs.not_the_checked_file") in changed.sentences[0]


def test_a_file_that_is_no_pain_001_is_refused_before_anything_is_sent(desk, sandbox):
    row = {"payment_id": "P1", "name": "Avery Thornwood", "sort_code": "001122", "account_number": "00012345"}
    table = desk.payments([row])

    refused = desk("run", table, *sandbox.using("sandbox"), "--pain002")

    assert refused.status == 2
    [sentence] = refused.sentences
    assert sentence == "precheck: " + said("jobs.pain002_needs_pain001", name="payments.csv")
    assert not (desk.folder / "payments.precheck").exists()


def test_an_input_for_nothing_is_refused(desk, sandbox, file):
    assert desk("run", file, *sandbox.using("sandbox"), "--quiet").status == 0

    refused = desk("report", "pay.precheck", "--input", file)

    assert refused.status == 2
    assert said("cli.input_without_pain002") in refused.sentences[0]
