"""The audit page: who did what, and when."""

import asyncio
import io
from collections.abc import Iterable
from contextlib import suppress
from urllib.parse import urlencode

import polars as pl
from aiohttp import web

from pipeline.desk.context import context_of, person_of
from pipeline.desk.folders import DeskHome
from pipeline.desk.people import Role
from pipeline.desk.refusals import Missing
from pipeline.desk.rendering import FACTS, attachment, html, page_number
from pipeline.errors import PrecheckError
from pipeline.reports import safe_csv
from schemas.desk import AuditEntry, Deed

routes = web.RouteTableDef()
ENTRIES_ON_PAGE = 100


@routes.get("/audit")
async def audit(request: web.Request) -> web.Response:
    """The audit journal, newest entry first; if the journal is damaged, the page says so."""
    context = context_of(request)
    every, entries, asked = await _found(request)
    page, page_count = page_number(request.query.get("page")), max(1, -(-len(entries) // ENTRIES_ON_PAGE))
    newest = entries[::-1][(page - 1) * ENTRIES_ON_PAGE : page * ENTRIES_ON_PAGE]
    return html(
        request,
        "audit",
        entries=newest,
        asked=asked,
        query=urlencode({name: value for name, value in asked.items() if value}),
        people=sorted({entry.by for entry in every}),
        files=await asyncio.to_thread(_names, context.home, {entry.run for entry in every if entry.run}),
        reasons=await asyncio.to_thread(_reasons, context.home, newest),
        entry_count=len(entries),
        names=await asyncio.to_thread(_names, context.home, {entry.run for entry in newest if entry.run}),
        page=page,
        page_count=page_count,
    )


@routes.get("/audit.csv")
async def audit_csv(request: web.Request) -> web.Response:
    """The same entries as a CSV table, in the journal's English."""
    _, entries, _ = await _found(request)
    lines = [
        (entry.time, entry.by, entry.deed.value, entry.run, *map(entry.facts.get, FACTS), entry.previous)
        for entry in entries
    ]
    columns = ["time", "by", "deed", "run", *FACTS, "previous"]
    texts = [["" if cell is None else str(cell) for cell in line] for line in lines]
    frame = pl.DataFrame(texts, columns, orient="row")
    file = io.BytesIO()
    safe_csv.write(frame, file, delimiter=None)
    return attachment("audit.csv", file.getvalue())


def _reasons(home: DeskHome, entries: Iterable[AuditEntry]) -> dict[str, str]:
    """Hash of the preceding entry -> the reason of the decision, from the file's own journal."""
    found, journals = {}, {}
    for entry in entries:
        if entry.deed is not Deed.DECIDED or entry.run is None:
            continue
        with suppress(Missing, PrecheckError):
            if entry.run not in journals:
                journals[entry.run] = home.folder(entry.run).decisions.entries()
            row = entry.facts.get("row")
            reasons = [
                one
                for one in journals[entry.run]
                if one.by == entry.by and one.time <= entry.time and row in (None, *one.rows)
            ]
            if reasons and reasons[-1].reason:
                found[entry.previous] = reasons[-1].reason
    return found


async def _found(request: web.Request) -> tuple[list[AuditEntry], list[AuditEntry], dict[str, str]]:
    """Return all entries, those that pass the filter, and the filter: person, file, action and day."""
    person_of(request).require(Role.AUDITOR, Role.APPROVER)
    entries = await asyncio.to_thread(context_of(request).home.audit.entries)
    asked = {name: request.query.get(name, "")[:80] for name in ("by", "run", "deed", "day")}
    shown = [
        entry
        for entry in entries
        if asked["by"] in ("", entry.by)
        and asked["run"] in ("", entry.run)
        and asked["deed"] in ("", entry.deed)
        and entry.time.startswith(asked["day"])
    ]
    return entries, shown, asked


def _names(home: DeskHome, file_ids: Iterable[str]) -> dict[str, str]:
    """Map ids to file names, for files that are still at the desk and readable."""
    found = {}
    for file_id in file_ids:
        with suppress(Missing, PrecheckError):
            found[file_id] = home.folder(file_id).read().name
    return found
