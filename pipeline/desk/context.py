"""What the pages of one desk share: its home, its settings, time and chance, and how deeds are recorded."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from aiohttp import web

from pipeline.config.desk import DeskSection
from pipeline.desk.doors import Door
from pipeline.desk.folders import DeskHome
from pipeline.desk.guards import person_of
from pipeline.desk.people import Person, Role
from pipeline.desk.states import Standing, standing
from schemas.desk import AuditEntry, Deed
from schemas.strict import timestamp


@dataclass(frozen=True, slots=True)
class Context:
    """What the pages of one desk share."""

    home: DeskHome
    told: DeskSection
    door: Door
    clock: Callable[[], datetime]
    chance: Callable[[], str]
    """Gives ten hexadecimal digits."""
    child_environment: dict[str, str]

    async def at(self, request: web.Request) -> Standing:
        """The file that a page is about, as it stands."""
        folder = self.home.folder(request.match_info["id"])
        return await asyncio.to_thread(standing, folder)

    async def record(
        self, request: web.Request, deed: Deed, run: str | None = None, **facts: str | int
    ) -> None:
        """Put on record who did what."""
        await asyncio.to_thread(self.record_of, person_of(request).name, deed, run, **facts)

    def record_of(self, by: str, deed: Deed, run: str | None = None, **facts: str | int) -> None:
        """The same, of a name."""
        now = timestamp(self.clock())
        self.home.audit.append(
            lambda previous: AuditEntry(previous=previous, time=now, by=by, deed=deed, run=run, facts=facts)
        )


CONTEXT = web.AppKey("context", Context)


def context_of(request: web.Request) -> Context:
    """What the pages of this desk share."""
    return request.app[CONTEXT]


async def opened_by(request: web.Request, *roles: Role) -> tuple[Context, Person, Standing]:
    """What the pages share, who asks and needs one of these roles, and the file that a page is about.

    Raises:
        Forbidden: this person has none of the roles.
        Missing: there is no such file.
    """
    context, person = context_of(request), person_of(request)
    if roles:
        person.require(*roles)
    return context, person, await context.at(request)
