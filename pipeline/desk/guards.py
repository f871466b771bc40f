"""Middleware: checks before any page handles a request, and headers for every response."""

import re
import sys
from collections.abc import Awaitable, Callable
from traceback import walk_tb

from aiohttp import web

from pipeline.desk.context import CONTEXT
from pipeline.desk.languages import gettext, gettext_noop, preferred, sentence_of
from pipeline.desk.refusals import DeskRefusal, Forbidden
from pipeline.desk.rendering import PATH, PERSON, refused
from pipeline.errors import PrecheckError
from pipeline.wording import Sentence, speak

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
OPEN_TO_ALL = ("/enter", "/static/")  # paths that need no session: the sign-in page and static files
UNNOTICED = ("/progress.json",)  # requests that a page's script makes: they do not count as activity

LANGUAGE_COOKIE = "precheck-desk-language"  # name of the cookie with the language that the user chose
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@web.middleware
async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Pass permitted requests on, and turn refusals into pages."""
    response: web.StreamResponse
    speak(preferred(request.cookies.get(LANGUAGE_COOKIE), request.headers.get("Accept-Language", "")))
    access, prefix = request.app[CONTEXT].access, ""
    try:
        access.require_peer(request)
        prefix = access.prefix  # only users who know it get past this line
        request[PATH] = path = request.path[len(prefix) :]
        _require_own_page(request)
        if not path.startswith(OPEN_TO_ALL):
            request[PERSON] = access.person(request, counts=not path.endswith(UNNOTICED))
        response = await handler(request)
    except DeskRefusal as refusal:
        await request.app[CONTEXT].record_refusal(request, refusal)
        response = refused(request, refusal.reason, refusal.status, refusal.next_step)
    except PrecheckError as error:
        response = refused(request, sentence_of(error), 422)
    except web.HTTPRedirection as redirection:
        redirection.headers.update(HEADERS)
        redirection.headers["Location"] = prefix + redirection.headers["Location"]
        raise
    except web.HTTPException as error:
        response = refused(request, gettext(_SENTENCES.get(error.status, _IMPOSSIBLE)), error.status)
    except ConnectionError:  # the browser closed the connection
        raise
    except Exception as mistake:  # noqa: BLE001 (the one place that catches everything, to report it)
        _report(mistake)
        response = refused(request, gettext(_MISTAKE), 500)
    if not response.prepared:
        response.headers.update(HEADERS)
    if prefix and isinstance(response, web.Response) and response.content_type == "text/html":
        response.text = _LINKS.sub(rf"\g<0>{prefix}", response.text or "")
    return response


_LINKS = re.compile(' (?:href|src|action|formaction|data-now|data-then)="(?=/)')
"""Where a link to the desk begins. User text cannot match: its quotation marks are escaped."""
_MISTAKE = gettext_noop(
    "Internal error. Nothing you saved is lost. Tell your administrator when it happened and what you did."
)
_IMPOSSIBLE = gettext_noop("This is not possible.")
_SENTENCES = {
    404: gettext_noop("Page not found."),
    405: gettext_noop("This page does not support that action."),
    413: gettext_noop("That is larger than the desk accepts."),
}


def _report(mistake: Exception) -> None:
    """Print only where an error occurred: its message and values may be personal data."""
    frames = [f"{frame.f_globals.get('__name__')}:{line}" for frame, line in walk_tb(mistake.__traceback__)]
    sys.stderr.write(f"precheck: a mistake at the desk: {type(mistake).__name__} in {' '.join(frames)}\n")


def _require_own_page(request: web.Request) -> None:
    """Refuse other host names that resolve to this desk, and forms and scripts from pages of other sites."""
    access = request.app[CONTEXT].access
    if request.host not in access.hosts:
        raise Forbidden(Sentence("desk.not_known_by_name"))
    if request.method in ("GET", "HEAD"):
        return
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    ours = [f"{access.scheme}://{host}" for host in access.hosts]
    is_own = origin in ours if site is None else site in ("same-origin", "none")
    if not is_own or (origin is not None and origin not in ours):
        raise Forbidden(Sentence("desk.sent_by_another_page"))
