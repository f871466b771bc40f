"""The subset of DER (ITU-T X.690) used in the statements of qualified certificates."""

from collections.abc import Iterator

SEQUENCE = 0x30
UTF8_STRING = 0x0C
OBJECT_IDENTIFIER = 0x06

_LONG_FORM = 0x80


def sequence(*members: bytes) -> bytes:
    """Encode a SEQUENCE of members that are already encoded."""
    return _encode(SEQUENCE, b"".join(members))


def utf8_string(text: str) -> bytes:
    """Encode a UTF8String."""
    return _encode(UTF8_STRING, text.encode())


def object_identifier(dotted: str) -> bytes:
    """Encode an OBJECT IDENTIFIER, given in dotted form."""
    first, second, *arcs = (int(arc) for arc in dotted.split("."))
    content = bytearray([40 * first + second])
    for arc in arcs:
        septets = [arc & 0x7F]
        while arc := arc >> 7:
            septets.append(arc & 0x7F | 0x80)
        content += bytes(reversed(septets))
    return _encode(OBJECT_IDENTIFIER, bytes(content))


def members(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Decode consecutive values: the tag and content of each (ValueError: not DER)."""
    position = 0
    while position < len(content):
        tag, length, position = _header(content, position)
        if position + length > len(content):
            raise ValueError("the value is cut short")
        yield tag, content[position : position + length]
        position += length


def _encode(tag: int, content: bytes) -> bytes:
    length = len(content)
    if length < _LONG_FORM:
        return bytes([tag, length]) + content
    octets = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes([tag, _LONG_FORM | len(octets)]) + octets + content


def _header(content: bytes, position: int) -> tuple[int, int, int]:
    """Decode a header; return the tag, the length, and the position after them."""
    if position + 2 > len(content):
        raise ValueError("the header is cut short")
    tag, length = content[position], content[position + 1]
    position += 2
    if length < _LONG_FORM:
        return tag, length, position
    octets = length & ~_LONG_FORM
    if not 1 <= octets <= 4:
        raise ValueError("the length is not of a definite, short form")
    return tag, int.from_bytes(content[position : position + octets], "big"), position + octets
