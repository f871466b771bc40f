"""Decide the next step after an exchange, as a pure function. Time and chance are arguments.

Source: API reference, "Errors". It does not describe other statuses or Retry-After; gateways in between send
them, so they are read as defined in RFC 9110 and RFC 6585.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal

import httpx

from pipeline.errors import PrecheckError
from pipeline.transport.turned_away import turned_away

ATTEMPTS_MAX = 3
WAIT_INITIAL_S = 0.5
WAIT_MAX_S = 20.0
RETRY_AFTER_MAX_S = 3600.0
FRESH_CONNECTION = "fresh_connection"
"""Extension of an httpx request that needs a new connection, one that stays silent until it is sent."""
_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]*)?")
REQUEST_ID = "request_id"  # extension with the correlation id that the reply should repeat
REFUSALS = frozenset({400, 413, 415, 422})  # reject a question, from a server or a gateway in front of it

FailureKind = Literal["connect", "tls", "broken", "deadline", "held"]
"""How an exchange ended without a response.

connect: no connection, so nothing was sent. tls: the encryption failed. broken: the connection ended in the
middle. deadline: too slow. held: sending stopped before its turn, so nothing was sent.
"""


class NetworkFailure(Exception):  # noqa: N818  a thing that happens on networks; its handling is no error
    """An exchange that ended without a response. It contains no part of the request."""

    def __init__(self, kind: FailureKind, cause: OSError | None = None) -> None:
        super().__init__(kind)
        self.kind: FailureKind = kind
        self.reason: OSError | str = cause or kind  # the cause, if the system names one


@dataclass(frozen=True, slots=True)
class Accept:
    """The response is a 200; its body is read next."""


@dataclass(frozen=True, slots=True)
class Held:
    """Nothing was sent: the question waits as if it had not been tried."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """The server, or a gateway in front of it, rejects this question; the form of the reply shows which."""


@dataclass(frozen=True, slots=True)
class RenewToken:
    """The server refused the token: renew it and ask once more, without waiting."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Ask the same question again, as a new attempt."""

    wait_s: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """There is no usable reply, and asking again now would not bring one."""


@dataclass(frozen=True, slots=True)
class TurnAway:
    """The server refuses us for this question; other questions will show whether for all."""

    error: PrecheckError  # the end of the run if all are refused


Decision = Accept | Held | Refuse | RenewToken | Retry | GiveUp | TurnAway


@dataclass(frozen=True, slots=True)
class RetryState:
    """Where a check stands after an exchange."""

    number: int  # how many requests were sent for this check, including this one: 1 or more
    renewable: bool  # true if the token may be renewed: not for mutual TLS, nor a second time for a check
    number_max: int = ATTEMPTS_MAX
    is_fresh: bool = False  # true if the request had a new connection


def decide(
    reply: httpx.Response | NetworkFailure, attempt: RetryState, *, chance: float, now: datetime
) -> Decision:
    """Decide the next step; `chance` in [0, 1) spreads retries, `now` is for a Retry-After with a date."""
    if isinstance(reply, NetworkFailure):
        return _after_failure(reply.kind, attempt, chance)
    match reply.status_code:
        case 200:
            return Accept()
        case status if status in REFUSALS:
            return Refuse()
        case 401 if attempt.renewable:
            return RenewToken()
        case status if status in {408, 425, 429} or 500 <= status <= 599:
            return _again(attempt, chance, floor_s=pause_s(reply.headers, now=now))
        case _:
            return TurnAway(turned_away(reply))


def pause_s(headers: Mapping[str, str], *, now: datetime) -> float:
    """Return how many seconds the server wants this client, not only this check, to send nothing.

    At most an hour; the longest of several; 0 without a pause, or if it cannot be parsed. Header names are in
    lower case.

    >>> pause_s({"retry-after": "120"}, now=datetime(2030, 1, 1, tzinfo=UTC))
    120.0
    >>> pause_s({"retry-after": "Tue, 01 Jan 2030 00:00:30 GMT"}, now=datetime(2030, 1, 1, tzinfo=UTC))
    30.0
    """
    if "retry-after" not in headers:
        return 0.0
    # A date may be cut behind its weekday, and is read without it.
    return max(_stated_s(one.strip(), now) for one in headers["retry-after"].split(","))


def _stated_s(value: str, now: datetime) -> float:
    if _SECONDS.fullmatch(value):
        return min(float(value), RETRY_AFTER_MAX_S)
    try:
        until = parsedate_to_datetime(value)
    except (ValueError, OverflowError):  # not a date, or an impossible year
        return 0.0
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return min(max((until - now).total_seconds(), 0.0), RETRY_AFTER_MAX_S)


def _after_failure(kind: FailureKind, attempt: RetryState, chance: float) -> Decision:
    match kind:
        case "connect" | "tls" | "broken" | "deadline":
            return _again(attempt, chance, floor_s=0.0)
        case "held":
            return Held()


def _again(attempt: RetryState, chance: float, *, floor_s: float) -> Retry | GiveUp:
    """Retry with full jitter, from zero to the doubled wait, so that clients do not fall in step."""
    if attempt.number >= attempt.number_max:
        return GiveUp()
    wait_max_s = min(WAIT_INITIAL_S * 2 ** (attempt.number - 1), WAIT_MAX_S)
    # The server's pause is a minimum: jitter after it keeps clients from returning all at once.
    return Retry(floor_s + chance * wait_max_s)
