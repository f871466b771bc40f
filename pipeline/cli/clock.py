"""The time, as every command passes it to its job."""

from datetime import UTC, datetime


def now() -> datetime:
    """The time in UTC."""
    return datetime.now(UTC)
