"""`[layouts.NAME]` of the configuration: what it may say, and what is told of a mistake in it."""

import pytest
from refusals import refused

from pipeline.config import file as settings
from pipeline.config.profiles import format_choice_of
from pipeline.errors import ConfigurationError
from pipeline.wording import SurfaceKind

LAYOUT = """
[layouts.northgate]
separator = ";"
[[layouts.northgate.payments]]
tags = { 1 = "P" }
columns = { sort_code = 2, account_number = 3, name = 4, amount = 5 }
currency = "GBP"
[layouts.northgate.trailer]
tags = { 1 = "T" }
count = 2
"""


@pytest.fixture
def file_of(tmp_path):
    def write(text):
        path = tmp_path / "precheck.toml"
        path.write_text(text, "utf-8")
        return path

    return write


def test_a_file_may_hold_layouts_alone(file_of):
    said = format_choice_of(None, file_of(LAYOUT))
    assert list(said.layouts) == ["northgate"]
    assert said.layouts["northgate"].payments[0].columns["name"] == 4
    assert said.entries[-1].format.NAME == "northgate"


def test_a_file_without_profiles_and_layouts_says_how_to_get_one(file_of):
    with refused(ConfigurationError, "config.no_profiles", where="profiles"):
        settings.read(file_of(""))


def test_a_profile_with_a_mistake_is_in_nobodys_way_where_there_are_no_layouts(file_of):
    path = file_of("[profiles.main]\ncolour = 1\n")
    assert dict(format_choice_of(None, path).layouts) == {}
    with refused(ConfigurationError, "config.unknown_key", where="profiles.main.colour"):
        format_choice_of(None, file_of("[profiles.main]\ncolour = 1\n" + LAYOUT))


def test_a_file_that_is_no_toml_is_refused_as_it_may_say_how_payment_files_are_read(file_of):
    path = file_of("profiles =")
    with refused(ConfigurationError, "config.layouts_unread", "config.toml_ends_early", "config.correct_it"):
        format_choice_of(None, path)


def test_where_a_file_is_no_toml_is_said_in_the_language_of_the_user_and_not_as_tomllib_does(file_of):
    for text, german in (("[a]\nb = ?", "Zeile 2, Spalte 5"), ('a = "', "am Ende fehlt etwas")):
        with pytest.raises(ConfigurationError) as raised:
            settings.read(file_of(text))
        assert german in raised.value.sentence(SurfaceKind.COMMAND, "de")


AT = "layouts.northgate"
MISTAKES = {
    "a key of a layout": (
        ("separator =", "seperator ="), f"{AT}.seperator", "config.did_you_mean", {"near": "separator"},
    ),
    "a key of payments": (
        ("columns =", "collumns ="),
        f"{AT}.payments.1.collumns", "config.did_you_mean", {"near": "columns"},
    ),
    "a key of a trailer": (
        ("count =", "cnt ="), f"{AT}.trailer.cnt", "config.did_you_mean", {"near": "count"},
    ),
    "a key of nothing": (
        ('currency = "GBP"', "zzz = 1"), f"{AT}.payments.1.zzz", "config.unknown_key", {},
    ),
    "no payments": ((LAYOUT[LAYOUT.index("[[") :], ""), f"{AT}.payments", "config.missing", {}),
    "a section in single brackets": (
        ("[[layouts.northgate.payments]]", "[layouts.northgate.payments]"),
        f"{AT}.payments", "config.must_be_list", {},
    ),
    "another separator": (
        ('";"', '":"'),
        f"{AT}.separator", "config.must_be_one_of", {"choices": ['","', '";"', '"|"', '"\\t"']},
    ),
    "no separator": (('separator = ";"', ""), AT, "layouts.separator_or_widths", {}),
    "a field that is none": (
        ("amount = 5", "amuont = 5"),
        f"{AT}.payments.1.columns.amuont", "layouts.no_such_field", {"fields": {"payment_id"}},
    ),
    "no payee": (("name = 4, ", ""), f"{AT}.payments.1", "layouts.no_payee", {}),
    "a column before the first": (
        ("name = 4", "name = 0"),
        f"{AT}.payments.1.columns.name", "config.must_be_at_least", {"ge": "1"},
    ),
    "a word for a column": (
        ("name = 4", 'name = "D"'), f"{AT}.payments.1.columns.name", "config.must_be_whole_number", {},
    ),
    "a built-in name": (("northgate", "lloyds"), "layouts.lloyds", "config.format_exists", {}),
    "a name with blanks": (
        ("northgate", '"North Gate"'), "layouts.North Gate", "config.must_be_lower_case_name", {},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("change", "where", "key", "values"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_told_with_file_section_and_key(change, where, key, values, file_of):
    text = LAYOUT.replace(*change)
    assert text != LAYOUT
    path = file_of(text)
    with refused(ConfigurationError, key, path=path, where=where, **values) as raised:
        format_choice_of(None, path)
    [sentence] = raised.value.sentences()
    assert "\n" not in sentence
