"""FAQ (b) of the reference: where the surname matches, a nickname or variant is never no match."""

import pytest
from nicknames import NickNamer

from pipeline.sandbox.matching import compare_names
from pipeline.sandbox.names import FURTHER_VARIANTS
from schemas.outcomes import Outcome

LISTED = [
    (forename, nickname)
    for forename, nicknames in NickNamer.default_lookup().items()
    for nickname in nicknames
]
FURTHER = [(one, other) for group in FURTHER_VARIANTS for one in group for other in group - {one}]


def no_matches(pairs):
    """The pairs that a bank holds in one form, is asked in the other, and does not know."""
    return [
        (asked, held)
        for asked, held in pairs
        if compare_names(
            f"{asked.title()} Thornwood", f"{held.title()} Thornwood", business=False, lenient=False
        )
        is Outcome.NO_MATCH
    ]


def test_no_variant_of_a_forename_is_no_match_in_either_direction():
    assert len(LISTED) > 2_500
    assert no_matches(LISTED + [(held, asked) for asked, held in LISTED]) == []


def test_two_short_forms_of_one_forename_are_no_no_match():
    lookup = NickNamer.default_lookup()
    pairs = [(one, other) for forms in lookup.values() for one in forms for other in forms if one < other]
    assert len(pairs) > 3_500
    assert no_matches(pairs) == []


def test_british_and_continental_variants_are_known_too():
    assert len(FURTHER) > 100
    assert no_matches(FURTHER) == []


@pytest.mark.parametrize(("asked", "held"), [("Bob", "William"), ("Margaret", "Susan"), ("Rhys", "Imogen")])
def test_another_forename_stays_no_match(asked, held):
    assert no_matches([(asked, held)]) == [(asked, held)]
