"""The bank's own report beside a payment file: one upload, and then the way of any file."""

import html
import re

import pytest
from desk import hold_until
from paymentfiles.pain001 import Batch, Payment, document
from paymentfiles.pain002 import Said, SaidOfBatch, report
from readers import axe_faults, needs_axe, wider_than
from refusals import said

from pipeline.formats.pain002 import SIMULATED

IBANS = ("DE89370400440532013000", "NL91ABNA0417164300")
NAMES = ("Ada Quillon", "Imogen Faraday")
FILE = document(
    (
        Batch(
            tuple(
                Payment(end_to_end_id=f"E-{at}", name=name, iban=IBANS[at], amount=f"{at + 1}.00")
                for at, name in enumerate(NAMES)
            )
        ),
    )
)
MATCH = Said("E-0", "RCVC", (), account=IBANS[0], amount="1.00", name=NAMES[0])
NO_MATCH = Said("E-1", "RVNM", (), account=IBANS[1], amount="2.00", name=NAMES[1])
OF_BOTH, OF_FIRST = report((SaidOfBatch((MATCH, NO_MATCH)),)), report((SaidOfBatch((MATCH,)),))
OF_SECOND = report((SaidOfBatch((NO_MATCH,)),), report_id="VOP-2")
REFUSED = {
    "en": (OF_BOTH.replace(b"<OrgnlMsgId>", b"<OrgnlMsgId>X-"), "is a report on the message X-"),
    "de": (report((SaidOfBatch((MATCH,)),), notes=(SIMULATED,)), "stammt aus einer Sandbox"),
    "fr": (OF_BOTH[:-40], "se termine trop tôt"),
}
"""The language of a page -> a report that is refused, and what the page says about it."""


@pytest.fixture
def rita(desk_here):
    return desk_here.visitor("Rita")


def ended(visitor, at):
    """Its progress page, once the report was read."""
    hold_until(lambda: '"is_on": false' in visitor.get(f"/files/{at}/progress.json").text)
    return visitor.get(f"/files/{at}/progress").text


def uploaded(visitor, reports):
    answer = visitor.upload("/files", "pay.xml", FILE, reports)
    assert (answer.status, answer.to.rpartition("/")[2]) == (303, "progress"), answer.text
    return answer.to.split("/")[2]


def test_a_file_and_its_report_are_reviewed_and_released(rita):
    at = uploaded(rita, [OF_BOTH])

    assert "The check is finished" in ended(rita, at)
    assert NAMES[1] in rita.get(f"/files/{at}/review").text
    assert rita.post(f"/files/{at}/rows/2", {"decision": "hold", "reason": "not hers"}).status == 303
    released = rita.post(f"/files/{at}/release", {"reason": "seen"})
    assert released.status == 303, released.text
    release = rita.get(f"/files/{at}/download/release.xml")
    assert (NAMES[0].encode() in release.body, NAMES[1].encode() in release.body) == (True, False)


def test_what_the_first_report_leaves_open_is_answered_by_the_next(rita):
    at = uploaded(rita, [OF_FIRST])
    assert f"/files/{at}/reports" in ended(rita, at)

    assert rita.upload(f"/files/{at}/reports", "", b"", [OF_SECOND]).status == 303

    assert "The check is finished" in ended(rita, at)


@pytest.mark.parametrize("code", ["en", "de", "fr"])
def test_a_refused_report_is_explained_and_loses_nothing(rita, code):
    refused, said = REFUSED[code]
    at = uploaded(rita, [refused])
    ended(rita, at)
    page = rita.get(f"/files/{at}/progress", Accept_Language=code).text

    notice = re.search('role="alert">(.*?)</p>', page)[1]
    assert "vop-1.xml" in notice
    assert said in html.unescape(notice)
    assert rita.upload(f"/files/{at}/reports", "", b"", [OF_BOTH]).status == 303
    assert re.findall('role="alert">(.*?)</p>', ended(rita, at)) == []
    assert rita.get(f"/files/{at}/review").status == 200


def test_a_check_is_compared_with_the_report_that_comes_after_it(tmp_path, serve_desk, sandbox):
    config = sandbox.folder / "real.toml"
    config.write_text(sandbox.config.read_text().replace('server = "sandbox"', 'server = "production"'))
    with serve_desk(tmp_path, "--config", config) as desk:
        visitor = desk.visitor()
        at = visitor.planned(FILE, "pay.xml")
        visitor.post(f"/files/{at}/plan", {"profile": "production"})
        assert (
            visitor.post(f"/files/{at}/start", {"planned": "production", "profile": "production"}).status
            == 303
        )
        visitor.wait(at)
        assert f"/files/{at}/comparison" in visitor.get(f"/files/{at}/release").text
        other = report((SaidOfBatch((MATCH,)),), message_id="OTHER")
        refused = visitor.upload(f"/files/{at}/comparison", "", b"", [other])
        assert refused.status == 422
        assert said("executors.report_on_other", "page", other="OTHER") in refused.text

        assert visitor.upload(f"/files/{at}/comparison", "", b"", [OF_BOTH]).to.endswith("/review")

        page = html.unescape(visitor.get(f"/files/{at}/release").text)
        assert said("changes.compared_with_bank", "page", count=1, agreed_count=1, differing_count=1) in page
        story = html.unescape(visitor.get(f"/files/{at}/rows/1").text)
        assert said("rule.bank_differs_from", "page", then="no_match", now="match") in story
        assert "compared" in {entry["deed"] for entry in desk.audit()}
        assert visitor.post(f"/files/{at}/release", {"reason": "seen"}).status == 303


@pytest.mark.nightly
@needs_axe
def test_both_files_are_uploaded_reviewed_and_released_in_a_browser(browser, desk_here, tmp_path):
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.goto(desk_here.link_for("Mara Ellery"))
    page.wait_for_url(re.compile("/$"))
    page.click("text=I have the bank's report")
    assert (axe_faults(page), wider_than(page, (390, 1280))) == ([], {})
    page.set_input_files("[name=file]", {"name": "pay.xml", "mimeType": "text/xml", "buffer": FILE})
    page.set_input_files("[name=report]", {"name": "vop.xml", "mimeType": "text/xml", "buffer": OF_FIRST})
    page.click("form.drop button")
    page.wait_for_selector("text=Read the report")
    assert (axe_faults(page), wider_than(page, (390, 1280))) == ([], {})
    page.set_input_files("[name=report]", {"name": "vop.xml", "mimeType": "text/xml", "buffer": OF_SECOND})
    page.click("text=Read the report")
    page.wait_for_url("**/review")
    page.click("#row-2 summary")
    page.check("#row-2 input[value=hold]")
    page.fill("#row-2 input[name=reason]", "not hers")
    page.click("#row-2 button")
    page.wait_for_selector("#row-2.decided")
    page.goto(page.url.replace("/review", "/release"))
    page.click("text=Approve and write the files")
    page.wait_for_selector("text=Payments to release")
    with page.expect_download() as download:
        page.click("text=Payments to release")
    download.value.save_as(tmp_path / "release.xml")
    released = (tmp_path / "release.xml").read_text()
    assert (NAMES[0] in released, NAMES[1] in released) == (True, False)
