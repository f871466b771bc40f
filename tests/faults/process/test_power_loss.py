"""A3: power loss. What the disk was told, seen by strace, and every image that it may leave behind.

The model: a write is on the disk for certain once an fsync of its file that began after it has ended;
until then all of it, none of it or any of its sectors of 512 bytes may be there, in any order. A name
is there for certain once its folder was flushed; until then any prefix of the changes of names may be.
Assumed: the disk keeps what it says it has flushed.
"""

import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from ledgers import asked

from pipeline.errors import PrecheckError
from pipeline.stores.sqlite.ledger import SqliteLedger
from pipeline.stores.values import RunIdentity

SECTOR = 512
NOW = "2030-01-02T03:04:05.678Z"
IDENTITY = RunIdentity("a" * 64, "b" * 64, "sandbox", "1")
CALLS = (
    "openat,write,writev,pwrite64,pwritev,fsync,fdatasync,ftruncate,rename,renameat,renameat2,unlink,unlinkat"
)
VARIANTS = ("all", "none", "some", "torn")
"""What became of the writes that were not flushed."""

WRITER = """
import os, sys
from pathlib import Path
import anyio
from pipeline.frames import Answer, AnswerState
from pipeline.stores.sqlite.ledger import SqliteLedger
from pipeline.stores.values import RunIdentity

IDENTITY = RunIdentity("a" * 64, "b" * 64, "sandbox", "1")
folder, count, now = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]

async def ask(ledger, number):
    question, request_id = number.to_bytes(32), f"id-{number}"
    await ledger.intend(question, attempt=1, request_id=request_id, time=now)
    os.write(1, b"intent %d\\n" % number)
    answer = Answer(number, AnswerState.ANSWERED, "MTCH", None, request_id, now, 1)
    await ledger.settle(question, answer)
    os.write(1, b"answer %d\\n" % number)

async def main(ledger, numbers):
    async with ledger.writing():
        for start in numbers[::8]:
            async with anyio.create_task_group() as tasks:
                for number in range(start, start + 8):
                    tasks.start_soon(ask, ledger, number)

for session in (range(count // 2), range(count // 2, count)):
    with SqliteLedger.open(folder / "ledger.db", IDENTITY, now=now) as ledger:
        anyio.run(main, ledger, session)
"""


class Write(NamedTuple):
    path: str
    offset: int | None
    """None: where the file ends."""
    data: bytes


class Truncate(NamedTuple):
    path: str
    size: int


class Create(NamedTuple):
    path: str


class Rename(NamedTuple):
    path: str
    to: str


class Unlink(NamedTuple):
    path: str


class Sync(NamedTuple):
    path: str
    covers: int
    """Only operations before this one, of which it is known that they came before it began."""


class Say(NamedTuple):
    text: str


CALL = re.compile(r"(?P<name>\w+)\((?P<words>.*)\) += (?P<result>-?\d+)")
STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
DESCRIPTOR = re.compile(r"(\d+)<((?:\\x[0-9a-f]{2})*)>")


def decoded(escaped):
    return bytes.fromhex(escaped.replace("\\x", ""))


def operations(trace: Path):
    """What a trace tells, in the order in which it had happened for certain."""
    unfinished, found = {}, []
    for line in trace.read_text().splitlines():
        pid, _, rest = line.partition(" ")
        rest = rest.strip()
        began = len(found)
        if rest.endswith("<unfinished ...>"):
            unfinished[pid] = (rest.removesuffix("<unfinished ...>"), began)
            continue
        if rest.startswith("<... "):
            start, began = unfinished.pop(pid)
            rest = start + rest.partition(" resumed>")[2]
        call = CALL.match(rest)
        if call and int(call["result"]) >= 0:
            found += operation(call["name"], call["words"], int(call["result"]), began)
    return found


def operation(name, words, result, began):
    strings = [decoded(text) for text in STRING.findall(words)]
    descriptor = DESCRIPTOR.match(words)
    number, path = (int(descriptor[1]), decoded(descriptor[2]).decode()) if descriptor else (-1, "")
    last = words.rpartition(",")[2].strip()
    match name:
        case "write" if number == 1:
            yield Say(strings[0].decode(errors="replace"))
        case "write" | "writev":
            yield Write(path, None, b"".join(strings)[:result])
        case "pwrite64" | "pwritev":
            yield Write(path, int(last), b"".join(strings)[:result])
        case "ftruncate":
            yield Truncate(path, int(last))
        case "fsync" | "fdatasync":
            yield Sync(path, began)
        case "openat" if "O_CREAT" in words:
            yield Create(strings[0].decode())
        case "rename" | "renameat" | "renameat2":
            yield Rename(strings[0].decode(), strings[1].decode())
        case "unlink" | "unlinkat":
            yield Unlink(strings[0].decode())


@dataclass
class File:
    """One file, whatever its name: what is on the disk for certain, and what may be."""

    durable: list = field(default_factory=list)
    pending: list = field(default_factory=list)  # (place in the trace, write)
    size: int = 0


class Disk:
    """A folder and its files, as an operating system and its disk hold them."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._live: dict[str, File] = {}
        self._durable_names: list = []
        self._pending_names: list = []

    def apply(self, place, operation):
        match operation:
            case Create(path) if self._is_ours(path) and path not in self._live:
                self._name(("link", path, File()))
            case Rename(path, to) if self._is_ours(path):
                self._name(("rename", path, to))
            case Unlink(path) if path in self._live:
                self._name(("unlink", path, None))
            case Write(path, offset, data) if path in self._live:
                file = self._live[path]
                at = file.size if offset is None else offset
                file.size = max(file.size, at + len(data))
                file.pending.append((place, (at, data)))
            case Truncate(path, size) if path in self._live:
                file = self._live[path]
                file.size = size
                file.pending.append((place, (size, None)))
            case Sync(path, _) if path == self._folder:
                self._durable_names += self._pending_names
                self._pending_names = []
            case Sync(path, covers) if path in self._live:
                file = self._live[path]
                file.durable += [write for at, write in file.pending if at < covers]
                file.pending = [(at, write) for at, write in file.pending if at >= covers]

    def _is_ours(self, path):
        return path.rpartition("/")[0] == self._folder

    def _name(self, change):
        self._pending_names.append(change)
        renamed(self._live, change)

    def image(self, variant, chance):
        """What may be found after a power loss now: name -> bytes."""
        count = len(self._pending_names)
        kept = {"all": count, "none": 0}.get(variant, chance.randint(0, count))
        names: dict[str, File] = {}
        for change in (*self._durable_names, *self._pending_names[:kept]):
            renamed(names, change)
        return {path.rpartition("/")[2]: content(file, variant, chance) for path, file in names.items()}


def renamed(names, change):
    kind, path, other = change
    match kind:
        case "link":
            names[path] = other
        case "rename":
            names[other] = names.pop(path)
        case "unlink":
            names.pop(path, None)


def content(file, variant, chance):
    pending = [write for _, write in file.pending]
    match variant:
        case "none":
            pending = []
        case "some":
            pending = [write for write in pending if chance.random() < 0.5]
        case "torn":
            pending = [sector for write in pending for sector in sectors(write) if chance.random() < 0.5]
            chance.shuffle(pending)
    data = bytearray()
    for at, written in (*file.durable, *pending):
        if written is None:
            del data[at:]
            data += bytes(at - len(data))
        else:
            data += bytes(max(0, at + len(written) - len(data)))
            data[at : at + len(written)] = written
    return bytes(data)


def sectors(write):
    at, data = write
    if data is None:
        return [write]
    first = SECTOR - at % SECTOR
    cuts = [0, *range(first, len(data), SECTOR), len(data)]
    return [(at + start, data[start:end]) for start, end in pairwise(cuts)]


@pytest.fixture(scope="module")
def strace(tmp_path_factory):
    """The words that go before a command whose writes are to be seen, and where the trace will be."""
    trace = tmp_path_factory.mktemp("strace") / "trace"
    words = ("strace", "-f", "-qq", "-xx", "-y", "-s", "1000000", "-e", f"trace={CALLS}", "-o", str(trace))
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed: apt-get install strace")
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        pytest.skip("strace may not trace here")
    return words, trace


def acknowledged(said, image, folder):
    """How many acknowledged lines an image has lost, or None where it cannot be used."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, data in image.items():
        (folder / name).write_bytes(data)
    try:
        with SqliteLedger.open(folder / "ledger.db", IDENTITY, now=NOW) as ledger:
            answered = {int.from_bytes(answer.question) for answer in ledger.answers()}
    except PrecheckError as error:
        print(error)  # noqa: T201 (pytest shows it for a failure)
        return None
    intended = {int.from_bytes(question) for question in asked(folder / "ledger.db")}
    with closing(sqlite3.connect(folder / "ledger.db")) as db:
        if db.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
            return None
    return len(said["answer"] - answered) + len(said["intent"] - intended)


def test_no_power_loss_takes_what_was_acknowledged(strace, chance, tmp_path, tell, is_long):
    words, trace = strace
    folder, count = tmp_path / "ledger", 2400 if is_long else 480
    subprocess.run(
        [*words, sys.executable, "-c", WRITER, folder, str(count), NOW],
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=300,
    )
    found = operations(trace)
    points = sorted(chance.sample(range(len(found)), 250 if is_long else 100))
    disk, said = Disk(str(folder)), {"intent": set(), "answer": set()}
    state_count = lost_count = unusable_count = lossless_count = 0
    for place, operation in enumerate(found):
        disk.apply(place, operation)
        if isinstance(operation, Say):
            kind, number = operation.text.split()
            said[kind].add(int(number))
        for variant in VARIANTS if place in points else ():
            lost = acknowledged(said, disk.image(variant, chance), tmp_path / "image")
            state_count += 1
            unusable_count += lost is None
            lossless_count += lost == 0
            lost_count += lost or 0
    assert len(said["answer"]) == count
    tell(
        "A3",
        "power loss, ledger",
        tried=state_count,
        survived=lossless_count,
        figure=f"acknowledged lines lost {lost_count}; corrupt {unusable_count}",
        goal="acknowledged lost 0; corrupt 0",
    )


def test_a_file_has_its_name_only_once_all_of_it_is_on_the_disk(
    strace, desk, sandbox, network_payments, tell
):
    words, trace = strace
    folder = desk.folder / "results"
    file = desk.payments(network_payments(500))
    finished = desk(
        "run",
        file,
        *desk.using(cop=sandbox.section()),
        "--out",
        folder,
        "--limit",
        5,
        "--quiet",
        prefix=words,
    )
    assert finished.status == 75, finished.err
    found = operations(trace)
    names = ("outcomes.csv", "attention.csv", "summary.json")
    orderly = []
    for name in names:
        path, part = str(folder / name), str(folder / f"{name}.part")
        writes = [place for place, op in enumerate(found) if isinstance(op, Write) and op.path == part]
        straight = [op for op in found if isinstance(op, Write | Create | Truncate) and op.path == path]
        named = [place for place, op in enumerate(found) if op == Rename(part, path)]
        flushes = [
            place
            for place, op in enumerate(found)
            if isinstance(op, Sync) and op.path == part and writes and op.covers > writes[-1]
        ]
        folder_flushes = [
            place for place, op in enumerate(found) if isinstance(op, Sync) and op.path == str(folder)
        ]
        if (
            writes
            and not straight
            and len(named) == 1
            and any(place < named[0] for place in flushes)
            and any(place > named[0] for place in folder_flushes)
        ):
            orderly.append(name)
    tell(
        "A3",
        "power loss, outcome files",
        tried=len(names),
        survived=len(orderly),
        figure=f"write, fsync, rename, fsync of the folder, in this order: {', '.join(orderly)}",
        goal="in this order",
    )
