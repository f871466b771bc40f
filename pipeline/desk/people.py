"""Roles at the desk, and whether two users are different people."""

from collections.abc import Collection
from enum import StrEnum
from string import ascii_lowercase, ascii_uppercase
from typing import NamedTuple

from pipeline.desk.refusals import Forbidden
from pipeline.wording import Sentence
from schemas.review import Act, Shaped


class Role(StrEnum):
    """The roles of users. Every role may look at every file."""

    UPLOADER = "uploader"
    REVIEWER = "reviewer"
    APPROVER = "approver"
    AUDITOR = "auditor"


_SMALL = str.maketrans(ascii_uppercase, ascii_lowercase)
ALONE = frozenset(Role)


def folded(name: str) -> str:
    """A name for comparison: only ASCII capitals are folded, as Unicode look-alikes are other names."""
    return name.translate(_SMALL)


class Person(NamedTuple):
    """A user of the desk."""

    name: str
    roles: frozenset[Role]
    is_identified: bool = False  # whether a login proxy vouches for the name; otherwise the person stated it

    def can(self, *roles: Role) -> bool:
        """True if this person has one of these roles."""
        return not self.roles.isdisjoint(roles)

    def require_names(self) -> None:
        """Refuse a person whose role does not work with single payments (Forbidden)."""
        if not self.has_names:
            raise Forbidden(Sentence("desk.payments_not_open"))

    @property
    def may_lose_approval(self) -> bool:
        """True if shaping a file costs this person the right to approve it."""
        return self.is_identified and self.can(Role.APPROVER)

    @property
    def compares(self) -> bool:
        """True if this person compares payees with answers, and sees whole accounts."""
        return self.can(Role.REVIEWER, Role.APPROVER)

    @property
    def has_names(self) -> bool:
        """True if this person works with single payments, and may see payees' names."""
        return self.can(Role.UPLOADER, Role.REVIEWER, Role.APPROVER)

    def require(self, *roles: Role) -> None:
        """Refuse a person without any of these roles (Forbidden)."""
        if not self.can(*roles):
            raise Forbidden(Sentence("desk.may_not", what=[Sentence(f"desk.may_{role}") for role in roles]))

    def is_one_of(self, names: Collection[str]) -> bool:
        """True if this person has one of these names, ignoring case."""
        return folded(self.name) in {folded(name) for name in names}


def refuse_shaper(person: Person, shaped: Collection[Shaped]) -> None:
    """Refuse an approval by a person who shaped the file, with the first of their acts in the order of `Act`.

    A desk for one user has no sign-in: its files are self-approved, and the evidence says so.

    Raises:
        Forbidden: another person has to approve it.
    """
    if not person.is_identified:
        return
    own = {one.act for one in shaped if person.is_one_of([one.by])}
    if act := next((act for act in Act if act in own), None):
        raise Forbidden(Sentence(f"desk.approved_by_{act.name.lower()}"))
