"""Which spellings of a bank stand for the name that it was sent."""

import pytest

from pipeline.rules.payee_names import is_name_as_sent

LONG = "Stiftung zur Erhaltung der alten Orgeln in den Landkirchen"


@pytest.mark.parametrize(
    ("sent", "reported", "expected"),
    [
        ("Jürgen Müller", "JUERGEN MUELLER", True),
        ("Jürgen Müller", "Jurgen Muller", True),
        ("Łukasz Żak", "Lukasz Zak", True),
        ("Søren Bæk", "Soren Baek", True),
        ("Größe & Söhne", "GROESSE + SOEHNE", True),
        ("O'Neill-Smith", "O Neill Smith", True),
        (LONG, LONG[:35], True),
        (LONG, LONG[:20], False),
        ("Jürgen Müller", "Jürgen Möller", False),
        ("Ada Quillon", "Ada Quill", False),
        ("Ada Quillon", "", False),
        ("Ελένη Παππά", "Eleni Pappa", True),
        ("Ελένη Παππά", "ΕΛΕΝΗ ΠΑΠΠΑ", True),
        ("Ελένη Παππά", "Νίκος Λάμπρου", False),
    ],
)
def test_a_bank_may_rewrite_letters_and_cut_the_end_but_name_nobody_else(sent, reported, expected):
    assert is_name_as_sent(sent, reported) is expected
