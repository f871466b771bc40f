"""What people decided about a run: `approvals.json`, a list that only grows."""

from typing import Annotated

from pydantic import Field, RootModel

from schemas.review import Decision
from schemas.strict import OwnDocument


class Approval(OwnDocument):
    """One decision of one person about some rows, and who approved the file that was made by it."""

    by: Annotated[str, Field(description="Who decided.")]
    time: Annotated[str, Field(description="When that was decided, UTC, ISO 8601 with Z.")]
    what: Annotated[str, Field(description="What was decided, and for which file.")]
    why: Annotated[str, Field(description="The reason that was given.")]
    rows: Annotated[list[int], Field(description="The rows that it is about.")]
    decision: Annotated[
        Decision | None,
        Field(description="What was decided and followed; null where it was refused, or is not on record."),
    ] = None
    approved_by: Annotated[str, Field(description="Who had the file made.")]
    approved_at: Annotated[str, Field(description="When, UTC, ISO 8601 with Z.")]
    self_approved: Annotated[
        bool,
        Field(
            description="False where another person than any who decided approved it, and both had to "
            "identify themselves."
        ),
    ]
    claimed_by: Annotated[
        str | None,
        Field(
            description="Who decided by the word of the workbook that the decision stood in: a claim, as "
            "nobody signed in by it; null where it names nobody."
        ),
    ] = None


class Approvals(RootModel[list[Approval]]):
    """Every decision, in the order in which they were made."""
