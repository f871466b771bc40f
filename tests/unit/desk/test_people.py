"""Who may approve: another person than those who decided, whatever their names look like."""

import pytest

from pipeline.desk.people import Person, Role, refuse_shaper
from pipeline.desk.refusals import Forbidden
from schemas.review import Act, Shaped

ANNA = Person("anna@example.com", frozenset({Role.APPROVER}), is_identified=True)


def shaped(name, act=Act.DECIDED):
    return Shaped(by=name, act=act, file="0" * 64, time="2026-11-26T09:00:00.000Z")


@pytest.mark.parametrize("act", Act)
@pytest.mark.parametrize("name", ["anna@example.com", "Anna@Example.com"])
def test_nobody_approves_what_they_shaped_in_whatever_letters(name, act):
    with pytest.raises(Forbidden):
        refuse_shaper(ANNA, [shaped("rita@example.com", act), shaped(name, act)])


@pytest.mark.parametrize("name", ["\u212aanna@example.com", "anna@example.\u0441om", "ANNA@EXAMPLE.COM"])
def test_only_capitals_of_ascii_are_the_same_letters(name):
    """The Kelvin sign would fold to k, and the second of these names has a Cyrillic letter."""
    assert not Person("kanna@example.com", frozenset()).is_one_of([name])
    assert ANNA.is_one_of([name]) is name.isascii()


def test_another_person_approves():
    refuse_shaper(ANNA, [shaped("rita@example.com", act) for act in Act])


def test_alone_at_the_desk_one_approves_what_one_decided():
    refuse_shaper(ANNA._replace(is_identified=False), [shaped("anna@example.com")])
