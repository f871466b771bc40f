"""The start page: uploads, and the list of all files."""

import asyncio
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from aiohttp import web

from pipeline.config.file import IMPORTED
from pipeline.config.inputs import ReadAs
from pipeline.desk import checks
from pipeline.desk.carry_over import carry_holds, made_from
from pipeline.desk.context import Context, context_of, opened_by, person_of
from pipeline.desk.families import earlier_files
from pipeline.desk.folders import FileFolder
from pipeline.desk.jobs import SIMULATED, RememberedMapping, columns_once, job_of, profiles, remembered
from pipeline.desk.people import Person, Role, refuse_shaper
from pipeline.desk.refusals import Conflict, Forbidden
from pipeline.desk.releasing import shaped_by, shaping
from pipeline.desk.rendering import html, page_number
from pipeline.desk.states import NEXT, FileStatus, State, may, may_compare, status_of
from pipeline.desk.uploads import made_here, take, take_reports, uploaded_facts
from pipeline.errors import PrecheckError
from pipeline.jobs.import_report import ImportJob, import_report
from pipeline.rules.totals import added, control_totals
from pipeline.runs.request import RunObserver, StopSwitch, Surface
from pipeline.wording import Sentence
from schemas.desk import Deed
from schemas.review import Act
from schemas.strict import timestamp
from schemas.summary import Money, Summary

routes = web.RouteTableDef()
LISTED_ON_PAGE = 50
TOTALS_SHOWN = 2
INBOX_FILES_MAX = 200
"""How many of the newest files the inbox considers; older ones are only in the list below it."""


@routes.get("/")
async def files(request: web.Request) -> web.Response:
    """The upload area, the inbox and the list of files."""
    context = context_of(request)
    page = page_number(request.query.get("page"))
    folders = await asyncio.to_thread(context.home.folders)
    earlier = await asyncio.to_thread(earlier_files, context.home, folders)
    lines = [folder for folder in folders if folder.id in earlier]
    newest, _ = await asyncio.to_thread(_statuses, lines[:INBOX_FILES_MAX])
    waiting = await asyncio.to_thread(_waiting, context, person_of(request), newest)
    chosen = request.query.get("waits", "")
    if chosen in waiting:
        lines = [current.folder for current in waiting[chosen]]
    some = lines[(page - 1) * LISTED_ON_PAGE : page * LISTED_ON_PAGE]
    listed, broken = await asyncio.to_thread(_statuses, some, {current.id: current for current in newest})
    return html(
        request,
        "files",
        listed=listed,
        broken=broken,
        page=page,
        inbox=[(state, files[0].words, len(files), _money_of(files)) for state, files in waiting.items()],
        chosen=chosen if chosen in waiting else "",
        earlier={
            current.id: (await asyncio.to_thread(_statuses, earlier[current.id]))[0] for current in listed
        },
        page_count=max(1, -(-len(lines) // LISTED_ON_PAGE)),
        file_count=len(folders),
        upload_mib_max=context.settings.upload_mib_max,
        totals=totals_of,
    )


def _waiting(context: Context, person: Person, files: list[FileStatus]) -> dict[str, list[FileStatus]]:
    """Files whose next step this person may take, by state."""
    found: dict[str, list[FileStatus]] = {}
    for current in files:
        deed = NEXT.get(current.state)
        if deed is None or not may(current, person, deed) or current.releases_nothing:
            continue
        try:
            if current.state is State.WAITING:
                refuse_shaper(person, shaped_by(context.home, current.folder))
        except (Forbidden, PrecheckError):
            continue
        found.setdefault(current.state.value, []).append(current)
    return found


def _money_of(files: Iterable[FileStatus]) -> list[Money]:
    totals = [total.totals for one in files if one.summary for total in one.summary.outcomes]
    return added(totals)[:TOTALS_SHOWN]


def _statuses(
    folders: list[FileFolder], known: Mapping[str, FileStatus] = MappingProxyType({})
) -> tuple[list[FileStatus], list[str]]:
    """Return the status of each file, read unless known, and the ids of files whose status is unreadable."""
    listed, broken = [], []
    for folder in folders:
        try:
            listed.append(known.get(folder.id) or status_of(folder))
        except PrecheckError:
            broken.append(folder.id)
    return listed, broken


def totals_of(summary: Summary) -> list[Money]:
    """Total amounts of a file by currency, starting with the currency of most rows."""
    return sorted(control_totals(summary.outcomes), key=lambda one: -one.row_count)


@routes.post("/files")
async def upload(request: web.Request) -> web.Response:
    """Receive an uploaded file."""
    context, person = context_of(request), person_of(request)
    person.require(Role.UPLOADER)
    folder = await take(context, request, person.name)
    await _taken(request, folder)
    if folder.read().reported_by is not None:
        await start_import(request, folder)
    raise web.HTTPSeeOther(f"/files/{folder.id}/columns")


@routes.post("/files/{id}/reports")
async def upload_reports(request: web.Request) -> web.Response:
    """Receive the bank's reports on a file: they replace a check, or add to earlier reports."""
    context, _, current = await opened_by(request, Deed.STARTED)
    if current.state is not State.PLANNED and current.file.reported_by is None:
        raise Conflict(Sentence("desk.cannot_start_now"))
    await take_reports(context, request, current.folder)
    return await start_import(request, current.folder)


async def start_import(request: web.Request, folder: FileFolder) -> web.Response:
    """Start importing reports instead of a check; the uploader counts as having shaped the file."""
    context, by = context_of(request), person_of(request).name
    shaped = shaping(folder.read(), by, Act.UPLOADED, timestamp(context.clock()))
    changes = {"reported_by": by, "profile": IMPORTED, "planned": True, "is_refused": False}
    await asyncio.to_thread(folder.change, shaped, **changes)
    await asyncio.to_thread(checks.start, folder, context.child_environment)
    await context.record(request, Deed.STARTED, folder.id, profile=IMPORTED)
    raise web.HTTPSeeOther(f"/files/{folder.id}/progress")


@routes.post("/files/{id}/comparison")
async def compare(request: web.Request) -> web.Response:
    """Compare a finished check with the bank's reports; state and decisions stay unchanged."""
    context, person, current = await opened_by(request, Deed.COMPARED)
    if not may_compare(current, person):
        raise Conflict(Sentence("desk.nothing_to_compare"))
    folder = current.folder
    await take_reports(context, request, folder)
    job = ImportJob(job_of(folder), sorted(folder.reports.glob("*/*")), person.name)
    surface = Surface(RunObserver(), context.clock, StopSwitch(), notify=lambda _notice: None)
    await asyncio.to_thread(import_report, job, surface)
    await context.record(request, Deed.COMPARED, folder.id)
    raise web.HTTPSeeOther(f"/files/{folder.id}/review")


async def _taken(request: web.Request, folder: FileFolder) -> None:
    """Record an upload, and apply the saved mapping of files with the same headers."""
    context, file = context_of(request), folder.read()
    count = await asyncio.to_thread(_taken_as_correction, context, folder)
    await context.record(request, Deed.UPLOADED, folder.id, **uploaded_facts(file, count))
    (mapping, by), is_refused = await asyncio.to_thread(_remembered, context, folder)
    known = await asyncio.to_thread(profiles)
    profile = file.profile if file.profile in known else known[0]
    mapped = [shaping(file, name, Act.MAPPED, file.uploaded_at) for name in by]
    changes = {"mapping": mapping or file.mapping, "profile": profile, "is_refused": is_refused}
    await asyncio.to_thread(folder.change, *mapped, **changes)


def _taken_as_correction(context: Context, folder: FileFolder) -> int:
    """If an upload is a corrected file made here, link the two; return the number of holds carried over."""
    found = made_from(context.home, folder)
    if found is None:
        return 0
    before, rows = found
    folder.change(corrects=before.id, rows_before=rows)
    try:
        return carry_holds(before, folder, rows)
    except PrecheckError:
        return 0  # the release page shows which rows were held


def _remembered(context: Context, folder: FileFolder) -> tuple[RememberedMapping, bool]:
    """Return the saved mapping for these columns, and whether the user must complete it."""
    try:
        read, refusal = columns_once(folder.input, folder.read().sha256, ReadAs())
    except PrecheckError as error:
        read, refusal = None, error
    if read is None:  # the columns page will show the error
        return RememberedMapping({}, ()), True
    known = remembered(context.home, read)
    return known, refusal is not None and not known.mapping


@routes.post("/sample")
async def sample(request: web.Request) -> web.Response:
    """Add a sample file of invented payments, to try the desk with."""
    from pipeline.sandbox.samples import write_dummy_payments

    context, person = context_of(request), person_of(request)
    person.require(Role.UPLOADER)
    folder, made = await made_here(context, "sample_payments.csv", person.name, write_dummy_payments)
    await asyncio.to_thread(folder.write, made.model_copy(update={"profile": SIMULATED}))
    await _taken(request, folder)
    raise web.HTTPSeeOther(f"/files/{folder.id}/columns")


@routes.get("/files/{id}")
async def file(request: web.Request) -> web.Response:
    """Redirect to the page of the file's next step."""
    current = await context_of(request).current(request)
    raise web.HTTPSeeOther(f"/files/{current.id}/{current.words.page}")


class SameFile(NamedTuple):
    """Another upload of the same bytes."""

    id: str
    time: str  # when it was uploaded
    was_released: bool  # whether any payment was released, even if the approval no longer counts


def same_files(context: Context, folder: FileFolder) -> list[SameFile]:
    """Find other uploads of the same bytes, newest first."""
    sha256 = folder.read().sha256
    found = []
    for other_id, file in context.home.files().items():
        was_released = file.approved is not None and file.released_count != 0
        may_pay = file.purged_at is None or was_released  # otherwise none of its payments can be released
        if other_id != folder.id and file.sha256 == sha256 and may_pay:
            found.append(SameFile(other_id, file.uploaded_at, was_released))
    return found
