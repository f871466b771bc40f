"""Decisions about a run in `approvals.json`, an append-only list: who decided what, when and why."""

from pathlib import Path

from pipeline.errors import InputError, UsageError
from pipeline.files.atomic import write_atomically
from pipeline.files.plain import plain_bytes
from pipeline.wording import Sentence
from schemas.folder import APPROVALS
from schemas.review import Approval, Approvals
from schemas.strict import parse


def record_approval(folder: Path, *approvals: Approval) -> None:
    """Append decisions, if there are any, to those on record. The caller must have locked the folder.

    Raises:
        InputError: the recorded decisions cannot be read; no decision is added.
        OutputError, DiskError: see `write_atomically`.
    """
    if not approvals:
        return
    on_record = [*approvals_of(folder), *approvals]
    with write_atomically(folder / APPROVALS) as file:
        file.write(Approvals(on_record).model_dump_json(indent=2).encode() + b"\n")


def approvals_of(folder: Path) -> list[Approval]:
    """Read the recorded decisions, oldest first (InputError: they cannot be read)."""
    path = folder / APPROVALS
    try:
        return parse(Approvals, plain_bytes(path)).root
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise InputError(
            Sentence("runs.not_list_decisions", path=path), advice=Sentence("runs.bring_back_from")
        ) from error


def decider(name: str | None) -> str:
    """Return the name of the deciding user, for the record; None means that there is no login name either.

    Raises:
        UsageError: the name is missing, or contains control or invisible characters, which could disguise it
            or control a terminal.
    """
    if name is None or not name.strip():
        raise UsageError(Sentence("runs.this_user_no"), advice=Sentence("advice.name_decider"))
    if not name.strip().isprintable():
        raise UsageError(
            Sentence("runs.control_invisible_characters", name=ascii(name.strip())),
            advice=Sentence("runs.leave_them_out"),
        )
    return name.strip()
