"""Notify the recipients in `[notify]` that a file is waiting for approval, or was sent back."""

import asyncio
import socket

from pipeline.desk.context import Context
from pipeline.desk.jobs import is_simulated
from pipeline.desk.states import FileStatus
from pipeline.desk.words import BY_ITSELF
from pipeline.jobs.notify import notified_file, notify
from pipeline.wording import Sentence
from schemas.desk import Deed
from schemas.notification import Event, Notification
from schemas.strict import timestamp

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
