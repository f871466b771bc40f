"""Read a client's TLS offer at the start of a connection (RFC 8446, section 4.1.2)."""

import ssl
from dataclasses import dataclass
from functools import cache

_HANDSHAKE, _CLIENT_HELLO = 22, 1
_SUPPORTED_VERSIONS = 43
_HELLO_BYTES_MAX = 64 * 1024
_NOT_A_SUITE = {0x00FF, 0x5600}  # signalling values in the list of suites
_TLS_1_2, _TLS_1_3 = 0x0303, 0x0304

_VERSIONS = {0x0301: "TLSv1.0", 0x0302: "TLSv1.1", _TLS_1_2: "TLSv1.2", _TLS_1_3: "TLSv1.3"}

REFERENCE_SUITES = {
    0x1302: "TLS_AES_256_GCM_SHA384",
    0xC02C: "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    0xC02B: "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    0xC030: "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
}
"""Number -> name of each suite in the reference, "Transport security"."""


@dataclass(frozen=True, slots=True)
class ClientHello:
    """The TLS versions and suites that a client offers, in its order of preference."""

    versions: tuple[str, ...]
    suites: tuple[str, ...]  # names as in the reference if listed there, else OpenSSL's names, else numbers


class Greeting:
    """Collects the first bytes of a connection until they form a whole ClientHello."""

    def __init__(self) -> None:
        self._received = b""
        self.is_over = False  # true if more bytes would add nothing

    def feed(self, data: bytes) -> ClientHello | None:
        """Take bytes as they arrive; return the ClientHello once, when it is complete."""
        if self.is_over:
            return None
        self._received += data
        try:
            message = _message(self._received)
            hello = None if message is None else _read(message)
        except (IndexError, ValueError):
            self.is_over = True
            return None
        self.is_over = hello is not None or len(self._received) > _HELLO_BYTES_MAX
        return hello

    @property
    def is_plain_http(self) -> bool:
        """True if the connection began with an HTTP request instead of TLS."""
        word = self._received.split(b" ", 1)[0]
        return b" " in self._received and 3 <= len(word) <= 7 and word.isalpha() and word.isupper()


def _message(received: bytes) -> bytes | None:
    """The handshake message in the records; None while incomplete."""
    content = b""
    while received:
        if received[0] != _HANDSHAKE:
            raise ValueError("no handshake")
        length = int.from_bytes(received[3:5], "big")
        if len(received) < 5 + length:
            return None
        content, received = content + received[5 : 5 + length], received[5 + length :]
        if len(content) >= 4 and len(content) >= 4 + int.from_bytes(content[1:4], "big"):
            return content
    return None


def _read(message: bytes) -> ClientHello:
    if message[0] != _CLIENT_HELLO:
        raise ValueError("no ClientHello")
    legacy_version, position = int.from_bytes(message[4:6], "big"), 38
    _, position = _vector(message, position, 1)  # session id
    suites, position = _vector(message, position, 2)
    _, position = _vector(message, position, 1)  # compression
    versions = _supported_versions(message, position) or _numbers(legacy_version.to_bytes(2, "big"))
    return ClientHello(
        versions=tuple(_VERSIONS[number] for number in versions if number in _VERSIONS),
        suites=tuple(
            REFERENCE_SUITES.get(number) or _openssl_names().get(number) or f"0x{number:04X}"
            for number in _numbers(suites)
            if number not in _NOT_A_SUITE and not _is_grease(number)
        ),
    )


def _supported_versions(message: bytes, position: int) -> list[int]:
    """The versions in the extension supported_versions; empty without it."""
    if position >= len(message):
        return []
    extensions, _ = _vector(message, position, 2)
    position = 0
    while position < len(extensions):
        kind = int.from_bytes(extensions[position : position + 2], "big")
        content, position = _vector(extensions, position + 2, 2)
        if kind == _SUPPORTED_VERSIONS:
            return _numbers(_vector(content, 0, 1)[0])
    return []


def _vector(content: bytes, position: int, length_bytes: int) -> tuple[bytes, int]:
    """Return the content after a length field, and the position after that content."""
    start = position + length_bytes
    end = start + int.from_bytes(content[position:start], "big")
    if end > len(content):
        raise ValueError("cut short")
    return content[start:end], end


def _numbers(content: bytes) -> list[int]:
    return [int.from_bytes(content[index : index + 2], "big") for index in range(0, len(content), 2)]


def _is_grease(number: int) -> bool:
    """True for a reserved number that clients send to keep servers tolerant (RFC 8701)."""
    return number & 0x0F0F == 0x0A0A and number >> 8 == number & 0xFF


@cache
def _openssl_names() -> dict[int, str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers("ALL:COMPLEMENTOFALL:@SECLEVEL=0")
    return {cipher["id"] & 0xFFFF: cipher["name"] for cipher in context.get_ciphers()}
