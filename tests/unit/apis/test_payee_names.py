"""Names: spelling is kept, what carries nothing goes, and it is told which was which."""

import unicodedata

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.rules.payee_names import UNMARKED, UNWRAPPED, clean_names
from pipeline.rules.placeholders import are_no_names


def cleaned(written):
    names = clean_names(pl.Series("name", [written], dtype=pl.String))
    return names.text.item(), names.done.item()


@pytest.mark.parametrize(
    ("written", "name", "done"),
    [
        ("Ada Quillon", "Ada Quillon", None),
        (" Ada Quillon\u00a0", "Ada Quillon", None),
        ("Zoe\u0308", "Zo\u00eb", None),
        ('="Ada"', "Ada", UNWRAPPED),
        ('= "Ada ""B"" Quillon"', 'Ada "B" Quillon', UNWRAPPED),
        ("\ufeffAda", "Ada", UNMARKED),
        ("Quil\u00adlon", "Quillon", UNMARKED),
        (" \u200e Ada \u200f", "Ada", UNMARKED),
        ('="\u200eAda"', "Ada", f"{UNWRAPPED} {UNMARKED}"),
        ("Ada\u200eQuillon", "Ada\u200eQuillon", None),
        ('="Ada" "B"', '="Ada" "B"', None),
        ('"Ada Quillon"', "Ada Quillon", UNWRAPPED),
        (" 'Ada Quillon'", "Ada Quillon", UNWRAPPED),
        ('"The Mill" Ltd', '"The Mill" Ltd', None),
        ("'t Hooft", "'t Hooft", None),
        ("O'Neill", "O'Neill", None),
        ("Zoe\u00ad\u0308", "Zo\u00eb", UNMARKED),
        ('=""', None, UNWRAPPED),
        ("\u00ad", None, UNMARKED),
        ("  ", None, None),
        (None, None, None),
    ],
)
def test_name_is_cleaned_of_this_and_no_more(written, name, done):
    assert cleaned(written) == (name, done)


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cf", "Cc", "Cs"]), max_size=30))
def test_name_without_invisible_characters_and_wrapping_is_sent_as_entered(written):
    expected = unicodedata.normalize("NFC", written).strip() or None
    if expected is not None and are_no_names(pl.Series([expected])).item():
        expected = None  # such as "." or "N/A"
    if not (expected or "").startswith(("=", "\uff1d", '"', "'")):
        assert cleaned(written) == (expected, None)


@given(st.text(max_size=30))
def test_cleaning_again_changes_nothing_but_a_text_that_is_wrapped_twice(written):
    name, _ = cleaned(written)
    if name is not None and not name.startswith(("=", "\uff1d", '"', "'")):
        assert cleaned(name) == (name, None)
