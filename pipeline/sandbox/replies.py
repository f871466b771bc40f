"""What is about to leave, as a value, so that a fault can make something else of it."""

from dataclasses import dataclass, replace
from typing import Self


@dataclass(frozen=True, slots=True)
class Reply:
    """One HTTP response."""

    status: int
    headers: dict[str, str]
    body: bytes

    def with_headers(self, **changes: str | None) -> Self:
        """The same with other headers, `_` for `-` in their names; None takes a header away."""
        headers = dict(self.headers)
        for name, value in changes.items():
            spelled = name.replace("_", "-")
            headers.pop(spelled, None)
            if value is not None:
                headers[spelled] = value
        return replace(self, headers=headers)
