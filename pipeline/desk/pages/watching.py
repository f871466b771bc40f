"""How far a check is."""

from datetime import datetime

from aiohttp import web

from pipeline.desk.context import Context, context_of
from pipeline.desk.guards import person_of
from pipeline.desk.people import Role
from pipeline.desk.rendering import duration_text, html
from pipeline.desk.states import WORDS, Standing, State
from schemas.desk import CheckProgress

routes = web.RouteTableDef()
PHASES = {
    "starting": "The check is starting.",
    "reading": "The file is read and planned.",
    "connecting": "The servers are greeted.",
    "asking": "Banks are asked.",
    "writing": "The results are written.",
}


@routes.get("/files/{id}/progress")
async def progress(request: web.Request) -> web.Response:
    """The bar, or how the check ended."""
    context = context_of(request)
    at = await context.at(request)
    if at.progress is None and at.summary is None:
        raise web.HTTPSeeOther(f"/files/{at.id}/{WORDS[at.state].page}")
    return html(
        request,
        "progress",
        at=at,
        live=_live(at, context),
        may_stop=person_of(request).can(Role.UPLOADER),
        State=State,
    )


@routes.get("/files/{id}/progress.json")
async def progress_now(request: web.Request) -> web.Response:
    """The same for the script of the page."""
    context = context_of(request)
    return web.json_response(_live(await context.at(request), context))


def _live(at: Standing, context: Context) -> dict[str, object]:
    """How far the check is, in words; the page shows them as they are."""
    now = at.progress or CheckProgress(phase="writing", started="", exit_code=0)
    is_on = at.state is State.RUNNING
    sentence = PHASES.get(now.phase, "")
    if now.waiting_for is not None:
        sentence = f"Waiting for another check to end: {now.waiting_for}."
    if now.stopping:
        sentence = "Stopping: the answers to requests in flight are awaited."
    if now.slowed:
        sentence += " A server wants fewer requests at a time than agreed."
    return {
        "state": at.state.value,
        "is_on": is_on,
        "done": now.done_count,
        "of": now.check_count,
        "count": f"{now.done_count:,} of {now.check_count:,} questions" if now.check_count else "",
        "rate": _rate(now, context.clock()) if is_on else "",
        "sentence": sentence if is_on else "",
        "next": WORDS[at.state].page,
    }


def _rate(now: CheckProgress, time: datetime) -> str:
    """How fast, and how long it still takes at that rate."""
    if now.asking_since is None or not now.done_count:
        return ""
    taken_s = max((time - datetime.fromisoformat(now.asking_since)).total_seconds(), 0.001)
    rate = now.done_count / taken_s
    left_s = (now.check_count - now.done_count) / rate
    return f"{rate:,.1f} a second, about {duration_text(left_s)} left" if left_s else f"{rate:,.1f} a second"
