"""Find the user at the other end of a connection over the loopback address."""

import os
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
"""Where Linux lists this computer's connections: over IPv4 and over IPv6."""
_ROOT = "0"
_TRIES = 2
"""Linux may skip a line while other connections end, so a search is repeated."""
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
