"""Errors in the words of the desk: what to do is a button or a page, never an option of the command line."""

import re
from collections.abc import Iterable
from traceback import clear_frames

from markupsafe import Markup, escape

from pipeline.errors import PrecheckError
from pipeline.reports.wording import visible
from pipeline.wording import Sentence, SurfaceKind, aloud, language, words

_PHRASES = (
    (
        ", as the run ended early: .*?stopped by [A-Za-z0-9-]+; what was answered is kept: .*? to go on",
        ". The check was stopped: go on when you like.",
    ),
    (
        r": the same command does not ask again\. To ask again later, run the file with --out OTHER.*",
        ". To ask again, upload the file once more, which asks every question again.",
    ),
    (" by --limit", ""),
    (" by precheck purge", ""),
    ("`precheck status` has", "who looks after this desk sees"),
    (r"run (?:the same command|its command) again,? (?:to go on|which asks nothing twice)", "go on"),
    (r"run the same command with --retry-unanswered", "ask about them again"),
    (r"run `precheck run` with --work again", "go on"),
    (r"Run the same command again", "Go on"),
    (r"run the same command again", "go on"),
    (r"running the same command again", "going on"),
    (r"`?precheck (?:doctor|init|quota|sandbox)[^`,;.]*`?", "the help of who looks after this desk"),
    (r"precheck [a-z]+ (?:'[^']*'|[^ ]+)", "the desk"),
    (r" ?\(?--[a-z-]+(?: [A-Z]+)?\)?", ""),
)
"""What some sentences say to people at a command line, and what it is here."""


def sentence_of(error: PrecheckError) -> Markup:
    """An error in the words and the language of a page. The frames that it came through are let go."""
    clear_frames(error.__traceback__)  # a refused file, perhaps, which a cycle would keep for long
    return in_page_words(error.said)


def in_page_words(said: Iterable[Sentence]) -> Markup:
    """Sentences in the words and the language of a page, each with a capital letter and a full stop."""
    return escape(" ".join(_whole(visible(words(one, SurfaceKind.PAGE, language()))) for one in said))


def said(sentences: Sentence | str | Iterable[Sentence | str]) -> Markup:
    """One sentence or several, as they are, in the words and the language of a page; a text stays a text."""
    several = [sentences] if isinstance(sentences, (Sentence, str)) else sentences
    return escape(" ".join(visible(aloud(one, SurfaceKind.PAGE)) for one in several))


def _whole(text: str) -> str:
    is_name = "." in text.split(maxsplit=1)[0]  # of a file, which keeps its first letter
    first = text[:1] if is_name else text[:1].upper()
    return first + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def in_desk_words(sentence: str) -> str:
    """A sentence without words of the command line, and without places on the disk.

    >>> in_desk_words("Questions left: 7; the cap is used up. Run the same command again after noon.")
    'Questions left: 7; the cap is used up. Go on after noon.'
    >>> in_desk_words("/home/x/runs/20300102/run.precheck/outcomes.csv: changed since the run")
    'outcomes.csv: changed since the run'
    """
    for pattern, ours in _PHRASES:
        sentence = re.sub(pattern, ours, sentence)
    return visible(_without_folders(sentence))


def _without_folders(sentence: str) -> str:
    return re.sub(r"(?<![\w/])/(?:[^/\s:;,]+/)+([^/\s:;,]+)", r"\1", sentence)
