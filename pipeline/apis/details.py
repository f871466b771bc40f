"""A server's own description of a problem, made fit for a log line, the ledger and the terminal.

Source: API reference, "Problem details": `detail` is a sentence for people. It is the server's text, so it
may quote what was asked: names and numbers of the question, other numbers and tokens are removed from it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pipeline.frames import Check
from pipeline.transport.masking import masked
from schemas.problem import Problem
from schemas.strict import parse

if TYPE_CHECKING:
    import httpx

_WORD_CHARS_MIN = 2
"""A name is removed word by word as well: a server may quote a part of it, or reverse it."""


def problem_detail(response: httpx.Response, check: Check | None = None) -> str:
    """The detail of a problem document, else its title, else empty; any status and any body."""
    try:
        problem = parse(Problem, response.content)
    except ValueError:
        return ""
    text = problem.detail or problem.title
    if not text:
        return ""  # nothing to search, and each question is searched for by patterns of its own
    return masked(text, [] if check is None else _said_of(check))


def _said_of(check: Check) -> list[str]:
    """The personal data of a question, whole and word by word, the longest first."""
    values = (
        check.account, check.name, check.secondary_reference, check.lei, check.organisation_bic,
        check.organisation_id, check.remittance,
    )  # fmt: skip
    whole = [" ".join(value.split()) for value in values if value and value.strip()]
    words = [word for value in whole for word in re.findall(r"\w+", value) if len(word) >= _WORD_CHARS_MIN]
    return sorted({*whole, *words}, key=len, reverse=True)
