"""How payment files are read: the output of `precheck columns --json` and `precheck formats --json`."""

from pydantic import Field

from schemas.strict import OwnDocument, Spoken
from schemas.summary import SetAside, StatedControl


class Column(OwnDocument):
    """One column of the file."""

    header: Spoken = Field(
        description="Its header, or its position, such as #1, if the file has no header line."
    )
    field: str | None = Field(description="The field that it is read as; null if it is not read.")
    rule: Spoken = Field(description="The rule that chose the field, or why the column is not read.")
    others: list[str] = Field(description="Headers of other columns that could be this field.")
    values: list[str] = Field(description="The first three values of the column.")
    disputed: bool = Field(
        False, description="Whether others could be this field equally well, so that none is read."
    )
    row_count: int | None = Field(
        None, description="Number of payments with a value; null if the file is a table."
    )
    map: str | None = Field(
        None,
        description="The --map option that would read it, if only its cells show the field.",
    )


class NameInParts(OwnDocument):
    """A payee's name in several columns."""

    headers: list[str] = Field(description="Headers of the columns, in the order in which they are joined.")
    values: list[str] = Field(description="The first three names, joined.")


class ColumnsRead(OwnDocument):
    """The columns of one file."""

    file: str
    columns: list[Column]
    notes: list[Spoken] = []
    name_in_parts: NameInParts | None = Field(None, description="Null if one column has the whole name.")
    format: Spoken | None = Field(
        None, description="The payment format, in words; null if the file is a table."
    )
    row_count: int | None = Field(None, description="Number of payments; null if the file is a table.")
    facts: dict[str, str] = Field({}, description="For payment formats: version, encoding and the like.")
    controls: list[StatedControl] = Field(
        [],
        description="For payment formats: up to 1,000 totals that the file states, the wrong ones first.",
    )
    control_count: int = Field(0, description="Number of all stated totals.")
    set_aside: list[SetAside] = Field(
        [], description="For payment formats: entries that are not payments and never checked."
    )
    section: str = Field(
        "", description="The section of precheck.toml that reads files of this name the same way, TOML."
    )
    refusal: Spoken | None = Field(
        None, description="Why the file cannot be read, and what to do; null if it can."
    )


class KnownFormat(OwnDocument):
    """One format."""

    name: str = Field(description="Its name for --input-format.")
    title: Spoken
    suffixes: list[str] = Field(description="Usual suffixes of its files.")
    known_by: Spoken = Field(description="How precheck recognises a file in this format.")
    is_own: bool = Field(description="Whether [layouts.NAME] in the configuration describes it.")
    written_as: str | None = Field(
        description="The format in which fix and split write its payments; null if they cannot."
    )
    why_not: Spoken | None = Field(None, description="Why they cannot.")


class KnownFormats(OwnDocument):
    """All formats of payment files, and the compressions allowed for them."""

    formats: list[KnownFormat]
    compressions: list[str]
