"""The desk's refusals: each has a sentence for the page and an HTTP status for the browser."""

from http import HTTPStatus

from pipeline.desk.languages import gettext_noop
from pipeline.wording import Sentence


class DeskRefusal(Exception):  # noqa: N818 (not an error of the program)
    """The desk refuses a request; the page shows the reason."""

    status = HTTPStatus.UNPROCESSABLE_ENTITY
    next_step = ""  # what to do, if refusals of this status differ in it

    def __init__(self, reason: Sentence, by: str | None = None) -> None:
        """Refuse the request; `by` is the person, if nothing but their name is known."""
        super().__init__(reason)
        self.reason, self.by = reason, by


class Missing(DeskRefusal):
    """The page or file does not exist."""

    status = HTTPStatus.NOT_FOUND


class Forbidden(DeskRefusal):
    """This person, or this address, is not allowed to do it."""

    status = HTTPStatus.FORBIDDEN


class Conflict(DeskRefusal):
    """Something has changed since the page was shown, or the state does not allow it."""

    status = HTTPStatus.CONFLICT


class TooLarge(DeskRefusal):
    """The upload exceeds the limit."""

    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE


class NoSession(DeskRefusal):
    """The user is not signed in."""

    status = HTTPStatus.UNAUTHORIZED


class NotNamed(NoSession):
    """The proxy does not name the user."""

    next_step = gettext_noop("Reload the page to log in. If that does not help, tell your administrator.")
