"""Pages in German and French: each of them, in every state, and how a language is chosen."""

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from readers import axe_faults, needs_axe, wider_than

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "docs"))
import catalogues  # noqa: E402 (a script of that folder)

MIXED = (ROOT / "sample_data" / "payments_mixed.csv").read_bytes()
PAIN001 = (ROOT / "sample_data" / "payments_pain001.xml").read_bytes()
SHOWN = ("aria-label", "placeholder", "data-silent", "data-empty", "data-uploading", "data-too-large")
OTHERS = ("de", "fr")
WORDS_MIN = 3
"""From so many words on, a sentence is looked for within a text; shorter ones are the whole of it."""
each_language = pytest.mark.parametrize("code", OTHERS)


class Texts(HTMLParser):
    """What people read on a page: its texts and labels, without what comes from files and people."""

    def __init__(self):
        super().__init__()
        self.found, self.english, self._open = [], [], []

    def handle_starttag(self, tag, attributes):
        if tag not in ("input", "meta", "link", "br", "wbr"):
            marked = tag in ("bdi", "script", "q") or (tag == "button" and "lang" in dict(attributes))
            is_english = tag == "span" and dict(attributes).get("lang") == "en"
            self._open.append((tag, marked, is_english))
        self.found += [value for name, value in attributes if name in SHOWN]

    def handle_endtag(self, tag):
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        text = " ".join(data.split())
        if any(is_english for _, _, is_english in self._open):
            self.english.append(text)
        elif text and not any(marked for _, marked, _ in self._open):
            self.found.append(text)


@pytest.fixture(scope="module")
def sentences():
    """Language -> the English sentences that are other ones in it, without their placeholders."""
    found = {}
    for code in OTHERS:
        pairs = set()
        for one in catalogues.read(code):
            forms = one.string if isinstance(one.string, tuple) else (one.string,)
            pairs |= {text for text in ([one.id] if isinstance(one.id, str) else one.id) if text not in forms}
        found[code] = {text for text in pairs if text}
    return found


def left_in_english(page, english):
    texts = Texts()
    texts.feed(page)
    long = [text for text in english if len(text.split()) >= WORDS_MIN and "%(" not in text]
    long += [
        part.strip(" .,:;") for text in english for part in _pieces(text) if len(part.split()) >= WORDS_MIN
    ]
    return [
        (text, sentence)
        for text in texts.found
        for sentence in (*(text for _ in (0,) if text.rstrip(":") in english), *long)
        if sentence in text
    ]


def _pieces(sentence):
    """What stands between the placeholders of a sentence."""
    return re.split(r"%\(\w+\)s", sentence) if "%(" in sentence else []


@pytest.fixture(scope="module")
def visitor(desk_here):
    return desk_here.visitor("Mara Ellery")


@pytest.fixture(scope="module")
def pages(desk_here, visitor):
    """Name -> the address of a page in each state."""
    new, planned = visitor.file(MIXED, "november.csv"), visitor.planned(MIXED, "planned.csv")
    pain = visitor.planned(PAIN001, "payments.xml")
    at = visitor.checked(MIXED, "payments_mixed.csv")
    done = desk_here.copy(at)
    for row, decision in ((10, "release"), (2, "fix"), (17, "hold")):
        said = {"decision": decision, "reason": "seen"}
        assert visitor.post(f"/files/{done}/rows/{row}", said).status == 303
    assert visitor.approve(done).status == 303
    gone = desk_here.copy(at)
    assert visitor.approve(gone).status == 303
    assert visitor.post(f"/files/{gone}/forget", {"reason": "kept long enough"}).status == 303
    stopped = desk_here.copy(planned)
    (desk_here.folder(stopped) / "log.jsonl").touch()
    return {
        "files": "/",
        "columns": f"/files/{new}/columns",
        "columns of a message": f"/files/{pain}/columns",
        "plan": f"/files/{planned}/plan",
        "stopped": f"/files/{stopped}/progress",
        "finished": f"/files/{at}/progress",
        "review": f"/files/{at}/review",
        "group": f"/files/{at}/review?group=fix_name",
        "nothing": f"/files/{at}/review?decided=yes",
        "rejected row": f"/files/{at}/rows/16",
        "row": f"/files/{done}/rows/2",
        "release": f"/files/{at}/release",
        "released": f"/files/{done}/release",
        "purged": f"/files/{gone}/release",
        "search": "/search",
        "audit": "/audit",
        "missing": "/nothing",
        "refused": f"/files/{gone}/review",
    }


@each_language
def test_no_page_has_an_english_sentence_or_word(visitor, pages, sentences, code):
    left = {}
    for name, path in pages.items():
        answer = visitor.get(path, Accept_Language=code)
        assert f'<html lang="{code}">' in answer.text
        if found := left_in_english(answer.text, sentences[code]):
            left[name] = found
    assert left == {}


@each_language
def test_what_is_posted_answers_in_the_language(desk_here, visitor, pages, sentences, code):
    at = pages["review"].split("/")[2]
    answers = [
        *(
            visitor.post(pages[name].replace("/release", "/verify"), Accept_Language=code)
            for name in ("release", "released", "purged")
        ),
        visitor.post("/search", {"text": "Thornwood"}, Accept_Language=code),
        visitor.post("/search", {"text": "x"}, Accept_Language=code),
        visitor.post(f"/files/{at}/rows/17", {"decision": "release", "reason": "x"}, Accept_Language=code),
        visitor.post(f"/files/{at}/rows/10", {"decision": "release"}, Accept_Language=code),
        visitor.post(f"/files/{at}/start", Accept_Language=code),
        desk_here.stranger().get("/", Accept_Language=code),
        desk_here.stranger().get("/enter?token=x", Accept_Language=code),
    ]
    for answer in answers:
        assert f'<html lang="{code}">' in answer.text
        assert left_in_english(answer.text, sentences[code]) == []
    now = json.loads(visitor.get(f"/files/{at}/progress.json", Accept_Language=code).text)
    assert now["count"].split()[-1] == {"de": "Fragen", "fr": "questions"}[code]


def test_english_is_what_a_page_is_found_in(visitor, pages, sentences):
    """So that the test before can fail."""
    for path in pages.values():
        assert left_in_english(visitor.get(path).text, sentences["de"])


def test_amounts_and_times_are_written_by_the_language(visitor, pages):
    german = visitor.get(pages["files"], Accept_Language="de").text
    french = visitor.get(pages["files"], Accept_Language="fr").text
    english = visitor.get(pages["files"]).text
    for page, pattern in (
        (german, r"\d\.\d{3},\d\d GBP"),
        (french, "\\d\u202f\\d{3},\\d\\d GBP"),
        (english, r"\d,\d{3}\.\d\d GBP"),
    ):
        assert re.search(pattern, page)
    day = re.compile(r"\d\d?\. \w+ 20\d\d, \d\d:\d\d UTC")
    assert day.search(german)
    assert not day.search(english)


def test_a_language_is_chosen_on_a_page_and_kept(desk_here):
    visitor = desk_here.visitor("Ada")
    assert '<html lang="fr">' in visitor.get("/", Accept_Language="fr-CH, de;q=0.5").text
    chosen = visitor.post("/language", {"language": "de", "back": "/search"}, Accept_Language="fr")
    assert chosen.to == "/search"
    cookie = chosen.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    page = visitor.get("/search", Accept_Language="fr").text
    assert '<html lang="de">' in page
    assert 'value="de" lang="de" aria-current="true">Deutsch</button>' in page


@pytest.mark.parametrize(
    "back", ["//elsewhere.example", "https://elsewhere.example/", "/leave", "/files/x/plan", ""]
)
def test_who_chooses_a_language_is_led_to_a_page_of_the_desk(desk_here, visitor, back):
    assert visitor.post("/language", {"language": "en", "back": back}).to == "/"


def test_no_other_language_can_be_chosen_and_none_by_a_stranger(desk_here, visitor):
    answer = visitor.post("/language", {"language": "../de", "back": "/"})
    assert answer.status == 303
    assert "Set-Cookie" not in answer.headers
    assert desk_here.stranger().post("/language", {"language": "de"}).status == 401


def test_the_proxy_of_a_team_gets_a_cookie_for_tls_alone(team_desk):
    answer = team_desk.person("rita@example.com").post("/language", {"language": "fr", "back": "/"})
    assert "Secure" in answer.headers["Set-Cookie"]
    refused = team_desk.person("otto@example.com").post("/sample", Accept_Language="de")
    assert "Ihre Rolle erlaubt hier nicht: Dateien hochladen und Prüfungen starten." in refused.text


@pytest.fixture(scope="module")
def german_page(browser, desk_here):
    """A browser that asks for German, signed in."""
    context = browser.new_context(locale="de-DE", viewport={"width": 390, "height": 844})
    page = context.new_page()
    page.goto(desk_here.link_for("Mara Ellery"))
    page.wait_for_url(re.compile("/$"))
    yield page
    context.close()


CUT = """document.querySelectorAll("details").forEach((one) => { one.open = true; });
[...document.querySelectorAll('button, input[type=file]')].filter((one) => {
    const words = document.createRange();
    words.selectNodeContents(one);
    const least = one.type == 'file' ? 100 : words.getBoundingClientRect().width;
    return one.offsetParent && one.clientWidth + 2 < least;
}).map((one) => one.textContent || one.name)"""
"""The controls of a page whose words do not fit into them."""


@pytest.mark.nightly
@each_language
def test_no_page_has_to_be_moved_sideways_in_longer_words(german_page, desk_here, pages, code):
    german_page.goto(desk_here.origin)
    german_page.click(f"button[lang={code}]")
    wide = {}
    for name, path in pages.items():
        german_page.goto(desk_here.origin + path)
        over, cut = wider_than(german_page, (390, 768, 1280)), german_page.evaluate(CUT)
        if over or cut:
            wide[name] = over, cut
    assert wide == {}


@pytest.mark.nightly
@needs_axe
def test_axe_finds_nothing_in_german(german_page, desk_here, pages):
    german_page.goto(desk_here.origin)
    german_page.click("button[lang=de]")
    found = {}
    for name in ("files", "columns", "plan", "group", "row", "released", "audit"):
        german_page.goto(desk_here.origin + pages[name])
        if faults := axe_faults(german_page):
            found[name] = faults
    assert found == {}


@pytest.mark.nightly
def test_the_script_of_a_page_speaks_its_language(german_page, desk_here, pages, tmp_path):
    german_page.goto(desk_here.origin)
    german_page.click("button[lang=de]")
    empty = tmp_path / "empty.csv"
    empty.touch()
    german_page.set_input_files("#file", empty)
    german_page.click("button:has-text('Hochladen')")
    german_page.wait_for_selector(".drop .said:has-text('Diese Datei ist leer.')")
    at = desk_here.copy(pages["review"].split("/")[2])
    german_page.goto(f"{desk_here.origin}/files/{at}/review")
    german_page.click("#row-17 summary")
    german_page.check("#row-17 input[value=hold]")
    german_page.click("#row-17 button")
    german_page.wait_for_selector("#row-17.decided")
    assert german_page.inner_text("#row-17 .said") == "Zurückhalten: Mara Ellery"
    assert german_page.inner_text("#decided") == "1 von 16 entschieden; offen: 4.830,10 EUR, 14.966,29 GBP"
    german_page.context.set_offline(True)
    german_page.click("#row-16 summary")
    german_page.check("#row-16 input[value=hold]")
    german_page.click("#row-16 button")
    german_page.wait_for_selector("#row-16 .said.wrong")
    german_page.context.set_offline(False)
    assert german_page.inner_text("#row-16 .said") == "Nicht gespeichert: Das Portal antwortet nicht."


@each_language
def test_money_beside_a_step_is_the_same_whoever_opens_a_review_first(desk_here, visitor, pages, code):
    def figures(language):
        at = desk_here.copy(pages["review"].split("/")[2])  # nobody has opened it yet
        page = visitor.get(f"/files/{at}/review", Accept_Language=language).text
        steps = re.findall(r'<span class="money">((?:<span>[^<]*</span> ?)+)</span>', page)
        return [re.sub(r"\D", "", step) for step in steps]

    assert any(figures("en"))
    assert figures(code) == figures("en")
