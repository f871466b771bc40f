"""The folder of one run: its files, how to restore them, decisions, and the record of a shared ledger."""

import hashlib
import shlex
from collections.abc import Collection, Mapping
from fnmatch import fnmatch
from pathlib import Path

from pydantic import BaseModel

from pipeline.config.profiles import Chosen
from pipeline.errors import InputError, OtherRunError, OutputError, UsageError
from pipeline.files.atomic import write_atomically
from pipeline.files.folder_lock import require_folder, shared
from pipeline.files.plain import plain_bytes
from pipeline.formats.registry import NAMES, format_named
from pipeline.stores.protocols import RunLedger
from pipeline.stores.sqlite.ledger_file import sqlite_errors
from pipeline.wording import Sentence
from schemas import folder as file_names
from schemas.review import Approval, Approvals
from schemas.shared import SharedRunRecord
from schemas.strict import parse
from schemas.summary import Summary

_RUN_AGAIN = Sentence("runs.rerun_to_rewrite")
_COMMANDS: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("report",): (*file_names.REPORTS, file_names.OTHER_NAMES),
    ("report", "--pain002"): (file_names.PAIN002, file_names.PAIN002_SIMULATED),
    ("fix",): (file_names.CORRECTIONS, f"{file_names.CORRECTED}.*"),
    ("split",): (file_names.HOLD_REASONS, f"{file_names.RELEASE}.*", f"{file_names.HOLD}.*"),
}
"""A command with its options -> the files that it writes."""


def _after_moving(step: Sentence) -> Sentence:
    return Sentence("runs.move_aside_first", step=step)


RUN_AGAIN = _after_moving(_RUN_AGAIN)  # for outcome files and summaries, as answers are in the ledger


def made_anew(path: Path) -> Sentence:
    """Explain how to restore a file of a run, as the end of a sentence."""
    step = _RUN_AGAIN
    for (command, *options), patterns in _COMMANDS.items():
        if any(fnmatch(path.name, pattern) for pattern in patterns):
            words = shlex.join(["precheck", command, str(path.parent), *options])
            step = Sentence("runs.rewrite_by_command", command=words)
    return _after_moving(step) if path.exists() else step


def ledger_of(folder: Path) -> Path:
    """The path of a run's ledger."""
    return folder / file_names.LEDGER


def has_begun(folder: Path) -> bool:
    """True if a run of precheck has ever used the folder."""
    return ledger_of(folder).exists()


def outcome_file(folder: Path, format_name: str) -> Path:
    """Return the path of the outcome file in this format."""
    return folder / file_names.outcome_name(format_named(format_name).SUFFIX)


def outcome_files(folder: Path) -> dict[str, Path]:
    """Map the format of the outcome file to its path; a run writes only one."""
    return {name: outcome_file(folder, name) for name in NAMES}


def files_with_names(folder: Path) -> list[Path]:
    """List the files of a folder that may contain names, including those that banks returned."""
    names = (
        file_names.ATTENTION,
        file_names.CHANGES,
        file_names.copy_before(file_names.CHANGES),
        file_names.REASONS,
    )
    holding = [*map(folder.joinpath, names), *file_names.files_with_returned_names(folder)]
    return [*outcome_files(folder).values(), *holding]


def matching_folders(pattern: str) -> list[Path]:
    """Return the paths that match a pattern, sorted."""
    root = Path(Path(pattern).anchor)
    return sorted(root.glob(str(Path(pattern).relative_to(root))))


def require_idle(folder: Path) -> None:
    """Refuse a folder that does not exist (UsageError), is unreadable, or in use (LockedError)."""
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
    """Read a summary, with the lists in `emptied` empty (InputError: missing, invalid, or another hash)."""
    path = folder / file_names.SUMMARY
    try:
        return parse(Summary, recorded_bytes(path, sha256), emptied=emptied)
    except OSError as error:
        raise InputError(
            Sentence("runs.summary_unreadable", path=path, why=error, remedy=made_anew(path))
        ) from error
    except ValueError as error:
        raise InputError(Sentence("runs.differs_from_run", path=path, remedy=RUN_AGAIN)) from error


def keep_document(path: Path, document: BaseModel) -> Path:
    """Write a document of a run; same errors as `write_atomically`."""
    with write_atomically(path) as file:
        file.write(as_written(document))
    return path


def as_written(document: BaseModel) -> bytes:
    """Return a document of the run as the bytes to store."""
    return document.model_dump_json(indent=2).encode() + b"\n"


def record_approval(folder: Path, *approvals: Approval) -> None:
    """Append decisions, if any, to those on record, in a locked folder; errors as in reading and writing."""
    if approvals:
        keep_document(folder / file_names.APPROVALS, Approvals([*approvals_of(folder), *approvals]))


def approvals_of(folder: Path) -> list[Approval]:
    """Read the recorded decisions, oldest first (InputError: they cannot be read)."""
    path = folder / file_names.APPROVALS
    try:
        return parse(Approvals, plain_bytes(path)).root
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise InputError(
            Sentence("runs.decisions_unreadable", path=path), advice=Sentence("runs.restore_from_copy")
        ) from error


def decider(name: str | None) -> str:
    """Return the name of the deciding user (UsageError: none, or it could disguise or control a terminal)."""
    if name is None or not name.strip():
        raise UsageError(Sentence("runs.user_without_login_name"), advice=Sentence("advice.name_decider"))
    if not name.strip().isprintable():
        raise UsageError(
            Sentence("runs.decider_name_unprintable", name=ascii(name.strip())),
            advice=Sentence("runs.omit_these_characters"),
        )
    return name.strip()


def read_store_record(folder: Path) -> SharedRunRecord | None:
    """Read which shared run a folder belongs to (OutputError: unreadable); None if it has its own ledger."""
    path = folder / file_names.STORE
    try:
        return parse(SharedRunRecord, plain_bytes(path))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise OutputError(
            Sentence("runs.store_record_changed", path=path),
            advice=(Sentence("runs.restore_from_copy"), Sentence("advice.other_folder")),
        ) from error


def settled(folder: Path, ledger: RunLedger, chosen: Chosen) -> bool:
    """True if the ledger has all of a finished run (OtherRunError: only one of run and profile shares)."""
    record, is_shared_now = read_store_record(folder), chosen.settings.ledger is not None
    if is_shared_now is (record is None) and (record is not None or any(ledger.counts)):
        begun = Sentence("runs.begun_unshared", folder=folder)
        if record is not None:
            begun = Sentence("runs.begun_shared", folder=folder, ledger=record.ledger)
        advice = Sentence("runs.name_same_ledger"), Sentence("advice.other_folder")
        raise OtherRunError(begun, advice=(*advice, Sentence("advice.start_over")))
    return record is None or record.finished
