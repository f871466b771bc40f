"""Every sentence of the desk is there in every language, with the same placeholders and the same markup."""

import ast
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from refusals import said

from pipeline.desk.languages import localized
from pipeline.reports.differences import difference
from pipeline.wording import LANGUAGES, Sentence, speak
from schemas.summary import NotPayment

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "docs"))
import catalogues

OTHERS = [code for code in LANGUAGES if code != "en"]
each_language = pytest.mark.parametrize("code", OTHERS)
HELD = re.compile(r"%\(\w+\)s|</?[a-z]+>")
"""What a translation must hold as often as the sentence."""


@pytest.fixture
def spoken():
    yield speak
    speak("en")


def forms(text):
    return list(text) if isinstance(text, (tuple, list)) else [text]


@each_language
def test_a_catalogue_has_every_sentence_and_no_other(code):
    wanted = {(one.context, str(one.id)) for one in catalogues.gathered() if one.id}
    found = {(one.context, str(one.id)): one for one in catalogues.read(code) if one.id}
    assert wanted - found.keys() == set(), "run `make catalogues`, and translate"
    assert found.keys() - wanted == set(), "run `make catalogues`"
    assert [one.id for one in found.values() if one.fuzzy] == []
    assert [one.id for one in found.values() if not all(forms(one.string))] == []


@each_language
def test_a_catalogue_stands_as_it_is_written(code):
    assert catalogues.catalogue_of(code).read_bytes() == catalogues.updated(code), "run `make catalogues`"


@each_language
def test_a_translation_has_the_placeholders_and_the_markup_of_its_sentence(code):
    differing = {}
    for one in catalogues.read(code):
        for text in forms(one.string) if one.id else []:
            originals = [sorted(HELD.findall(original)) for original in forms(one.id)]
            if sorted(HELD.findall(text)) not in originals or "%%" in text:
                differing[str(one.id)] = text
    assert differing == {}


@each_language
def test_a_translation_begins_and_ends_as_its_sentence_does(code):
    odd = {}
    for one in catalogues.read(code):
        for original, text in zip(forms(one.id), forms(one.string), strict=False) if one.id else []:
            if original[-1] in ".:" and text[-1] != original[-1]:
                odd[original] = text
            if text != text.strip(" ") or "  " in text:
                odd[original] = text
    assert odd == {}


class Texts(HTMLParser):
    """The texts and labels of a template, without what is filled in."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):  # noqa: ARG002 (as HTMLParser calls it)
        self.found += [
            text for name, text in attributes if name in ("aria-label", "placeholder", "title", "alt")
        ]
        self.found += [text for name, text in attributes if name.startswith("data-")]

    def handle_data(self, data):
        self.found.append(data)


FILLED_IN = re.compile(r"{% trans .*?{% endtrans %}|{{.*?}}|{%.*?%}", re.DOTALL)
NOT_TRANSLATED = {"precheck", "desk", "- precheck", "UTF-8", "id ;", "/files/", "/files//progress.json"}


def test_no_template_has_a_text_of_its_own():
    left = {}
    for path in (catalogues.DESK / "templates").glob("*.html"):
        texts = Texts()
        texts.feed(FILLED_IN.sub("", path.read_text("utf-8")))
        said = {text.strip() for text in texts.found if text and re.search("[a-z]", text, re.IGNORECASE)}
        if said - NOT_TRANSLATED:
            left[path.name] = said - NOT_TRANSLATED
    assert left == {}


def test_no_refusal_is_said_in_english_alone():
    kinds = {"DeskRefusal", "Missing", "Forbidden", "Conflict", "TooLarge", "NoSession", "NotNamed"}
    plain, seen = [], 0
    for path in catalogues.DESK.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in kinds:
                seen += 1
                if any(isinstance(said, (ast.Constant, ast.JoinedStr)) for said in node.args):
                    plain.append(f"{path.name}:{node.lineno}")
    assert seen > 40
    assert plain == []


def test_no_script_has_a_sentence_of_its_own():
    script = (catalogues.DESK / "static" / "desk.js").read_text("utf-8")
    assert re.findall(r'"[A-Z][a-z]+ [^"]*"', re.sub(r"//.*", "", script)) == []


NAMES = (
    ("Averi Thornwood", "Mr Avery Thornwood"),
    ("Quillon Marrow", "Quillon Marrow Ltd"),
    ("Ann Lee", "Lee Ann"),
    ("Ann Lee", "Ann Beth Lee"),
    ("Ann Beth Lee", "Ann Lee"),
    ("Ann Lee", "Ann Lee Group"),
    ("ann lee", "Ann Lee"),
    ("Ann Lee", "Ann-Lee"),
    ("Ann", "Zoltan"),
    ("Alfa Bravo Carly Delta Ekko", "Alpha Brava Carla Delto Echo"),
)


@each_language
@pytest.mark.parametrize(("ours", "theirs"), NAMES)
def test_how_two_names_differ_is_said_in_the_language(spoken, code, ours, theirs):
    found = difference(ours, theirs).sentences
    spoken(code)
    assert not re.search(r"\b(The|bank|has|for|and more|missing|words)\b", localized(found))
    for quoted in re.findall("“([^”]*)”", " ".join(map(str, found))):
        assert quoted in localized(found)


def test_a_sentence_of_a_document_is_said_in_the_language_and_compared_in_english(spoken):
    why = Sentence("footer.count_differs", number=1200, found=11)
    place, label = Sentence("footer.sheet_row", number=9), Sentence("footer.label", label="<total>")
    row = NotPayment(
        place=9,
        row=8,
        kind="count",
        label="<total>",
        sentence=Sentence("footer.not_a_payment_because", place=place, label=label, why=why).recorded(),
    )
    assert row.sentence == said("footer.not_a_payment_because", "", place=place, label=label, why=why)
    read = NotPayment.model_validate_json(row.model_dump_json())
    assert read == row
    spoken("de")
    assert localized(read.sentence) == (
        "Zeile 9 des Blatts („&lt;total&gt;“) ist keine Zahlung: sie zählt 1.200 Zahlungen, es sind aber 11; "
        "vergewissern Sie sich, dass keine fehlt."
    )


def test_names_in_a_sentence_stay_as_they_are(spoken):
    found = difference("Ann --map", "Ann --maps").sentences
    assert "--maps" in localized(found)
    spoken("de")
    pair = Sentence("names.pair", theirs="--maps", ours="--map")
    assert localized(found) == said("names.bank_has", "page", "de", pairs=[pair])
    also = Sentence("names.bank_also_has", words="<b>")
    assert localized(also) == "Bei der Bank steht zusätzlich „&lt;b&gt;“."
