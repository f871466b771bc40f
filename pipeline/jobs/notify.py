"""Notify the recipients in `[notify]`, by a command or a webhook."""

import os
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE

import anyio

from pipeline.config.file import ConfigurationFile, NotifySection
from pipeline.errors import IncompleteError, PrecheckError
from pipeline.files import child_process as children
from pipeline.sections import secret
from pipeline.transport.tls import Keys, client_context
from pipeline.wording import Sentence
from schemas.notification import Notification, NotifiedFile
from schemas.summary import Summary

NOTIFY_MAX_S = 10.0
_KILL = 9


async def notify(
    config: ConfigurationFile | Path | None, notification: Notification, wait_max_s: float = NOTIFY_MAX_S
) -> str | None:
    """Send a notification within ten seconds, if `[notify]` exists; return why it failed. It never raises."""
    try:
        section = ConfigurationFile.of(config).notify
        if section is None:
            return None
        with anyio.fail_after(wait_max_s):
            document = notification.model_dump_json().encode()
            await (_run(section.command, document) if section.command else _post(section, document))
    except PrecheckError as error:
        return error.messages[0].recorded()
    except TimeoutError:
        return Sentence("jobs.no_answer_within", wait_max_s=wait_max_s).recorded()
    except OSError as error:
        return error.strerror or type(error).__name__
    return None


def notified_file(name: str, folder: Path, status: int | None, summary: Summary | None) -> NotifiedFile:
    """Return the part of a notification that is about one file."""
    if summary is None:
        return NotifiedFile(file=name, folder=str(folder), status=status)
    return NotifiedFile(
        file=name,
        folder=str(folder),
        status=status,
        environment=summary.environment,
        simulated=summary.simulated,
        row_counts={total.outcome.value: total.row_count for total in summary.outcomes},
        complete=summary.complete,
        next_step=summary.next_step,
    )


async def _post(section: NotifySection, document: bytes) -> None:
    from pipeline.transport.ping import post  # slow to import, and few runs send notifications

    url = secret(section.webhook_env, section.webhook_file).get_secret_value()
    keys = Keys("webhook_env" if section.webhook_env else "webhook_file", "webhook_ca_file")
    context = client_context(ca_file=section.webhook_ca_file, ca_key=keys.authority)
    await post(url, document, context=context, deadline_s=NOTIFY_MAX_S, keys=keys)


async def _run(command: list[str], document: bytes) -> None:
    """Run a command without our secrets, in a process group that is killed on timeout."""
    environment = children.environment()
    child = await anyio.open_process(
        command, stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True, env=environment
    )
    assert child.stdin is not None
    try:
        with suppress(anyio.BrokenResourceError, OSError):  # the command need not read the document
            await child.stdin.send(document)
            await child.stdin.aclose()
        status = await child.wait()
    except BaseException:
        with anyio.CancelScope(shield=True):
            os.killpg(child.pid, _KILL)
            await child.wait()
        raise
    if status != 0:
        raise IncompleteError(Sentence("jobs.notify_failed", program=Path(command[0]).name, status=status))
