"""Numbers in requests."""


def number(text: str | None) -> int:
    """A number from 1 on; 1 where it is none.

    >>> number("12"), number(None), number("0"), number("-1"), number("9" * 99), number("x")
    (12, 1, 1, 1, 1, 1)
    """
    is_number = text is not None and text.isascii() and text.isdigit() and len(text) < 8
    return max(int(text or ""), 1) if is_number else 1
