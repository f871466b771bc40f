"""Two names side by side: what is marked, and what is said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.reports.differences import COMPARED_MAX, QUOTED_MAX, difference
from pipeline.wording import Sentence

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


def has(theirs, ours):
    return Sentence("names.bank_has", pairs=[Sentence("names.pair", theirs=theirs, ours=ours)])


@pytest.mark.parametrize(
    ("supplied", "matched", "ours", "theirs", "sentences"),
    [
        ("Averi Thornwood", "Avery Thornwood", "Aver[i] Thornwood", "Aver[y] Thornwood",
         [has("Avery", "Averi")]),
        ("Brakenfell", "Brackenfell", "Brakenfell", "Bra[c]kenfell",
         [has("Brackenfell", "Brakenfell")]),
        ("Solene Farraday", "Sol\u00e8ne Farraday", "Sol[e]ne Farraday", "Sol[\u00e8]ne Farraday",
         [has("Sol\u00e8ne", "Solene")]),
        ("Farraday Imogen", "Imogen Farraday", "[Farraday Imogen]", "[Imogen Farraday]",
         [Sentence("names.words_in_other_order")]),
        ("Farraday Imogen Jane", "Imogen Farraday Jane", "[Farraday Imogen] Jane", "[Imogen Farraday] Jane",
         [Sentence("names.words_in_other_order")]),
        ("Avery Thornwood", "Mr Avery Thornwood", "Avery Thornwood", "[Mr] Avery Thornwood",
         [Sentence("names.title_missing", words="Mr")]),
        ("Dr Avery Thornwood", "Avery Thornwood", "[Dr] Avery Thornwood", "Avery Thornwood",
         [Sentence("names.bank_lacks_words", words="Dr")]),
        ("Thornwood", "Avery Jane Thornwood", "Thornwood", "[Avery Jane] Thornwood",
         [Sentence("names.forename_missing", words="Avery Jane")]),
        ("Avery", "Avery Thornwood", "Avery", "Avery [Thornwood]",
         [Sentence("names.bank_also_has", words="Thornwood")]),
        ("Rookwater", "Rookwater & Sons Ltd", "Rookwater", "Rookwater [& Sons Ltd]",
         [Sentence("names.suffix_missing", words="Ltd"), Sentence("names.bank_also_has", words="& Sons")]),
        ("Rookwater Limited", "Rookwater LLP", "Rookwater [Limited]", "Rookwater [LLP]",
         [has("LLP", "Limited")]),
        ("A. Thornwood", "Avery Thornwood", "A[.] Thornwood", "A[very] Thornwood",
         [has("Avery", "A.")]),
        ("Bill Farraday", "William Farraday", "[B]ill Farraday", "[W]ill[iam] Farraday",
         [has("William", "Bill")]),
        ("Sons and Co", "Sons & Co", "Sons [and] Co", "Sons [&] Co", [has("&", "and")]),
        ("Quillon", "Brackenfell", "[Quillon]", "[Brackenfell]", [Sentence("names.no_word_in_common")]),
        ("", "Brackenfell", "", "[Brackenfell]", [Sentence("names.no_word_in_common")]),
        ("ACME LTD", "Acme Ltd", "ACME LTD", "Acme Ltd", [Sentence("names.capitals_differ")]),
        ("Acme  Ltd", "Acme Ltd", "Acme  Ltd", "Acme Ltd", [Sentence("names.punctuation_differs")]),
        ("Acme Ltd", "Acme Ltd", "Acme Ltd", "Acme Ltd", [Sentence("names.same")]),
    ],
)  # fmt: skip
def test_difference_is_marked_and_told(supplied, matched, ours, theirs, sentences):
    found = difference(supplied, matched)
    assert (marked(found.supplied), marked(found.matched), [*found.sentences]) == (ours, theirs, sentences)


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
