"""Processes that believe it is another time, by Debian's libfaketime."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)


def at(day, clock_time, zone="UTC"):
    """The environment of a process that believes it is that time, in that zone; UTC both."""
    if FAKETIME is None:
        pytest.skip("libfaketime is not installed: apt-get install faketime")
    moment = datetime.fromisoformat(f"{day}T{clock_time}+00:00")
    # As an offset: a date would be read as local time.
    offset_s = round((moment - datetime.now(UTC)).total_seconds())
    return {
        "LD_PRELOAD": str(FAKETIME),
        "FAKETIME": f"{offset_s:+d}",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
        "TZ": zone,
    }
