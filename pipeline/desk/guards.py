"""What every request passes before a page sees it, and what every answer carries."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from pipeline.desk.doors import Door
from pipeline.desk.people import Person
from pipeline.desk.refusals import Forbidden, NoSession, Refusal
from pipeline.desk.rendering import refused
from pipeline.desk.words import sentence_of
from pipeline.errors import PrecheckError

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
OPEN_TO_ALL = ("/enter", "/static/")
"""What needs no session: the door, and files that are the same for everybody."""
UNNOTICED = ("/progress.json",)
"""What a page asks for by itself: it is no sign that somebody is there."""

DOOR = web.AppKey("door", Door)
PERSON = "person"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@web.middleware
async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Let through who may ask, from where one may ask; turn what is refused into a page."""
    response: web.StreamResponse
    try:
        _require_host(request)
        _require_own_page(request)
        if not request.path.startswith(OPEN_TO_ALL):
            counts = not request.path.endswith(UNNOTICED)
            request[PERSON] = request.app[DOOR].person(request, counts=counts)
        response = await handler(request)
    except Refusal as refusal:
        response = refused(request, str(refusal), refusal.status)
    except PrecheckError as error:
        response = refused(request, sentence_of(error), 422)
    except web.HTTPRedirection as redirection:
        redirection.headers.update(HEADERS)
        raise
    except web.HTTPException as error:
        response = refused(request, _SENTENCES.get(error.status, "This cannot be done."), error.status)
    if not response.prepared:
        response.headers.update(HEADERS)
    return response


_SENTENCES = {
    404: "There is no such page.",
    405: "This page does nothing of that kind.",
    413: "That is more than the desk takes.",
}


def _require_host(request: web.Request) -> None:
    """Against pages of others that have their name lead here."""
    if request.host not in request.app[DOOR].hosts:
        raise Forbidden("The desk is not known by this name. Open it by its own address.")


def _require_own_page(request: web.Request) -> None:
    """Against forms and scripts in pages of others."""
    if request.method in ("GET", "HEAD"):
        return
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    ours = request.app[DOOR].origins
    is_own = origin in ours if site is None else site in ("same-origin", "none")
    if not is_own or (origin is not None and origin not in ours):
        raise Forbidden("Another page sent this. Open the desk by its own address, and do it there.")


def person_of(request: web.Request) -> Person:
    """Who asks."""
    person = request.get(PERSON)
    if not isinstance(person, Person):
        raise NoSession("You are not signed in.")
    return person
