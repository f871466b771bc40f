"""Make error texts by other programs safe for log lines, the ledger and the terminal."""

import re
from collections.abc import Iterable

from pipeline.errors import PrecheckError
from pipeline.wording import Sentence

DETAIL_CHARS_MAX = 200
MASK = "***"

_READ_CHARS_MAX = 2_000  # more than is shown, because masking shortens texts; few enough to search quickly
_IBAN = re.compile(
    r"\b[A-Z]{2}[0-9]{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,3})?\b", re.IGNORECASE
)  # whole, or in groups of four
_NUMBER = re.compile(r"(\bAADSTS[0-9]{3,7}\b)|[0-9](?:[ ./-]?[0-9]){4,}")
"""Account numbers, sort codes and other numbers of five or more digits, but no HTTP status. Error codes of
Microsoft Entra are excepted.
"""
_CREDENTIAL = re.compile(r"\b(?:Bearer|Basic)\s+\S+", re.IGNORECASE)
_LONG = re.compile(r"[\w.~+/=-]{20,}")  # a token or a correlation id, if there are letters and digits


def masked(text: str, secrets: Iterable[str] = ()) -> str:
    """Escape unprintable characters, mask accounts and tokens, and cut to `DETAIL_CHARS_MAX` characters."""
    text = "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")
        for letter in " ".join(text[:_READ_CHARS_MAX].split())
    )
    text = _LONG.sub(_unless_a_word, _CREDENTIAL.sub(MASK, text))
    for word in secrets:
        text = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", MASK, text, flags=re.IGNORECASE)
    text = _NUMBER.sub(lambda found: found[1] or MASK, _IBAN.sub(MASK, text))
    return text if len(text) <= DETAIL_CHARS_MAX else text[: DETAIL_CHARS_MAX - 3] + "..."


def with_detail(error: PrecheckError, detail: str) -> PrecheckError:
    """Return an error that ends a run, followed by the server's description if there is one."""
    if not detail:
        return error
    return type(error)(
        Sentence("transport.server_says", why=error.reason, detail=detail), advice=error.advice
    )


def _unless_a_word(long: re.Match[str]) -> str:
    text = long[0]
    return MASK if re.search("[0-9]", text) and re.search("[A-Za-z]", text) else text
