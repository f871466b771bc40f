"""The pages of a check: how the file is read, the forecast, start and progress."""

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from aiohttp import web

from pipeline.apis.registry import APIS
from pipeline.config.inputs import ReadAs
from pipeline.desk import checks, jobs
from pipeline.desk.context import Context, context_of, opened_by, person_of
from pipeline.desk.languages import duration, gettext, gettext_noop, in_page_words, ngettext, sentence_of
from pipeline.desk.listing import Asked, Listing
from pipeline.desk.pages.files import same_files
from pipeline.desk.refusals import Conflict, DeskRefusal
from pipeline.desk.releasing import on_one_line, shaping
from pipeline.desk.rendering import html, words
from pipeline.desk.review import reviewed, shown_of
from pipeline.desk.states import WORDS, FileStatus, State, may
from pipeline.errors import PrecheckError
from pipeline.formats import pain001
from pipeline.formats.encodings import ENCODINGS
from pipeline.formats.registry import INPUT_NAMES
from pipeline.headers.columns import ACCOUNT_FIELDS, PAYEE_FIELDS
from pipeline.reports.wording import number
from pipeline.runs.request import Clock, Phase
from pipeline.wording import Sentence
from schemas.columns import ColumnsRead
from schemas.cop import AccountType
from schemas.desk import CheckProgress, Deed, DeskFile
from schemas.forecast import Forecast
from schemas.outcomes import Outcome
from schemas.payments import FIELDS, IGNORE
from schemas.prices import Price
from schemas.review import Act
from schemas.strict import timestamp
from schemas.summary import ApiCalls, Summary

routes = web.RouteTableDef()
_JOINED_BY = {**dict.fromkeys(FIELDS, "+"), IGNORE: "|"}
"""Role chosen for a column -> separator in a mapping of several such columns: name parts, or ignored ones."""
_READ_BY = ("mapping", "encoding", "sheet", "input_format", "country")
"""Form fields that say how to read a file."""


@routes.get("/files/{id}/columns")
async def columns(request: web.Request) -> web.Response:
    """The page of columns: for each its field, the rule that chose the field, and its first values."""
    person_of(request).require_names()
    context = context_of(request)
    current = await context.current(request)
    if current.state is State.PURGED:
        raise Conflict(Sentence("desk.file_deleted"))
    found = await asyncio.to_thread(_columns, current)
    same = [] if found.refusal else await asyncio.to_thread(same_files, context, current.folder)
    return html(
        request,
        "columns",
        current=current,
        read=found.read,
        refusal=found.refusal,
        missing=_missing(found.read) if found.refusal and found.read else [],
        sheets=found.sheets,
        readings=found.readings,
        is_changed=request.query.get("read") == "anew" and not found.refusal,
        same=same,
        fields=[*((field, words(field)) for field in FIELDS), (IGNORE, gettext("Ignore"))],
        chosen=_chosen_beside(current.file.mapping),
        encodings=ENCODINGS,
        formats=INPUT_NAMES,
        may_change=may(current, person_of(request), Deed.READ_AS),
    )


def _missing(read: ColumnsRead) -> list[str]:
    """Name the payee and account details that have no column in the file, not even a similar one."""
    known = {column.field for column in read.columns if not column.disputed}
    known |= {column.map.partition("=")[0] for column in read.columns if column.map}
    wanted = {gettext("payee"): PAYEE_FIELDS, gettext("account"): ACCOUNT_FIELDS}
    return [name for name, fields in wanted.items() if known.isdisjoint(fields)] if read.columns else []


def _chosen_beside(mapping: Mapping[str, str]) -> dict[str, str]:
    """Header -> the role chosen for it."""
    whole = {header: field for field, header in mapping.items()}
    parts = {part: field for field, headers in mapping.items() for part in headers.split(_JOINED_BY[field])}
    return {**parts, **whole}


class _Found(NamedTuple):
    read: ColumnsRead | None
    refusal: str = ""  # the error, if the file cannot be read this way
    sheets: tuple[tuple[str, str], ...] = ()  # names and headers of the sheets, if the user must choose one
    readings: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Encodings that fit, each with the first names as it decodes them."""


def _columns(current: FileStatus) -> _Found:
    file = current.file
    given = ReadAs(file.mapping, file.encoding, file.sheet, file.input_format, file.country)
    try:
        read, refusal = jobs.columns_once(current.folder.input, file.sha256, given)
    except PrecheckError as error:
        read, refusal = None, error
    if refusal is None or read is None:
        return _Found(read, "" if refusal is None else sentence_of(refusal))
    [message] = refusal.messages
    sheets, headers = ([*map(str, refusal.reason.lists(name))] for name in ("sheets", "headers"))
    fitting = [one for one in message.lists("readings") if isinstance(one, Sentence)]
    choices = tuple((name, headers[number] if headers else "") for number, name in enumerate(sheets))
    readings = tuple((str(one.values["encoding"]), tuple(map(str, one.lists("cells")))) for one in fitting)
    return _Found(read, sentence_of(refusal), choices, readings)


@routes.post("/files/{id}/columns")
async def read_as(request: web.Request) -> web.Response:
    """Change how the file is read, or confirm the current choices."""
    context, person, current = await opened_by(request, Deed.READ_AS)
    form = {name: str(value) for name, value in (await request.post()).items()}
    changes = _changes_in(current.file, form)
    was_shown = all(getattr(current.file, name) == changes[name] for name in _READ_BY)
    mapped = shaping(current.file, person.name, Act.MAPPED, timestamp(context.clock()))
    if current.file.is_refused:
        jobs.forget_columns()
    changed = await asyncio.to_thread(current.folder.change, mapped, **changes)
    read, refusal, *_ = await asyncio.to_thread(_columns, current._replace(file=changed))
    agreed = not refusal and was_shown and form.get("then") == "plan"  # plan only what the user has seen
    is_pain001 = agreed and read is not None and read.format == str(pain001.TITLE)
    found = {"planned": agreed, "is_pain001": is_pain001, "is_refused": bool(refusal)}
    await asyncio.to_thread(current.folder.change, **found)
    if agreed and read is not None:
        by = [one.by for one in changed.shaped if one.act is Act.MAPPED]
        jobs.remember(context.home, read, jobs.RememberedMapping(changed.mapping, by))
    await context.record(request, Deed.READ_AS, current.id, **_chosen_by_hand(changed, form))
    then = "plan" if agreed else "columns" if refusal else "columns?read=anew"
    raise web.HTTPSeeOther(f"/files/{current.id}/{then}")


def _chosen_by_hand(file: DeskFile, form: Mapping[str, str]) -> dict[str, str | int]:
    """Facts for the audit: the number of columns chosen by hand, and other changes."""
    columns = [name for name, field in form.items() if name.startswith("column:") and field in _JOINED_BY]
    others = {"format": file.input_format, "encoding": file.encoding, "sheet": file.sheet}
    return {"mapped_count": len(columns)} | {name: value for name, value in others.items() if value}


def _changes_in(file: DeskFile, form: dict[str, str]) -> dict[str, object]:
    """Return the changes that the form makes to a file; only known values are accepted."""
    mapping: dict[str, str] = {}
    for name, field in form.items():
        if name.startswith("column:") and field in _JOINED_BY:
            header = name.removeprefix("column:")
            mapping[field] = _JOINED_BY[field].join([*filter(None, [mapping.get(field)]), header])
    encoding, sheet, kind = (form.get(name, "").strip() for name in ("encoding", "sheet", "format"))
    encoding = form.get("reading", encoding)
    has_columns = any(name.startswith("column:") for name in form)
    return {
        "mapping": mapping if has_columns else file.mapping,
        "encoding": encoding if encoding in ENCODINGS else None,
        "sheet": sheet[:120] or None,
        "input_format": kind if kind in INPUT_NAMES else None,
        "country": "GB" if form.get("country") == "GB" else None,
        "planned": False,
    }


@routes.get("/files/{id}/plan")
async def plan(request: web.Request) -> web.Response:
    """The plan page: the forecast of a check."""
    context, person, current = await opened_by(request)
    if current.state is State.PURGED:
        raise Conflict(Sentence("desk.file_deleted"))
    forecast, refusal = await asyncio.to_thread(_forecast, current, context.clock)
    names = await asyncio.to_thread(jobs.profiles)
    may_decide = may(current, person, Deed.DECIDED)
    corrected = await asyncio.to_thread(_correctable, current) if may_decide else {"lines": []}
    if corrected["lines"]:
        await context.record_accounts(request, current.id)
    return html(
        request,
        "plan",
        **corrected,
        current=current,
        may_decide=may_decide,
        forecast=forecast,
        made=None if forecast is None or current.summary is None else made_of(forecast, current.summary),
        refusal=refusal,
        same=[] if refusal else await asyncio.to_thread(same_files, context, current.folder),
        profiles=names,
        account_types=[*AccountType] if forecast is not None and takes_account_type(forecast) else [],
        may_start=may(current, person, Deed.PLANNED),
    )


def takes_account_type(forecast: Forecast) -> bool:
    """True if an API that will be asked takes an account type."""
    return any("account_type" in APIS[one.api].takes for one in forecast.apis)


def _correctable(current: FileStatus) -> dict[str, Any]:
    """Values for the review form of rejected rows that the user may correct by hand."""
    try:
        run, latest = reviewed(current.folder)
    except PrecheckError:
        return {"lines": []}  # the review page shows the error
    asked = Asked(outcome=Outcome.REJECTED)
    listing = Listing(run, latest)
    lines = [line for line in listing.page(listing.chosen(asked)).rows if line.writes]
    shown = shown_of(run, latest, current.decisions)
    return {"lines": lines, "asked": asked, "shown": shown, "comments": {}, "choice": None}


class Made(NamedTuple):
    """The actual calls, cost and duration of a check, shown beside its plan."""

    calls: dict[str, ApiCalls]
    costs: dict[str, Price]  # cost of the requests sent, including repeated ones, if the profile has a price
    duration_s: float


def made_of(forecast: Forecast, summary: Summary) -> Made:
    """Return what the last check of a file actually took."""
    calls = {str(one.api): one for one in summary.calls}
    prices = {str(api.api): api.price_per_call for api in forecast.apis}
    costs = {
        name: Price(amount=price.amount * one.request_count, currency=price.currency)
        for name, one in calls.items()
        if (price := prices.get(name)) is not None
    }
    taken = datetime.fromisoformat(summary.finished) - datetime.fromisoformat(summary.started)
    return Made(calls, costs, taken.total_seconds())


def _forecast(current: FileStatus, clock: Clock) -> tuple[Forecast | None, str]:
    try:
        found = jobs.forecast_once(current.folder, clock, is_running=current.state is State.RUNNING)
    except PrecheckError as error:
        found = error
    return (None, sentence_of(found)) if isinstance(found, PrecheckError) else (found, "")


@routes.post("/files/{id}/start")
async def start(request: web.Request) -> web.Response:
    """Start or resume the check."""
    context, _, current = await opened_by(request, Deed.STARTED)
    form = await request.post()
    if current.state is State.PLANNED:
        await _choose(request, current, form)
        planned, kind = form.get("planned"), current.file.account_type or ""
        if (form.get("profile", planned), form.get("account_type", kind)) != (planned, kind):
            raise web.HTTPSeeOther(f"/files/{current.id}/plan")  # only a plan that was shown may start
        resumes = form.get("resumes_daily") == "yes"
        await asyncio.to_thread(current.folder.change, resumes_daily=resumes)
    else:
        again = form.get("retry_unanswered") == "yes"
        await asyncio.to_thread(current.folder.change, retry_unanswered=again, stopped_by=None)
    await asyncio.to_thread(checks.start, current.folder, context.child_environment)
    await context.record(request, Deed.STARTED, current.id, profile=current.folder.read().profile or "")
    raise web.HTTPSeeOther(f"/files/{current.id}/progress")


@routes.post("/files/{id}/plan")
async def plan_again(request: web.Request) -> web.Response:
    """Recalculate the plan with another profile."""
    context, _, current = await opened_by(request, Deed.PLANNED)
    await _choose(request, current, await request.post())
    await context.record(request, Deed.PLANNED, current.id, profile=current.folder.read().profile or "")
    raise web.HTTPSeeOther(f"/files/{current.id}/plan")


async def _choose(request: web.Request, current: FileStatus, form: Mapping[str, object]) -> None:
    """Save the chosen profile, and the reason for many names on one account."""
    profile = str(form.get("profile", current.file.profile))
    reason = on_one_line(form.get("many_names_reason", ""))
    if profile not in await asyncio.to_thread(jobs.profiles):
        raise DeskRefusal(Sentence("desk.choose_profile"))
    kind = form.get("account_type", current.file.account_type) or None
    if kind not in {None, *AccountType}:
        raise DeskRefusal(Sentence("desk.choose_account_type"))
    now = timestamp(context_of(request).clock())
    acts = (Act.CHOSE_PROFILE, *([Act.ALLOWED_MANY_NAMES] if reason else []))
    chosen = [shaping(current.file, person_of(request).name, act, now) for act in acts]
    changes = {"profile": profile, "many_names_reason": reason or None, "account_type": kind}
    await asyncio.to_thread(current.folder.change, *chosen, **changes)


@routes.post("/files/{id}/start-over")
async def start_over(request: web.Request) -> web.Response:
    """Go back to the plan, after a check that got no answer."""
    context, _, current = await opened_by(request, Deed.STARTED_OVER)
    if not await asyncio.to_thread(may_start_over, current, context.clock):
        raise Conflict(Sentence("desk.cannot_start_now"))
    await asyncio.to_thread(current.folder.set_aside)
    changes: dict[str, object] = {"stopped_by": None}
    if current.file.reported_by is not None:  # no user has confirmed how the file is read
        usual = (await asyncio.to_thread(jobs.profiles))[0]
        changes |= {"reported_by": None, "profile": usual, "planned": False}
    await asyncio.to_thread(current.folder.change, **changes)
    await context.record(request, Deed.STARTED_OVER, current.id)
    raise web.HTTPSeeOther(f"/files/{current.id}/{'plan' if 'planned' not in changes else 'columns'}")


def may_start_over(current: FileStatus, clock: Clock) -> bool:
    """True if a check has ended without answers that could be lost, and no approval depends on it."""
    is_open = current.state is State.STOPPED and current.file.approved is None
    if current.file.reported_by is not None:
        return is_open and current.summary is None
    return is_open and jobs.has_no_answer(current.folder, clock)


@routes.post("/files/{id}/stop")
async def stop(request: web.Request) -> web.Response:
    """Stop the check; requests in flight still finish."""
    context, person, current = await opened_by(request, Deed.STOPPED)
    await asyncio.to_thread(checks.stop, current.folder)
    await asyncio.to_thread(current.folder.change, stopped_by=person.name, resumes_daily=False)
    await context.record(request, Deed.STOPPED, current.id)
    raise web.HTTPSeeOther(f"/files/{current.id}/progress")


PHASES = {
    "starting": gettext_noop("The check is starting."),
    "reading": gettext_noop("Reading and planning the file."),
    "connecting": gettext_noop("Connecting to the name-check service."),
    "asking": gettext_noop("Checking with the banks."),
    "writing": gettext_noop("Writing the results."),
}
_SIMULATED = gettext_noop("Checking with the sandbox.")  # shown instead of the names of banks


@routes.get("/files/{id}/progress")
async def progress(request: web.Request) -> web.Response:
    """The progress of a running check, or its result."""
    context, person, current = await opened_by(request)
    if current.progress is None and current.summary is None:
        raise web.HTTPSeeOther(f"/files/{current.id}/{WORDS[current.state].page}")
    return html(
        request,
        "progress",
        current=current,
        live=_live(current, context),
        will_be_simulated=current.state is State.RUNNING
        and (
            (current.progress is not None and current.progress.simulated)
            or await asyncio.to_thread(jobs.is_simulated, current.file.profile)
        ),
        may_stop=any(may(current, person, deed) for deed in (Deed.STOPPED, Deed.STARTED)),
        State=State,
        can_resume=current.state is not State.CAPPED
        or await asyncio.to_thread(jobs.can_resume, current.folder, context.clock),
        may_start_over=await asyncio.to_thread(may_start_over, current, context.clock),
    )


@routes.get("/files/{id}/progress.json")
async def progress_now(request: web.Request) -> web.Response:
    """The progress as JSON, for the page's script."""
    context, _, current = await opened_by(request)
    return web.json_response(_live(current, context))


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
    done, every = (now.answered_before_count + count for count in (now.done_count, now.check_count))
    count = ngettext(
        "%(done)s of %(num)s question", "%(done)s of %(num)s questions", every, done=number(done)
    )
    return {
        "state": current.state.value,
        "is_on": is_on,
        "done": done,
        "of": every,
        "count": count if now.check_count else "",
        "rate": _rate(now, context.clock()) if is_on else "",
        "sentence": sentence if is_on else "",
        "next": WORDS[current.state].page,
    }


def _rate(now: CheckProgress, time: datetime) -> str:
    if now.asking_since is None or not now.done_count:
        return ""
    taken_s = max((time - datetime.fromisoformat(now.asking_since)).total_seconds(), 0.001)
    rate = now.done_count / taken_s
    left_s = (now.check_count - now.done_count) / rate
    pace = number(rate, ",.1f")
    if not left_s:
        return gettext("%(rate)s a second", rate=pace)
    return gettext("%(rate)s a second, about %(time)s left", rate=pace, time=duration(left_s))
