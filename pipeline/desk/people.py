"""Who may do what at the desk, and who is another person than whom."""

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import NamedTuple

from pipeline.desk.languages import gettext, gettext_noop
from pipeline.desk.refusals import Forbidden


class Role(StrEnum):
    """What people are for at the desk. Each may look at every file."""

    UPLOADER = "uploader"
    REVIEWER = "reviewer"
    APPROVER = "approver"
    AUDITOR = "auditor"


ALONE = frozenset(Role)
_NEEDED: Mapping[Role, str] = {
    Role.UPLOADER: gettext_noop("upload files and start checks"),
    Role.REVIEWER: gettext_noop("decide"),
    Role.APPROVER: gettext_noop("approve"),
    Role.AUDITOR: gettext_noop("read who did what"),
}


class Person(NamedTuple):
    """Somebody at the desk."""

    name: str
    roles: frozenset[Role]
    is_identified: bool = False
    """Whether somebody else than this person says so: a proxy that people log in to."""

    def can(self, *roles: Role) -> bool:
        """Whether this person has one of these roles."""
        return not self.roles.isdisjoint(roles)

    def require_names(self) -> None:
        """Refuse who does not work with single payments.

        Raises:
            Forbidden: this person does not.
        """
        if not self.has_names:
            raise Forbidden(
                gettext("You may not look at single payments here. Evidence without names is open to you.")
            )

    @property
    def has_names(self) -> bool:
        """Whether this person works with single payments, and may know whose they are."""
        return self.can(Role.UPLOADER, Role.REVIEWER, Role.APPROVER)

    def require(self, *roles: Role) -> None:
        """Refuse who has none of these roles.

        Raises:
            Forbidden: this person has not.
        """
        if not self.can(*roles):
            wanted = [gettext(_NEEDED[role]) for role in roles]
            what = wanted[0]
            if len(wanted) > 1:
                what = gettext("%(one)s or %(other)s", one=what, other=wanted[1])
            raise Forbidden(
                gettext("You may not %(what)s here. Ask who looks after this desk for the role.", what=what)
            )

    def is_one_of(self, names: Collection[str]) -> bool:
        """Whether this person has one of these names, in capitals or not."""
        return self.name.casefold() in {name.casefold() for name in names}


def refuse_same_person(
    person: Person, *, deciders: Collection[str], uploader: str, uploader_may_approve: bool
) -> None:
    """Refuse an approval by who decided a row or, unless that may be, uploaded the file.

    Alone at one's own desk nobody else is there: then it is self-approved, and the evidence says so.

    Raises:
        Forbidden: another person has to approve it.
    """
    if not person.is_identified:
        return
    if person.is_one_of(deciders):
        raise Forbidden(gettext("You decided about rows of this file, so another person has to approve it."))
    if not uploader_may_approve and person.is_one_of([uploader]):
        raise Forbidden(gettext("You uploaded this file, so another person has to approve it."))
