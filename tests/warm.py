"""Processes that have imported the program, and fork for every command that a test runs to its end.

A third of a short command is its own work, the rest is imports. What is tried here is the work: the fork has
the words, the environment, the folder and the streams of a command of its own, and ends as one does. So is a
command that is started and left to work, and a sandbox: such a fork is a child of the tests, as a process is
that they start, with signals of its own. Whatever is about the start itself or about resources starts an
interpreter.

The children that such a command starts are forks too, and so are those that the program starts in a process
of tests: parsers of files that may be hostile, with their limits of memory and time, and embedded sandboxes.
"""

import atexit
import fcntl
import gc
import os
import re
import selectors
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from importlib import import_module
from importlib.metadata import version
from inspect import signature
from pathlib import Path
from pkgutil import walk_packages
from typing import NoReturn

from door import HERE, REQUEST_BYTES_MAX, STARTED, ask, asked, door_of, make_place, start

OBEYED_AT_START = ("PYTHON", "LANG", "LC_", "LD_", "POLARS_", "SSL", "TZ", "OPENSSL", "MALLOC", "FAKE")
"""How variables begin that an interpreter obeys when it starts, or a library when it is imported."""
STREAMS_MAX = 32
"""A process of a pool has more than three."""
IDLE_THREADS = ("jemalloc_bg_thd", "polars-ooc-clea")
"""Of libraries, from their import on. A fork is without them and needs none: they give back idle memory."""


def acts_at_start(changes) -> bool:
    """Whether a change of the environment is one that a fork would not obey."""
    return any(name.startswith(OBEYED_AT_START) for name in changes)


FOR_SHELLS = """#!{python} -IS
import os, sys
sys.path.insert(0, {here!r})
from door import ask
environment = dict(os.environ, PYTHONPATH={python_path!r})
how = dict(folder=os.getcwd(), environment=environment, streams=(0, 1, 2))
sys.exit(ask({door!r}, sys.argv[1:], **how))
"""


class Warm:
    """Such processes, for one process of tests."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="warm"))
        self.inherited = os.environ.setdefault("PRECHECK_TESTS_PYTHONPATH", os.environ.get("PYTHONPATH", ""))
        """What PYTHONPATH was before all tests: with it, children are interpreters of their own."""
        self.python_path = make_place(self._folder, self.inherited)
        """With this PYTHONPATH, the program has its children run by such processes too."""
        self._tests = os.getpid()
        atexit.register(self._stop)

    def run(self, words, *, folder, environment, out, err) -> int:
        """Run a command to its end; give its status, negative where a signal ended it."""
        streams = (self._nothing.fileno(), out.fileno(), err.fileno())
        return ask(self._door, words, folder=folder, environment=environment, streams=streams)

    def start(self, words, *, folder, environment, streams) -> int:
        """Start a command in a process that is a child of this one; give its number."""
        return start(self._own_door, words, folder=folder, environment=environment, streams=streams)

    def install(self, folder: Path) -> None:
        """Put a `precheck` for shells into a folder that runs here."""
        command = folder / "precheck"
        named = {"here": HERE, "door": str(self._door), "python_path": self.python_path}
        command.write_text(FOR_SHELLS.format(python=sys.executable, **named))
        command.chmod(0o700)

    @contextmanager
    def in_place_of_interpreters(self, folder: Path) -> Iterator[None]:
        """What the Python API starts in the block is one of these processes, through a file in the folder."""
        self.install(folder)
        interpreter, sys.executable = sys.executable, str(folder / "precheck")
        yield
        sys.executable = interpreter

    @property
    def _door(self) -> Path:
        return door_of(self._folder, "command", tests=self._tests)

    @cached_property
    def _own_door(self) -> Path:
        """The door of a process that this one started: one that a child started is no descendant any more."""
        door = self._door
        if any(str(door) in map(str, process.args) for process in STARTED):
            return door
        return door_of(self._folder, "command", tests=self._tests, name="own")

    @cached_property
    def _nothing(self):
        return Path(os.devnull).open()

    def _stop(self) -> None:
        if os.getpid() != self._tests:
            return  # a test has forked
        for process in STARTED:
            process.kill()
            process.wait()
            process.stdout.close()
        self._nothing.close()
        shutil.rmtree(self._folder, ignore_errors=True)  # gone with the folder of all tests, perhaps


class Server:
    """Forks for every request, until the tests are gone."""

    def __init__(self, door: str, run, tests: int) -> None:
        self._run = run
        self._waiting = selectors.DefaultSelector()
        self._asking: dict[int, socket.socket] = {}  # by the process that was forked for it
        self._begun: dict[int, int] = {}  # by a process that forks again: where it says the number
        self._door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._door.bind(door + ".new")
        self._door.listen(64)
        self._when_ready(self._door, self._fork)
        self._when_ready(os.pidfd_open(tests), sys.exit)
        Path(door + ".new").rename(door)

    def serve(self) -> NoReturn:
        while True:
            for key, _ in self._waiting.select():
                do, *arguments = key.data
                do(*arguments)

    def _when_ready(self, file, do, *arguments) -> None:
        self._waiting.register(file, selectors.EVENT_READ, (do, *arguments))

    def _fork(self) -> None:
        line, _ = self._door.accept()
        content, streams, _, _ = socket.recv_fds(line, REQUEST_BYTES_MAX, STREAMS_MAX)
        while content and not content.endswith(b"\n") and (more := line.recv(REQUEST_BYTES_MAX)):
            content += more
        if not content.endswith(b"\n"):
            line.close()  # whoever was asking has been killed
            return
        request = asked(content)
        begun, beginning = os.pipe() if "is_ours" in request else (None, None)
        if (pid := os.fork()) == 0:
            self._door.close()
            line.close()
            if beginning is not None and (pid := os.fork()) > 0:
                os.write(beginning, b"%d" % pid)
                os._exit(0)
            if beginning is not None:
                os.close(begun)
                os.close(beginning)
            _become(request, streams, self._run)
        else:
            self._asking[pid] = line
            if beginning is not None:
                os.close(beginning)
                self._begun[pid] = begun
            process = os.pidfd_open(pid)
            self._when_ready(process, self._ended, pid, process)
            self._when_ready(line, self._left, pid)
        for stream in streams:
            os.close(stream)

    def _left(self, pid: int) -> None:
        """Nobody asks any more: whoever was asking has been killed."""
        if (line := self._asking.pop(pid, None)) is not None:
            self._waiting.unregister(line)
            line.close()
            os.kill(pid, signal.SIGKILL)

    def _ended(self, pid: int, process: int) -> None:
        self._waiting.unregister(process)
        os.close(process)
        _, status = os.waitpid(pid, 0)
        answer = os.waitstatus_to_exitcode(status)
        if (begun := self._begun.pop(pid, None)) is not None:
            answer = int(os.read(begun, 20))
            os.close(begun)
        if (line := self._asking.pop(pid, None)) is not None:
            self._waiting.unregister(line)  # its number is soon that of another one
            with line, suppress(BrokenPipeError):
                line.sendall(b"%d\n" % answer)


def _become(request, streams, run) -> NoReturn:
    """Do as an interpreter that was just started, to its end."""
    # What has such a number is ours, and of no use any more.
    above = [fcntl.fcntl(stream, fcntl.F_DUPFD, 100 + STREAMS_MAX) for stream in streams]
    for stream in streams:
        os.close(stream)
    for number, copy in zip(request["numbers"], above, strict=True):
        os.dup2(copy, number)
        os.close(copy)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.argv = ["precheck", *request["words"]]
    _end(_status_of(run))


def _status_of(run) -> int:
    try:
        run()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 (an interpreter would print it too)
        import traceback

        traceback.print_exc()
        return 1
    return 0


def _end(status: int) -> NoReturn:
    atexit._run_exitfuncs()  # noqa: SLF001 (an interpreter calls it, and a fork has to)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            status = 120  # as an interpreter
    os._exit(status)


USED_LATER = (
    "anyio._backends._asyncio",
    "encodings.cp437",
    "encodings.idna",
    "polars._utils.udfs",
    "schwifty",
    "stamina",
    "uvloop",
)
"""What libraries import when a command asks, reads or writes."""


def command():
    """Have what every command imports and makes once: without it, that would be half of its time."""
    import payee_precheck  # noqa: I001 (first, as where a command starts)
    import pipeline
    from pydantic import BaseModel

    from pipeline.frames import PAYMENTS
    from pipeline.headers.footers import label_of
    from pipeline.headers.meaning import meaning

    _import_all(pipeline)
    for name in USED_LATER:
        import_module(name)
    for document in _kinds_of(BaseModel):
        document.model_rebuild()
    for kept in _tables():
        kept()
    for field in PAYMENTS:  # most files have such headers
        meaning(field)
    label_of("total")
    version("polars")  # looks for all packages that there are

    def run() -> None:
        if "PRECHECK_TEST_LEASE_S" in os.environ:
            import short_lease

            short_lease.shorten()
        if sys.argv[1:2] == ["pool"]:  # as a pool starts its processes
            from multiprocessing import spawn

            said = sys.argv[2]
            sys.argv = ["-c", "--multiprocessing-fork"]
            spawn.spawn_main(**{name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", said)})
        if sys.argv[1:3] == ["-I", "-c"]:  # as the Python API starts an interpreter
            payee_precheck.answer()
            return
        payee_precheck.main()

    return run


def parser():
    """Have what every parser imports."""
    from pipeline import formats
    from pipeline.files.confined import main

    _import_all(formats)
    return main


def _import_all(package) -> None:
    for module in walk_packages(package.__path__, f"{package.__name__}."):
        import_module(module.name)


def _tables():
    """What the program makes once in a process, of nothing but its own words and tables."""
    for name, module in list(sys.modules.items()):
        for value in vars(module).values() if name.startswith("pipeline.") else ():
            if hasattr(value, "cache_info") and not signature(value).parameters:
                yield value


def _kinds_of(model):
    for kind in model.__subclasses__():
        yield kind
        yield from _kinds_of(kind)


if __name__ == "__main__":
    [_, door, role, tests] = sys.argv
    run = {"command": command, "parser": parser}[role]()
    threads = {(task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()}
    assert threads <= {"python", *IDLE_THREADS}, f"a fork would be without {threads}"
    gc.freeze()
    server = Server(door, run, int(tests))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    server.serve()
