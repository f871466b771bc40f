"""Sign-in and sign-out at a personal desk."""

import re

from aiohttp import web

from pipeline.desk.access import LocalAccess
from pipeline.desk.context import context_of, person_of
from pipeline.desk.guards import LANGUAGE_COOKIE
from pipeline.desk.refusals import Missing, NoSession
from pipeline.desk.rendering import html
from pipeline.wording import LANGUAGES, Sentence
from schemas.desk import Deed

routes = web.RouteTableDef()
_LANGUAGE_KEPT_S = 365 * 24 * 3600
_OWN_PAGE = re.compile(
    "/(search|audit)?|/files/[0-9a-f]{24}/(columns|plan|progress|review|release|rows/[0-9]{1,9})"
)
"""Addresses of the desk's own pages; choosing a language may return to one of them."""


@routes.get("/enter")
async def access(request: web.Request) -> web.Response:
    """The page behind a sign-in link. Its script posts the token, so opening the link does not use it up."""
    _own_door(request)
    return html(request, "enter", token=request.query.get("token", ""))


@routes.post("/enter")
async def enter(request: web.Request) -> web.Response:
    """Use up the sign-in link."""
    own = _own_door(request)
    token = str((await request.post()).get("token", ""))
    entered = own.sessions.enter(token)
    if entered is None:
        raise NoSession(Sentence("desk.link_used"))
    session, person = entered
    context_of(request).record_of(person.name, Deed.OPENED)
    response = web.HTTPSeeOther("/")
    response.set_cookie(own.cookie, session, httponly=True, samesite="Strict", path=f"{own.prefix}/")
    raise response


@routes.post("/leave")
async def leave(request: web.Request) -> web.Response:
    """End the session, and show the sign-in page."""
    own, person = _own_door(request), person_of(request)
    own.sessions.leave(request.cookies.get(own.cookie))
    context_of(request).record_of(person.name, Deed.CLOSED)
    response = html(request, "left")
    response.del_cookie(own.cookie, path=f"{own.prefix}/")
    return response


@routes.post("/language")
async def choose_language(request: web.Request) -> web.Response:
    """Save the user's language, and show the same page again."""
    form = await request.post()
    chosen, back = str(form.get("language", "")), str(form.get("back", ""))
    response = web.HTTPSeeOther(back if _OWN_PAGE.fullmatch(back) else "/")
    if chosen in LANGUAGES:
        is_team = not isinstance(context_of(request).access, LocalAccess)
        response.set_cookie(
            LANGUAGE_COOKIE,
            chosen,
            max_age=_LANGUAGE_KEPT_S,
            httponly=True,
            samesite="Strict",
            secure=is_team,
            path="/",
        )
    raise response


def _own_door(request: web.Request) -> LocalAccess:
    own = context_of(request).access
    if not isinstance(own, LocalAccess):
        raise Missing(Sentence("desk.login_elsewhere"))
    return own
