"""The approval, the files that it makes, and their download."""

import asyncio
import shutil
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import IO

import polars as pl
from aiohttp import web

from pipeline.desk import releasing
from pipeline.desk.carry_over import carry_holds, changed_since, held_since
from pipeline.desk.context import Context, notify_of, opened_by
from pipeline.desk.families import by_row, may_be_due_again, released_before, taken_by
from pipeline.desk.folders import DeskHome, FileFolder
from pipeline.desk.languages import gettext
from pipeline.desk.listing import Listing
from pipeline.desk.pages.files import same_files
from pipeline.desk.people import Person, Role, refuse_shaper
from pipeline.desk.refusals import Conflict, DeskRefusal, Forbidden, Missing
from pipeline.desk.rendering import attachment, html
from pipeline.desk.retention import forget
from pipeline.desk.review import by_entry, refuse_changed, reviewed, shown_of
from pipeline.desk.states import FileStatus, State, may, may_compare, status_of
from pipeline.desk.uploads import made_here, uploaded_facts
from pipeline.errors import PrecheckError
from pipeline.jobs.verify import VerifyJob, verify
from pipeline.reports.changes import comparisons_in_words
from pipeline.review.payment_files import notes_on
from pipeline.runs.evidence import Finding
from pipeline.runs.manifest import read_manifest
from pipeline.wording import Sentence, SurfaceKind, rendered
from schemas.desk import AuditEntry, Deed, RowsDecided, SentBack
from schemas.localized import LocalizedText
from schemas.manifest import SplitMade
from schemas.review import Act, Decision, PaymentFile, Shaped
from schemas.strict import timestamp

routes = web.RouteTableDef()


@routes.get("/files/{id}/release")
async def release(request: web.Request) -> web.Response:
    """The release page: preview, decisions, approval, and the files."""
    return await _page(request, findings=None)


async def _page(request: web.Request, *, findings: list[Finding] | None) -> web.Response:
    context, person, current = await opened_by(request)
    if current.summary is None and current.state is not State.PURGED:
        raise Conflict(Sentence("desk.nothing_to_release"))
    is_purged = current.state is State.PURGED
    run, latest = (None, {}) if is_purged else await asyncio.to_thread(reviewed, current.folder)
    released = await asyncio.to_thread(released_before, context.home, current.folder)
    split, is_again = _split(current), request.query.get("again") == "yes"
    if split is not None:  # show what was approved, even if more was released since
        released = [one for one in released if one.release.time < split.time]
        is_again = bool(split.again_rows)
    is_again = is_again and may_be_due_again(released)
    before = {} if is_again else by_row(released)
    preview = None if run is None else await asyncio.to_thread(run.preview, latest, before)
    again = pl.Series([*by_row(released)] if is_again else [], dtype=pl.UInt32).implode()
    shaped = await asyncio.to_thread(releasing.shaped_by, context.home, current.folder)
    correction = await asyncio.to_thread(context.home.correction_of, current.id)
    return html(
        request,
        "release",
        current=current,
        preview=preview,
        overrides=run and preview and Listing(run, latest).overrides(preview.overridden),
        may_compare=may_compare(current, person),
        compared=current.summary and comparisons_in_words(current.summary),
        may_send_back=may(current, person, Deed.SENT_BACK),
        shown="" if run is None else shown_of(run, latest, current.decisions, before),
        released=released,
        may_be_again=may_be_due_again(released),
        again_rows=[] if preview is None else preview.rows.filter(preview.rows.is_in(again)).to_list(),
        is_again=is_again,
        taken=await asyncio.to_thread(_taken, context.home, current),
        deciders=_deciders(latest),
        fix_count=sum(count for last, count in by_entry(latest) if last.decision is Decision.FIX),
        changed=[]
        if run is None
        else await asyncio.to_thread(changed_since, context.home, current.file, run.rows.payments),
        carried=sorted(row for row, last in latest.items() if last.carried_from is not None),
        held_since=await asyncio.to_thread(held_since, context.home, current.folder),
        same=await asyncio.to_thread(same_files, context, current.folder),
        voided_by=await asyncio.to_thread(releasing.voided_by, current),
        split=split,
        notes=_notes(current, split),
        files=releasing.offered(current),
        findings=findings,
        why_not=_why_not(person, shaped),
        correction=correction,
        may_check_again=may(current, person, Deed.CORRECTED) and releasing.is_corrected(latest, correction),
        undecided_count=0 if current.summary is None else current.summary.undecided_count,
        may_give=may(current, person, Deed.GIVEN) and bool(current.file.released_count),
        may_forget=may(current, person, Deed.PURGED),
        left_count=0 if run is None else run.undecided(latest).money.row_count,
    )


def _deciders(latest: dict[int, RowsDecided]) -> list[tuple[str, Counter[str]]]:
    found: dict[str, Counter[str]] = {}
    for last, row_count in by_entry(latest):
        found.setdefault(last.by, Counter())[last.decision or ""] += row_count
    return list(found.items())


def _split(current: FileStatus) -> SplitMade | None:
    """The split that made the files offered for download."""
    if not current.is_released:
        return None
    splits = read_manifest(current.folder.run).splits
    return splits[-1] if splits else None


def _notes(current: FileStatus, split: SplitMade | None) -> list[LocalizedText]:
    """What a bank may object to in the files offered for download, and what these lack of the upload."""
    if split is None or current.summary is None:
        return []
    made = {file.name: file.row_count for file in (split.release, split.hold) if file is not None}
    return notes_on(current.summary.input, made)


def _why_not(person: Person, shaped: list[Shaped]) -> str:
    """Explain why this person may not approve; empty if they may."""
    if not person.can(Role.APPROVER):
        return gettext("You are not an approver. Ask an approver to open this page.")
    try:
        refuse_shaper(person, shaped)
    except Forbidden as refusal:
        return rendered(refusal.reason, SurfaceKind.PAGE)
    return ""


@routes.post("/files/{id}/release")
async def approve_release(request: web.Request) -> web.Response:
    """Approve, and make the files."""
    context, person, current = await opened_by(request, Deed.APPROVED)
    form = await request.post()
    made = await asyncio.to_thread(approve_shown, context, person, current.folder, form)
    await context.record(request, Deed.APPROVED, current.id, **releasing.approved_facts(made))
    raise web.HTTPSeeOther(f"/files/{current.id}/release#files")


def approve_shown(
    context: Context, person: Person, folder: FileFolder, form: Mapping[str, object]
) -> PaymentFile | None:
    """Approve what the page showed; if two users approve the same payments at once, refuse the second."""
    with context.home.approving():
        current, (review, latest) = status_of(folder), reviewed(folder)
        shaped, released = releasing.shaped_by(context.home, folder), released_before(context.home, folder)
        refuse_shaper(person, shaped)
        is_held, again = (form.get(name) == "yes" for name in ("hold_undecided", "release_again"))
        again = again and may_be_due_again(released)
        before = by_row(released)
        now = shown_of(review, latest, current.decisions, {} if again else before)
        refuse_changed(form.get("shown"), now)
        wanted = releasing.ToApprove(review, latest, shaped, before, is_held, again)
        return releasing.approve(current, wanted, person, context.clock())


def _taken(home: DeskHome, current: FileStatus) -> AuditEntry | None:
    """The user who downloaded the offered release file, if any."""
    if not current.is_released or not current.file.released_count or not current.file.releases:
        return None
    return taken_by(home.audit.entries(), current.id, current.file.releases[-1])


@routes.post("/files/{id}/given")
async def given(request: web.Request) -> web.Response:
    """Record that the bank has the release file; this file can no longer change."""
    context, person, current = await opened_by(request, Deed.GIVEN)
    form = await request.post()
    if not current.file.released_count:
        raise Conflict(Sentence("desk.nothing_to_give"))
    release = current.file.releases[-1]
    if form.get("sha256") != release.sha256:
        raise Conflict(Sentence("desk.changed_since_shown", what=[Sentence("desk.shown_totals")]))
    agreed = releasing.signed(current, person, context.clock())
    await asyncio.to_thread(current.folder.change, given=agreed)
    await context.record(request, Deed.GIVEN, current.id, file=release.file, sha256=release.sha256)
    raise web.HTTPSeeOther(f"/files/{current.id}/release#files")


@routes.post("/files/{id}/send-back")
async def send_back(request: web.Request) -> web.Response:
    """Send a file back to review, with a comment."""
    context, person, current = await opened_by(request, Deed.SENT_BACK)
    comment = releasing.on_one_line((await request.post()).get("comment", ""))
    if not comment:
        raise DeskRefusal(Sentence("desk.sent_back_without_comment"))
    sent = SentBack(by=person.name, time=timestamp(context.clock()), comment=comment)
    await asyncio.to_thread(current.folder.change, handed_over=None, sent_back=sent)
    await context.record(request, Deed.SENT_BACK, current.id)
    notify_of(context, current, Deed.SENT_BACK)
    raise web.HTTPSeeOther(f"/files/{current.id}/release")


@routes.post("/files/{id}/verify")
async def verify_evidence(request: web.Request) -> web.Response:
    """Check the evidence for consistency."""
    context, _, current = await opened_by(request)
    try:
        file = current.folder.input
        job = VerifyJob(current.folder.run, input_file=file if file.is_file() else None)
        found = await asyncio.to_thread(verify, job, now=context.clock())
    except PrecheckError as error:
        what, status = Sentence("evidence.evidence"), error.exit_code
        found = [Finding(what, message, status) for message in error.messages]
    count = sum(bool(one.exit_code) for one in found)
    await context.record(request, Deed.VERIFIED, current.id, differing_count=count)
    return await _page(request, findings=found)


@routes.get("/files/{id}/download/{name}")
async def download(request: web.Request) -> web.StreamResponse:
    """Download one of the offered files."""
    context, person, current = await opened_by(request)
    found = next((one for one in releasing.offered(current) if one.name == request.match_info["name"]), None)
    if found is None:
        raise Missing(Sentence("desk.no_such_download"))
    if found.has_names:
        person.require_names()
    file = await asyncio.to_thread(releasing.opened_as_recorded, current, found.name)
    await context.record(request, Deed.DOWNLOADED, current.id, **_facts(current, found.name, [found.name]))
    return attachment(found.name, file)


@routes.get("/files/{id}/files.zip")
async def download_all(request: web.Request) -> web.StreamResponse:
    """Download, as one ZIP file, all offered files that this person may have."""
    context, person, current = await opened_by(request)
    names = [one.name for one in releasing.offered(current) if person.has_names or not one.has_names]
    if not names:
        raise Missing(Sentence("desk.no_such_download"))
    packed = await asyncio.to_thread(_packed, current, names)
    await context.record(request, Deed.DOWNLOADED, current.id, **_facts(current, "files.zip", names))
    return attachment("files.zip", packed, "application/zip")


def _facts(current: FileStatus, name: str, contents: list[str]) -> dict[str, str]:
    """Facts about a download for the audit: its name and, if it has the release file, the SHA-256 of that."""
    taken = [release for release in current.file.releases[-1:] if release.file in contents]
    return {"file": name, "sha256": taken[0].sha256} if taken else {"file": name}


def _packed(current: FileStatus, names: Iterable[str]) -> IO[bytes]:
    """Pack a run's files into one ZIP file; same errors as `opened_as_recorded`."""
    packed = tempfile.TemporaryFile()  # noqa: SIM115 (closed by the response)
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            with releasing.opened_as_recorded(current, name) as file, archive.open(name, "w") as entry:
                shutil.copyfileobj(file, entry)
    packed.seek(0)
    return packed


@routes.post("/files/{id}/forget")
async def forget_names(request: web.Request) -> web.Response:
    """Delete payees' names and the payment files; the evidence stays."""
    context, person, current = await opened_by(request, Deed.PURGED)
    reason = releasing.on_one_line((await request.post()).get("reason", ""))
    if not reason:
        raise DeskRefusal(Sentence("desk.deletion_without_reason"))

    def forget_now() -> None:
        with context.home.approving():  # otherwise a running approval would write the deleted names again
            forget(status_of(current.folder), person.name, reason, context.clock())

    await asyncio.to_thread(forget_now)
    await context.record(request, Deed.PURGED, current.id, reason=reason)
    raise web.HTTPSeeOther(f"/files/{current.id}/release")


def _corrected(context: Context, person: Person, current: FileStatus) -> Path:
    """Return the corrected file, made if necessary (Conflict: nothing to correct, or it is at the desk)."""
    review, latest = reviewed(current.folder)
    if not releasing.is_corrected(latest, context.home.correction_of(current.id)):
        raise Conflict(Sentence("desk.no_corrected_file"))
    if not current.is_released:  # otherwise the approval has already made it
        before = by_row(released_before(context.home, current.folder))
        wanted = releasing.ToApprove(
            review, latest, releasing.shaped_by(context.home, current.folder), before
        )
        releasing.correct(current, wanted, person, context.clock())
    path = releasing.corrected_file(current.folder)
    if path is None:
        raise Conflict(Sentence("desk.no_corrected_file"))
    return path


@routes.post("/files/{id}/check-again")
async def check_again(request: web.Request) -> web.Response:
    """Add the corrected file to the desk as a new file; rows with a match are not checked again."""
    context, person, current = await opened_by(request, Deed.CORRECTED)
    path = await asyncio.to_thread(_corrected, context, person, current)
    name = f"{current.folder.input.stem}.{path.name}"
    folder, made = await made_here(context, name, person.name, partial(shutil.copyfile, path))
    # Before any user sees the file: a recorded hold must never be lost.
    count = await asyncio.to_thread(carry_holds, current.folder, folder)
    read_as = current.file.model_dump(include={"profile", "mapping", "encoding", "input_format"})
    again = releasing.shaping(made, person.name, Act.CHECKED_AGAIN, made.uploaded_at)
    corrects = {"corrects": current.id, "planned": True, "shaped": [again], **read_as}
    await asyncio.to_thread(folder.write, made.model_copy(update=corrects))
    await context.record(request, Deed.CORRECTED, current.id)
    await context.record(request, Deed.UPLOADED, folder.id, **uploaded_facts(made, count))
    raise web.HTTPSeeOther(f"/files/{folder.id}/plan")
