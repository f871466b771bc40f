"""The progress page of a check."""

import asyncio
from datetime import datetime

from aiohttp import web

from pipeline.desk.context import Context, context_of, person_of
from pipeline.desk.jobs import can_resume, is_simulated
from pipeline.desk.languages import duration, gettext, gettext_noop, in_page_words, ngettext, number
from pipeline.desk.pages.reading import may_start_over
from pipeline.desk.rendering import html
from pipeline.desk.states import WORDS, FileStatus, State, may
from pipeline.runs.request import Phase
from pipeline.wording import Sentence
from schemas.desk import CheckProgress, Deed

routes = web.RouteTableDef()
PHASES = {
    "starting": gettext_noop("The check is starting."),
    "reading": gettext_noop("Reading and planning the file."),
    "connecting": gettext_noop("Connecting to the name-check service."),
    "asking": gettext_noop("Checking with the banks."),
    "writing": gettext_noop("Writing the results."),
}
_SIMULATED = gettext_noop("Checking with the sandbox.")
"""Shown instead of the names of banks."""


@routes.get("/files/{id}/progress")
async def progress(request: web.Request) -> web.Response:
    """The progress of a running check, or its result."""
    context = context_of(request)
    current = await context.current(request)
    if current.progress is None and current.summary is None:
        raise web.HTTPSeeOther(f"/files/{current.id}/{WORDS[current.state].page}")
    return html(
        request,
        "progress",
        current=current,
        live=_live(current, context),
        will_be_simulated=current.state is State.RUNNING
        and (_is_simulated(current) or await asyncio.to_thread(is_simulated, current.file.profile)),
        may_stop=any(may(current, person_of(request), deed) for deed in (Deed.STOPPED, Deed.STARTED)),
        State=State,
        can_resume=current.state is not State.CAPPED
        or await asyncio.to_thread(can_resume, current.folder, context.clock),
        may_start_over=await asyncio.to_thread(may_start_over, current, context.clock),
    )


@routes.get("/files/{id}/progress.json")
async def progress_now(request: web.Request) -> web.Response:
    """The progress as JSON, for the page's script."""
    context = context_of(request)
    return web.json_response(_live(await context.current(request), context))


def _is_simulated(current: FileStatus) -> bool:
    return current.progress is not None and current.progress.simulated


def _live(current: FileStatus, context: Context) -> dict[str, object]:
    """Describe the progress in words, which the page shows unchanged."""
    now = current.progress or CheckProgress(phase="writing", started="", exit_code=0)
    is_on = current.state is State.RUNNING
    is_asking_sandbox = now.simulated and now.phase == Phase.ASKING
    sentence = gettext(_SIMULATED if is_asking_sandbox else PHASES.get(now.phase, ""))
    if now.waiting_for is not None:
        sentence = in_page_words([Sentence.of_data(now.waiting_for)])
    if now.stopping:
        sentence = gettext("Stopping: waiting for the last replies.")
    if now.slowed:
        sentence += " " + gettext("The name-check service asked for fewer requests at a time.")
    return {
        "state": current.state.value,
        "is_on": is_on,
        "done": now.answered_before_count + now.done_count,
        "of": now.answered_before_count + now.check_count,
        "count": _count(now) if now.check_count else "",
        "rate": _rate(now, context.clock()) if is_on else "",
        "sentence": sentence if is_on else "",
        "next": WORDS[current.state].page,
    }


def _count(now: CheckProgress) -> str:
    """The answered questions; after a resumption, those answered since are counted separately."""
    before = now.answered_before_count
    done = number(before + now.done_count)
    return ngettext(
        "%(done)s of %(num)s question", "%(done)s of %(num)s questions", before + now.check_count, done=done
    )


def _rate(now: CheckProgress, time: datetime) -> str:
    if now.asking_since is None or not now.done_count:
        return ""
    taken_s = max((time - datetime.fromisoformat(now.asking_since)).total_seconds(), 0.001)
    rate = now.done_count / taken_s
    left_s = (now.check_count - now.done_count) / rate
    pace = number(rate, "#,##0.0")
    if not left_s:
        return gettext("%(rate)s a second", rate=pace)
    return gettext("%(rate)s a second, about %(time)s left", rate=pace, time=duration(left_s))
