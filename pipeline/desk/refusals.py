"""Why the desk does not do what somebody asked for: a sentence for the page, and a status for the browser."""

from http import HTTPStatus


class Refusal(Exception):  # noqa: N818 (nothing went wrong)
    """The desk does not do it; as text, the sentence for the page."""

    status = HTTPStatus.UNPROCESSABLE_ENTITY


class Missing(Refusal):
    """There is no such thing."""

    status = HTTPStatus.NOT_FOUND


class Forbidden(Refusal):
    """Not for this person, or not from there."""

    status = HTTPStatus.FORBIDDEN


class Conflict(Refusal):
    """Something has changed since the page was shown."""

    status = HTTPStatus.CONFLICT


class TooLarge(Refusal):
    """The upload is larger than may be."""

    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE


class NoSession(Refusal):
    """Who asks is not known."""

    status = HTTPStatus.UNAUTHORIZED
