"""A server's problem details: whether they are the API's own, and what they say without personal data.

Source: API reference, "Problem details" and "Errors": every error is sent as problem details in JSON, whose
`status` equals the HTTP status, and every response echoes the correlation id. Load balancers, firewalls and
proxies answer in other forms. Some gateways echo the id only with status 200. `detail` is a sentence for
people, which may quote the request: the question's names and numbers, other numbers and tokens are removed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pipeline.apis import Echo, echo_of
from pipeline.frames import Check
from pipeline.transport.masking import masked
from schemas.problem import Problem
from schemas.strict import parsed_or_empty

if TYPE_CHECKING:
    import httpx

_MEDIA_TYPES = frozenset({"application/json", "application/problem+json"})
_WORD_CHARS_MIN = 2  # words of a name at least this long are removed one by one: servers may quote part of it


def problem_detail(response: httpx.Response, check: Check | None = None) -> str:
    """Return a problem document's detail, or else its title, or else ""; for any status and any body."""
    problem = parsed_or_empty(Problem, response.content)
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


def own_problem(response: httpx.Response) -> Problem | None:
    """Return a response's problem details if it has the form of the API; otherwise None."""
    media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in _MEDIA_TYPES:
        return None
    problem = parsed_or_empty(Problem, response.content)
    return problem if problem.status == response.status_code else None


def echo_for(response: httpx.Response, request: httpx.Request, request_id: str) -> Echo:
    """Compare the correlation id in a response with the request's."""
    headers = [name for name, value in request.headers.items() if value == request_id]
    echoes = {echo_of(response, name, request_id) for name in headers}
    return Echo.OTHER if Echo.OTHER in echoes else Echo.OURS if Echo.OURS in echoes else Echo.MISSING
