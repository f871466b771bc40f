"""The base of all documents: two kinds of models, parsing of untrusted JSON, and timestamps."""

import json
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Annotated, Any, NoReturn, TypeVar

from pydantic import BaseModel, ConfigDict, PlainSerializer
from pydantic.alias_generators import to_camel

from schemas.localized import LocalizedText


class Document(BaseModel):
    """A document of one of the APIs: immutable, in camelCase on the wire, without type coercion.

    Unknown members are ignored, because a server may add some within a version. Models of requests forbid
    them: there they are mistakes.
    """

    model_config = ConfigDict(
        strict=True,
        frozen=True,
        extra="ignore",
        alias_generator=to_camel,
        populate_by_name=True,
        hide_input_in_errors=True,
        defer_build=True,
    )

    def to_json(self) -> bytes:
        """Return the document as UTF-8 JSON with its wire names; members that are None are left out."""
        return self.model_dump_json(by_alias=True, exclude_none=True).encode()


class OwnDocument(BaseModel):
    """A document that this program writes, or a part of one: immutable, refuses unknown members."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


Spoken = Annotated[LocalizedText | str, PlainSerializer(str, return_type=str)]
"""For documents that this program prints and never reads back: written as text only."""


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("the document repeats a key")
    return members


def _refuse_constant(_name: str) -> NoReturn:
    raise ValueError("the document holds a number that JSON does not have")


AnyDocument = TypeVar("AnyDocument", bound=BaseModel)

_STRICT = json.JSONDecoder(object_pairs_hook=_refuse_repeated_keys, parse_constant=_refuse_constant)


def parse(model: type[AnyDocument], body: bytes, *, emptied: Collection[str] = ()) -> AnyDocument:
    """Read a JSON body as a model; refuse documents that two readers could read differently.

    Python's own decoder takes the last of two equal keys and accepts NaN, so that `{"matched": false,
    "matched": true}` would pass for a match. Here such a document is refused. Long lists in `emptied`, which
    the caller does not need, are emptied before they take time and memory.

    Raises:
        ValueError: the body is not UTF-8 JSON, repeats a key, holds NaN or Infinity, nests too
            deeply, or does not fit the model. The message never quotes the body.
    """
    if emptied:
        short = _STRICT.decode(body.decode()) | {key: [] for key in emptied}
        return model.model_validate_json(json.dumps(short), by_alias=True, by_name=False)
    document = model.model_validate_json(body, by_alias=True, by_name=False)
    _STRICT.decode(body.decode())
    return document


def parsed_or_empty(model: type[AnyDocument], body: bytes) -> AnyDocument:
    """Read a JSON body like `parse`; a document without members if it is none of this model."""
    try:
        return parse(model, body)
    except ValueError:
        return model()


def timestamp(moment: datetime) -> str:
    """Write a time like the APIs: UTC, milliseconds, Z (API reference, "Request headers").

    >>> timestamp(datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=UTC))
    '2030-01-02T03:04:05.678Z'
    """
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
