"""Refusals of the desk: a sentence for the page and an HTTP status for the browser."""

from http import HTTPStatus

from pipeline.desk.languages import gettext_noop
from pipeline.wording import Sentence


class DeskRefusal(Exception):  # noqa: N818 (nothing went wrong)
    """The desk does not do it, for a reason that its page shows."""

    status = HTTPStatus.UNPROCESSABLE_ENTITY
    next_step = ""  # what to do about it, where that is not the same for all refusals of this status

    def __init__(self, reason: Sentence, by: str | None = None) -> None:
        """Refuse it, to a person who is known by name only."""
        super().__init__(reason)
        self.reason, self.by = reason, by


class Missing(DeskRefusal):
    """The page or file does not exist."""

    status = HTTPStatus.NOT_FOUND


class Forbidden(DeskRefusal):
    """Not for this person, or not from there."""

    status = HTTPStatus.FORBIDDEN


class Conflict(DeskRefusal):
    """Something has changed since the page was shown."""

    status = HTTPStatus.CONFLICT


class TooLarge(DeskRefusal):
    """The upload is larger than may be."""

    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE


class NoSession(DeskRefusal):
    """The user is not signed in."""

    status = HTTPStatus.UNAUTHORIZED


class NotNamed(NoSession):
    """The proxy does not say who asks."""

    next_step = gettext_noop("Reload the page to log in. If that does not help, tell your administrator.")
