"""The language of each surface: the user's on a terminal, the reader's on a page; for machines, English."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

from pipeline.wording.catalogue import ENGLISH
from pipeline.wording.sentences import Sentence, SurfaceKind, words
from schemas.localized import LocalizedText

LANGUAGES: Mapping[str, str] = MappingProxyType({"en": "English", "de": "Deutsch", "fr": "Français"})
"""Code -> the language's own name for itself."""
_LOCALE_VARIABLES = ("PRECHECK_LANG", "LC_ALL", "LC_MESSAGES", "LANG")
_current: ContextVar[str] = ContextVar("language", default=ENGLISH)


def language() -> str:
    """Return the code of the current language."""
    return _current.get()


def speak(code: str) -> None:
    """Set the current language."""
    _current.set(code)


@contextmanager
def speaking(code: str) -> Iterator[None]:
    """Use this language until the block ends."""
    before = _current.set(code)
    try:
        yield
    finally:
        _current.reset(before)


def rendered(sentence: Sentence | str, surface: SurfaceKind) -> str:
    """Return a sentence, even from a document, in a surface's words and the current language, or the text."""
    one = Sentence.of_document(sentence) if isinstance(sentence, LocalizedText) else sentence
    return words(one, surface, language()) if isinstance(one, Sentence) else one


def language_of(environment: Mapping[str, str]) -> str:
    """Return the language in the first non-empty locale variable; else English.

    >>> language_of({"LANG": "de_AT.UTF-8"}), language_of({"LC_ALL": "C", "LANG": "fr_FR"})
    ('de', 'en')
    >>> language_of({"PRECHECK_LANG": "fr", "LC_ALL": "de_DE"}), language_of({"LANG": "nl_NL"})
    ('fr', 'en')
    """
    chosen = next(filter(None, map(environment.get, _LOCALE_VARIABLES)), ENGLISH)
    code = chosen.replace("-", "_").partition("_")[0].partition(".")[0].partition("@")[0].lower()
    return code if code in LANGUAGES else ENGLISH
