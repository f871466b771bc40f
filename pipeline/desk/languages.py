"""The desk's languages: which one a page uses, and its sentences, errors, sizes and times.

The English sentences in code and templates are the keys of the catalogues. `guards` sets the language of each
request; threads that a page starts inherit it.
"""

import re
from collections.abc import Iterable
from functools import cache
from gettext import GNUTranslations, NullTranslations
from importlib.resources import files
from io import BytesIO
from traceback import clear_frames

from markupsafe import Markup, escape

from pipeline.errors import PrecheckError
from pipeline.reports.wording import number, visible
from pipeline.wording import LANGUAGES, Moment, Sentence, SurfaceKind, language, rendered, words
from pipeline.wording.sentences import moment_of

_WANTED = re.compile(r"([a-z]+)(?:-[a-z0-9-]+)?(?:\s*;\s*q=([01](?:\.[0-9]{0,3})?))?")
"""A language in `Accept-Language`, and its weight."""


def preferred(chosen: str | None, accepted: str) -> str:
    """Choose a page's language: the user's choice, else by the `Accept-Language` header.

    >>> preferred("fr", "de"), preferred("xx", "de-AT,de;q=0.9,en;q=0.8"), preferred(None, "nl, en;q=0.5")
    ('fr', 'de', 'en')
    >>> preferred(None, "en;q=0.2, fr;q=0.7"), preferred(None, "de;q=0, x;q=y"), preferred(None, "")
    ('fr', 'en', 'en')
    >>> preferred(None, "de, en"), preferred(None, "en, de"), preferred(None, "nl")
    ('de', 'en', 'en')
    """
    if chosen is not None and chosen in LANGUAGES:
        return chosen
    weights: dict[str, float] = {}
    for wanted in accepted[:1000].split(","):
        found = _WANTED.fullmatch(wanted.strip().lower())
        if found and found[1] in LANGUAGES:
            weights[found[1]] = max(weights.get(found[1], 0.0), float(found[2] or 1))
    liked = max(weights, key=weights.__getitem__, default="en")  # the first of equal weights
    return liked if weights.get(liked) else "en"


def gettext_noop(message: str) -> str:
    """Mark a sentence in a table for translation; it is translated when it is shown."""
    return message


def gettext(message: str, /, **values: object) -> str:
    """Translate a sentence into the page's language, and fill in its values."""
    text = _catalogue(language()).gettext(message) if message else ""
    return text % values if values else text


def ngettext(one: str, several: str, count: int, /, **values: object) -> str:
    """Translate a sentence with a count, which it may use as `num`."""
    return form_of(one, several, count) % {"num": number(count), **values}


def form_of(one: str, several: str, count: int) -> str:
    """Return the plural form of a sentence for a count, without filling in values."""
    return _catalogue(language()).ngettext(one, several, count)


def pgettext(context: str, message: str) -> str:
    """Translate a sentence whose meaning depends on the context."""
    return _catalogue(language()).pgettext(context, message)


@cache
def _catalogue(code: str) -> NullTranslations:
    if code == "en":
        return NullTranslations()
    from babel.messages.mofile import write_mo
    from babel.messages.pofile import read_po

    with files("pipeline.desk").joinpath("catalogues", f"{code}.po").open("rb") as file:
        catalogue = read_po(file, locale=code)
    compiled = BytesIO()
    write_mo(compiled, catalogue)
    compiled.seek(0)
    return GNUTranslations(compiled)


def moment(time: str) -> str:
    """Format a document's time for the language.

    >>> moment("2030-01-02T03:04:05.678Z")
    '2 January 2030, 03:04 UTC'
    """
    return str(moment_of(Moment(time), language(), at_length=True))


def size(byte_count: int) -> str:
    """Format a size with a unit.

    >>> size(900), size(2_048), size(5_000_000)
    ('900 bytes', '2.0 KB', '4.8 MB')
    """
    if byte_count < 1024:
        return ngettext("%(num)s byte", "%(num)s bytes", byte_count)
    if byte_count < 1024**2:
        return gettext("%(size)s KB", size=number(byte_count / 1024, ",.1f"))
    return gettext("%(size)s MB", size=number(byte_count / 1024**2, ",.1f"))


def duration(seconds: float) -> str:
    """Format a duration with a unit.

    >>> duration(0.2), duration(75), duration(8_000)
    ('less than a second', '1 min 15 s', '2 h 13 min')
    """
    whole = round(seconds)
    if whole < 1:
        return gettext("less than a second")
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{number(whole // 3600)} h {whole % 3600 // 60} min"


BY_ITSELF = gettext_noop("the desk")  # the actor of automatic deletions, as recorded
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
