"""Errors worded for the desk: the remedy is a button or a page, never a command-line option."""

from collections.abc import Iterable
from traceback import clear_frames

from markupsafe import Markup, escape

from pipeline.desk.languages import gettext, gettext_noop
from pipeline.errors import PrecheckError
from pipeline.reports.wording import visible
from pipeline.wording import Sentence, SurfaceKind, language, rendered, words

BY_ITSELF = gettext_noop("the desk")
"""Who deletes what is older than the configuration has it kept."""
CARRIED = gettext_noop("(carried over from the earlier file)")
"""Ends the reason of a decision that was carried over, also in the evidence, which is in English."""


def recorded(text: str) -> str:
    """A name or a reason on record, with what the desk itself put there in the language of the page.

    >>> recorded("the desk"), recorded("ask the desk")
    ('the desk', 'ask the desk')
    """
    own = BY_ITSELF if text == BY_ITSELF else CARRIED if text.endswith(CARRIED) else ""
    return text.removesuffix(own) + gettext(own) if own else text


def sentence_of(error: PrecheckError) -> Markup:
    """An error in the words and the language of a page. The frames that it came through are let go."""
    clear_frames(error.__traceback__)  # a refused file, perhaps, which a cycle would keep for long
    return in_page_words(error.messages)


def in_page_words(sentences: Iterable[Sentence]) -> Markup:
    """Sentences in the words and the language of a page, each with a capital letter and a full stop."""
    return escape(" ".join(_whole(visible(words(one, SurfaceKind.PAGE, language()))) for one in sentences))


def localized(sentences: Sentence | str | Iterable[Sentence | str]) -> Markup:
    """One sentence or several, as they are, in the words and the language of a page; a text stays a text."""
    several = [sentences] if isinstance(sentences, (Sentence, str)) else sentences
    return escape(" ".join(visible(rendered(one, SurfaceKind.PAGE)) for one in several))


def _whole(text: str) -> str:
    is_name = "." in text.split(maxsplit=1)[0]  # of a file, which keeps its first letter
    first = text[:1] if is_name else text[:1].upper()
    return first + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
