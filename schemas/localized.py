"""Texts for people in documents: English, with the sentence to translate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:  # slow to import, and printing a sentence needs neither
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema


class LocalizedText(str):
    """English text with the key and values of its sentence, for pages in other languages.

    In a document it is `{"text": "...", "sentence": ["room.key", {"value": 1}]}`.
    """

    __slots__ = ("sentence",)

    sentence: list[Any]

    @classmethod
    def of(cls, text: str, sentence: list[Any]) -> Self:
        """Make one from a text and the data from `Sentence.as_data`."""
        localized = cls(text)
        localized.sentence = sentence
        return localized

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: GetCoreSchemaHandler) -> CoreSchema:
        """Read text and sentence from documents; code passes the text, which carries its sentence."""
        from pydantic_core import core_schema

        parts = core_schema.typed_dict_schema(
            {
                "text": core_schema.typed_dict_field(core_schema.str_schema()),
                "sentence": core_schema.typed_dict_field(core_schema.list_schema()),
            },
            extra_behavior="forbid",
        )
        of_parts = core_schema.no_info_after_validator_function(
            lambda both: cls.of(both["text"], both["sentence"]), parts
        )
        return core_schema.json_or_python_schema(
            json_schema=of_parts,
            python_schema=core_schema.union_schema([core_schema.is_instance_schema(cls), of_parts]),
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda text: {"text": str(text), "sentence": text.sentence}, return_schema=parts
            ),
        )
