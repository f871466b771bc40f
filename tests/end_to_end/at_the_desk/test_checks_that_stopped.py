"""Checks that ended early: one without any answer is started over, a capped one continues by itself."""

import json
import re
from datetime import UTC, datetime

import pytest
from visitors import served_desk

from pipeline.desk.folders import DeskHome
from pipeline.desk.retention import resume_capped

ROWS = b"name,sort_code,account_number,amount,currency\n" + b"".join(
    f"Invented Payee {n},010203,{10_000_000 + n},{n}.00,GBP\n".encode() for n in range(1, 6)
)


@pytest.fixture(scope="module")
def here(tmp_path_factory, sandbox):
    """A desk with a profile whose server is away, and one with a cap."""
    folder = tmp_path_factory.mktemp("stopped")
    sections = {
        "away": sandbox.section(
            "sandbox", "cop", base_url="https://127.0.0.1:9/x", token_url="https://127.0.0.1:9/t"
        ),
        "capped": sandbox.section("sandbox", "cop", daily_cap=2, server="test"),
    }
    lines = []
    for profile, section in sections.items():
        lines += [
            f"[profiles.{profile}.cop]",
            *(f"{key} = {json.dumps(value)}" for key, value in section.items()),
        ]
    with served_desk(folder, profiles="\n".join(lines) + "\n") as running:
        yield running


def test_a_check_without_any_answer_is_started_over_by_another_profile_or_deleted(here):
    mara = here.visitor()
    at = mara.planned(ROWS, "away.csv")
    mara.start(at, "away")
    mara.wait(at)
    page = mara.get(f"/files/{at}/progress").text
    assert "No bank has answered yet: you can go back" in page
    assert page.index("<summary>Details for your administrator") < page.index("127.0.0.1:9")
    [details] = re.findall("<textarea readonly[^>]*>(.*?)</textarea>", page, re.DOTALL)
    assert "127.0.0.1:9" in details  # to be selected, or copied by the button of the script
    assert mara.post(f"/files/{at}/start-over").to == f"/files/{at}/plan"
    assert mara.post(f"/files/{at}/start-over").status == 409
    assert (here.folder(at) / "failed-1.precheck").is_dir()  # what was left is kept
    mara.start(at, "sandbox")
    mara.wait(at)
    assert mara.get(f"/files/{at}").to.endswith("/review")
    assert mara.post(f"/files/{at}/start-over").status == 409  # answers are never set aside
    assert mara.post(f"/files/{at}/forget", {"reason": "done"}).status == 303
    assert not list(here.folder(at).glob("failed-*"))


@pytest.mark.nightly
@pytest.mark.parametrize("has_clipboard", [True, False])
def test_details_are_copied_by_a_button_or_by_hand(here, browser, has_clipboard):
    mara = here.visitor()
    at = mara.planned(ROWS, f"away-{has_clipboard}.csv")
    mara.start(at, "away")
    mara.wait(at)
    for java_script_enabled in (True, False):
        context = browser.new_context(java_script_enabled=java_script_enabled)
        context.grant_permissions(["clipboard-read", "clipboard-write"], origin=here.origin)
        if not has_clipboard:
            context.add_init_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
        page = context.new_page()
        page.goto(here.link_for("Mara"))
        if not java_script_enabled:
            page.click("text=Open the desk >> nth=-1")
        page.wait_for_url(re.compile("/$"))
        page.goto(f"{here.origin}/files/{at}/progress")
        page.click("text=Details for your administrator")
        details = page.input_value("textarea[readonly]")
        assert "127.0.0.1:9" in details
        assert page.is_visible("button.copy") == java_script_enabled
        if java_script_enabled:
            page.click("button.copy")
            page.wait_for_selector("button.copy:has-text('Copied')")
            if has_clipboard:
                assert page.evaluate("navigator.clipboard.readText()") == details
        context.close()


def test_a_capped_check_continues_by_itself_only_if_its_plan_said_so_and_the_cap_allows_it(here, monkeypatch):
    mara, started = here.visitor(), []
    plans = [
        mara.planned(ROWS + n * b"Invented Payee 9,010203,10000009,9.00,GBP\n", "capped.csv") for n in (1, 2)
    ]
    for at, said in zip(plans, ({"resumes_daily": "yes"}, {}), strict=True):
        mara.post(f"/files/{at}/plan", {"profile": "capped"})
        page = mara.get(f"/files/{at}/plan").text
        assert 'name="resumes_daily" value="yes">' in page  # off by default
        mara.post(f"/files/{at}/start", {"profile": "capped", "planned": "capped", **said})
        mara.wait(at)
        page = mara.get(f"/files/{at}/progress").text
        assert "Waiting for the next day" in page
        assert ("continues by itself" in page) is bool(said)
        assert ">Resume</button>" not in page  # the cap is used up
    folders = [folder for folder in DeskHome(here.home).folders() if folder.id in plans]
    monkeypatch.setenv("PRECHECK_CONFIG", str(here.home.parent / "profiles.toml"))
    # What is used of the cap is known to the user of the desk alone, as far as this test sees: nothing.
    resume_capped(
        folders, lambda: datetime.now(UTC), lambda folder: started.append(folder.id), lambda *_: None
    )
    assert started == plans[:1]
    monkeypatch.setenv("XDG_STATE_HOME", here.desk.environment["XDG_STATE_HOME"])  # where it is counted
    resume_capped(
        folders, lambda: datetime.now(UTC), lambda folder: started.append(folder.id), lambda *_: None
    )
    assert started == plans[:1]
