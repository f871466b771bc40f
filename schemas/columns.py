"""How payment files are read: the output of `precheck columns --json` and `precheck formats --json`."""

from typing import Annotated

from pydantic import Field

from schemas.strict import OwnDocument, Spoken
from schemas.summary import SetAside, StatedControl


class Column(OwnDocument):
    """One column of the file."""

    header: Annotated[Spoken, Field(description="The place, as #1, where the file has no header line.")]
    field: Annotated[str | None, Field(description="The field it is read as; null where it is only kept.")]
    rule: Annotated[Spoken, Field(description="By which rule, or why it is only kept.")]
    others: Annotated[
        list[str], Field(description="Headers of other columns that could have been this field.")
    ]
    values: Annotated[list[str], Field(description="The first three values of the column.")]
    disputed: Annotated[
        bool, Field(description="Whether it could be the field as well as the others: then none is read.")
    ] = False
    row_count: Annotated[
        int | None, Field(description="How many payments have a value; null where the file is a table.")
    ] = None
    map: Annotated[
        str | None,
        Field(
            description="What to say with --map to have it read, where its cells show it and no header does."
        ),
    ] = None


class NameInParts(OwnDocument):
    """A payee's name in several columns."""

    headers: Annotated[list[str], Field(description="Of the columns, in the order in which they are joined.")]
    values: Annotated[list[str], Field(description="The first three names, joined.")]


class ColumnsRead(OwnDocument):
    """The columns of one file."""

    file: str
    columns: list[Column]
    notes: list[Spoken] = []
    name_in_parts: Annotated[
        NameInParts | None, Field(description="Null where the payee stands in one column.")
    ] = None
    format: Annotated[
        Spoken | None, Field(description="The payment format, in words; null where the file is a table.")
    ] = None
    row_count: Annotated[
        int | None, Field(description="How many payments; null where the file is a table.")
    ] = None
    facts: Annotated[
        dict[str, str], Field(description="Of a payment format: its version, its encoding and the like.")
    ] = {}
    controls: Annotated[
        list[StatedControl],
        Field(
            description="Of a payment format: the totals that the file states; those that differ first, a "
            "thousand at most."
        ),
    ] = []
    control_count: Annotated[int, Field(description="All of them.")] = 0
    set_aside: Annotated[
        list[SetAside],
        Field(description="Of a payment format: what is no payment, and never checked."),
    ] = []
    section: Annotated[
        str, Field(description="Of precheck.toml: what reads files of this name in the same way; TOML.")
    ] = ""
    refusal: Annotated[
        Spoken | None,
        Field(description="Why the file cannot be read like this, and what to say; null where it can."),
    ] = None


class KnownFormat(OwnDocument):
    """One format."""

    name: Annotated[str, Field(description="As --input-format takes it.")]
    title: Spoken
    suffixes: Annotated[list[str], Field(description="Usual ends of the names of its files.")]
    known_by: Annotated[Spoken, Field(description="By what a file is known to have it.")]
    is_own: Annotated[bool, Field(description="Whether the configuration describes it, as [layouts.NAME].")]
    written_as: Annotated[
        str | None,
        Field(description="The format in which fix and split write its payments; null where they cannot."),
    ]
    why_not: Annotated[Spoken | None, Field(description="Why they cannot.")] = None


class KnownFormats(OwnDocument):
    """All formats of payment files, and the compressions allowed for them."""

    formats: list[KnownFormat]
    compressions: list[str]
