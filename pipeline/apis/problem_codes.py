"""The codes of error responses that are neither our own nor those of answers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pipeline.apis.registry import APIS
from pipeline.frames import TURNED_AWAY_CODES, OwnCode
from schemas.problem import Problem
from schemas.strict import parse

if TYPE_CHECKING:
    import httpx

_CODE = re.compile(r"[A-Z][A-Z0-9_]{1,39}")
_TAKEN = frozenset(
    {*OwnCode, *TURNED_AWAY_CODES, *(code for api in APIS.values() for _, code in api.meanings)}
)


def problem_code(response: httpx.Response) -> str:
    """The machine-readable code of an error response, or `HTTP_` and its status.

    A code is passed on verbatim, but only if it looks like one, as the server's text is data, and
    only if it is not a word that stands for something else in an outcome.
    """
    try:
        code = parse(Problem, response.content).code
    except ValueError:
        code = None
    if code is not None and _CODE.fullmatch(code) and code not in _TAKEN:
        return code
    return f"HTTP_{response.status_code}"
