"""The desk in a real browser: by mouse, by keyboard, without scripts, on a phone, in the dark."""

import re
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest
from readers import axe_faults, needs_axe, wider_than
from refusals import said

ROOT = Path(__file__).resolve().parents[3]
MIXED = ROOT / "sample_data" / "payments_mixed.csv"
IMAGES = ROOT / "docs" / "images" / "desk"
WAIT_MAX_MS = 30_000
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
PICTURE_BYTES_MAX = 250_000


@pytest.fixture(scope="module")
def link_of(desk_here):
    def link(name="Mara Ellery"):
        return desk_here.link_for(name)

    return link


@pytest.fixture(scope="module")
def at_the_desk(browser, desk_here, link_of):
    """`at_the_desk(options)`: somebody with a browser, who has come in; each kind is opened once."""
    open_pages = {}

    @contextmanager
    def come(*, complains=False, **options):
        kind = repr(sorted(options.items()))
        if kind not in open_pages:
            page = browser.new_context(viewport=DESKTOP, **options).new_page()
            page.set_default_timeout(WAIT_MAX_MS)
            page.goto(link_of())
            if options.get("java_script_enabled") is False:
                page.click("text=Open the desk >> nth=-1")
            page.wait_for_url(re.compile("/$"))
            open_pages[kind] = page
        page, heard = open_pages[kind], []
        page.set_viewport_size(DESKTOP)

        def hear(message):
            heard.append(getattr(message, "text", str(message)))

        page.on("console", hear)
        page.on("pageerror", hear)
        page.goto(desk_here.origin)
        try:
            yield page
            assert complains or not heard, heard
        finally:
            page.remove_listener("console", hear)
            page.remove_listener("pageerror", hear)

    return come


@pytest.fixture(scope="module")
def checked(desk_here):
    """The id of the sample file, checked, and not touched since."""
    return desk_here.visitor().checked(MIXED.read_bytes(), "payments_mixed.csv")


@pytest.fixture
def reviewed(desk_here, checked):
    """The address of the review of a file of its own."""
    return f"{desk_here.origin}/files/{desk_here.copy(checked)}/review"


def speak(page, language):
    """Have the pages in a language."""
    page.goto(re.match("https?://[^/]*", page.url)[0])
    with page.expect_navigation():
        page.click(f".languages button[value={language}]")


def upload(page, file=MIXED):
    page.set_input_files("#file", file)
    page.click("button:has-text('Upload')")
    page.wait_for_url("**/columns")


def start(page):
    page.click("text=Looks right: continue to the plan")
    page.wait_for_url("**/plan")
    page.click("text=Start the check")


def test_the_whole_way_by_mouse(at_the_desk, tmp_path):
    with at_the_desk(complains=True) as page:  # a browser notes each answer that refuses something
        upload(page)
        start(page)
        page.wait_for_url("**/review")  # the page of the check leads there by itself
        page.click("#row-10 summary")
        page.check("#row-10 input[value=release]")
        page.fill("#row-10 input[name=reason]", "paid every month")
        page.click("#row-10 button")
        page.wait_for_selector("#row-10.decided")
        assert page.inner_text("#row-10 .said").startswith("Release: Mara Ellery")
        assert page.inner_text("#decided").startswith("1 of 16 decided; undecided: ")
        assert page.evaluate("document.activeElement.closest('tr').id") == "row-10"
        page.click("#row-16 summary")
        page.check("#row-16 input[value=release]")
        page.click("#row-16 button")
        page.wait_for_selector("#row-16 .said.wrong")
        assert said("desk.decision_without_reason", "page") in page.inner_text("#row-16 .said")
        page.click("text=Review done")
        page.wait_for_url("**/release")
        page.click("text=Approve and write the files")
        page.wait_for_selector("text=Payments to release")
        with page.expect_download() as download:
            page.click("text=Payments to release")
        saved = tmp_path / "release.csv"
        download.value.save_as(saved)
        assert "PAY-0010" in saved.read_text()
        page.click("text=Verify the evidence")
        page.wait_for_selector("text=Nothing was changed.")


@pytest.mark.nightly
def test_the_whole_way_without_scripts(at_the_desk):
    with at_the_desk(java_script_enabled=False) as page:
        upload(page)
        start(page)
        page.wait_for_url("**/progress")
        page.wait_for_selector("text=The check is finished")  # it is loaded again by itself
        page.click("main >> text=Review >> nth=-1")
        page.click("#row-10 summary")
        page.check("#row-10 input[value=release]")
        page.fill("#row-10 input[name=reason]", "paid every month")
        page.click("#row-10 button")
        page.wait_for_selector("#row-10.decided")
        page.click("text=Review done")
        page.click("text=Approve and write the files")
        page.wait_for_selector("text=Payments to release")


def test_a_file_is_dropped(at_the_desk):
    with at_the_desk() as page:
        data = MIXED.read_text()
        transfer = page.evaluate_handle(
            "text => { const all = new DataTransfer(); "
            "all.items.add(new File([text], 'dropped.csv')); return all; }",
            data,
        )
        page.dispatch_event(".drop", "drop", {"dataTransfer": transfer})
        page.wait_for_url("**/columns")
        assert page.inner_text("h1") == "dropped.csv"


def test_a_file_that_is_too_large_or_empty_is_not_sent(at_the_desk, tmp_path):
    with at_the_desk() as page:
        asked = []
        page.on("request", lambda request: asked.append(request.method))
        empty = tmp_path / "empty.csv"
        empty.touch()
        page.evaluate("document.querySelector('.drop').dataset.max = 10")
        for file, sentence in ((MIXED, "This file is larger than"), (empty, "This file is empty")):
            page.set_input_files("#file", file)
            page.click("button:has-text('Upload')")
            page.wait_for_selector(f".drop .said:has-text('{sentence}')")
            assert page.is_enabled("button:has-text('Upload')")
        assert "POST" not in asked


def test_rows_are_decided_by_keyboard_alone(at_the_desk, reviewed):
    with at_the_desk() as page:
        page.goto(reviewed)
        page.keyboard.press("j")
        page.keyboard.press("j")
        assert page.evaluate("document.querySelector('tr.here').id") == "row-17"
        page.keyboard.press("k")
        page.keyboard.press("f")
        assert page.is_checked("#row-7 input[value=fix]")
        page.keyboard.type("seen: j, k, f, r and h")  # in a text they are letters
        page.keyboard.press("Enter")
        page.wait_for_selector("#row-7.decided")
        assert page.input_value("#row-7 input[name=reason]") == "seen: j, k, f, r and h"
        page.uncheck("#keys")
        page.keyboard.press("h")
        assert not page.is_checked("#row-7 input[value=hold]")
        page.reload()
        assert not page.is_checked("#keys")
        page.check("#keys")


def test_keys_act_on_the_row_that_has_the_focus(at_the_desk, reviewed):
    with at_the_desk() as page:
        page.goto(reviewed)
        page.keyboard.press("j")
        here = "document.querySelector('tr.here').id"
        assert page.evaluate(here) == "row-7"
        while page.evaluate("document.activeElement.closest('tr')?.id") != "row-17":
            page.keyboard.press("Tab")
        assert page.evaluate(here) == "row-17"
        page.keyboard.press("h")
        page.keyboard.type("seen on the invoice")
        page.keyboard.press("Enter")
        page.wait_for_selector("#row-17.decided")
        assert page.is_checked("#row-17 input[value=hold]")
        assert not page.is_checked("#row-7 input[value=hold]")
        assert page.evaluate(here) not in ("row-7", "row-17")  # Enter goes to the next row
        page.keyboard.press("k")
        page.keyboard.press("k")
        assert page.evaluate(here) == "row-7"


def test_every_count_agrees_after_a_decision_and_no_page_is_loaded(at_the_desk, reviewed):
    with at_the_desk() as page:
        page.goto(f"{reviewed}?group=fix_name")
        shown = ("#decided", "#left-fix_name", "#undecided", "#open")
        before = [page.inner_text(place) for place in shown]
        loaded = []
        page.on("framenavigated", lambda frame: loaded.append(frame.url))
        page.click("#row-10 summary")
        page.check("#row-10 input[value=hold]")
        page.click("#row-10 button")
        page.wait_for_selector("#row-10.decided")
        after = [page.inner_text(place) for place in shown]
        assert loaded == []
        page.reload()
        assert [page.inner_text(place) for place in shown] == after
        assert all(one != other for one, other in zip(before, after, strict=True))
        assert after[0].startswith("1 of 16 decided; undecided: ")
        assert after[1:3] == [
            "4 rows, 3 undecided",
            "Decide on all 3 undecided rows listed here, or on those you tick",
        ]


def test_decisions_persons_and_reasons_print_and_buttons_do_not(at_the_desk, reviewed):
    with at_the_desk() as page:
        page.goto(f"{reviewed}?group=fix_name")
        page.click("#row-10 summary")
        page.check("#row-10 input[value=hold]")
        page.fill("#row-10 input[name=reason]", "called")
        page.click("#row-10 button")
        page.wait_for_selector("#row-10.decided")
        page.emulate_media(media="print")
        printed = [page.is_visible(f"#row-10 {part}") for part in (".said", ".said q")]
        pressed = [one.inner_text() for one in page.query_selector_all("main button") if one.is_visible()]
        page.emulate_media(media="screen")
        assert (printed, pressed) == ([True, True], [])


def test_a_time_is_shown_in_the_zone_of_the_reader_with_utc_beside_it(at_the_desk, reviewed):
    with at_the_desk(timezone_id="Asia/Tokyo") as page:
        page.goto(reviewed)
        time = page.locator("time").first
        shown, utc = time.inner_text(), time.get_attribute("title")
        assert "UTC" in utc
        assert re.findall("[0-9]+:[0-9]+", shown) != re.findall("[0-9]+:[0-9]+", utc)
        assert page.locator(".where").evaluate("one => getComputedStyle(one).position") == "sticky"


def test_the_list_of_files_is_cards_on_a_phone_and_a_number_of_a_row_is_on_one_line(at_the_desk, reviewed):
    with at_the_desk() as page:
        page.set_viewport_size(PHONE)
        line = page.locator("table.list tbody tr").first
        assert line.evaluate("one => getComputedStyle(one).display") == "block"
        assert page.locator("table.list thead").is_hidden()
        page.set_viewport_size({"width": 1200, "height": 800})
        page.goto(f"{reviewed}?group=fix_name")
        lines = page.locator("#rows th label b")
        assert len({one.evaluate("one => one.offsetHeight") for one in lines.all()}) == 1


@pytest.mark.nightly
def test_a_decided_row_is_as_low_as_the_others_and_opens_to_all_that_was_said(at_the_desk, reviewed):
    with at_the_desk() as page:
        page.goto(reviewed)
        before = page.locator("#row-2").bounding_box()["height"]
        page.click("#row-2 summary")
        page.check("#row-2 input[value=fix]")
        page.fill("#row-2 input[name=reason]", "seen on the invoice of November, and called the payee")
        page.click("#row-2 button")
        page.wait_for_selector("#row-2.decided")
        assert page.locator("#row-2").bounding_box()["height"] == before
        page.click("#row-2 summary")
        said = page.locator("#row-2 > .decide > .said")
        assert said.evaluate("one => one.scrollWidth <= one.clientWidth")


@pytest.mark.nightly
def test_a_second_tab_that_is_behind_is_told(at_the_desk, reviewed):
    with at_the_desk(complains=True) as page:
        page.goto(reviewed)
        page.click("text=Review done")
        page.wait_for_url("**/release")
        behind = page.context.new_page()
        behind.goto(page.url)
        page.goto(page.url.replace("/release", "/review"))
        page.click("#row-17 summary")
        page.check("#row-17 input[value=hold]")
        page.click("#row-17 button")
        page.wait_for_selector("#row-17.decided")
        behind.click("text=Approve and write the files")
        behind.wait_for_selector("text=Changed since this page was shown to you")
        behind.close()


@pytest.mark.nightly
def test_back_from_the_release_shows_the_decision(at_the_desk, reviewed):
    with at_the_desk() as page:
        page.goto(reviewed)
        page.click("#row-17 summary")
        page.check("#row-17 input[value=hold]")
        page.click("#row-17 button")
        page.wait_for_selector("#row-17.decided")
        page.click("text=Review done")
        page.wait_for_url("**/release")
        page.go_back()
        page.wait_for_selector("#row-17.decided")


@pytest.mark.nightly
def test_a_session_that_ended_says_so_instead_of_failing(browser, link_of):
    page = browser.new_context().new_page()
    page.goto(link_of("Cora"))
    page.wait_for_url(re.compile("/$"))
    other = page.context.new_page()
    other.goto(page.url)
    other.click("text=Sign out")
    other.wait_for_selector("text=You are signed out")
    page.click("text=Who did what")
    page.wait_for_selector("text=your session has ended")
    page.context.close()


@pytest.fixture(scope="module")
def states(desk_here):
    """Name -> the address of a page in each state."""
    visitor = desk_here.visitor("Mara Ellery")
    data = MIXED.read_bytes()

    def another(number):
        """A file with the same payments and another reference: of one that is there twice, pages warn."""
        return data.replace(b"INV 7735", b"INV 77%02d" % number)

    new = visitor.file(another(1), "november.csv")
    odd = visitor.file(data.replace(b"name,", b"wer,", 1), "unread.csv")
    planned = visitor.planned(another(2), "planned.csv")
    at = visitor.checked(data, "payroll.csv")
    done = visitor.checked(another(3), "payroll.csv")
    visitor.post(f"/files/{done}/rows/10", {"decision": "release", "reason": "paid every month"})
    visitor.post(f"/files/{done}/rows/2", {"decision": "fix", "reason": "seen on the invoice"})
    visitor.approve(done)
    gone = desk_here.copy(at)
    visitor.approve(gone)
    visitor.post(f"/files/{gone}/forget", {"reason": "kept long enough"})
    return {
        "files": "/",
        "columns": f"/files/{new}/columns",
        "columns-refused": f"/files/{odd}/columns",
        "plan": f"/files/{planned}/plan",
        "finished": f"/files/{at}/progress",
        "review": f"/files/{at}/review",
        "group": f"/files/{at}/review?group=fix_name",
        "nothing": f"/files/{at}/review?decided=yes",
        "row": f"/files/{at}/rows/16",
        "release": f"/files/{at}/release",
        "released": f"/files/{done}/release",
        "purged": f"/files/{gone}/release",
        "search": "/search",
        "audit": "/audit",
        "missing": "/nothing",
    }


@pytest.mark.nightly
@needs_axe
def test_axe_finds_nothing_in_the_review(at_the_desk, reviewed):
    with at_the_desk() as page:
        page.goto(reviewed)
        assert axe_faults(page) == []


@needs_axe
@pytest.mark.nightly
@pytest.mark.parametrize(
    ("scheme", "viewport"),
    [
        pytest.param("light", DESKTOP, id="desktop"),
        pytest.param("dark", PHONE, id="phone"),
    ],
)
def test_axe_finds_nothing_in_any_state(at_the_desk, desk_here, states, scheme, viewport):
    # Each language once: English in both kinds, German on a desktop, French on a phone.
    with at_the_desk(complains=True) as page:
        page.emulate_media(color_scheme=scheme)
        found = {}
        for language in ("de" if scheme == "light" else "fr", "en"):
            speak(page, language)
            page.set_viewport_size(viewport)
            for name, path in states.items():
                page.goto(desk_here.origin + path)
                assert page.get_attribute("html", "lang") == language
                if faults := axe_faults(page):
                    found[language, name] = faults
        page.emulate_media(color_scheme="light")
        assert found == {}


@pytest.mark.nightly
def test_no_page_has_to_be_moved_sideways(at_the_desk, desk_here, states):
    with at_the_desk(complains=True) as page:
        wide = {}
        for name, path in states.items():
            page.goto(desk_here.origin + path)
            if over := wider_than(page, (390, 768, 1280, 1920)):
                wide[name] = over
        for language in ("de", "fr", "en"):  # whose words are longer
            speak(page, language)
            for name, path in states.items():
                page.goto(desk_here.origin + path)
                if over := wider_than(page, (320, 390)):
                    wide[language, name] = over
        assert wide == {}


@pytest.mark.nightly
def test_pages_stay_small_and_load_nothing_from_outside(at_the_desk, desk_here, states):
    with at_the_desk(complains=True) as page:
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        for path in states.values():
            answer = page.goto(desk_here.origin + path)
            assert len(answer.body()) < 100_000
        assert not [url for url in asked if not url.startswith(desk_here.origin)]


@pytest.mark.nightly
def test_pictures_of_each_page_are_in_the_documentation(
    at_the_desk, desk_here, states, tmp_path, pytestconfig
):
    with at_the_desk() as page:
        page.set_viewport_size({"width": 1200, "height": 760})
        shown = {name: states[name] for name in ("files", "columns", "plan", "released")}
        for name, path in {**shown, "review": f"{states['group']}#group"}.items():
            page.goto(desk_here.origin + path)
            picture = tmp_path / f"{name}.png"
            page.screenshot(path=picture)
            assert picture.stat().st_size < PICTURE_BYTES_MAX
            if pytestconfig.getoption("--write-pictures"):
                IMAGES.mkdir(exist_ok=True)
                shutil.copyfile(picture, IMAGES / picture.name)
            assert (IMAGES / picture.name).exists()
