"""Who may approve: another person than those who decided, whatever their names look like."""

import pytest

from pipeline.desk.people import Person, Role, refuse_same_person
from pipeline.desk.refusals import Forbidden

ANNA = Person("anna@example.com", frozenset({Role.APPROVER}), is_identified=True)


def approve(person, *, deciders=(), uploader="up@example.com", uploader_may_approve=False):
    refuse_same_person(
        person, deciders=deciders, uploader=uploader, uploader_may_approve=uploader_may_approve
    )


@pytest.mark.parametrize("name", ["anna@example.com", "Anna@Example.com"])
def test_nobody_approves_what_they_decided_or_uploaded_in_whatever_letters(name):
    with pytest.raises(Forbidden, match="You decided about rows"):
        approve(ANNA, deciders=["rita@example.com", name], uploader_may_approve=True)
    with pytest.raises(Forbidden, match="You uploaded this file"):
        approve(ANNA, uploader=name)


def test_another_person_approves_and_an_uploader_where_that_is_allowed():
    approve(ANNA, deciders=["rita@example.com"])
    approve(ANNA, uploader="anna@example.com", uploader_may_approve=True)


def test_alone_at_the_desk_one_approves_what_one_decided():
    approve(ANNA._replace(is_identified=False), deciders=["anna@example.com"], uploader="anna@example.com")
