"""Errors as the desk words them: the remedy is a button or a page, never a command-line option."""

from collections.abc import Iterable
from traceback import clear_frames

from markupsafe import Markup, escape

from pipeline.desk.languages import gettext, gettext_noop
from pipeline.errors import PrecheckError
from pipeline.reports.wording import visible
from pipeline.wording import Sentence, SurfaceKind, language, rendered, words

BY_ITSELF = gettext_noop("the desk")
"""The actor of automatic deletions, as recorded."""
CARRIED = gettext_noop("(carried over from the earlier file)")
"""The end of the reason of a carried-over decision; in the evidence it stays English."""


def recorded(text: str) -> str:
    """Return a recorded name or reason, with the desk's own words in it translated.

    >>> recorded("the desk"), recorded("ask the desk")
    ('the desk', 'ask the desk')
    """
    own = BY_ITSELF if text == BY_ITSELF else CARRIED if text.endswith(CARRIED) else ""
    return text.removesuffix(own) + gettext(own) if own else text


def sentence_of(error: PrecheckError) -> Markup:
    """Translate an error for the page, and clear its traceback."""
    clear_frames(error.__traceback__)  # it may hold a refused file, which a cycle would keep in memory
    return in_page_words(error.messages)


def in_page_words(sentences: Iterable[Sentence]) -> Markup:
    """Translate sentences for the page, each with a capital letter and a full stop."""
    return escape(" ".join(_whole(visible(words(one, SurfaceKind.PAGE, language()))) for one in sentences))


def localized(sentences: Sentence | str | Iterable[Sentence | str]) -> Markup:
    """Translate sentences for the page without adding capitals or full stops; keep plain text."""
    several = [sentences] if isinstance(sentences, (Sentence, str)) else sentences
    return escape(" ".join(visible(rendered(one, SurfaceKind.PAGE)) for one in several))


def _whole(text: str) -> str:
    is_name = "." in text.split(maxsplit=1)[0]  # a file name keeps its case
    first = text[:1] if is_name else text[:1].upper()
    return first + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
