"""A server's description of a problem, with personal data removed, for logs, ledger and terminal.

Source: API reference, "Problem details": `detail` is a sentence for people. It may quote the request, so the
question's names and numbers, other numbers and tokens are removed.
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
"""Minimum length of words that are removed from a name one by one: a server may quote part of it."""


def problem_detail(response: httpx.Response, check: Check | None = None) -> str:
    """Return a problem document's detail, or else its title, or else ""; for any status and any body."""
    try:
        problem = parse(Problem, response.content)
    except ValueError:
        return ""
    text = problem.detail or problem.title
    if not text:
        return ""  # the search below builds patterns for each question, so skip it for an empty text
    return masked(text, [] if check is None else _said_of(check))


def _said_of(check: Check) -> list[str]:
    """Return the personal data in a question, whole and word by word, longest first."""
    values = (
        check.account, check.name, check.secondary_reference, check.lei, check.organisation_bic,
        check.organisation_id, check.remittance,
    )  # fmt: skip
    whole = [" ".join(value.split()) for value in values if value and value.strip()]
    words = [word for value in whole for word in re.findall(r"\w+", value) if len(word) >= _WORD_CHARS_MIN]
    return sorted({*whole, *words}, key=len, reverse=True)
