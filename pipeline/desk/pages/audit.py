"""Who did what at the desk."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress

from aiohttp import web

from pipeline.desk.context import context_of
from pipeline.desk.folders import DeskHome
from pipeline.desk.guards import person_of
from pipeline.desk.people import Role
from pipeline.desk.refusals import Missing
from pipeline.desk.rendering import html, page_number
from pipeline.errors import PrecheckError

routes = web.RouteTableDef()
ENTRIES_ON_PAGE = 100


@routes.get("/audit")
async def audit(request: web.Request) -> web.Response:
    """The journal, newest first; it is whole, or the page says that it is not."""
    context = context_of(request)
    person_of(request).require(Role.AUDITOR, Role.APPROVER)
    entries = await asyncio.to_thread(context.home.audit.entries)
    page, page_count = page_number(request.query.get("page")), max(1, -(-len(entries) // ENTRIES_ON_PAGE))
    newest = entries[::-1][(page - 1) * ENTRIES_ON_PAGE : page * ENTRIES_ON_PAGE]
    names = await asyncio.to_thread(_names, context.home, {entry.run for entry in newest if entry.run})
    return html(
        request,
        "audit",
        entries=newest,
        entry_count=len(entries),
        names=names,
        page=page,
        page_count=page_count,
    )


def _names(home: DeskHome, file_ids: Iterable[str]) -> dict[str, str]:
    """Id -> the name of the file, of those that are at the desk still and can be read."""
    found = {}
    for file_id in file_ids:
        with suppress(Missing, PrecheckError):
            found[file_id] = home.folder(file_id).read().name
    return found
