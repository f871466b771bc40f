"""Codes of error responses, kept apart from our own codes and from codes of answers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pipeline.apis.registry import APIS
from pipeline.frames import TURNED_AWAY_CODES, OwnCode
from schemas.problem import Problem
from schemas.strict import parsed_or_empty

if TYPE_CHECKING:
    import httpx

_CODE = re.compile(r"[A-Z][A-Z0-9_]{1,39}")
_TAKEN = frozenset(
    {*OwnCode, *TURNED_AWAY_CODES, *(code for api in APIS.values() for _, code in api.meanings)}
)


def problem_code(response: httpx.Response) -> str:
    """Return a response's error code; `HTTP_` and the status if it has none, or one with another meaning."""
    code = parsed_or_empty(Problem, response.content).code
    if code is not None and _CODE.fullmatch(code) and code not in _TAKEN:
        return code
    return f"HTTP_{response.status_code}"
