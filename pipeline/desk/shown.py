"""Optimistic locking: forms carry hashes of what their page showed, and are refused if it has changed."""

from collections.abc import Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import NamedTuple

from pipeline.desk.refusals import Conflict
from pipeline.desk.review import Review
from pipeline.wording import Sentence
from schemas.desk import RowsDecided

_DIGITS = 12


class Shown(NamedTuple):
    """Hashes of what a page showed."""

    run: str
    outcomes: str
    policy: str
    decisions: str
    totals: str

    def __str__(self) -> str:
        """The hashes as the value of a form field."""
        return "-".join(self)


OF_A_ROW = ("run", "outcomes", "policy")
"""The hashes in the form of one row, which leaves out the decisions and the totals."""


def shown_of(
    review: Review,
    latest: dict[int, RowsDecided],
    decisions: str,
    released_in: Mapping[int, str] = MappingProxyType({}),
) -> Shown:
    """Hash what a page shows: the run, the decisions that count, and the payments that they release."""
    preview = review.preview(latest, released_in)
    totals = (preview.release, preview.hold, preview.refused.to_list())
    policy = sorted(review.policy.items())
    parts = (review.summary.run_id, review.outcomes_sha256, policy, decisions, totals)
    return Shown(*(sha256(repr(part).encode()).hexdigest()[:_DIGITS] for part in parts))


def refuse_changed(was: object, now: Shown, parts: tuple[str, ...] = Shown._fields) -> None:
    """Refuse a form whose page is out of date (Conflict: names what has changed)."""
    earlier = dict(zip(Shown._fields, str(was).split("-"), strict=False))
    if changed := [part for part in parts if earlier.get(part) != getattr(now, part)]:
        what = [Sentence(f"desk.shown_{part}") for part in changed]
        raise Conflict(Sentence("desk.changed_since_shown", what=what))
