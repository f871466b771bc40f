"""A message to the user, as data: a key and values in, words out, by surface and language.

Code raises, records and passes on a `Sentence`; a surface puts it into words with `words`. The words are in
`catalogues/LANGUAGE/ROOM.po`, which a writer edits without touching code.
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
