"""What an approval stands for: a decision asks before it voids it, and what the bank has is final."""

import json
import sys
from pathlib import Path
from urllib.parse import urlencode

import pytest
from refusals import said

from schemas.notification import Notification

MIXED = (Path(__file__).parents[3] / "sample_data" / "payments_mixed.csv").read_bytes()
ONE = b"name,iban,amount,currency\nAda Quillon,DE75512108001245126199,10.00,EUR\n"


@pytest.fixture(scope="module")
def rita(desk_here):
    return desk_here.visitor("Rita")


@pytest.fixture(scope="module")
def released(rita):
    at = rita.checked(MIXED, "payments_mixed.csv")
    rita.post(f"/files/{at}/rows/10", {"decision": "release", "reason": "phoned"})
    assert rita.approve(at).status == 303
    return at


def test_a_decision_asks_before_it_voids_an_approval(desk_here, rita, released):
    at = desk_here.copy(released)
    path, form = f"/files/{at}/rows/10", {"decision": "hold", "reason": "no"}
    refused = rita.post(path, {**form, "voids": ""})
    assert refused.status == 409
    assert said("desk.decision_would_void", "page") in refused.text
    assert 'name="voids" value="yes" required' in rita.get(f"/files/{at}/review").text
    assert rita.post(path, {**form, "voids": "yes"}).status == 303
    assert 'name="voids"' not in rita.get(f"/files/{at}/review").text


def test_what_the_bank_has_is_final(desk_here, rita, released):
    at = desk_here.copy(released)
    digest = rita.get(f"/files/{at}/release").text.partition('name="sha256" value="')[2][:64]
    assert rita.post(f"/files/{at}/given", {"sha256": "0" * 64}).status == 409
    assert rita.post(f"/files/{at}/given", {"sha256": digest}).status == 303
    assert rita.post(f"/files/{at}/given", {"sha256": digest}).status == 409
    for path, each in [
        ("rows/10", {"decision": "hold", "reason": "no"}),
        ("release", {}),
        ("groups/undo", {}),
    ]:
        assert rita.post(f"/files/{at}/{path}", each).status in (409, 422), path
    page = rita.get(f"/files/{at}/release").text
    assert "This file is final" in page
    assert "Payments to release" in page
    assert 'name="decision"' not in rita.get(f"/files/{at}/review").text


def test_a_comment_decides_nothing_and_is_beside_its_row(desk_here, rita, released):
    at = desk_here.copy(released)
    assert rita.post(f"/files/{at}/rows/10/comments", {"comment": " "}).status == 422
    assert rita.post(f"/files/{at}/rows/999/comments", {"comment": "x"}).status == 422
    answer = rita.post(f"/files/{at}/rows/10/comments", {"comment": "ask <Ann> about it"})
    assert answer.to.endswith("/rows/10#comments")
    assert "ask &lt;Ann&gt; about it" in rita.get(f"/files/{at}/rows/10").text
    assert "ask &lt;Ann&gt; about it" in rita.get(f"/files/{at}/review").text
    assert "Void the approval" in rita.get(f"/files/{at}/review").text  # the approval counts still


def test_reasons_that_were_given_are_suggested(rita, released):
    assert '<option value="phoned">' in rita.get(f"/files/{released}/review").text


def test_people_are_notified_of_a_file_that_waits_or_was_sent_back(tmp_path, serve_desk, sandbox, wait_until):
    heard, config = tmp_path / "heard", tmp_path / "precheck.toml"
    program = f"import sys; open({str(heard)!r}, 'a').write(sys.stdin.read() + chr(10))"
    command = f"[notify]\ncommand = {json.dumps([sys.executable, '-c', program])}\n"
    real = sandbox.config.read_text().replace('server = "sandbox"', 'server = "production"')
    config.write_text(real + command)
    with serve_desk(tmp_path, "--config", config) as desk:
        visitor = desk.visitor()
        at = visitor.planned(ONE)
        start = {"planned": "production", "profile": "production"}
        visitor.post(f"/files/{at}/plan", {"profile": "production"})
        assert visitor.post(f"/files/{at}/start", start).status == 303
        visitor.wait(at)
        assert visitor.post(f"/files/{at}/hand-over").status == 303
        wait_until(heard.exists)
        assert visitor.post(f"/files/{at}/send-back", {"comment": "call Orla"}).status == 303
        wait_until(lambda: heard.read_text().count("\n") == 2)
        config.write_text(f'{real}[notify]\ncommand = ["/no/such/program"]\n')
        assert visitor.post(f"/files/{at}/hand-over").status == 303
        wait_until(lambda: desk.audit()[-1]["deed"] == "not notified")
        assert "notification failed" in visitor.get("/audit").text
    said = [Notification.model_validate_json(line) for line in heard.read_text().splitlines()]
    assert [one.event for one in said] == ["approval waiting", "sent back"]
    assert sum(said[0].files[0].row_counts.values()) == 1
    assert "Orla" not in heard.read_text()


def late(people, meanwhile, fields):
    """Send a form's headers, with the length of its body, and the body only after others have acted."""
    body = urlencode(fields).encode()

    def pieces():
        people.get("/")  # by then, the desk knows of the form
        meanwhile()
        yield body

    kind = {"Content_Type": "application/x-www-form-urlencoded", "Content_Length": str(len(body))}
    return pieces(), kind


def test_a_form_that_arrives_late_acts_on_what_others_have_done_meanwhile(desk_here, rita, released):
    at = desk_here.copy(released)
    digest = rita.get(f"/files/{at}/release").text.partition('name="sha256" value="')[2][:64]

    def hold():
        voided = rita.post(f"/files/{at}/rows/10", {"decision": "hold", "reason": "no", "voids": "yes"})
        assert voided.status == 303

    body, how = late(rita, hold, {"sha256": digest})
    assert rita.ask("POST", f"/files/{at}/given", body, **how).status == 409
    page = rita.get(f"/files/{at}/release").text
    assert "This file is final" not in page
    assert f"/files/{at}/download/release" not in page, "nothing of a voided approval is handed out"

    body, how = late(rita, lambda: rita.approve(at), {"comment": "please look again"})
    assert rita.ask("POST", f"/files/{at}/send-back", body, **how).status == 409
    assert "please look again" not in rita.get(f"/files/{at}/release").text
