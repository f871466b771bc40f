"""A server's own description of a problem, made fit for a log line, the ledger and the terminal.

Source: API reference, "Problem details": `detail` is a sentence for people. It is the server's text, so it
may quote what was asked: names and numbers of the question, other numbers and tokens are removed from it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pipeline.errors import PrecheckError
from pipeline.frames import Check
from pipeline.wording import Sentence
from schemas.problem import Problem
from schemas.strict import parse

if TYPE_CHECKING:
    import httpx

DETAIL_CHARS_MAX = 200
MASK = "***"

_READ_CHARS_MAX = 2_000
"""More than is shown, because removals make room; and little enough to search."""
_IBAN = re.compile(
    r"\b[A-Z]{2}[0-9]{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,3})?\b", re.IGNORECASE
)  # whole, or in groups of four
_NUMBER = re.compile(r"[0-9](?:[ ./-]?[0-9]){4,}")
"""Account numbers, sort codes and what else has five digits or more; an HTTP status has three."""
_CREDENTIAL = re.compile(r"\b(?:Bearer|Basic)\s+\S+", re.IGNORECASE)
_LONG = re.compile(r"[\w.~+/=-]{20,}")
"""A token or a correlation id, if it has letters and digits."""
_WORD_CHARS_MIN = 2
"""A name is removed word by word as well: a server may quote a part of it, or reverse it."""


def problem_detail(response: httpx.Response, check: Check | None = None) -> str:
    """The detail of a problem document, or its title where it has none; empty where it has neither.

    The response may have any status and any body. At most `DETAIL_CHARS_MAX` characters, all printable: any
    other is written as its escape.
    """
    try:
        problem = parse(Problem, response.content)
    except ValueError:
        return ""
    text = (problem.detail or problem.title or "")[:_READ_CHARS_MAX]
    if not text:
        return ""  # nothing to search, and each question is searched for by patterns of its own
    text = "".join(letter if letter.isprintable() else _escaped(letter) for letter in " ".join(text.split()))
    text = _without(text, [] if check is None else _said_of(check))
    if len(text) > DETAIL_CHARS_MAX:
        text = text[: DETAIL_CHARS_MAX - 3] + "..."
    return text


def with_detail(error: PrecheckError, detail: str) -> PrecheckError:
    """An error that ends a run, followed by the server's own description, if there is one."""
    if not detail:
        return error
    return type(error)(Sentence("apis.server_says", why=error.reason, detail=detail), advice=error.advice)


def _without(text: str, said: list[str]) -> str:
    """A text with every number of an account masked, every token, and whatever was asked about."""
    text = _LONG.sub(_unless_a_word, _CREDENTIAL.sub(MASK, text))
    for word in said:
        text = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", MASK, text, flags=re.IGNORECASE)
    return _NUMBER.sub(MASK, _IBAN.sub(MASK, text))


def _unless_a_word(long: re.Match[str]) -> str:
    text = long[0]
    return MASK if re.search("[0-9]", text) and re.search("[A-Za-z]", text) else text


def _said_of(check: Check) -> list[str]:
    """The personal data of a question, whole and word by word, the longest first."""
    values = (
        check.account, check.name, check.secondary_reference, check.lei, check.organisation_bic,
        check.organisation_id, check.remittance,
    )  # fmt: skip
    whole = [" ".join(value.split()) for value in values if value and value.strip()]
    words = [word for value in whole for word in re.findall(r"\w+", value) if len(word) >= _WORD_CHARS_MIN]
    return sorted({*whole, *words}, key=len, reverse=True)


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")
