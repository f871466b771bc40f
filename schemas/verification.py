"""What `precheck verify` found, as a document."""

from schemas.strict import OwnDocument


class VerifiedItem(OwnDocument):
    """One thing that was looked at."""

    what: str
    """The name of a file, or what was compared."""
    well: bool
    said: str
    """The finding, or the difference and what to do."""


class Verification(OwnDocument):
    """Everything that was looked at, in order."""

    well: bool
    """True if all of it is."""
    findings: list[VerifiedItem]
