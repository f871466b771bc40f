"""Sign-in at a personal desk: a one-time link opens a session.

A link is a file in the desk's home, readable by its owner only, named by the hash of its token, and deleted
when used. A session ends after some time without requests, after its maximum time, or when the desk stops.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pipeline.desk.people import ALONE, Person
from pipeline.files.atomic import write_atomically

Clock = Callable[[], float]
"""Returns seconds since the epoch."""
LINKS = "links"
LINK_MAX_S = 24 * 3600.0
"""How long a link can be used."""


def new_link(home: Path, name: str, token: str, now_s: float) -> None:
    """Create a one-time link with this token for the person of this name."""
    folder = home / LINKS
    folder.mkdir(mode=0o700, exist_ok=True)
    with write_atomically(folder / _hash(token)) as file:
        file.write(json.dumps({"name": name, "until_s": now_s + LINK_MAX_S}).encode())


@dataclass(slots=True)
class _Session:
    person: Person
    ends_at_s: float
    asked_at_s: float


class Sessions:
    """The open sessions of a desk."""

    def __init__(
        self, home: Path, *, idle_max_s: float, max_s: float, clock: Clock, chance: Callable[[], str]
    ) -> None:
        """Start without any session; one lasts `max_s`, and `idle_max_s` without a request."""
        self._links, self._idle_max_s, self._max_s = home / LINKS, idle_max_s, max_s
        self._clock, self._chance = clock, chance
        self._sessions: dict[str, _Session] = {}

    def enter(self, token: str) -> tuple[str, Person] | None:
        """Use up a link; return a new session's token and its user, or None if the link does not exist."""
        path = self._links / _hash(token)
        with suppress(OSError, ValueError, KeyError, TypeError):
            stored = json.loads(path.read_bytes())
            path.unlink()  # if two users open the same link, this fails for the second
            now = self._clock()
            if stored["until_s"] >= now:
                person = Person(str(stored["name"]), ALONE)
                session = self._chance()
                self._sessions[_hash(session)] = _Session(person, now + self._max_s, now)
                return session, person
        return None

    def person(self, token: str | None, *, counts: bool = True) -> Person | None:
        """Return the user of this session cookie; None if unknown or ended. `counts` prolongs the session."""
        key, now = _hash(token or ""), self._clock()
        session = self._sessions.get(key)
        if session is None:
            return None
        if now > min(session.ends_at_s, session.asked_at_s + self._idle_max_s):
            del self._sessions[key]
            return None
        if counts:
            session.asked_at_s = now
        return session.person

    def leave(self, token: str | None) -> None:
        """End a session."""
        self._sessions.pop(_hash(token or ""), None)


def _hash(token: str) -> str:
    return sha256(token.encode()).hexdigest()
