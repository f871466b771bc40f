"""Errors in the words of the desk: what to do is a button or a page, never an option of the command line."""

import re
from traceback import clear_frames
from types import MappingProxyType

from pipeline.errors import Advice, PrecheckError, Words
from pipeline.reports.wording import visible

PAGES: Words = MappingProxyType({
    Advice.OTHER_FOLDER: "upload the file once more",
    Advice.FOLDER_EACH: "upload them one at a time",
    Advice.START_OVER: "upload the file once more to start over",
    Advice.ASK_AGAIN: "upload the file once more, which asks every question again",
    Advice.REPLACE_RESULTS: "upload the file once more",
    Advice.REPLACE_FILE: "upload it under another name",
    Advice.CHOOSE_PROFILE: "choose one of {choices}",
    Advice.CHOOSE_FORMAT: "choose one of {choices} as its format",
    Advice.NAME_FORMAT: "choose its format below",
    Advice.NAME_SHEET: "write the name of the sheet with the payments below",
    Advice.NAME_NO_SHEET: "leave the sheet empty below",
    Advice.MAP_NOTHING: "choose nothing beside the columns",
    Advice.NAME_LEDGER: "ask who looks after this desk to name one in the profile",
    Advice.CHECK_AS_DATA_SET: "upload its files one at a time",
    Advice.CHOOSE_ENCODING: "choose its encoding from {choices}",
    Advice.READ_AS: "choose the encoding {choices} below",
    Advice.READ_AS_OF_WINDOWS: "choose the encoding {choices} below if the file comes from Windows",
    Advice.READ_AS_IF_CSV: "choose the encoding {choices} below if it is one",
    Advice.READ_AS_IF_TEXT: "choose the encoding {choices} below if it is text",
    Advice.NAME_LAYOUTS: "ask who looks after this desk to put it back into the configuration",
    Advice.WRITE_CONFIGURATION: "ask who looks after this desk to write one",
    Advice.NAME_CONFIGURATION: "start the desk with one",
    Advice.NAME_INPUT: "upload the file once more",
    Advice.NAME_DECIDER: "open the desk as a user with a name",
    Advice.ALLOW_MANY_NAMES: "allow it below with a reason, which is recorded",
    Advice.ALLOW_SIMULATED: "check the file with a real profile",
    Advice.WRITE_WORK: "upload the file once more",
    Advice.NAME_WORK: "ask who looks after this desk to name the folder that its runs share with workers",
    Advice.WAIT_LONGER: "go on later",
    Advice.READ_FROM: "«{choices}»",  # a field and a header, which `sentence_of` tells apart
})  # fmt: skip
"""For every kind of advice."""

assert PAGES.keys() == set(Advice), "advice without words of the desk"

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


def sentence_of(error: PrecheckError) -> str:
    """An error as sentences for a page. What the functions held that it came through is let go."""
    clear_frames(error.__traceback__)  # a refused file, perhaps, which a cycle would keep for long
    text = in_desk_words(_with_columns_chosen(error.sentence(PAGES)))
    is_name = "." in text.split(maxsplit=1)[0]  # of a file, which is not written otherwise
    first = text[:1] if is_name else text[:1].upper()
    return first + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def _with_columns_chosen(sentence: str) -> str:
    """A sentence in which a field is chosen beside a column, where a command names both.

    >>> _with_columns_chosen("no payee; name the right column with «name=#2» or «name=Payee»")
    'no payee; name the right column by choosing name beside column 2 or name beside Payee'
    """
    chosen = re.sub(r"«\"?([a-z_]+)=([^»\"]*)\"?»", _chosen, sentence.replace("with «", "by choosing «"))
    return chosen.replace("«", "").replace("»", "")


def _chosen(pair: re.Match[str]) -> str:
    column = re.sub(r"#(\d+)", r"column \1", pair[2])
    where = "its column" if column == "HEADER" else column
    return f"{pair[1].replace('_', ' ')} beside {where.replace('+', ' and ')}"


def in_desk_words(sentence: str) -> str:
    """A sentence without words of the command line, and without places on the disk.

    >>> in_desk_words("Questions left: 7; the cap is used up. Run the same command again after noon.")
    'Questions left: 7; the cap is used up. Go on after noon.'
    >>> in_desk_words("/home/x/runs/20300102/run.precheck/outcomes.csv: changed since the run")
    'outcomes.csv: changed since the run'
    """
    for pattern, words in _PHRASES:
        sentence = re.sub(pattern, words, sentence)
    return visible(_without_folders(sentence))


def _without_folders(sentence: str) -> str:
    return re.sub(r"(?<![\w/])/(?:[^/\s:;,]+/)+([^/\s:;,]+)", r"\1", sentence)
