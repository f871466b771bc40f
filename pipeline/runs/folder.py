"""The folder of one run: the paths of its files. To open its ledger, see `runs.proof`."""

import hashlib
from collections.abc import Collection
from pathlib import Path

from pydantic import BaseModel

from pipeline.errors import InputError
from pipeline.files.atomic import write_atomically
from pipeline.files.folder_lock import require_folder, shared
from pipeline.files.plain import plain_bytes
from pipeline.formats import NAMES, format_named
from pipeline.runs.remedies import RUN_AGAIN, made_anew
from pipeline.stores.sqlite.ledger_file import sqlite_errors
from pipeline.wording import Sentence
from schemas.folder import (
    ATTENTION,
    CHANGES,
    LEDGER,
    REASONS,
    SUMMARY,
    copy_before,
    files_with_returned_names,
    outcome_name,
)
from schemas.strict import parse
from schemas.summary import Summary


def ledger_of(folder: Path) -> Path:
    """The path of a run's ledger."""
    return folder / LEDGER


def has_begun(folder: Path) -> bool:
    """True if a run of precheck has ever used the folder."""
    return ledger_of(folder).exists()


def outcome_file(folder: Path, format_name: str) -> Path:
    """Return the path of the outcome file in this format."""
    return folder / outcome_name(format_named(format_name).SUFFIX)


def outcome_files(folder: Path) -> dict[str, Path]:
    """Map the format of the outcome file to its path; a run writes only one."""
    return {name: outcome_file(folder, name) for name in NAMES}


def files_with_names(folder: Path) -> list[Path]:
    """List the files of a folder that may contain names, including those that banks returned."""
    names = (ATTENTION, CHANGES, copy_before(CHANGES), REASONS)
    holding = [*map(folder.joinpath, names), *files_with_returned_names(folder)]
    return [*outcome_files(folder).values(), *holding]


def matching_folders(pattern: str) -> list[Path]:
    """Return the paths that match a pattern, sorted."""
    root = Path(Path(pattern).anchor)
    return sorted(root.glob(str(Path(pattern).relative_to(root))))


def require_idle(folder: Path) -> None:
    """Refuse a folder that does not exist, or that another process is using.

    For jobs that read another file before they open the ledger, which has its own lock.

    Raises:
        UsageError: the folder does not exist.
        LockedError: a run or another exclusive job holds the folder.
        InputError, OutputError: the folder cannot be read.
    """
    require_folder(folder)
    with sqlite_errors(ledger_of(folder)), shared(folder):
        pass


def recorded_bytes(path: Path, sha256: str | None) -> bytes:
    """Read a file, which must have the given hash, if any (InputError: it was changed; OSError)."""
    content = plain_bytes(path)
    if sha256 not in (None, hashlib.sha256(content).hexdigest()):
        raise InputError(Sentence("runs.changed_since", path=path, remedy=made_anew(path)))
    return content


def read_summary(folder: Path, sha256: str | None = None, *, emptied: Collection[str] = ()) -> Summary:
    """Read a run's summary, which must have this hash, if given, leaving the lists in `emptied` empty.

    Raises:
        InputError: the file is missing, not a summary, or was changed.
    """
    path = folder / SUMMARY
    try:
        return parse(Summary, recorded_bytes(path, sha256), emptied=emptied)
    except OSError as error:
        raise InputError(
            Sentence("runs.cannot_read_2", path=path, why=error, remedy=made_anew(path))
        ) from error
    except ValueError as error:
        raise InputError(Sentence("runs.not_run_wrote", path=path, remedy=RUN_AGAIN)) from error


def write_summary(folder: Path, summary: Summary) -> Path:
    """Write the summary of a run; same errors as `write_atomically`."""
    path = folder / SUMMARY
    with write_atomically(path) as file:
        file.write(as_written(summary))
    return path


def as_written(document: BaseModel) -> bytes:
    """Return a document of the run as the bytes to store."""
    return document.model_dump_json(indent=2).encode() + b"\n"
