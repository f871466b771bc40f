"""Roles at the desk, and the rule that different people shape and approve a file."""

from collections.abc import Collection
from enum import StrEnum
from string import ascii_lowercase, ascii_uppercase
from typing import NamedTuple

from pipeline.desk.refusals import Forbidden
from pipeline.wording import Sentence
from schemas.review import Act, Shaped


class Role(StrEnum):
    """The roles of users. All of them may see every file."""

    UPLOADER = "uploader"
    REVIEWER = "reviewer"
    APPROVER = "approver"
    AUDITOR = "auditor"


_SMALL = str.maketrans(ascii_uppercase, ascii_lowercase)
ALONE = frozenset(Role)


def folded(name: str) -> str:
    """Fold a name for comparison: only ASCII capitals, because Unicode look-alikes are different names."""
    return name.translate(_SMALL)


class Person(NamedTuple):
    """A user of the desk."""

    name: str
    roles: frozenset[Role]
    is_identified: bool = False  # True if a login proxy vouches for the name; otherwise the user typed it

    def can(self, *roles: Role) -> bool:
        """True if this person has one of these roles."""
        return not self.roles.isdisjoint(roles)

    def require_names(self) -> None:
        """Refuse a person whose role does not deal with single payments (Forbidden)."""
        if not self.has_names:
            raise Forbidden(Sentence("desk.payments_not_open"))

    @property
    def may_lose_approval(self) -> bool:
        """True if shaping a file would cost this person the right to approve it."""
        return self.is_identified and self.can(Role.APPROVER)

    @property
    def compares(self) -> bool:
        """True if this person compares payees with answers, and so sees whole account numbers."""
        return self.can(Role.REVIEWER, Role.APPROVER)

    @property
    def has_names(self) -> bool:
        """True if this person deals with single payments, and so may see payees' names."""
        return self.can(Role.UPLOADER, Role.REVIEWER, Role.APPROVER)

    def require(self, *roles: Role) -> None:
        """Refuse a person without any of these roles (Forbidden)."""
        if not self.can(*roles):
            raise Forbidden(Sentence("desk.may_not", what=[Sentence(f"desk.may_{role}") for role in roles]))

    def is_one_of(self, names: Collection[str]) -> bool:
        """True if this person has one of these names, ignoring case."""
        return folded(self.name) in {folded(name) for name in names}


def refuse_shaper(person: Person, shaped: Collection[Shaped]) -> None:
    """Refuse approval by a person who shaped the file, by the first of their acts in `Act` (Forbidden).

    At a desk for one user, files are self-approved, and the evidence says so.
    """
    if not person.is_identified:
        return
    own = {one.act for one in shaped if person.is_one_of([one.by])}
    if act := next((act for act in Act if act in own), None):
        raise Forbidden(Sentence(f"desk.approved_by_{act.name.lower()}"))
