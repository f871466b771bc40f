"""Who did what at the desk."""

import asyncio

from aiohttp import web

from pipeline.desk.context import context_of
from pipeline.desk.guards import person_of
from pipeline.desk.pages.numbers import number
from pipeline.desk.people import Role
from pipeline.desk.rendering import html

routes = web.RouteTableDef()
ENTRIES_ON_PAGE = 100


@routes.get("/audit")
async def audit(request: web.Request) -> web.Response:
    """The journal, newest first; it is whole, or the page says that it is not."""
    context = context_of(request)
    person_of(request).require(Role.AUDITOR, Role.APPROVER)
    entries = await asyncio.to_thread(context.home.audit.entries)
    page, page_count = number(request.query.get("page")), max(1, -(-len(entries) // ENTRIES_ON_PAGE))
    newest = entries[::-1][(page - 1) * ENTRIES_ON_PAGE : page * ENTRIES_ON_PAGE]
    known = {folder.id for folder in await asyncio.to_thread(context.home.folders)}
    return html(
        request,
        "audit",
        entries=newest,
        entry_count=len(entries),
        known=known,
        page=page,
        page_count=page_count,
    )
