"""The rows to look at, and the decisions about them."""

import asyncio
from collections.abc import Mapping

from aiohttp import web

from pipeline.desk.context import context_of
from pipeline.desk.guards import person_of
from pipeline.desk.pages.numbers import number
from pipeline.desk.people import Role
from pipeline.desk.refusals import Conflict, Missing, Refusal
from pipeline.desk.releasing import Decided, decide, require_possible, signed
from pipeline.desk.rendering import html
from pipeline.desk.review import Asked, LastWord, Review, last_words, opened
from pipeline.desk.states import Standing, State
from schemas.desk import Deed
from schemas.outcomes import Outcome
from schemas.review import Decision

routes = web.RouteTableDef()
_SHOWN = (Outcome.CLOSE_MATCH, Outcome.NO_MATCH, Outcome.NOT_POSSIBLE, Outcome.REJECTED, Outcome.DEFERRED, Outcome.UNANSWERED)  # fmt: skip


@routes.get("/files/{id}/review")
async def review(request: web.Request) -> web.Response:
    """The rows by money; what is in the address names nobody."""
    return await _page(request, {name: request.query.get(name, "") for name in _WITHOUT_NAMES})


_WITHOUT_NAMES = ("group", "outcome", "decided", "sort", "page")


@routes.post("/files/{id}/review")
async def search(request: web.Request) -> web.Response:
    """The rows that were asked for; a name that is searched for stands in no address."""
    return await _page(request, {name: str(value) for name, value in (await request.post()).items()})


async def _page(request: web.Request, said: Mapping[str, str]) -> web.Response:
    at = await context_of(request).at(request)
    if at.summary is None or at.state is State.RUNNING:
        raise Conflict("There is nothing to review yet.")
    asked = _asked(said)
    run, words = await asyncio.to_thread(_opened, at)
    page = await asyncio.to_thread(run.page, asked, words)
    left = {group.key: 0 for group in run.groups.groups}
    for key, row in run.listed.select("group", "row").iter_rows():
        left[key] += row not in words
    return html(
        request,
        "review",
        at=at,
        run=run,
        page=page,
        asked=asked,
        words=words,
        left=left,
        decided_count=sum(1 for row in run.listed["row"] if row in words),
        outcomes=[total for total in run.summary.outcomes if total.row_count and total.outcome in _SHOWN],
        chosen_group=next((group for group in run.groups.groups if group.key == asked.group), None),
        may_decide=may_decide(request, at),
    )


def may_decide(request: web.Request, at: Standing) -> bool:
    """Whether who asks may decide about rows now."""
    return person_of(request).can(Role.REVIEWER) and at.state not in (State.RUNNING, State.PURGED)


def _opened(at: Standing) -> tuple[Review, dict[int, LastWord]]:
    run = opened(at.folder)
    return run, last_words(at.folder.decisions, run.summary.run_id)


def _asked(said: Mapping[str, str]) -> Asked:
    outcome, decided = said.get("outcome", ""), said.get("decided", "")
    return Asked(
        group=said.get("group", "")[:80],
        outcome=outcome if outcome in set(Outcome) else "",
        decided=decided if decided in ("yes", "no") else "",
        text=said.get("text", "")[:200],
        sort="row" if said.get("sort") == "row" else "money",
        page=number(said.get("page")),
    )


@routes.post("/files/{id}/rows/{row:[0-9]{1,9}}")
async def decide_row(request: web.Request) -> web.Response:
    """A decision about one row."""
    context, person = context_of(request), person_of(request)
    person.require(Role.REVIEWER)
    at = await context.at(request)
    said = {name: str(value) for name, value in (await request.post()).items()}
    row, decision = int(request.match_info["row"]), _decision(said)
    run = await asyncio.to_thread(opened, at.folder)
    if decision is not None:
        require_possible(run, row, decision)
    wanted = Decided([row], decision, said.get("reason", ""))
    await asyncio.to_thread(decide, at, run, wanted, person, context.clock())
    await context.record(request, Deed.DECIDED, at.id, row_count=1)
    if request.headers.get("X-Part") == "row":
        words = await asyncio.to_thread(last_words, at.folder.decisions, run.summary.run_id)
        line = run.row(row, words)
        if line is None:
            raise Missing("The row is a match.")
        return html(request, "row", at=at, line=line, asked=_asked(said), may_decide=True)
    raise web.HTTPSeeOther(f"{_way_back(at, said)}#row-{row}")


@routes.post("/files/{id}/groups")
async def decide_group(request: web.Request) -> web.Response:
    """A decision about all rows of a group that nobody decided about yet."""
    context, person = context_of(request), person_of(request)
    person.require(Role.REVIEWER)
    at = await context.at(request)
    said = {name: str(value) for name, value in (await request.post()).items()}
    decision = _decision(said)
    run, words = await asyncio.to_thread(_opened, at)
    rows = [] if decision is None else run.undecided(said.get("group", ""), decision, words)
    if not rows:
        raise Refusal("No row of this group is left for which that can be followed.")
    wanted = Decided(rows, decision, said.get("reason", ""))
    await asyncio.to_thread(decide, at, run, wanted, person, context.clock())
    await context.record(request, Deed.DECIDED, at.id, row_count=len(rows))
    raise web.HTTPSeeOther(f"{_way_back(at, said)}#group")


def _decision(said: Mapping[str, str]) -> Decision | None:
    word = said.get("decision", "")
    if word == "none":
        return None
    if word not in set(Decision):
        raise Refusal("Choose what to do with the row first.")
    return Decision(word)


def _way_back(at: Standing, said: Mapping[str, str]) -> str:
    asked = _asked(said)
    kept = {
        "group": asked.group,
        "outcome": asked.outcome,
        "decided": asked.decided,
        "sort": asked.sort,
        "page": str(asked.page),
    }
    query = "&".join(f"{name}={value}" for name, value in kept.items() if value and _is_plain(value))
    return f"/files/{at.id}/review?{query}"


def _is_plain(value: str) -> bool:
    return value.isascii() and all(one.isalnum() or one in "-_" for one in value)


@routes.post("/files/{id}/hand-over")
async def hand_over(request: web.Request) -> web.Response:
    """Say that the review is done: now somebody may approve it."""
    context, person = context_of(request), person_of(request)
    person.require(Role.REVIEWER)
    at = await context.at(request)
    if at.summary is None or at.state in (State.RUNNING, State.PURGED):
        raise Conflict("There is nothing to hand over yet.")
    agreed = signed(at, person, context.clock())
    await asyncio.to_thread(lambda: at.folder.change(handed_over=agreed))
    await context.record(request, Deed.HANDED_OVER, at.id)
    raise web.HTTPSeeOther(f"/files/{at.id}/release")
