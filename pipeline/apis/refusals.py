"""Decide if an error response comes from the API, or from something in front of it.

Source: API reference, "Problem details" and "Errors": every error is sent as problem details in JSON, whose
`status` equals the HTTP status, and every response echoes the correlation id. Load balancers, firewalls and
proxies answer in other forms. Some gateways echo the id only with status 200.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.apis import Echo, echo_of
from schemas.problem import Problem
from schemas.strict import parse

if TYPE_CHECKING:
    import httpx

_MEDIA_TYPES = frozenset({"application/json", "application/problem+json"})


def own_problem(response: httpx.Response) -> Problem | None:
    """Return a response's problem details if it has the form of the API; otherwise None."""
    media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in _MEDIA_TYPES:
        return None
    try:
        problem = parse(Problem, response.content)
    except ValueError:
        return None
    return problem if problem.status == response.status_code else None


def echo_for(response: httpx.Response, request: httpx.Request, request_id: str) -> Echo:
    """Compare the correlation id in a response with the request's."""
    headers = [name for name, value in request.headers.items() if value == request_id]
    echoes = {echo_of(response, name, request_id) for name in headers}
    return Echo.OTHER if Echo.OTHER in echoes else Echo.OURS if Echo.OURS in echoes else Echo.MISSING
