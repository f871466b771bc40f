"""The Confirmation of Payee guidance, as a table; and what lies beyond it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.sandbox.matching import compare_identifications, compare_names, identifications
from schemas.outcomes import Outcome
from schemas.vop import IdMatch, OrganisationId, OtherId, Party, PartyIdentification, SchemeCode

MATCH, CLOSE, NO = Outcome.MATCH, Outcome.CLOSE_MATCH, Outcome.NO_MATCH

PEOPLE = [
    # rule, asked, held, of a strict bank, of a lenient bank
    ("identical", "Avery Thornwood", "Avery Thornwood", MATCH, MATCH),
    ("case", "AVERY thornwood", "Avery Thornwood", MATCH, MATCH),
    ("spaces", " Avery   Thornwood ", "Avery Thornwood", MATCH, MATCH),
    ("written as one word", "averythornwood", "Avery Thornwood", MATCH, MATCH),
    ("apostrophe", "Sean O Dunmore", "Sean O'Dunmore", MATCH, MATCH),
    ("typographic apostrophe", "Sean O\u2019Dunmore", "Sean O'Dunmore", MATCH, MATCH),
    ("hyphen", "Mary Ashby Fenn", "Mary Ashby-Fenn", MATCH, MATCH),
    ("composed and decomposed accents", "Lucía Rocamora", "Lucía Rocamora", MATCH, MATCH),
    ("title", "Mrs Avery Thornwood", "Avery Thornwood", MATCH, MATCH),
    ("particles", "Pieter Van Der Maasdijk", "Pieter van der Maasdijk", MATCH, MATCH),
    ("reversed", "Thornwood Avery", "Avery Thornwood", CLOSE, CLOSE),
    ("reversed with a comma", "THORNWOOD, AVERY", "Avery Thornwood", CLOSE, CLOSE),
    ("reversed with particles", "van der Maasdijk Pieter", "Pieter van der Maasdijk", CLOSE, CLOSE),
    ("nickname of the same first character", "Will Thornwood", "William Thornwood", CLOSE, MATCH),
    ("nickname of another first character", "Bob Thornwood", "Robert Thornwood", CLOSE, CLOSE),
    ("held as a nickname", "Elizabeth Netherby", "Lizzie Netherby", CLOSE, CLOSE),
    ("variant", "Katherine Netherby", "Catherine Netherby", CLOSE, CLOSE),
    ("forename misspelt", "Immogen Farraday", "Imogen Farraday", CLOSE, MATCH),
    ("forename misspelt at its first character", "Omogen Farraday", "Imogen Farraday", CLOSE, CLOSE),
    ("forename with swapped letters", "Imgoen Farraday", "Imogen Farraday", CLOSE, MATCH),
    ("surname misspelt", "Imogen Faraday", "Imogen Farraday", CLOSE, CLOSE),
    ("surname lacks its accent", "Jürgen Grunberger", "Jürgen Grünberger", CLOSE, CLOSE),
    ("both misspelt", "Immogen Faraday", "Imogen Farraday", CLOSE, CLOSE),
    ("initial", "I Farraday", "Imogen Farraday", CLOSE, MATCH),
    ("wrong initial", "J Farraday", "Imogen Farraday", NO, NO),
    ("middle name missing", "Rhys Penhallow", "Rhys Owen Penhallow", CLOSE, MATCH),
    ("another middle name", "Rhys Callum Penhallow", "Rhys Owen Penhallow", CLOSE, CLOSE),
    ("surname swallowed a letter of the forename", "Ann Asmithfield", "Anna Smithfield", CLOSE, CLOSE),
    ("half a surname", "Mary Ashby", "Mary Ashby-Fenn", NO, NO),
    ("another forename", "Callum Farraday", "Imogen Farraday", NO, NO),
    ("another surname", "Imogen Netherby", "Imogen Farraday", NO, NO),
    ("another person", "Rowan Blackmere", "Avery Thornwood", NO, NO),
    ("surname alone", "Thornwood", "Avery Thornwood", NO, NO),
    ("nothing but punctuation", "...", "Avery Thornwood", NO, NO),
]

COMPANIES = [
    ("identical", "Rookwater & Sons Ltd", "Rookwater & Sons Ltd", MATCH, MATCH),
    ("ampersand", "Rookwater and Sons Ltd", "Rookwater & Sons Ltd", MATCH, MATCH),
    ("limited", "Rookwater & Sons Limited", "Rookwater & Sons Ltd", MATCH, MATCH),
    ("full stops", "Umbercroft S.R.L.", "Umbercroft Srl", MATCH, MATCH),
    ("legal form missing", "Brackenfell Joinery", "Brackenfell Joinery Ltd", CLOSE, MATCH),
    ("article", "The Brackenfell Joinery Ltd", "Brackenfell Joinery Ltd", CLOSE, MATCH),
    ("another legal form", "Brackenfell Joinery LLP", "Brackenfell Joinery Ltd", CLOSE, CLOSE),
    ("misspelt", "Brakenfell Joinery Ltd", "Brackenfell Joinery Ltd", CLOSE, CLOSE),
    ("shortened", "Brackenfell", "Brackenfell Joinery Ltd", CLOSE, CLOSE),
    ("another company", "Saltmere Catering Ltd", "Brackenfell Joinery Ltd", NO, NO),
    ("the form alone", "Limited", "Brackenfell Joinery Ltd", NO, NO),
]


@pytest.mark.parametrize(("rule", "asked", "held", "strict", "lenient"), PEOPLE)
def test_a_person_is_matched_as_the_guidance_says(rule, asked, held, strict, lenient):
    assert compare_names(asked, held, business=False, lenient=False) is strict, rule
    assert compare_names(asked, held, business=False, lenient=True) is lenient, rule


@pytest.mark.parametrize(("rule", "asked", "held", "strict", "lenient"), COMPANIES)
def test_a_company_is_matched_by_its_words(rule, asked, held, strict, lenient):
    assert compare_names(asked, held, business=True, lenient=False) is strict, rule
    assert compare_names(asked, held, business=True, lenient=True) is lenient, rule


words = st.text(alphabet="abcdefgh", min_size=3, max_size=10)


@given(forename=words, surname=words, asked_forename=words, asked_surname=words, lenient=st.booleans())
def test_no_full_match_unless_surname_and_first_character_are_right(
    forename, surname, asked_forename, asked_surname, lenient
):
    asked, held = f"{asked_forename} {asked_surname}", f"{forename} {surname}"
    if compare_names(asked, held, business=False, lenient=lenient) is MATCH:
        assert asked_surname == surname
        assert asked_forename[0] == forename[0]


@given(forename=words, surname=words, position=st.integers(0, 2), letter=st.sampled_from("abcxyz"))
def test_a_wrong_letter_is_never_no_match(forename, surname, position, letter):
    def misspelt(word):
        return word[:position] + letter + word[position + 1 :]

    held = f"{forename} {surname}"
    for asked in (f"{misspelt(forename)} {surname}", f"{forename} {misspelt(surname)}"):
        assert compare_names(asked, held, business=False, lenient=False) is not NO


@given(forename=words, surname=words)
def test_a_reversed_name_is_never_no_match(forename, surname):
    asked = f"{surname} {forename}"
    assert compare_names(asked, f"{forename} {surname}", business=False, lenient=False) is not NO


@pytest.mark.parametrize(
    ("asked", "held", "expected"),
    [
        ({"LEI": "1"}, {"LEI": "1", "TXID": "2"}, IdMatch.MTCH),
        ({"LEI": "9"}, {"LEI": "1"}, IdMatch.NMTC),
        ({"LEI": "1", "TXID": "9"}, {"LEI": "1", "TXID": "2"}, IdMatch.NMTC),
        ({"DUNS": "1"}, {"LEI": "1"}, IdMatch.NOAP),
        ({}, {"LEI": "1"}, IdMatch.NOAP),
    ],
)
def test_an_identification_of_a_kind_not_held_is_not_applicable(asked, held, expected):
    assert compare_identifications(asked, held) is expected


def test_every_kind_of_identification_is_read():
    organisation = OrganisationId(
        lei="SIMU0000000000000183",
        any_bic="LANTNL20XXX",
        others=[
            OtherId(identification="DE000000117", scheme_name_code=SchemeCode.TXID),
            OtherId(identification="7", scheme_name_proprietary="House number"),
            OtherId(identification="a number of no kind"),
        ],
    )
    party = Party(identification=PartyIdentification(organisation_id=organisation))
    assert identifications(party) == {
        "LEI": "SIMU0000000000000183",
        "BIC": "LANTNL20XXX",
        "TXID": "DE000000117",
        "House number": "7",
    }
    assert identifications(Party(name="Avery Thornwood")) == {}
