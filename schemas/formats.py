"""Which formats of payment files there are: what `precheck formats --json` prints."""

from typing import Annotated

from pydantic import Field

from schemas.strict import OwnDocument


class KnownFormat(OwnDocument):
    """One format."""

    name: Annotated[str, Field(description="As --input-format takes it.")]
    title: str
    suffixes: Annotated[list[str], Field(description="Usual ends of the names of its files.")]
    known_by: Annotated[str, Field(description="By what a file is known to have it.")]
    is_own: Annotated[bool, Field(description="Whether the configuration describes it, as [layouts.NAME].")]
    written_as: Annotated[
        str | None,
        Field(description="The format in which fix and split write its payments; null where they cannot."),
    ]
    why_not: Annotated[str | None, Field(description="Why they cannot.")] = None


class KnownFormats(OwnDocument):
    """All of them, and how their files may be compressed."""

    formats: list[KnownFormat]
    compressions: list[str]
