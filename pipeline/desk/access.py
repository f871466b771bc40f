"""Authenticate requests: by a session at a personal desk, by a proxy's identity header in a team."""

import asyncio
import hmac
import json
import os
import pwd
import socket
import struct
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from unicodedata import normalize
from weakref import WeakSet

from aiohttp import web

from pipeline.config.file import DeskSection
from pipeline.desk.people import ALONE, Person, Role
from pipeline.desk.refusals import Forbidden, NoSession, NotNamed
from pipeline.files.atomic import write_atomically
from pipeline.wording import Sentence

Clock = Callable[[], float]  # returns seconds since the epoch
LINKS = "links"
LINK_MAX_S = 24 * 3600.0  # how long a link can be used


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
    """The open sessions of a desk; a session ends when idle, after its maximum time, or with the desk.

    A link is a file in the desk's home, named by the hash of its token, and deleted when used.
    """

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


IDENTITY_CHARS_MAX = 254
_CREDENTIALS = struct.Struct("3i")


@dataclass(frozen=True, slots=True)
class LocalAccess:
    """Access to a personal desk: a loopback port for one user of this computer, with session cookies.

    Programs of other users can see cookies, which browsers send to every port. So the operating system
    identifies the user of each connection; if it cannot, the address contains a secret.
    """

    port: int
    sessions: Sessions
    prefix: str = ""  # the secret path prefix, with its slash; empty if the operating system identifies users
    _ours: WeakSet[asyncio.BaseTransport] = field(default_factory=WeakSet, compare=False)
    """Open connections of the same user; no other user can take them over."""

    scheme = "http"

    @property
    def cookie(self) -> str:
        """The cookie's name. It contains the port, because browsers share cookies between ports."""
        return f"precheck-desk-{self.port}"

    @property
    def hosts(self) -> Sequence[str]:
        """The hosts that browsers may use; not `localhost`, which may be ::1, where others may listen."""
        return [f"127.0.0.1:{self.port}"]

    def require_peer(self, request: web.Request) -> None:
        """Refuse connections from other users of this computer (Forbidden)."""
        if self.prefix:
            asked, known = request.path[: len(self.prefix) + 1], f"{self.prefix}/"
            if not hmac.compare_digest(asked.encode(), known.encode()):
                raise NoSession(Sentence("desk.address_without_secret"))
            return
        transport = request.transport
        if transport is not None and transport not in self._ours:
            ours, peer = (transport.get_extra_info(end) for end in ("sockname", "peername"))
            if ours and peer and is_ours(peer, ours):
                self._ours.add(transport)
        if transport is None or transport not in self._ours:
            raise Forbidden(Sentence("desk.of_another_user"))

    def person(self, request: web.Request, *, counts: bool) -> Person:
        """The signed-in user."""
        person = self.sessions.person(request.cookies.get(self.cookie), counts=counts)
        if person is None:
            raise NoSession(Sentence("desk.session_ended"))
        return person


@dataclass(frozen=True, slots=True)
class ProxyAccess:
    """Access to a team's desk: a Unix socket that only the proxy may use."""

    settings: DeskSection
    proxy_uid: int
    prefix, scheme = "", "https"

    @property
    def hosts(self) -> Sequence[str]:
        """The host names that browsers use to reach the proxy."""
        return [self.settings.host] if self.settings.host is not None else []

    def require_peer(self, request: web.Request) -> None:
        """Refuse connections from anything but the proxy (Forbidden)."""
        if _peer_uid(request) != self.proxy_uid:
            raise Forbidden(Sentence("desk.only_the_proxy"))

    def person(self, request: web.Request, *, counts: bool) -> Person:  # noqa: ARG002 (the proxy has the sessions)
        """The user named by the proxy in its identity header, which must be present exactly once."""
        names = request.headers.getall(self.settings.identity_header, [])
        name = names[0].strip() if len(names) == 1 else ""
        is_plain = name.isprintable() and "," not in name and normalize("NFKC", name) == name
        if not (is_plain and 0 < len(name) <= IDENTITY_CHARS_MAX):
            raise NotNamed(Sentence("desk.proxy_named_nobody"))
        person, by_role = Person(name, frozenset(), is_identified=True), self.settings.roles
        roles = frozenset(role for role in Role if person.is_one_of(getattr(by_role, role.value)))
        if not roles:
            raise Forbidden(Sentence("desk.no_role"), name)
        return person._replace(roles=roles)


Access = LocalAccess | ProxyAccess
"""How requests are authenticated: `person` returns the user or refuses the request."""


def uid_of(user: str) -> int | None:
    """The user id of this account name; None if unknown."""
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        return None


def _peer_uid(request: web.Request) -> int | None:
    """The user id at the other end of the socket, from the kernel."""
    transport = request.transport
    peer = None if transport is None else transport.get_extra_info("socket")
    if peer is None or peer.family != socket.AF_UNIX:
        return None
    _, uid, _ = _CREDENTIALS.unpack(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return int(uid)


TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
"""Where Linux lists this computer's connections: over IPv4 and over IPv6."""
_ROOT = "0"
_TRIES = 2  # Linux may skip a line while other connections end, so a search is repeated
Address = tuple[str, int]


def is_ours(peer: Address, ours: Address, tables: Sequence[Path] = TABLES) -> bool:
    """True if the connection from `peer` to `ours` belongs to this process's user, or to root.

    Root is accepted because relays of WSL and of containers run as root. Closed connections are also listed
    as root's, but have no inode.
    """
    wanted = [_as_in_table(peer), _as_in_table(ours)]
    users = {str(os.geteuid()), _ROOT}
    for _ in range(_TRIES):
        for path in tables:
            with suppress(OSError):
                for line in path.read_text("ascii").splitlines()[1:]:
                    _, local, remote, _, _, _, _, uid, _, inode, *_ = line.split()
                    if [local[-13:], remote[-13:]] == wanted and _is_over_ipv4(local):
                        return inode != "0" and uid in users
    return False


def system_tells(tables: Sequence[Path] = TABLES) -> bool:
    """True if this computer lists the users of connections; tested with a connection of our own."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as trial:
        trial.connect(server.getsockname())
        return is_ours(trial.getsockname(), trial.getpeername(), tables)


def _as_in_table(address: Address) -> str:
    host, port = address
    return f"{int.from_bytes(socket.inet_aton(host), sys.byteorder):08X}:{port:04X}"


def _is_over_ipv4(address: str) -> bool:
    """True if a listed address is IPv4, possibly mapped into IPv6 (::ffff:127.0.0.1)."""
    mapped = f"{int.from_bytes(bytes([0, 0, 255, 255]), sys.byteorder):08X}"
    return address[:-13] in ("", f"{'0' * 16}{mapped}")
