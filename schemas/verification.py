"""What `precheck verify` found, as a document."""

from pydantic import BaseModel, ConfigDict


class Found(BaseModel):
    """One thing that was looked at."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    what: str
    """The name of a file, or what was compared."""
    well: bool
    said: str
    """What was found, or what differs and what to do."""


class Verification(BaseModel):
    """Everything that was looked at, in order."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    well: bool
    """True where all of it is."""
    findings: list[Found]
