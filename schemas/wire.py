"""How the APIs write a moment."""

from datetime import UTC, datetime


def timestamp(moment: datetime) -> str:
    """A moment as the APIs write it: UTC, milliseconds, Z (API reference, "Request headers").

    >>> timestamp(datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=UTC))
    '2030-01-02T03:04:05.678Z'
    """
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
