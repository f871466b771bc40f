"""Who decided what about a run, when and why: `approvals.json`, a list that only grows."""

import os
from pathlib import Path

from pipeline.errors import Advice, InputError, UsageError
from pipeline.files.atomic import write_atomically
from schemas.folder import APPROVALS
from schemas.review import Approval, Approvals
from schemas.strict import parse


def record_approval(folder: Path, *approvals: Approval) -> None:
    """Add decisions, if any, to those on record. The folder must be locked by the caller.

    Raises:
        InputError: what is on record cannot be read; nothing is added to it.
        OutputError, DiskError: as `write_atomically`.
    """
    if not approvals:
        return
    on_record = [*approvals_of(folder), *approvals]
    with write_atomically(folder / APPROVALS) as file:
        file.write(Approvals(on_record).model_dump_json(indent=2).encode() + b"\n")


def approvals_of(folder: Path) -> list[Approval]:
    """The decisions on record, oldest first.

    Raises:
        InputError: they cannot be read.
    """
    path = folder / APPROVALS
    try:
        if not path.is_file() and os.path.lexists(path):  # reading a pipe would never end
            raise InputError(f"{path}: something that is not a file has this name", advice="remove it")
        return parse(Approvals, path.read_bytes()).root
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path}: not a list of decisions any more", advice="bring it back from a copy"
        ) from error


def decider(name: str | None) -> str:
    """The name of who decides, as it is put on record; None stands for no name and no login name.

    Raises:
        UsageError: there is none; or it has control or invisible characters, by which it could look like
            another name, or steer a terminal.
    """
    if name is None or not name.strip():
        raise UsageError("this user has no login name", advice=Advice.NAME_DECIDER)
    if not name.strip().isprintable():
        raise UsageError(
            f"{name.strip()!a}: control or invisible characters in the name of who decides",
            advice="leave them out",
        )
    return name.strip()
