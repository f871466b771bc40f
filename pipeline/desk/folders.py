"""The desk's files: its home folder, with a folder for each uploaded file.

HOME/audit.jsonl                who did what
HOME/runs/ID/desk.json          the record of the file and of how users shaped it
HOME/runs/ID/input/payroll.csv  the file
HOME/runs/ID/reports/1/vop.xml  the bank's latest reports on it
HOME/runs/ID/run.precheck/      the folder of its run, as the command makes it
HOME/runs/ID/failed-1.precheck/ the results of a check that got no answer
HOME/runs/ID/decisions.jsonl    decisions about rows
HOME/runs/ID/comments.jsonl     comments on rows
HOME/runs/ID/written/           corrected names and account types
HOME/runs/ID/progress.json      progress of its check; check.lock is held by its process
"""

import fcntl
import os
import re
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path

from pydantic import BaseModel

from pipeline.desk.journal import ChainedJournal
from pipeline.desk.refusals import Missing
from pipeline.errors import InputError, PrecheckError
from pipeline.files.atomic import write_atomically
from pipeline.files.disk_errors import writing
from pipeline.files.folder_lock import refuse_open
from pipeline.files.plain import plain_bytes
from pipeline.files.private import locked
from pipeline.wording import Sentence
from schemas.desk import AuditEntry, Deed, DeskFile, RowCommented, RowsDecided
from schemas.folder import SUMMARY
from schemas.review import Shaped
from schemas.strict import AnyDocument, parse, timestamp

_ID = re.compile("[0-9]{14}[0-9a-f]{10}")
_CHANGING = threading.Lock()
"""Serialises changes to a file's record, so that two users do not overwrite each other's."""
DECISIONS, DESK_FILE = "decisions.jsonl", "desk.json"


@lru_cache(maxsize=16)  # a page reads a journal several times
def _decisions(path: Path) -> ChainedJournal[RowsDecided]:
    return ChainedJournal(path, RowsDecided)


def _at(name: str) -> "cached_property[Path]":
    return cached_property(lambda folder: folder.path / name)


@dataclass(frozen=True)
class FileFolder:
    """The folder of one uploaded file."""

    id: str
    path: Path
    run = _at("run.precheck")  # the folder of its run
    summary = _at(f"run.precheck/{SUMMARY}")  # the summary of its run
    lock = _at("check.lock")  # the lock file that the checking process holds
    progress = _at("progress.json")  # the progress file that the checking process writes
    stop = _at("stop")  # the file whose presence asks the checking process to stop
    log = _at("log.jsonl")  # the log of the checking process
    record = _at(DESK_FILE)  # the record of the file
    reports = _at("reports")
    """The folder of the bank's latest reports; the run keeps copies of every report it used."""
    written = _at("written")  # the folder of corrected cells

    def set_aside(self) -> None:
        """Move the results of a check aside, so that the file can be checked from the start."""
        number = sum(1 for _ in self.path.glob("failed-*"))
        aside = self.path / f"failed-{number + 1}.precheck"
        with suppress(FileNotFoundError):
            self.run.rename(aside)
        aside.mkdir(mode=0o700, exist_ok=True)
        for path in (self.log, self.progress):
            with suppress(FileNotFoundError):
                path.rename(aside / f"desk-{path.name}")

    @property
    def decisions(self) -> ChainedJournal[RowsDecided]:
        """The journal of decisions."""
        return _decisions(self.path / DECISIONS)

    def keep(self, text: str, salt: str) -> str:
        """Store a user's text about a payee until names are deleted; return its key."""
        whole = f"{salt} {text}".encode()
        key = sha256(whole).hexdigest()
        self.written.mkdir(mode=0o700, exist_ok=True)
        with write_atomically(self.written / key) as out:
            out.write(whole)
        return key

    def kept(self, key: str) -> str:
        """Return a stored text; empty if it was deleted or altered."""
        try:
            whole = plain_bytes(self.written / key)
        except (OSError, PrecheckError):
            return ""
        return whole.decode().partition(" ")[2] if sha256(whole).hexdigest() == key else ""

    @property
    def comments(self) -> ChainedJournal[RowCommented]:
        """The journal of comments on rows."""
        return ChainedJournal(self.path / "comments.jsonl", RowCommented)

    def read(self) -> DeskFile:
        """Read the record of the file (InputError: it cannot be read)."""
        try:
            return parsed(DeskFile, self.record)
        except (OSError, ValueError):
            raise InputError(
                Sentence("desk.cannot_read", path=DESK_FILE), advice=Sentence("stores.restore_from_copy")
            ) from None

    def write(self, file: DeskFile) -> None:
        """Write the record of the file."""
        with write_atomically(self.record) as out:
            out.write(file.model_dump_json(indent=2).encode() + b"\n")
        _parsed.cache_clear()  # a file system may reuse the inode and the time

    def change(self, *shaped: Shaped, **changes: object) -> DeskFile:
        """Change the record and write it, with the acts that shaped the file, each listed once."""
        with _CHANGING:
            file = self.read()
            known = {(one.by, one.act) for one in file.shaped}
            changes["shaped"] = [*file.shaped, *(one for one in shaped if (one.by, one.act) not in known)]
            changed = DeskFile.model_validate(file.model_copy(update=changes).model_dump())
            self.write(changed)
        return changed

    @property
    def input(self) -> Path:
        """The uploaded file."""
        return self.path / "input" / self.read().name


Stamp = tuple[int, int, int]


def stamp_of(path: Path) -> Stamp:
    """Return what changes with a file: its time, inode and size (OSError)."""
    status = path.stat()
    return status.st_mtime_ns, status.st_ino, status.st_size


def parsed(model: type[AnyDocument], path: Path) -> AnyDocument:
    """Read a document, parsing it again only after a change (OSError, ValueError: missing, or unfit)."""
    found = _parsed(model, path, stamp_of(path))
    assert isinstance(found, model)
    return found


@lru_cache(maxsize=2048)
def _parsed(model: type[BaseModel], path: Path, _stamp: Stamp) -> BaseModel:
    return parse(model, plain_bytes(path))


@dataclass(frozen=True, slots=True)
class DeskHome:
    """The home folder of a desk."""

    path: Path
    _whole: dict[str, FileFolder] = field(default_factory=dict, compare=False)
    """Files known to be uploaded completely, by id, so that lists need not check them again."""
    arriving: Counter[str] = field(default_factory=Counter, compare=False)
    """Person -> bytes reserved for their unfinished uploads."""

    @property
    def runs(self) -> Path:
        """The folders of all files."""
        return self.path / "runs"

    @property
    def audit(self) -> ChainedJournal[AuditEntry]:
        """The audit journal."""
        return ChainedJournal(self.path / "audit.jsonl", AuditEntry)

    def record(self, time: datetime, by: str, deed: Deed, run: str | None = None, **facts: str | int) -> None:
        """Record an action by the user of this name, perhaps on a file, in the audit journal."""
        at = timestamp(time)
        self.audit.append(
            lambda previous: AuditEntry(previous=previous, time=at, by=by, deed=deed, run=run, facts=facts)
        )

    def make(self) -> None:
        """Create the folders, readable by their owner only; errors as in `refuse_open` and `not_writable`."""
        refuse_open(self.path, advice=())
        with writing(self.path, otherwise=Sentence("config.check_path_permissions")):
            self.runs.mkdir(mode=0o700, parents=True, exist_ok=True)

    def correction_of(self, file_id: str) -> FileFolder | None:
        """The newest corrected version of this file; None if there is none."""
        found = (self.folder(other) for other, file in self.files().items() if file.corrects == file_id)
        return next(found, None)

    def folder(self, file_id: str) -> FileFolder:
        """The folder of a file (Missing: unknown id)."""
        path = self.runs / file_id
        if _ID.fullmatch(file_id) is None or not self._is_whole(file_id):
            raise Missing(Sentence("desk.no_such_payment_file"))
        return FileFolder(file_id, path)

    def new_folder(self, time: str, chance: Callable[[], str]) -> FileFolder:
        """Create a folder for a new file, named by the time (ISO 8601, UTC) and ten hexadecimal digits."""
        file_id = f"{re.sub('[^0-9]', '', time)[:14]}{chance()}"
        folder = FileFolder(file_id, self.runs / file_id)
        (folder.path / "input").mkdir(mode=0o700, parents=True)
        return folder

    def folders(self) -> list[FileFolder]:
        """The folders of all files, newest first."""
        with os.scandir(self.runs) as entries:
            there = sorted((entry.name for entry in entries if _ID.fullmatch(entry.name)), reverse=True)
        new = (name for name in there if name not in self._whole and self._is_whole(name))
        self._whole.update({name: FileFolder(name, self.runs / name) for name in new})
        return [self._whole[name] for name in there if name in self._whole]

    def files(self) -> dict[str, DeskFile]:
        """The readable records of all files by id, newest first."""
        found = {}
        for folder in self.folders():
            with suppress(PrecheckError):
                found[folder.id] = folder.read()
        return found

    @contextmanager
    def approving(self) -> Iterator[None]:
        """Prevent other approvals in this home during the block."""
        with locked(self.path / "approve.lock"):
            yield

    def attend(self) -> int:
        """Mark this home as served until the process ends; if alone, delete and count partial uploads."""
        lock = os.open(self.path / "desk.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            halves = []
        else:
            there = [path for path in self.runs.iterdir() if _ID.fullmatch(path.name)]
            halves = [path for path in there if not self._is_whole(path.name)]
        for half in halves:
            shutil.rmtree(half)
        fcntl.flock(lock, fcntl.LOCK_SH)
        return len(halves)

    def _is_whole(self, file_id: str) -> bool:
        return (self.runs / file_id / DESK_FILE).is_file()
