"""How payment files are read: the output of `precheck columns --json` and `precheck formats --json`."""

from pydantic import Field

from schemas.strict import OwnDocument, Spoken
from schemas.summary import SetAside, StatedControl


class Column(OwnDocument):
    """One column of the file."""

    header: Spoken = Field(description="The place, as #1, where the file has no header line.")
    field: str | None = Field(description="The field it is read as; null where it is only kept.")
    rule: Spoken = Field(description="By which rule, or why it is only kept.")
    others: list[str] = Field(description="Headers of other columns that could have been this field.")
    values: list[str] = Field(description="The first three values of the column.")
    disputed: bool = Field(
        False, description="Whether it could be the field as well as the others: then none is read."
    )
    row_count: int | None = Field(
        None, description="How many payments have a value; null where the file is a table."
    )
    map: str | None = Field(
        None,
        description="What to say with --map to have it read, where its cells show it and no header does.",
    )


class NameInParts(OwnDocument):
    """A payee's name in several columns."""

    headers: list[str] = Field(description="Of the columns, in the order in which they are joined.")
    values: list[str] = Field(description="The first three names, joined.")


class ColumnsRead(OwnDocument):
    """The columns of one file."""

    file: str
    columns: list[Column]
    notes: list[Spoken] = []
    name_in_parts: NameInParts | None = Field(None, description="Null where the payee stands in one column.")
    format: Spoken | None = Field(
        None, description="The payment format, in words; null where the file is a table."
    )
    row_count: int | None = Field(None, description="How many payments; null where the file is a table.")
    facts: dict[str, str] = Field(
        {}, description="Of a payment format: its version, its encoding and the like."
    )
    controls: list[StatedControl] = Field(
        [],
        description="Of a payment format: the totals that the file states; those that differ first, a "
        "thousand at most.",
    )
    control_count: int = Field(0, description="All of them.")
    set_aside: list[SetAside] = Field(
        [], description="Of a payment format: what is no payment, and never checked."
    )
    section: str = Field(
        "", description="Of precheck.toml: what reads files of this name in the same way; TOML."
    )
    refusal: Spoken | None = Field(
        None, description="Why the file cannot be read like this, and what to say; null where it can."
    )


class KnownFormat(OwnDocument):
    """One format."""

    name: str = Field(description="As --input-format takes it.")
    title: Spoken
    suffixes: list[str] = Field(description="Usual ends of the names of its files.")
    known_by: Spoken = Field(description="By what a file is known to have it.")
    is_own: bool = Field(description="Whether the configuration describes it, as [layouts.NAME].")
    written_as: str | None = Field(
        description="The format in which fix and split write its payments; null where they cannot."
    )
    why_not: Spoken | None = Field(None, description="Why they cannot.")


class KnownFormats(OwnDocument):
    """All formats of payment files, and the compressions allowed for them."""

    formats: list[KnownFormat]
    compressions: list[str]
