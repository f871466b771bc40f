"""What a check goes through, in a browser: running, stopped, capped, waiting, killed; and double clicks."""

import json
import re
from pathlib import Path

import pytest
from readers import axe_faults, needs_axe
from visitors import served_desk

ROOT = Path(__file__).resolve().parents[3]
MIXED = (ROOT / "sample_data" / "payments_mixed.csv").read_bytes()
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
LOOKS = [("light", DESKTOP), ("dark", PHONE)]
WAIT_MAX_MS = 60_000
CAP = 2

pytestmark = pytest.mark.nightly


def payments(count, start=1):
    header = "payment_id,name,sort_code,account_number,amount,currency"
    rows = [
        f"P-{n},Invented Payee {n},010203,{10_000_000 + n},{n}.00,GBP" for n in range(start, start + count)
    ]
    return "\n".join([header, *rows, ""]).encode()


def configured(folder, slow, capped):
    """A configuration with a profile whose server is slow, and one with a cap."""
    capped_section = capped.section("sandbox", "cop", daily_cap=CAP, server="test")
    sections = {"slow": slow.section("sandbox", "cop"), "capped": capped_section}
    lines = []
    for profile, section in sections.items():
        lines.append(f"[profiles.{profile}.cop]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in section.items()]
    path = folder / "states.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def here(tmp_path_factory, serve, sandbox):
    """A desk with a slow server and a capped one."""
    folder = tmp_path_factory.mktemp("states")
    with serve(folder / "slow", "--latency", "0.5") as slow:
        config = configured(folder, slow, sandbox)
        with served_desk(folder, "--config", config) as running:
            running.config = config
            yield running


@pytest.fixture(scope="module")
def mara(here):
    return here.visitor("Mara Ellery")


@pytest.fixture
def page(browser, here):
    """A page of somebody who has come in."""
    context = browser.new_context(viewport=DESKTOP)
    opened = context.new_page()
    opened.set_default_timeout(WAIT_MAX_MS)
    opened.goto(here.link_for("Mara Ellery"))
    opened.wait_for_url(re.compile("/$"))
    yield opened
    context.close()


def started(visitor, data, profile):
    at = visitor.planned(data)
    assert visitor.start(at, profile).status == 303
    return at


def planned_by(page, profile):
    """Have the page show the plan by a profile: nothing else starts."""
    page.select_option("select[name=profile]", profile)
    press(page, "Recalculate")


def press(page, button):
    """Press a button that sends a form, and wait for the page that comes of it."""
    with page.expect_navigation():
        page.click(f"button:has-text('{button}')")


def faults_of(page):
    """What axe-core finds on a page, in the light on a desk and in the dark on a phone."""
    found = []
    for scheme, viewport in LOOKS:
        page.set_viewport_size(viewport)
        page.emulate_media(color_scheme=scheme)
        found += axe_faults(page)
    page.set_viewport_size(DESKTOP)
    page.emulate_media(color_scheme="light")
    return found


@needs_axe
def test_axe_finds_nothing_while_a_check_runs_is_stopped_capped_or_waits(here, mara, page, wait_until):
    found = {}
    running = started(mara, payments(5_000), "slow")
    banner = "A sandbox answers: no answer says anything about a real account."
    assert banner in mara.get(f"/files/{running}/progress").text  # from the first look
    wait_until(lambda: mara.progress(running)["done"] > 0)
    page.goto(f"{here.origin}/files/{running}/progress")
    page.wait_for_selector("text=You can close this page")
    assert page.inner_text("#sentence") == "Checking with the sandbox."
    assert banner in page.inner_text("aside.banner")
    found["running"] = faults_of(page)
    page.goto(here.origin)
    found["list while one runs"] = faults_of(page)
    page.goto(f"{here.origin}/files/{running}/progress")
    press(page, "Stop")
    mara.wait(running)
    page.goto(f"{here.origin}/files/{running}/progress")
    page.wait_for_selector("text=The check has stopped")
    assert "SIGTERM" not in (text := page.inner_text("main"))
    assert "Stopped by Mara Ellery." in text
    assert "Answers are kept and never asked for again." in text
    found["stopped"] = faults_of(page)
    capped = started(mara, payments(5, 900), "capped")
    mara.wait(capped)
    page.goto(f"{here.origin}/files/{capped}/progress")
    page.wait_for_selector("text=Waiting for the next day")
    found["capped"] = faults_of(page)
    waiting = mara.planned(MIXED)
    mara.start(waiting, "sandbox")
    mara.wait(waiting)
    mara.post(f"/files/{waiting}/hand-over")
    for name in ("release", "review"):
        page.goto(f"{here.origin}/files/{waiting}/{name}")
        found[f"waiting: {name}"] = faults_of(page)
    page.goto(here.origin)
    page.wait_for_selector("text=Waiting for approval")
    found["list of all states"] = faults_of(page)
    stranger = page.context.browser.new_page(java_script_enabled=True)
    stranger.goto(here.origin)
    stranger.wait_for_selector("text=You are not signed in")
    found["not signed in"] = faults_of(stranger)
    stranger.close()
    assert {name: faults for name, faults in found.items() if faults} == {}


def deeds(here, at):
    return [entry["deed"] for entry in here.audit() if entry["run"] == at]


def test_a_mouse_that_clicks_twice_starts_one_check_and_approves_once(here, mara, page):
    at = mara.planned(MIXED)
    page.goto(f"{here.origin}/files/{at}/plan")
    planned_by(page, "sandbox")
    page.dblclick("text=Start the check")
    page.wait_for_url("**/review")
    page.click("text=Review done")
    page.wait_for_url("**/release")
    page.dblclick("text=Approve and write the files")
    page.wait_for_selector("text=Payments to release")
    mara.wait(at)
    assert deeds(here, at).count("started") == 1
    assert deeds(here, at).count("approved") == 1
    manifest = json.loads((here.folder(at) / "run.precheck" / "manifest.json").read_text())
    assert len(manifest["splits"]) == 1


def test_two_tabs_that_start_the_same_file_start_one_check(here, mara, page):
    at = mara.planned(payments(40, 2_000))
    other = page.context.new_page()
    for tab in (page, other):
        tab.goto(f"{here.origin}/files/{at}/plan")
        planned_by(tab, "slow")
    page.click("text=Start the check")
    page.wait_for_url("**/progress")
    other.click("text=Start the check")
    other.wait_for_selector("text=The check cannot be started now.")
    other.goto(f"{here.origin}/files/{at}")
    for tab in (page, other):  # both are led to the review when it is done
        tab.wait_for_url("**/review")
    assert deeds(here, at).count("started") == 1


def test_back_from_a_check_that_runs_shows_how_it_stands_and_starts_nothing(here, mara, page):
    at = mara.planned(payments(60, 3_000))
    page.goto(f"{here.origin}/files/{at}/plan")
    planned_by(page, "slow")
    page.click("text=Start the check")
    page.wait_for_url("**/progress")
    page.go_back()
    page.wait_for_url("**/plan")
    assert page.locator("text=Start the check").count() == 0  # the page is asked for anew
    page.go_forward()
    page.wait_for_url("**/review")
    assert deeds(here, at).count("started") == 1


def test_a_session_that_ends_while_a_check_is_watched_says_so_and_the_check_goes_on(here, mara, page):
    at = started(mara, payments(60, 4_000), "slow")
    page.goto(f"{here.origin}/files/{at}/progress")
    page.context.clear_cookies()
    page.wait_for_selector("text=You are not signed in")  # the page that looks by itself finds out
    mara.wait(at)
    assert mara.get(f"/files/{at}").to.endswith("/review")


def test_a_reached_cap_goes_on_when_there_is_more_of_it(here, mara, page):
    at = started(mara, payments(4, 5_000), "capped")
    mara.wait(at)
    page.goto(f"{here.origin}/files/{at}/progress")
    page.wait_for_selector("text=Waiting for the next day")
    assert page.locator("button:has-text('Resume')").count() == 0  # it would ask nothing
    told = here.config.read_text()
    here.config.write_text(told.replace(f"daily_cap = {CAP}", "daily_cap = 40"))
    try:
        page.reload()
        press(page, "Resume")
        page.wait_for_url("**/review")
    finally:
        here.config.write_text(told)
    summary = json.loads((here.folder(at) / "run.precheck" / "summary.json").read_text())
    assert summary["complete"]


def test_a_killed_desk_is_said_on_the_page_and_the_next_one_goes_on_with_it(
    browser, tmp_path, serve, sandbox
):
    with serve(tmp_path / "slow", "--latency", "0.5") as slow:
        config = configured(tmp_path, slow, sandbox)
        with served_desk(tmp_path, "--config", config) as desk:
            at = started(desk.visitor(), payments(3_000), "slow")
            tab = browser.new_context().new_page()
            tab.set_default_timeout(WAIT_MAX_MS)
            tab.goto(desk.link_for("Ada"))
            tab.wait_for_url(re.compile("/$"))
            tab.goto(f"{desk.origin}/files/{at}/progress")
            tab.wait_for_selector("button:has-text('Stop')")
            desk.process.kill()
            desk.process.wait()
            tab.wait_for_selector("text=The desk does not answer. The check continues")
        with served_desk(tmp_path, "--config", config) as desk:
            tab.goto(desk.link)
            tab.wait_for_url(re.compile("/$"))
            assert "Being checked" in tab.inner_text("main")
            tab.goto(f"{desk.origin}/files/{at}/progress")
            tab.click("button:has-text('Stop')")
            tab.wait_for_selector("button:has-text('Resume')")
            tab.context.close()
