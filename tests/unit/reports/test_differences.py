"""Two names side by side: what is marked, and what is said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.reports.differences import COMPARED_MAX, QUOTED_MAX, difference

NAMES = st.lists(
    st.one_of(
        st.sampled_from(["Mr", "Avery", "Averi", "A.", "&", "Ltd", "Limited", "\u00e8", "-"]), st.text()
    ),
    max_size=6,
).map(" ".join)


def spoken(found):
    return " ".join(map(str, found.sentences))


def marked(pieces):
    return "".join(f"[{piece.text}]" if piece.marked else piece.text for piece in pieces)


@pytest.mark.parametrize(
    ("supplied", "matched", "ours", "theirs", "sentence"),
    [
        ("Averi Thornwood", "Avery Thornwood", "Aver[i] Thornwood", "Aver[y] Thornwood",
         "The bank has “Avery” for “Averi”."),
        ("Brakenfell", "Brackenfell", "Brakenfell", "Bra[c]kenfell",
         "The bank has “Brackenfell” for “Brakenfell”."),
        ("Solene Farraday", "Sol\u00e8ne Farraday", "Sol[e]ne Farraday", "Sol[\u00e8]ne Farraday",
         "The bank has “Sol\u00e8ne” for “Solene”."),
        ("Farraday Imogen", "Imogen Farraday", "[Farraday Imogen]", "[Imogen Farraday]",
         "The words are in another order."),
        ("Farraday Imogen Jane", "Imogen Farraday Jane", "[Farraday Imogen] Jane", "[Imogen Farraday] Jane",
         "The words are in another order."),
        ("Avery Thornwood", "Mr Avery Thornwood", "Avery Thornwood", "[Mr] Avery Thornwood",
         "The title “Mr” is missing."),
        ("Dr Avery Thornwood", "Avery Thornwood", "[Dr] Avery Thornwood", "Avery Thornwood",
         "The bank does not have “Dr”."),
        ("Thornwood", "Avery Jane Thornwood", "Thornwood", "[Avery Jane] Thornwood",
         "The forename “Avery Jane” is missing."),
        ("Avery", "Avery Thornwood", "Avery", "Avery [Thornwood]", "The bank also has “Thornwood”."),
        ("Rookwater", "Rookwater & Sons Ltd", "Rookwater", "Rookwater [& Sons Ltd]",
         "The company suffix “Ltd” is missing. The bank also has “& Sons”."),
        ("Rookwater Limited", "Rookwater LLP", "Rookwater [Limited]", "Rookwater [LLP]",
         "The bank has “LLP” for “Limited”."),
        ("A. Thornwood", "Avery Thornwood", "A[.] Thornwood", "A[very] Thornwood",
         "The bank has “Avery” for “A.”."),
        ("Bill Farraday", "William Farraday", "[B]ill Farraday", "[W]ill[iam] Farraday",
         "The bank has “William” for “Bill”."),
        ("Sons and Co", "Sons & Co", "Sons [and] Co", "Sons [&] Co", "The bank has “&” for “and”."),
        ("Quillon", "Brackenfell", "[Quillon]", "[Brackenfell]", "No word is the same."),
        ("", "Brackenfell", "", "[Brackenfell]", "No word is the same."),
        ("ACME LTD", "Acme Ltd", "ACME LTD", "Acme Ltd", "Only capital letters differ."),
        ("Acme  Ltd", "Acme Ltd", "Acme  Ltd", "Acme Ltd", "Only spaces or punctuation differ."),
        ("Acme Ltd", "Acme Ltd", "Acme Ltd", "Acme Ltd", "The names are the same."),
    ],
)  # fmt: skip
def test_difference_is_marked_and_told(supplied, matched, ours, theirs, sentence):
    found = difference(supplied, matched)
    assert (marked(found.supplied), marked(found.matched), spoken(found)) == (ours, theirs, sentence)


@given(NAMES, NAMES)
def test_no_letter_is_lost_or_added_and_there_is_always_a_sentence(supplied, matched):
    found = difference(supplied, matched)
    assert "".join(piece.text for piece in found.supplied) == supplied
    assert "".join(piece.text for piece in found.matched) == matched
    assert found.sentences


@given(NAMES)
def test_a_name_does_not_differ_from_itself(name):
    found = difference(name, name)
    assert not any(piece.marked for piece in (*found.supplied, *found.matched))


def test_sentence_quotes_a_few_words_and_says_that_there_are_more():
    sentence = spoken(difference("aaaa bbbb cccc dddd", "aaab bbbc cccd ddda"))
    assert sentence.count(" for ") == QUOTED_MAX
    assert sentence.endswith(", and more.")


def test_long_hostile_names_are_compared_in_bounded_work():
    ours, theirs = (" ".join(f"{letter}{number}q" for number in range(60)) for letter in "xy")
    found = difference(ours, theirs)
    told_apart = [
        piece.text for piece in found.supplied if piece.text.startswith("x") and len(piece.text) == 1
    ]
    assert len(told_apart) <= COMPARED_MAX
