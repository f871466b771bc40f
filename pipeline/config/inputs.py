"""The sections `[inputs.NAME]` of the configuration: how to read files, by their names."""

import json
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, Field

from pipeline.errors import ConfigurationError, UsageError, WrongValueError
from pipeline.formats.encodings import codec_of
from pipeline.rules.identifiers import countries
from pipeline.sections import Section, Words
from pipeline.wording import Sentence
from schemas.payments import FIELDS, IGNORE, ConfiguredHeader


def _field(name: str) -> str:
    if name not in (*FIELDS, IGNORE):
        raise WrongValueError(Sentence("config.no_such_field", fields=[*FIELDS, IGNORE]))
    return name


def _encoding(name: str) -> str:
    try:
        codec_of(name)
    except UsageError as error:
        raise WrongValueError(error.reason) from None
    return name


def _country(code: str) -> str:
    if code not in countries():
        raise WrongValueError(Sentence("config.not_a_country_code"))
    return code


class InputSection(Section):
    """How to read files whose names match; options of the command take precedence."""

    match: Annotated[Words, Field(description="Names of the files, such as `payroll-*.csv`.")]
    map: dict[Annotated[str, AfterValidator(_field)], Words] = Field(
        default_factory=dict, description='Field -> header, as `--map`: `{ name = "Wer", iban = "Wohin" }`.'
    )
    encoding: Annotated[Words, AfterValidator(_encoding)] | None = Field(None, description="As `--encoding`.")
    sheet: Annotated[Words | None, Field(description="As `--sheet`.")] = None
    format: Annotated[Words | None, Field(description="As `--input-format`.")] = None
    country: Annotated[Words, AfterValidator(_country)] | None = Field(None, description="As `--country`.")


class ReadAs(NamedTuple):
    """The user's choices about reading a file; the fields are named as in jobs."""

    mapping: Mapping[str, str] = MappingProxyType({})
    encoding: str | None = None
    sheet: str | None = None
    input_format: str | None = None
    country: str | None = None

    def completed(self, name: str, sections: Mapping[str, InputSection]) -> "ReadAs":
        """Add the configuration's choices for this file name (ConfigurationError: two sections match)."""
        if (key := section_for(name, sections)) is None:
            return self
        section, mine = sections[key], {*self.mapping.values()}
        configured = {
            field: ConfiguredHeader(header) for field, header in section.map.items() if header not in mine
        }
        return ReadAs(
            {**configured, **self.mapping},
            self.encoding or section.encoding,
            self.sheet or section.sheet,
            self.input_format or section.format,
            self.country or section.country,
        )

    def as_section(self, name: str) -> str:
        """Return a configuration section that makes these choices for files of this name."""
        key = re.sub(r"[^a-z0-9]+", "-", name.rpartition(".")[0].lower()).strip("-") or "file"
        pairs = ", ".join(f"{field} = {_quoted(header)}" for field, header in self.mapping.items())
        settings = {
            "map": f"{{ {pairs} }}" if pairs else None,
            "encoding": self.encoding and _quoted(self.encoding),
            "sheet": self.sheet and _quoted(self.sheet),
            "format": self.input_format and _quoted(self.input_format),
            "country": self.country and _quoted(self.country),
        }
        pattern = re.sub(r"([*?[])", r"[\1]", name)
        lines = [f"[inputs.{key}]", f"match = {_quoted(pattern)}"]
        return "\n".join([*lines, *(f"{key} = {value}" for key, value in settings.items() if value)]) + "\n"


def section_for(name: str, sections: Mapping[str, InputSection]) -> str | None:
    """Return the name of the section for files of this name (ConfigurationError: two sections match)."""
    found = [key for key, each in sections.items() if fnmatchcase(name, each.match)]
    if len(found) > 1:
        raise ConfigurationError(Sentence("config.two_inputs_match_file", name=name, sections=found))
    return found[0] if found else None


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
