"""What the limits of a server are counted by: the server, however its address is spelled, and the client.

A host has many spellings: capital letters, a dot at its end, the port 443 given or not, longer and shorter
forms of an IP address. They lead to one server, which counts our requests together, and so do we. What no
spelling shows is not guessed: a name and the IP address behind it, or two names for one machine, are two
servers.
"""

from functools import cache
from hashlib import sha256
from ipaddress import IPv4Address, IPv6Address
from socket import inet_aton
from urllib.parse import urlsplit

_HTTPS_PORT = 443


def scope_of(netloc: str, client_id: str) -> str:
    """The host and port of an address as it spells them, and the client by a hash that does not name it."""
    return f"{netloc}|{sha256(client_id.encode()).hexdigest()[:16]}"


@cache  # asked for every scope of the file, at every request
def canonical(scope: str) -> str:
    """The canonical spelling of a scope; what is no scope is left as it is.

    >>> canonical("CoP.Example.:443|0123456789abcdef")
    'cop.example|0123456789abcdef'
    >>> canonical("[0:0::1]:8443|0123456789abcdef")
    '[::1]:8443|0123456789abcdef'
    """
    netloc, bar, client = scope.partition("|")
    try:
        parts = urlsplit(f"//{netloc}")  # which makes letters small
        port = parts.port
    except ValueError:
        return scope
    host = (parts.hostname or "").rstrip(".")
    if not host:
        return scope
    ending = "" if port in {None, _HTTPS_PORT} else f":{port}"
    return f"{_usual(host)}{ending}{bar}{client}"


def _usual(host: str) -> str:
    """An IP address as it is usually written, or the name that it is."""
    try:
        address = _address(host)
    except (OSError, ValueError):
        return host
    return f"[{address}]" if address.version == 6 else str(address)


def _address(host: str) -> IPv4Address | IPv6Address:
    """The IP address that the system connects to for `127.1` or `::ffff:127.0.0.1` too.

    Raises:
        OSError, ValueError: it is a name.
    """
    if ":" not in host:
        return IPv4Address(inet_aton(host))
    address = IPv6Address(host)
    return address.ipv4_mapped or address
