"""Compare our clock, which stamps requests, with the server's, which stamps responses.

With a wrong clock, requests look old or early, and our day for the daily cap is not the server's. Source: API
reference, "Request headers" and "Response headers". A refused stamp is TIMESTAMP_INVALID in the European
scheme, and 400 FORMAT_ERROR, as for all failed validation, in the reference.
"""

import re
from collections import deque
from datetime import datetime

import httpx
import structlog

from pipeline.errors import ConfigurationError
from pipeline.wording import Sentence
from schemas.outcomes import ApiName
from schemas.problem import Problem
from schemas.strict import parse, timestamp

SKEW_MAX_S = 30.0  # between clocks without a warning; synchronised ones differ by less than a second
DAY_WRONG_S = 12 * 3600.0  # clocks that differ by more are mostly on different days
ODD_S = 24 * 3600.0  # a single timestamp that differs by more, or is not a date, says nothing of a clock
AGREEING_COUNT = 3  # consecutive replies that must agree before a server's time is believed
_AGREEMENT_S = 60.0
_YEARS = range(2000, 2100)  # a timestamp of an impossible year is ignored: it would overflow the comparison
_ADVICE = Sentence("stages.set_clock")

_STAMP_CODE = "TIMESTAMP_INVALID"
_STAMP_HEADER = re.compile(r"x-request-timestamp|timestamp_invalid", re.IGNORECASE)
"""A complaint about our timestamp in a detail. The bare word may be part of a payee's name."""

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class ClockComparison:
    """Compares our clock with servers' clocks, and warns once per run if one is wrong."""

    def __init__(self) -> None:
        self._is_reported = self._is_odd_reported = False
        self._last: dict[ApiName, deque[float]] = {}

    def compare(self, api: ApiName, response: httpx.Response, *, sent: datetime, received: datetime) -> None:
        """Compare the timestamp of one response with our clock."""
        time = server_time(response)
        skew_s = ahead_of_ours_s(time, sent, received)
        if time is not None:
            self._last.setdefault(api, deque(maxlen=AGREEING_COUNT)).append(skew_s)
        elif "x-response-timestamp" not in response.headers:
            return
        is_odd = time is None or (abs(skew_s) > ODD_S and self.agreed_ahead_s(api) is None)
        if is_odd and not self._is_odd_reported:
            self._is_odd_reported = True
            log.warning("a time stamp of the server is not believed", api=api.value, ahead_s=skew_s or None)
        if abs(skew_s) > SKEW_MAX_S and not is_odd and not self._is_reported:
            self._is_reported = True
            key = "stages.clock_behind" if skew_s > 0 else "stages.clock_ahead"
            clock = Sentence(key, skew_s=abs(skew_s), advice=_ADVICE)
            log.warning(clock.recorded(), api=api.value, vital=True)

    def agreed_ahead_s(self, api: ApiName) -> float | None:
        """Return how far the server is ahead by its last replies; None if they are too few or disagree."""
        last = self._last.get(api)
        if last is None or len(last) < AGREEING_COUNT or max(last) - min(last) > _AGREEMENT_S:
            return None
        return last[-1]


def ahead_of_ours_s(time: datetime | None, sent: datetime, received: datetime) -> float:
    """Return how far a server's clock is at least ahead of ours, by a response's time if it has one."""
    if time is None or sent <= time <= received:
        return 0.0
    return (time - (sent if time < sent else received)).total_seconds()


def server_time(response: httpx.Response) -> datetime | None:
    """Return the timestamp of a response; None if it is not in the reference's form."""
    try:
        time = datetime.fromisoformat(response.headers.get("x-response-timestamp", ""))
    except ValueError:
        return None
    return None if time.tzinfo is None or time.year not in _YEARS else time


def wrong_day(api: ApiName, ours: datetime, theirs: datetime) -> ConfigurationError:
    """Return the error for a run with a daily cap if our clock and the server's are on different days."""
    here, there = timestamp(ours), timestamp(theirs)
    return ConfigurationError(
        Sentence("stages.clock_on_other_day", api=api, timestamp=here, timestamp_2=there, advice=_ADVICE)
    )


def refuses_our_time(response: httpx.Response) -> bool:
    """True if a 400 complains about the time of the request, so that every row would get it."""
    if response.status_code != 400:
        return False
    try:
        problem = parse(Problem, response.content)
    except ValueError:
        return False
    words = (problem.title or "", problem.detail or "")
    return problem.code == _STAMP_CODE or any(_STAMP_HEADER.search(text) for text in words)


def wrong_clock(api: ApiName, response: httpx.Response, now: datetime) -> ConfigurationError:
    """Return the error for a run whose requests the server finds too old or early; it states both times."""
    theirs, ours = server_time(response), timestamp(now)
    clock = Sentence("stages.server_states_no_time")
    if theirs is not None:
        clock = Sentence("stages.server_clock", timestamp=timestamp(theirs))
    return ConfigurationError(
        Sentence("stages.timestamp_refused", api=api, timestamp=ours, server_clock=clock, advice=_ADVICE)
    )
