"""The rows to review, and the decisions on them."""

import asyncio
import re
import tempfile
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

from aiohttp import web

from pipeline.desk import releasing
from pipeline.desk.context import context_of, notify_of, opened_by, person_of
from pipeline.desk.families import by_row, may_be_due_again, released_before
from pipeline.desk.listing import ROWS_ON_PAGE, SORTS, Asked, Listing
from pipeline.desk.people import Role
from pipeline.desk.refusals import Conflict, DeskRefusal
from pipeline.desk.rendering import attachment, html, page_number
from pipeline.desk.review import OF_A_ROW, Review, last_decisions, refuse_changed, reviewed, shown_of
from pipeline.desk.states import FileStatus, State, may
from pipeline.desk.uploads import uploaded_to
from pipeline.desk.workbooks import NAME, exported, taken_over
from pipeline.wording import Sentence
from schemas.desk import Deed, RowCommented, RowsDecided
from schemas.outcomes import Outcome
from schemas.review import Act, Decision
from schemas.strict import timestamp

routes = web.RouteTableDef()
WORKBOOK_BYTES_MAX = 64 * 1024**2
_ONE_AT_A_TIME = threading.Lock()
_CURRENCY, _AMOUNT = re.compile("[A-Z]{3}"), re.compile(r"[0-9]{1,12}(\.[0-9]{1,3})?")


@routes.get("/files/{id}/review")
async def review(request: web.Request) -> web.Response:
    """The review page, starting with the largest amount; its address never contains a name."""
    return await _page(request, {name: request.query.get(name, "") for name in _WITHOUT_NAMES})


_WITHOUT_NAMES = ("group", "outcome", "decided", "rows", "currency", "least", "sort", "page", "again")


@routes.post("/files/{id}/review")
async def search(request: web.Request) -> web.Response:
    """Show the requested rows: redirect to an address, or respond directly if a name is searched for."""
    fields = {name: str(value) for name, value in (await request.post()).items()}
    if not fields.get("text", "").strip():
        current = await context_of(request).current(request)
        raise web.HTTPSeeOther(f"{_way_back(current, fields)}#group")
    return await _page(request, fields)


async def _page(request: web.Request, fields: Mapping[str, str]) -> web.Response:
    person_of(request).require_names()
    current = await context_of(request).current(request)
    if current.state is State.PURGED:
        raise Conflict(Sentence("desk.names_deleted"))
    if current.summary is None or current.state is State.RUNNING:
        raise Conflict(Sentence("desk.nothing_to_review"))
    asked = _asked(fields)
    run, words = await asyncio.to_thread(reviewed, current.folder)
    released = await asyncio.to_thread(released_before, context_of(request).home, current.folder)
    is_again = bool(asked.again) and may_be_due_again(released)
    listing = Listing(run, words, {} if is_again else by_row(released))
    found = await asyncio.to_thread(listing.chosen, asked)
    page = await asyncio.to_thread(listing.page, found, asked.page)
    left = await asyncio.to_thread(run.undecided, words)
    await context_of(request).record_accounts(request, current.id)
    return html(
        request,
        "review",
        current=current,
        run=run,
        listing=listing,
        page=page,
        asked=asked,
        query=_query(asked._replace(sort="", page=1)),
        sorts=SORTS,
        words=words,
        shown=shown_of(run, words, current.decisions),
        left=left,
        decided_count=run.to_look_at_count - left.money.row_count,
        outcomes=[total for total in run.summary.outcomes if total.row_count],
        chosen_group=next((group for group in run.groups if group.key == asked.group), None),
        choice=listing.choice(asked, found),
        at_once=run.last_at_once(words),
        comments=await asyncio.to_thread(comments_on, current),
        reasons=run.reasons(),
        may_decide=may(current, person_of(request), Deed.DECIDED),
    )


def comments_on(current: FileStatus) -> dict[int, list[RowCommented]]:
    """Row -> the comments on it, oldest first."""
    found: dict[int, list[RowCommented]] = {}
    for entry in current.folder.comments.entries():
        found.setdefault(entry.row, []).append(entry)
    return found


def _asked(fields: Mapping[str, str]) -> Asked:
    outcome, decided = fields.get("outcome", ""), fields.get("decided", "")
    least, sort = fields.get("least", "").strip(), fields.get("sort", "")
    currency = fields.get("currency", "")
    return Asked(
        group=fields.get("group", "")[:80],
        outcome=outcome if outcome in set(Outcome) else "",
        decided=decided if decided in ("yes", "no", "release") else "",
        text=fields.get("text", "")[:200],
        rows="all" if fields.get("rows") == "all" else "",
        currency=currency if _CURRENCY.fullmatch(currency) else "",
        least=least if _AMOUNT.fullmatch(least) else "",
        sort=sort if sort.removeprefix("-") in SORTS else "",
        page=page_number(fields.get("page")),
        again="yes" if fields.get("again") == "yes" else "",
    )


@routes.post("/files/{id}/rows/{row:[0-9]{1,9}}")
async def decide_row(request: web.Request) -> web.Response:
    """Record a decision about one row."""
    context, person, current = await opened_by(request, Deed.DECIDED)
    fields = {name: str(value) for name, value in (await request.post()).items()}
    row, decision = int(request.match_info["row"]), _decision(fields)
    run, words = await asyncio.to_thread(reviewed, current.folder)
    now = shown_of(run, words, current.decisions)
    refuse_changed(fields.get("shown"), now, OF_A_ROW)
    is_written = decision is Decision.FIX and (run.line(row) or {}).get("writes")
    text = releasing.on_one_line(fields.get("written", "")) if is_written else ""
    if decision is not None:
        releasing.require_possible(run, row, decision, text)
    last, may_void = words.get(row), fields.get("voids") == "yes"
    written = current.folder.keep(text, context.chance() + context.chance()) if text else None
    if last is not None and text == run.text_of(last):
        written = last.written  # the same correction as before
    wanted = releasing.Decided([row], decision, fields.get("reason", ""), written=written, may_void=may_void)
    make = partial(releasing.decide, current, run, wanted, person, context.clock())
    made = await asyncio.to_thread(_record_once, run, wanted, person.name, fields.get("before"), make)
    if made is not None:
        word = "taken back" if decision is None else decision.value
        await context.record(request, Deed.DECIDED, current.id, row=row, decision=word)
    if request.headers.get("X-Part") == "row":
        words = await asyncio.to_thread(last_decisions, run)
        listing = Listing(run, words)
        line = listing.row(row)
        assert line is not None
        left, after = run.undecided(words), await context.current(request)
        # If other decisions were made meanwhile, the page's other rows are out of date.
        is_current = fields["shown"] == str(now) and made is not None and made.previous == current.decisions
        return html(
            request,
            "recorded",
            current=after,
            shown=shown_of(run, words, after.decisions) if is_current else fields["shown"],
            line=line,
            asked=_asked(fields),
            may_decide=True,
            group=next((group for group in run.groups if group.key == line.group), None),
            left=left,
            choice=listing.choice(_asked(fields)),
            comments=await asyncio.to_thread(comments_on, current),
            row_count=run.to_look_at_count,
            decided_count=run.to_look_at_count - left.money.row_count,
        )
    raise web.HTTPSeeOther(f"{_way_back(current, fields)}#row-{row}")


@routes.post("/files/{id}/rows/{row:[0-9]{1,9}}/comments")
async def comment(request: web.Request) -> web.Response:
    """Record a comment on a row."""
    context, person, current = await opened_by(request, Deed.COMMENTED)
    row = int(request.match_info["row"])
    if current.summary is None or not 1 <= row <= current.summary.input.row_count:
        raise DeskRefusal(Sentence("desk.no_such_row"))
    text = releasing.on_one_line((await request.post()).get("comment", ""))
    if not text:
        raise DeskRefusal(Sentence("desk.comment_is_empty"))
    now = timestamp(context.clock())
    journal = current.folder.comments
    await asyncio.to_thread(
        journal.append,
        lambda previous: RowCommented(previous=previous, time=now, by=person.name, row=row, comment=text),
    )
    await context.record(request, Deed.COMMENTED, current.id, row=row)
    raise web.HTTPSeeOther(f"/files/{current.id}/rows/{row}#comments")


def _record_once(
    run: Review, wanted: releasing.Decided, by: str, before: str | None, make: Callable[[], RowsDecided]
) -> RowsDecided | None:
    """Record a decision once; None if it was already recorded. Same errors as `_is_recorded` and `decide`."""
    with _ONE_AT_A_TIME:  # a double click may send two requests at the same moment
        return None if _is_recorded(run, wanted, by, before) else make()


def _is_recorded(run: Review, wanted: releasing.Decided, by: str, before: str | None) -> bool:
    """True if this very decision is recorded, as after a double click (Conflict: a different one is)."""
    [row] = wanted.rows
    now = last_decisions(run).get(row)
    if before is None or before == ("" if now is None else now.time):
        return False
    if now is None:
        if wanted.decision is None:
            return True
        raise Conflict(Sentence("desk.taken_back_meanwhile", row=row))
    is_same = (now.decision, now.by, now.written) == (wanted.decision, by, wanted.written)
    if is_same and (now.reason or "") == releasing.on_one_line(wanted.reason):
        return True
    raise Conflict(Sentence("desk.decided_meanwhile", name=now.by, row=row))


@routes.post("/files/{id}/groups")
async def decide_group(request: web.Request) -> web.Response:
    """Decide all undecided rows that are shown or ticked, once the user has confirmed."""
    context, person, current = await opened_by(request, Deed.DECIDED)
    form = await request.post()
    fields = {name: str(value) for name, value in form.items()}
    rows = [row for row in map(str, form.getall("row", [])) if row.isdecimal() and len(row) < 9]
    ticked = [*map(int, rows[:ROWS_ON_PAGE])]
    decision, asked = _decision(fields), _asked(fields)
    run, words = await asyncio.to_thread(reviewed, current.folder)
    shown = shown_of(run, words, current.decisions)
    refuse_changed(fields.get("shown"), shown)
    listing = Listing(run, words)
    found = listing.chosen(asked, ticked)
    choice = listing.choice(asked, found)
    if decision is None or choice is None:
        raise DeskRefusal(Sentence("desk.no_row_of_group_left"))
    found = listing.undecided(found, decision)
    if found.is_empty():
        raise DeskRefusal(Sentence("desk.no_row_of_group_left"))
    may_void = fields.get("voids") == "yes"
    wanted = releasing.Decided(
        found["row"].to_list(), decision, fields.get("reason", ""), is_next=True, may_void=may_void
    )
    releasing.require_reason(wanted)
    if fields.get("confirmed") != "yes":
        return html(
            request,
            "bulk",
            current=current,
            asked=asked,
            shown=shown,
            ticked=ticked,
            decision=decision,
            reason=releasing.on_one_line(wanted.reason),
            choice=choice,
            totals=run.totals(found),
            row_count=found.height,
            way_back=_way_back(current, fields),
        )
    await asyncio.to_thread(releasing.decide, current, run, wanted, person, context.clock())
    await context.record(request, Deed.DECIDED, current.id, row_count=found.height, decision=decision.value)
    left = run.undecided(await asyncio.to_thread(last_decisions, run)).counts
    if asked.group and not left.get(asked.group):  # continue with the next group of rows
        fields["group"], fields["page"] = next((group for group, count in left.items() if count), ""), ""
    raise web.HTTPSeeOther(f"{_way_back(current, fields)}#group")


@routes.post("/files/{id}/groups/undo")
async def undo_group(request: web.Request) -> web.Response:
    """Undo the last bulk decision for rows with no later decision."""
    context, person, current = await opened_by(request, Deed.DECIDED)
    run, words = await asyncio.to_thread(reviewed, current.folder)
    fields = await request.post()
    refuse_changed(fields.get("shown"), shown_of(run, words, current.decisions))
    entry = run.last_at_once(words)
    if entry is None:
        raise DeskRefusal(Sentence("desk.no_row_of_group_left"))
    wanted = releasing.Decided(entry.rows, None, "", is_next=True, may_void=fields.get("voids") == "yes")
    await asyncio.to_thread(releasing.decide, current, run, wanted, person, context.clock())
    await context.record(request, Deed.DECIDED, current.id, row_count=len(entry.rows), decision="taken back")
    raise web.HTTPSeeOther(f"/files/{current.id}/review#group")


@routes.get("/files/{id}/decisions.xlsx")
async def export(request: web.Request) -> web.Response:
    """Download the workbook with the decisions so far."""
    context, person, current = await opened_by(request)
    person.require(Role.REVIEWER, Role.APPROVER)
    if current.summary is None or current.state in (State.RUNNING, State.PURGED):
        raise Conflict(Sentence("desk.nothing_to_decide"))
    run, words = await asyncio.to_thread(reviewed, current.folder)
    body = await asyncio.to_thread(exported, run, words, "the outcome file")
    await context.record(request, Deed.DOWNLOADED, current.id, file=NAME)
    return attachment(NAME, body)


@routes.post("/files/{id}/decisions.xlsx")
async def take_over(request: web.Request) -> web.Response:
    """Import the decisions of a workbook, as those of the uploader."""
    context, person, current = await opened_by(request, Deed.DECIDED)
    run, words = await asyncio.to_thread(reviewed, current.folder)
    with tempfile.TemporaryDirectory(prefix="precheck-desk-") as folder:  # readable by its owner only
        path = Path(folder) / NAME
        await uploaded_to(path, request, bytes_max=WORKBOOK_BYTES_MAX)
        may_void = request.query.get("voids") == "yes"
        take = partial(taken_over, current, run, words, path, person, context.clock(), may_void=may_void)
        count = await asyncio.to_thread(take)
    await context.record(request, Deed.DECIDED, current.id, row_count=count, from_workbook=1)
    raise web.HTTPSeeOther(f"/files/{current.id}/review?decided=yes#group")


def _decision(fields: Mapping[str, str]) -> Decision | None:
    word = fields.get("decision", "")
    if word == "none":
        return None
    if word not in set(Decision):
        raise DeskRefusal(Sentence("desk.choose_what_to_do"))
    return Decision(word)


def _way_back(current: FileStatus, fields: Mapping[str, str]) -> str:
    return f"/files/{current.id}/review?{_query(_asked(fields))}"


def _query(asked: Asked) -> str:
    """The filters as a query string, without the search text, which may be a name."""
    return urlencode({name: value for name, value in asked._asdict().items() if value and name != "text"})


@routes.post("/files/{id}/hand-over")
async def hand_over(request: web.Request) -> web.Response:
    """Submit the reviewed file for approval."""
    context, person, current = await opened_by(request, Deed.HANDED_OVER)
    run, words = await asyncio.to_thread(reviewed, current.folder)
    refuse_changed((await request.post()).get("shown"), shown_of(run, words, current.decisions))
    agreed = releasing.signed(current, person, context.clock())
    handed = releasing.shaping(current.file, person.name, Act.HANDED_OVER, agreed.time)
    await asyncio.to_thread(current.folder.change, handed, handed_over=agreed, sent_back=None)
    await context.record(request, Deed.HANDED_OVER, current.id)
    notify_of(context, current, Deed.HANDED_OVER)
    raise web.HTTPSeeOther(f"/files/{current.id}/release")
