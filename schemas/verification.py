"""The findings of `precheck verify`, as a document."""

from schemas.strict import OwnDocument


class VerifiedItem(OwnDocument):
    """One check."""

    what: str
    """The name of a file, or of the comparison."""
    well: bool
    detail: str
    """The finding, or the difference and what to do."""


class Verification(OwnDocument):
    """All checks, in order."""

    well: bool
    """True if all checks passed."""
    findings: list[VerifiedItem]
