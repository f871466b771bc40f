"""The division of an account as JSON, as stores keep it."""

import json
from typing import Any

from pipeline.stores.sharing import Division, HeldShare, SharePart
from pipeline.stores.values import LeaseHolder


def as_json(division: Division) -> str:
    """The division, with names for what a person may look up."""
    shares = [each._asdict() | {"who": each.who._asdict()} for each in division.shares]
    return json.dumps({"paused_until": division.paused_until, "shares": shares})


def from_json(content: str | bytes) -> Division:
    """What `as_json` gave."""
    said = json.loads(content)
    return Division(tuple(map(_share, said["shares"])), said["paused_until"])


def _share(said: dict[str, Any]) -> HeldShare:
    kinds = {
        "who": LeaseHolder(**said["who"]),
        "part": SharePart(*said["part"]),
        "given_up": SharePart(*said["given_up"]),
    }
    return HeldShare(**said | kinds)
