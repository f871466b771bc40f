"""Messages to the user as data: turn a key and values into words, by surface and language.

Code raises, records and passes on a `Sentence`; a surface puts it into words with `words`. The words are in
`catalogues/LANGUAGE/ROOM.po`, which writers edit without touching code.
"""

from pipeline.wording.catalogue import ENGLISH
from pipeline.wording.language import LANGUAGES, language, language_of, rendered, speak, speaking
from pipeline.wording.sentences import (
    ANY_COLUMN,
    PLACE,
    ColumnPair,
    Moment,
    Sentence,
    SurfaceKind,
    Value,
    require_words,
    words,
)

__all__ = [
    "ANY_COLUMN",
    "ENGLISH",
    "LANGUAGES",
    "PLACE",
    "ColumnPair",
    "Moment",
    "Sentence",
    "SurfaceKind",
    "Value",
    "language",
    "language_of",
    "rendered",
    "require_words",
    "speak",
    "speaking",
    "words",
]
