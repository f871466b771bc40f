"""Every sentence of the desk is there in every language, with the same placeholders and the same markup."""

import ast
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from pipeline.desk.core_words import of_program, or_as_it_stands, translated
from pipeline.desk.languages import gettext, moment, money, ngettext, number, size
from pipeline.desk.words import said
from pipeline.headers.meaning import header_rules
from pipeline.reports.differences import difference
from pipeline.wording import LANGUAGES, Sentence, speak

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


@each_language
def test_sentences_of_headers_are_translated(spoken, code):
    spoken(code)
    assert [text for text in header_rules() if translated(text) is None] == []


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
    found = difference(ours, theirs).said
    spoken(code)
    assert not re.search(r"\b(The|bank|has|for|and more|missing|words)\b", said(found))
    for quoted in re.findall("“([^”]*)”", " ".join(map(str, found))):
        assert quoted in said(found)


def test_a_sentence_with_values_is_said_in_the_language(spoken):
    capped = (
        "Questions left: 1,234; the daily cap of 2,000 is used up. Run the same command again after "
        "2030-01-02 00:00 UTC (days needed at this cap: 1)."
    )
    spoken("de")
    assert of_program(capped).startswith("Offene Fragen: 1.234; das Tageslimit von 2.000 ist ausgeschöpft.")


NOT_PAYMENTS = (
    'Sheet row 9 is no payment ("total"): it says 1,500.00 EUR, the sum of the payments.',
    "Line 9 is no payment: it says 1, and the payments add up to 2.1 EUR and 3 GBP; make sure that none is missing.",  # noqa: E501 (as it stands)
    'Row 9 is no payment ("count"): it counts 12 payments.',
    "Line 9 is no payment: it counts 12 payments, and there are 11; make sure that none is missing.",
    "Line 9 is no payment: it repeats the headers.",
    "Line 9 is no payment: text below the totals.",
    'Line 9 is no payment ("prepared by").',
)


@each_language
def test_what_is_no_payment_is_said_in_the_language(spoken, code):
    spoken(code)
    told = [translated(sentence) for sentence in NOT_PAYMENTS]
    assert not [
        text
        for text in told
        if re.search("is no payment|it says|it counts|make sure", text or "is no payment")
    ]
    if code == "de":
        assert (
            told[0]
            == "Blattzeile 9 (“total”) ist keine Zahlung: sie nennt 1.500,00 EUR, die Summe der Zahlungen."
        )
        assert "ergeben aber 2,10 EUR und 3,00 GBP;" in told[1]


def test_places_are_written_as_in_the_language(spoken):
    spoken("de")
    assert or_as_it_stands("characters 83 to 100") == "Zeichen 83 bis 100"
    assert or_as_it_stands("Cdtr/Nm") == "Cdtr/Nm"
    assert "Zeichen" in or_as_it_stands("** (5 characters)")


def test_names_in_a_sentence_stay_as_they_are(spoken):
    found = difference("Ann --map", "Ann --maps").said
    assert "--maps" in said(found)
    spoken("de")
    assert said(found) == "Bei der Bank steht „--maps“ statt „--map“."
    also = Sentence("names.bank_also_has", words="<b>")
    assert said(also) == "Bei der Bank steht zusätzlich „&lt;b&gt;“."


def test_what_the_desk_cannot_translate_is_marked_as_english_and_escaped(spoken):
    spoken("fr")
    assert of_program("payroll.csv: <b> differs") == '<span lang="en">payroll.csv: &lt;b&gt; differs</span>'
    assert of_program("") == ""
    spoken("en")
    assert of_program("payroll.csv: <b> differs") == "payroll.csv: &lt;b&gt; differs"


FIGURES = {
    "en": ("1,234,567", "1,234.50 EUR", "23 November 2026, 14:05 UTC", "4.8 MB", "1 row", "1,200 rows"),
    "de": ("1.234.567", "1.234,50 EUR", "23. November 2026, 14:05 UTC", "4,8 MB", "1 Zeile", "1.200 Zeilen"),
    "fr": ("1 234 567", "1 234,50 EUR", "23 novembre 2026, 14:05 UTC", "4,8 Mo", "1 ligne", "1 200 lignes"),
}


@pytest.mark.parametrize("code", LANGUAGES)
def test_numbers_money_and_times_are_written_as_in_the_language(spoken, code):
    spoken(code)
    rows = [ngettext("%(num)s row", "%(num)s rows", count) for count in (1, 1200)]
    said = (
        number(1234567),
        money("1,234.50 EUR"),
        moment("2026-11-23T14:05:06.789Z"),
        size(5_000_000),
        *rows,
    )
    assert tuple(re.sub("[\u00a0\u202f]", " ", text) for text in said) == FIGURES[code]


def test_no_currency_is_no_code(spoken):
    spoken("de")
    assert money("3.000 (no currency)") == "3,00 (ohne Währung)"


def test_a_sentence_is_looked_up_as_it_stands_and_an_empty_one_is_empty(spoken):
    spoken("de")
    assert gettext("") == ""
    assert gettext("no such sentence") == "no such sentence"


def test_the_wheel_has_the_catalogues():
    files = WheelBuilder(str(catalogues.DESK.parents[1])).recurse_included_files()
    found = {file.distribution_path for file in files if file.distribution_path.endswith(".po")}
    wording = catalogues.DESK.parent / "wording"
    said = {str(path.relative_to(wording.parents[1])) for path in wording.rglob("*.po")}
    assert found == {f"pipeline/desk/catalogues/{code}.po" for code in OTHERS} | said
