"""State that all pages of one desk share; it records actions, and notifies people of them."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from aiohttp import web

from pipeline.config.file import DeskSection
from pipeline.desk.access import Access
from pipeline.desk.folders import DeskHome
from pipeline.desk.jobs import is_simulated
from pipeline.desk.languages import BY_ITSELF
from pipeline.desk.people import Person
from pipeline.desk.refusals import DeskRefusal, Forbidden, Missing, NoSession
from pipeline.desk.rendering import PERSON
from pipeline.desk.states import FileStatus, require, status_of
from pipeline.errors import PrecheckError
from pipeline.jobs.notify import notified_file, notify
from pipeline.wording import Sentence
from schemas.desk import Deed
from schemas.notification import Event, Notification
from schemas.strict import timestamp

REFUSALS_APART = timedelta(minutes=10)
"""Refusals repeated within this time are only counted, so that a flood of them cannot fill the disk."""
REFUSALS_KNOWN_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Context:
    """The state that all pages of a desk share."""

    home: DeskHome
    settings: DeskSection
    access: Access
    clock: Callable[[], datetime]
    chance: Callable[[], str]  # returns ten random hexadecimal digits
    child_environment: dict[str, str]
    refused: dict[tuple[str, ...], tuple[datetime, int]] = field(default_factory=dict)
    """(person, page, rule) of a refusal -> when it was recorded, and how often it has repeated since."""
    seen: set[tuple[str, str]] = field(default_factory=set)
    """(person, file) pairs with a recorded view of whole account numbers."""
    sending: set[asyncio.Task[None]] = field(default_factory=set)  # notifications that are being sent

    async def current(self, request: web.Request) -> FileStatus:
        """The current state of the file that a page is about."""
        return await asyncio.to_thread(status_of, self.home.folder(request.match_info["id"]))

    async def record(
        self, request: web.Request, deed: Deed, run: str | None = None, **facts: str | int
    ) -> None:
        """Record an action and its user in the audit journal."""
        await asyncio.to_thread(self.record_of, person_of(request).name, deed, run, **facts)

    async def record_accounts(self, request: web.Request, run: str) -> None:
        """If the page shows whole account numbers of a file, record that this person sees them."""
        person = person_of(request)
        if person.compares and (person.name, run) not in self.seen:
            self.seen.add((person.name, run))
            await self.record(request, Deed.SAW_ACCOUNTS, run)

    async def record_refusal(self, request: web.Request, refusal: DeskRefusal) -> None:
        """Record the refused user, the route and the rule, but no content of the request."""
        if not isinstance(refusal, Forbidden | NoSession):
            return
        by, run, now = refusal.by or BY_ITSELF, "", self.clock()
        if PERSON in request:
            by = request[PERSON].name
            with suppress(Missing):
                run = self.home.folder(request.match_info.get("id", "")).id
        route = request.match_info.route
        path = None if route.resource is None else route.resource.canonical
        page = "" if path is None else f"{route.method} {path.removeprefix(self.access.prefix)}"
        _, _, rule = refusal.reason.key.partition(".")
        key = (by, run, page, rule)
        since, count = self.refused.get(key, (now - REFUSALS_APART, 0))
        if now - since < REFUSALS_APART:
            self.refused[key] = since, count + 1
            return
        if len(self.refused) >= REFUSALS_KNOWN_MAX:
            self.refused.clear()
        self.refused[key] = now, 0
        repeated = {"repeated_count": count} if count else {}
        with suppress(PrecheckError):  # the request is refused even if the disk is full
            facts: dict[str, str | int] = {"page": page, "rule": rule, **repeated}
            await asyncio.to_thread(self.record_of, by, Deed.REFUSED, run or None, **facts)

    def record_of(self, by: str, deed: Deed, run: str | None = None, **facts: str | int) -> None:
        """Record an action by the user of this name in the audit journal."""
        self.home.record(self.clock(), by, deed, run, **facts)


CONTEXT = web.AppKey("context", Context)


def context_of(request: web.Request) -> Context:
    """Return the state that all pages of this desk share."""
    return request.app[CONTEXT]


def person_of(request: web.Request) -> Person:
    """The user who sent a request."""
    if PERSON not in request:
        raise NoSession(Sentence("desk.not_signed_in"))
    return request[PERSON]


async def opened_by(request: web.Request, deed: Deed | None = None) -> tuple[Context, Person, FileStatus]:
    """Return the state, the user and the page's file, if they may do this; errors as in `states.require`."""
    context, person = context_of(request), person_of(request)
    if request.content_type == "application/x-www-form-urlencoded":
        await request.post()  # aiohttp keeps it; while a slow form arrives, other people may change the file
    current = await context.current(request)
    if deed is not None:
        require(current, person, deed)
    return context, person, current


_SAID: dict[Deed, tuple[Event, str]] = {
    Deed.HANDED_OVER: ("approval waiting", "desk.waits_for_approval"),
    Deed.SENT_BACK: ("sent back", "desk.was_sent_back"),
}


def notify_of(context: Context, current: FileStatus, deed: Deed) -> None:
    """Notify in the background, unless answers are simulated; failures go to the audit journal."""
    if is_simulated(current.file.profile):
        return
    sending = asyncio.create_task(_notify_of(context, current, deed))
    context.sending.add(sending)
    sending.add_done_callback(context.sending.discard)


async def _notify_of(context: Context, current: FileStatus, deed: Deed) -> None:
    event, key = _SAID[deed]
    notification = Notification(
        event=event,
        reason=str(Sentence(key, file=current.file.name)),
        host=socket.gethostname(),
        profile=current.file.profile,
        ended=timestamp(context.clock()),
        files=[notified_file(current.file.name, current.folder.run, None, current.summary)],
    )
    if (failed := await notify(None, notification)) is not None:
        await asyncio.to_thread(context.record_of, BY_ITSELF, Deed.NOT_NOTIFIED, current.id, reason=failed)
