"""The scope of limits: a client at a server, in any spelling of the server's address.

A host has many spellings: capital letters, a dot at the end, port 443 given or not, forms of an IP address.
The server counts them together, so we do too. A name and its IP address, or two names, are two servers.
"""

from hashlib import sha256
from ipaddress import IPv4Address, IPv6Address
from socket import inet_aton
from urllib.parse import urlsplit

_HTTPS_PORT = 443


def scope_of(netloc: str, client_id: str) -> str:
    """Return the server in its canonical spelling, and a hash of the client that does not reveal it.

    >>> scope_of("CoP.Example.:443", "client-7")
    'cop.example|d2a753150e076f9b'
    """
    return f"{canonical(netloc)}|{sha256(client_id.encode()).hexdigest()[:16]}"


def canonical(netloc: str) -> str:
    """Return the canonical spelling of a host and port; return anything else unchanged.

    >>> canonical("[0:0::1]:8443")
    '[::1]:8443'
    """
    try:
        parts = urlsplit(f"//{netloc}")  # urlsplit puts the host in lower case
        port = parts.port
    except ValueError:
        return netloc
    host = (parts.hostname or "").rstrip(".")
    if not host:
        return netloc
    ending = "" if port in {None, _HTTPS_PORT} else f":{port}"
    return f"{_usual(host)}{ending}"


def _usual(host: str) -> str:
    """Return an IP address in its usual form, or a name unchanged."""
    try:
        address = _address(host)
    except (OSError, ValueError):
        return host
    return f"[{address}]" if address.version == 6 else str(address)


def _address(host: str) -> IPv4Address | IPv6Address:
    """Return the address that is connected to, even for `127.1` (OSError, ValueError: the host is a name)."""
    if ":" not in host:
        return IPv4Address(inet_aton(host))
    address = IPv6Address(host)
    return address.ipv4_mapped or address
