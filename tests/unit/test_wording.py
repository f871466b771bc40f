"""The catalogues have words for all that the program says, in every language, and for nothing else."""

import ast
import errno
import json
import os
import re
from collections import defaultdict
from datetime import date
from decimal import Decimal
from functools import cache
from itertools import chain
from pathlib import Path
from string import Formatter

import pytest
from babel.messages.pofile import read_po
from trees import statements

import pipeline.wording
from pipeline.apis.own_codes import STATUSES_TURNED_AWAY
from pipeline.desk.people import Role
from pipeline.desk.review import Shown
from pipeline.errors import InputError
from pipeline.formats.excel.decisions import RUN_ID, key_of
from pipeline.formats.layouts.model import Shape
from pipeline.headers.account import CODE_OF_BANK, IN_PARTS
from pipeline.headers.choice import rule_of
from pipeline.headers.guesses import KINDS
from pipeline.headers.meaning import _ALIASES, _GRAMMAR, CANONICAL
from pipeline.headers.unread_names import ONLY_ACCOUNT, SHARED_WORD
from pipeline.reports.explanations import STEPS, CodesSection, explain
from pipeline.reports.sheets import ALL, CHANGED, REVIEWS
from pipeline.reports.terminal import header_of
from pipeline.reports.wording import ADVICE, advice
from pipeline.reports.workbook import BANK_HEADERS, LAST_RUN
from pipeline.rules.rules import RULES
from pipeline.rules.unasked import SENTENCES
from pipeline.sandbox.faults.catalogue import FAULTS
from pipeline.wording import ColumnPair, Moment, Sentence, SurfaceKind, require_words, words
from pipeline.wording.catalogue import _catalogue
from pipeline.wording.language import rendered
from pipeline.wording.rows import rows_named
from pipeline.wording.sentences import SYSTEM_ERRORS
from schemas.localized import LocalizedText
from schemas.outcomes import ABOUT_THE_PAYEE, Action, Environment, Outcome, WarningCode
from schemas.payments import FIELDS, IGNORE
from schemas.review import Act
from schemas.row_positions import RowPositions
from schemas.summary import BankCode

ROOT = Path(pipeline.wording.__file__).parents[1]
CATALOGUES = Path(pipeline.wording.__file__).parent / "catalogues"
LANGUAGES = ("en", "de", "fr")
FACTS = (
    *("layout", "encoding", "days", "contras", "currency", "labels", "serial", "service user number"),
    *("work code", "processing day", "version", "namespace", "dialect", "name_chars_max", "sealed"),
)
"""What formats say of a file as a whole."""
FAMILIES = {
    *(f"field.{field}" for field in (*FIELDS, IGNORE, "row")),
    *(f"outcome.{outcome}" for outcome in Outcome),
    *(f"system.{name}" for name in SYSTEM_ERRORS),
    *(sentence.key for fault in FAULTS.values() for sentence in (fault.what, fault.client)),
    *(sentence.key for sentence in (*SENTENCES.values(), *ADVICE.values())),
    *(f"answer.http_{status}" for status in STATUSES_TURNED_AWAY),
    *(f"explain.{section.name.lower()}" for section in CodesSection),
    *(f"warning.{code}" for code in ABOUT_THE_PAYEE),
    *(rule.sentence.key for rule in RULES if rule.own_sentence is None),
    *(f"explain.step_{action}" for action in Action),
    *(f"transport.{what}_absent" for what in ("client_certificate", "client_key")),
    *(f"warned.{code}" for code in WarningCode),
    *(f"bank.{code.lower()}" for code in BankCode),
    *(f"action.{action}" for action in Action),
    *(f"page.server_{environment}" for environment in Environment),
    *(f"page.below_{unit}" for unit in ("line", "sheet_row", "pmtinf", "part", "batch")),
    *(f"counted.{thing}" for thing in ("row", "payment", "file", "day", "request", "distinct_question")),
    *(f"review.{name}" for name in ("input", "release", "hold")),
    *(f"fact.{name.replace(' ', '_')}" for name in FACTS),
    *(f"formats.shape_{shape.name.lower()}" for shape in Shape),
    *(key_of(column.header) for sheet in (*REVIEWS, ALL, CHANGED) for column in sheet.columns),
    *map(key_of, (*BANK_HEADERS, LAST_RUN)),
    *(key_of(sheet.name) for sheet in (*REVIEWS, ALL, CHANGED)),
    *(key_of(header) for header in (RUN_ID, "Batch", "Rows", "To look at", "Policy for", "It says")),
    *(key_of(header) for header in ("Decisions", "What that means")),
    *(header_of(text).key for text in ("cost", "line", "sheet row", "PmtInf", "CdtTrfTxInf", "part", "rule")),
    header_of("what is wrong, and what to do").key,
    *(f"{key}_{act.name.lower()}" for key in ("desk.approved_by", "evidence.shaped") for act in Act),
    *(f"desk.may_{role}" for role in Role),
    *(f"desk.shown_{part}" for part in Shown._fields),
    *(f"explain.{code.lower()}{part}" for code in WarningCode for part in ("", "_not", "_do")),
    *(
        rule_of(text).key
        for text in (
            CANONICAL,
            CODE_OF_BANK,
            IN_PARTS,
            ONLY_ACCOUNT,
            SHARED_WORD,
            *(each.rule for each in (*_ALIASES.values(), *_GRAMMAR)),
            *KINDS,
        )
    ),
}
"""Keys that are made of a value."""


def entries(language):
    """(key, surface) -> the words of an entry, a form for each plural."""
    found = {}
    for path in sorted((CATALOGUES / "en").glob("*.po")):
        with (CATALOGUES / language / path.name).open("rb") as file:
            for message in read_po(file, locale=language):
                if message.id:
                    key = message.id if isinstance(message.id, str) else message.id[0]
                    said = (message.string,) if isinstance(message.string, str) else message.string
                    assert key.startswith(f"{path.stem}."), f"{key} is in {path.name}"
                    found[key, message.context or ""] = said
    return found


@cache
def said_in_code():
    """Key -> the names of the values of each place that says it; None where they are not written there."""
    found = {}
    pages = " ".join(path.read_text("utf-8") for path in (ROOT / "reports" / "templates").glob("*.html"))
    found |= {key: [] for key in re.findall(r'"([a-z0-9_]+\.[a-z0-9_]+)"', pages)}
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Call(
                    func=ast.Name("Sentence" | "say" | "row_finding_columns"),
                    args=[ast.Constant(str(key))],
                    keywords=values,
                ):
                    names = {value.arg for value in values}
                    found.setdefault(key, []).append(None if None in names else names)
                case ast.Call(func=ast.Name("rule_of"), args=[ast.Constant(str(text))]):
                    found.setdefault(rule_of(text).key, []).append(set())
                case ast.Call(func=ast.Name("table_of"), args=texts):
                    for text in texts:
                        if isinstance(text, ast.Constant) and str(text.value).strip(">"):
                            found.setdefault(header_of(str(text.value)).key, []).append(set())
                case ast.Constant(str(key)) if re.fullmatch(r"[a-z0-9_]+\.[a-z0-9_]+", key):
                    found.setdefault(key, [])
    return found


OF_OUR_OWN = {"AssertionError", "NotImplementedError", "TypeError", "ForgottenLinesError"}
"""Mistakes of the program: their text is for its authors."""
UNREAD = {"ValueError", "ConnectionError", "aiohttp.ClientConnectionError"}
"""Whoever catches one says a sentence of its own: `test_no_sentence_has_the_text_of_an_exception`."""
OF_THE_PROVIDER = {"ProblemError", "format_error", "client_invalid", "too_many_requests", "_unfit"}
"""Make the problem details of the simulated provider, which are its data, in its English."""


def raised():
    """(file, name of what is made, its call) for each exception that is made where it is raised."""
    for folder in (ROOT, ROOT.parent / "schemas"):
        for path in folder.rglob("*.py"):
            text = path.read_text("utf-8")
            for node in statements(ast.parse(text)) if "raise " in text else ():
                if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                    yield path.relative_to(folder.parent), ast.unparse(node.exc.func), node.exc


def literals(call):
    """The texts of more than one word among the arguments of a call, however deep."""
    for node in chain.from_iterable(map(ast.walk, (*call.args, *(each.value for each in call.keywords)))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            yield node.value


def is_for_people(path, name):
    is_of_provider = name in OF_THE_PROVIDER and path.parts[1] == "sandbox"
    return name not in OF_OUR_OWN | UNREAD and not is_of_provider


def test_no_exception_for_people_is_raised_with_a_literal_sentence():
    found = [
        f"{path}:{call.lineno}"
        for path, name, call in raised()
        if is_for_people(path, name) and any(literals(call))
    ]
    assert found == []


def is_made_of(node, names):
    """Whether it calls one of these names."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names


def test_no_sentence_has_the_text_of_an_exception():
    found = []
    for path in ROOT.rglob("*.py"):
        text = path.read_text("utf-8")
        may_say = " as " in text and ("Sentence(" in text or "damaged(" in text)
        for handler in statements(ast.parse(text)) if may_say else ():
            if not isinstance(handler, ast.ExceptHandler) or handler.name is None:
                continue
            caught = ast.unparse(handler.type).rpartition(".")[2]
            for call in ast.walk(handler):
                if is_made_of(call, {"Sentence", "damaged"}):
                    texts = {f"str({handler.name})", f"{{{handler.name}}}", f"{handler.name}.args"}
                    if any(text in ast.unparse(call) for text in texts):
                        found.append((str(path.relative_to(ROOT)), caught))
    assert found == []


FOR_PEOPLE = {"Sentence", "say", "StatedTotal", "StatedControl", "PartRead", "PartTotal"}
"""What is made of these is shown to people in their language."""


def test_no_value_of_a_sentence_is_english_that_is_written_where_it_is_made():
    found = []
    for path in ROOT.rglob("*.py"):
        text = path.read_text("utf-8")
        may_make = any(f"{name}(" in text for name in FOR_PEOPLE)
        for call in ast.walk(ast.parse(text)) if may_make else ():
            if not is_made_of(call, FOR_PEOPLE):
                continue
            parts = chain.from_iterable(map(ast.walk, (*call.args, *(each.value for each in call.keywords))))
            texts = [
                part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)
            ]
            if any(re.search(r"[a-z]{3,}[ ,]|[ ,][a-z]{3,}", text) for text in texts):
                found.append(f"{path}:{call.lineno}")
    assert found == []


ENGLISH = entries("en")
KEYS = {key for key, _ in ENGLISH}


def values_of(text):
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


def test_every_sentence_of_the_code_has_words():
    assert sorted({key for key, places in said_in_code().items() if places} - KEYS) == []
    assert sorted(FAMILIES - KEYS) == []


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_the_program_reads_its_catalogues_as_babel_does(language):
    for path in (CATALOGUES / language).glob("*.po"):
        with path.open("rb") as file:
            read = {
                (message.context or "", *message.id[:1])
                if isinstance(message.id, tuple)
                else (message.context or "", message.id): message.string
                for message in read_po(file, locale=language)
                if message.id
            }
        forms = {key: (said,) if isinstance(said, str) else tuple(said) for key, said in read.items()}
        found = _catalogue(path.stem, language)
        assert {key: tuple(said) for key, said in found.entries.items()} == forms


def test_no_words_are_left_that_no_code_says():
    assert sorted(KEYS - said_in_code().keys() - FAMILIES) == []


def test_words_name_only_values_that_every_place_gives():
    named = defaultdict(set)
    for (key, _), said in ENGLISH.items():
        named[key].update(*map(values_of, said))
    lacking = {
        key: named[key] - given
        for key in KEYS & said_in_code().keys()
        for given in said_in_code()[key]
        if given is not None and not named[key] <= given
    }
    assert lacking == {}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_names_no_option_and_no_command(language):
    pages = {key: said for (key, surface), said in entries(language).items() if surface == SurfaceKind.PAGE}
    assert {
        key for key, said in pages.items() if re.search(r"(?<![\w-])--[a-z]|\bprecheck [a-z]", " ".join(said))
    } == set()


@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_each_language_has_the_same_entries_with_the_same_values(language):
    here = entries(language)
    assert sorted(here) == sorted(ENGLISH)
    differ = {
        key: (said, here[key])
        for key, said in ENGLISH.items()
        if set().union(*map(values_of, said)) != set().union(*map(values_of, here[key]))
    }
    assert differ == {}


def test_columns_are_named_as_each_surface_asks_for_them():
    pairs = [ColumnPair("name", "#1"), ColumnPair("name", "First name+Surname")]
    assert [words(Sentence("headers.choose_one", pairs=pairs), kind) for kind in SurfaceKind] == [
        'choose one with name=#1 or "name=First name+Surname"',
        'choose one with --map name=#1 or --map "name=First name+Surname"',
        "choose name for column 1 or name for First name and Surname",
    ]


def test_numbers_and_lists_are_written_as_the_language_does():
    many = Sentence("rules.many_names", where="a", rows=["1", "2"], names_max=3, account_count=1234)
    assert "1,234" in words(many)
    assert "1.234" in words(many, language="de")
    pairs = Sentence("headers.choose_one", pairs=[ColumnPair("name", "#1"), ColumnPair("iban", "#2")])
    assert words(pairs, SurfaceKind.COMMAND) == "choose one with --map name=#1 or --map iban=#2"


@pytest.mark.parametrize(
    ("rows", "places", "row_count", "language", "said"),
    [
        ([2], None, None, "en", "row 2"),
        (
            [2, 1200],
            RowPositions(unit="line", stretches=[(1, 2, 1)]),
            5,
            "en",
            "rows 2, 1200 (lines 3, 1201) and 3 more",
        ),
        (
            [2],
            RowPositions(unit="sheet row", stretches=[(1, 5, 1)]),
            None,
            "de",
            "Zeile 2 (Zeile 6 des Blatts)",
        ),
        (
            [2],
            RowPositions(unit="PmtInf", stretches=[(1, 1, 0)]),
            None,
            "fr",
            "ligne 2 (PmtInf[1]/CdtTrfTxInf[2])",
        ),
        (
            [2],
            RowPositions(unit="part", stretches=[(1, 1, 0)], names=["a.csv"]),
            1,
            "de",
            "Zeile 2 (Zeile 2 in a.csv)",
        ),
    ],
)
def test_rows_are_named_with_their_places(rows, places, row_count, language, said):
    assert words(rows_named(rows, places, row_count=row_count), language=language) == said


def test_times_are_written_at_length_on_a_page_and_bare_elsewhere():
    files = [
        Sentence("evidence.rows_in_file", count=count, file=file) for count, file in ((8, "a"), (1, "b"))
    ]
    said = Sentence("evidence.split_by", name="Ada", time=Moment("2026-11-23T05:16:09Z"), files=files)
    assert str(said) == "by Ada at 2026-11-23 05:16 UTC: 8 rows in a and 1 row in b"
    assert words(said, SurfaceKind.PAGE, "de") == (
        "von Ada, 23. November 2026, 05:16 UTC: 8 Zeilen in a und 1 Zeile in b"
    )
    deleted = Sentence("evidence.deleted", time=Moment("2026-11-23T05:16:09Z"))
    assert str(deleted) == "deleted by precheck purge at 2026-11-23T05:16:09Z"
    valid = Sentence("doctor.valid_until", number="N", day=date(2030, 1, 2))
    assert [str(valid), words(valid, SurfaceKind.PAGE, "de")] == [
        "N, valid until 2030-01-02",
        "N, gültig bis 2. Januar 2030",
    ]


def test_a_sentence_crosses_a_border_as_data():
    said = Sentence(
        "headers.choose_one",
        pairs=[
            *(ColumnPair("name", "#1"), Sentence("headers.the_payee"), Path("a"), 1, None),
            *(Moment("2026-11-23T05:16:09Z"), date(2030, 1, 2), Decimal("1.50")),
        ],
    )
    again = Sentence.of_data(json.loads(json.dumps(said.as_data())))
    assert again == said
    assert words(again, SurfaceKind.PAGE) == words(said, SurfaceKind.PAGE)
    for wrong in (["../x.y", {}], ["no_room", {}], ["a.b"], {"a": 1}, ["a.b", {"x": {"odd": 1}}]):
        with pytest.raises(ValueError, match="no "):
            Sentence.of_data(wrong)
    with pytest.raises(ValueError, match="no words"):
        require_words(Sentence("nobody.says_this"))


def test_a_text_of_a_document_within_a_sentence_is_spoken_in_its_language():
    one = Sentence("jobs.in_another_order").recorded()
    for said in (Sentence("jobs.part_unusable", problem=one), Sentence("jobs.ledger_unfit", problems=[one])):
        assert words(said, language="de") == "in anderer Reihenfolge"


@pytest.mark.parametrize("sentence", [["csv.said_in_another_version", {}], ["csv.no_payment_rows", {}]])
def test_a_text_of_another_version_is_shown_as_it_was_recorded(sentence):
    recorded = LocalizedText.of("pay.csv is odd", sentence)
    assert rendered(recorded, SurfaceKind.PAGE) == "pay.csv is odd"
    assert str(Sentence("advice.either", one=recorded, other="no")) == "pay.csv is odd, or no"


def test_what_the_system_says_is_in_the_language_of_the_sentence():
    for name in SYSTEM_ERRORS - {"gaierror"}:
        number = getattr(errno, name.upper())
        said = Sentence("files.folder_unreadable", folder="a", why=OSError(number, os.strerror(number), "/b"))
        assert f"({os.strerror(number)})" in str(said)
        assert os.strerror(number) not in words(said, language="de")
    assert "(odd)" in str(Sentence("files.folder_unreadable", folder="a", why=OSError(9999, "odd")))


def test_a_path_is_shown_whole_on_a_command_line_and_by_its_last_part_on_a_page():
    error = InputError(Sentence("files.no_such_folder", folder=Path("/srv/runs/pay")))
    assert "/srv/runs/pay" in error.sentence(SurfaceKind.COMMAND)
    assert "/srv" not in error.sentence(SurfaceKind.PAGE)


@pytest.mark.parametrize("code", ["MBAM", "BAMM", "PAMM", "CMTC"])
def test_a_close_match_asks_first_whether_both_names_are_the_payees_and_only_then_for_a_correction(code):
    [case] = explain(code).cases
    for part in map(str, (case.to_do, STEPS[case.action], advice(case.action, code))):
        assert part.startswith("Check that both names")
        assert re.search("[Tt]hen use|If they do, use", part).start() > 0, "not before"


def test_a_request_that_the_bank_refused_is_checked_and_then_told_to_the_provider():
    [case] = explain("FOURHUN").cases
    for part in map(str, (case.to_do, advice(case.action, "FOURHUN"))):
        assert 0 <= part.index("Check the ") < part.index("ask the provider")
