"""The result of `precheck verify`."""

from schemas.strict import OwnDocument


class VerifiedItem(OwnDocument):
    """One check of `precheck verify`."""

    what: str  # the name of a file or comparison
    well: bool
    detail: str  # the result, or the difference and what to do


class Verification(OwnDocument):
    """All checks of a folder, in order."""

    well: bool  # true if all checks passed
    findings: list[VerifiedItem]
