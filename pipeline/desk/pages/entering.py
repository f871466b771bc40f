"""Coming in at one's own desk, and leaving it."""

from aiohttp import web

from pipeline.desk.context import context_of
from pipeline.desk.doors import OwnDoor
from pipeline.desk.guards import person_of
from pipeline.desk.refusals import Missing, NoSession
from pipeline.desk.rendering import html
from schemas.desk import Deed

routes = web.RouteTableDef()


@routes.get("/enter")
async def door(request: web.Request) -> web.Response:
    """The page that a link opens: it posts the token, and no answer to a GET uses it up."""
    _own_door(request)
    return html(request, "enter", token=request.query.get("token", ""))


@routes.post("/enter")
async def enter(request: web.Request) -> web.Response:
    """Use the link up."""
    own = _own_door(request)
    token = str((await request.post()).get("token", ""))
    entered = own.sessions.enter(token)
    if entered is None:
        raise NoSession("This link was used already, is too old, or is not one of this desk.")
    session, person = entered
    context_of(request).record_of(person.name, Deed.OPENED)
    response = web.HTTPSeeOther("/")
    response.set_cookie(own.cookie, session, httponly=True, samesite="Strict", path="/")
    raise response


@routes.post("/leave")
async def leave(request: web.Request) -> web.Response:
    """End the session."""
    own, person = _own_door(request), person_of(request)
    own.sessions.leave(request.cookies.get(own.cookie))
    context_of(request).record_of(person.name, Deed.CLOSED)
    response = html(request, "left")
    response.del_cookie(own.cookie, path="/")
    return response


def _own_door(request: web.Request) -> OwnDoor:
    own = context_of(request).door
    if not isinstance(own, OwnDoor):
        raise Missing("You log in and out elsewhere.")
    return own
