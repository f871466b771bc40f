"""Search all files, and show the history of one row."""

import asyncio
from itertools import zip_longest

from aiohttp import web

from pipeline.desk.carry_over import corrected_before, row_before
from pipeline.desk.context import context_of, person_of
from pipeline.desk.finding import HITS_MAX, TEXT_CHARS_MIN, find
from pipeline.desk.languages import gettext
from pipeline.desk.pages.reviewing import comments_on
from pipeline.desk.people import Role
from pipeline.desk.refusals import Conflict, Missing
from pipeline.desk.rendering import html
from pipeline.desk.review import ACCOUNTS, last_decisions, opened
from pipeline.desk.states import State, may
from pipeline.jobs.show import story as story_of
from pipeline.reports.groups import amount_text
from pipeline.reports.wording import advice, positions_in_words, sentence_of
from pipeline.wording import Sentence
from schemas.desk import Deed

routes = web.RouteTableDef()
OF_A_PAYMENT = (
    *("payment_id", "account_type", "sort_code", "account_number", "iban", "bic", "amount", "currency"),
)
"""Fields of a payment other than names; the account is masked for people who do not review."""


@routes.get("/search")
async def search(request: web.Request) -> web.Response:
    """The search form."""
    return html(request, "search", text="", hits=None, hits_max=HITS_MAX, hint="")


@routes.post("/search")
async def found(request: web.Request) -> web.Response:
    """The search results; a name searched for never appears in an address."""
    person_of(request).require_names()
    text, hits, hint = str((await request.post()).get("text", ""))[:200], None, ""
    if len(text.strip()) < TEXT_CHARS_MIN:
        hint = gettext("Give at least %(num)s characters.", num=TEXT_CHARS_MIN)
    else:
        folders = await asyncio.to_thread(context_of(request).home.folders)
        hits = await asyncio.to_thread(find, folders, text)
    return html(request, "search", text=text, hits=hits, hits_max=HITS_MAX, hint=hint)


@routes.get("/files/{id}/rows/{row:[0-9]{1,9}}")
async def row_story(request: web.Request) -> web.Response:
    """The history of one row: everything that is known about it."""
    context = context_of(request)
    person = person_of(request)
    if not person.can(Role.AUDITOR):
        person.require_names()
    current, row = await context.current(request), int(request.match_info["row"])
    if current.summary is None or current.state is State.RUNNING:
        raise Conflict(Sentence("desk.nothing_to_tell_yet"))
    if current.state is State.PURGED:
        raise Conflict(Sentence("desk.names_deleted"))
    if not 1 <= row <= current.summary.input.row_count:
        raise Missing(Sentence("desk.no_such_row"))
    story = await asyncio.to_thread(story_of, current.folder.run, row, now=context.clock())
    run = await asyncio.to_thread(opened, current.folder)
    [answer] = run.answers_of([row])
    await context.record_accounts(request, current.id)
    history = [
        (entry, entry.carried_from is not None or entry.answers[entry.rows.index(row)] == answer)
        for entry in await asyncio.to_thread(current.folder.decisions.entries)
        if row in entry.rows
    ]
    outcome, positions = story.outcome, current.summary.input.positions
    cells = run.rows.payments.select(ACCOUNTS).row(row - 1, named=True) if person.compares else {}
    payment = {field: cells.get(field) or value for field, value in story.payment.items()}
    if (figure := run.judged["amount"][row - 1]) is not None:  # as the review shows it
        payment["amount"] = amount_text(figure)
    shared = [] if story.question is None else zip_longest(story.question.rows, story.question.positions)
    return html(
        request,
        "story",
        current=current,
        story=story,
        payment={
            field: value for field, value in payment.items() if person.has_names or field in OF_A_PAYMENT
        },
        place=positions_in_words([row], positions),
        shared=[number for number, _ in shared if number != row][:20],
        reason=run.reason_of(row),
        findings=[(finding, sentence_of(finding.sentence, positions)) for finding in story.findings],
        to_do=advice(outcome.check_action, outcome.check_code),
        history=history,
        word=last_decisions(run).get(row),
        repeats=run.repeated.get(row),
        comments=(await asyncio.to_thread(comments_on, current)).get(row, []),
        may_decide=may(current, person, Deed.DECIDED),
        corrected=await asyncio.to_thread(corrected_before, context.home, current.file, row),
        row_before=row_before(current.file, row),
    )
