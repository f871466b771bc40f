"""A process that has imported the program, and forks for every command that a test runs to its end.

A third of a short command is its own work, the rest is imports. What is tried here is the work: the fork has
the words, the environment, the folder and the streams of a command of its own, and ends as one does. Whatever
is about the start itself, about signals or about resources starts an interpreter (`Desk.start`).
"""

import atexit
import json
import os
import selectors
import socket
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import NoReturn

OBEYED_AT_START = ("PYTHON", "LANG", "LC_", "LD_", "POLARS_", "SSL", "TZ", "OPENSSL", "MALLOC", "FAKE")
"""How variables begin that an interpreter obeys when it starts, or a library when it is imported."""
IDLE_THREADS = ("jemalloc_bg_thd", "polars-ooc-clea")
"""Of libraries, from their import on. A fork is without them and needs none: they give back idle memory."""
REQUEST_BYTES_MAX = 1 << 20


def acts_at_start(changes) -> bool:
    """Whether a change of the environment is one that a fork would not obey."""
    return any(name.startswith(OBEYED_AT_START) for name in changes)


FOR_SHELLS = """#!{python} -IS
import os, sys
sys.path.insert(0, {here!r})
from warm import ask
how = dict(folder=os.getcwd(), environment=dict(os.environ), out=sys.stdout, err=sys.stderr)
sys.exit(ask({door!r}, sys.argv[1:], **how))
"""


def ask(door, words, *, folder, environment, out, err) -> int:
    """Have the process behind this door run a command to its end; as `Warm.run`."""
    request = {"words": [str(word) for word in words], "folder": str(folder), "environment": environment}
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.connect(str(door))
        socket.send_fds(line, [json.dumps(request).encode() + b"\n"], [out.fileno(), err.fileno()])
        return json.loads(line.makefile().readline())


class Warm:
    """One such process, for one process of tests."""

    def __init__(self) -> None:
        self._path = Path(tempfile.mkdtemp(prefix="warm")) / "door"
        self._process: subprocess.Popen | None = None

    def run(self, words, *, folder, environment, out, err) -> int:
        """Run a command to its end; give its status, negative where a signal ended it."""
        if self._process is None:
            self._start(environment)
        return ask(self._path, words, folder=folder, environment=environment, out=out, err=err)

    def install(self, folder: Path, environment) -> None:
        """Put a `precheck` for shells into a folder that runs here."""
        if self._process is None:
            self._start(environment)
        command = folder / "precheck"
        here, door = str(Path(__file__).parent), str(self._path)
        command.write_text(FOR_SHELLS.format(python=sys.executable, here=here, door=door))
        command.chmod(0o700)

    def _start(self, environment) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, self._path],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: value for name, value in environment.items() if name in {"PATH", "LANG"}},
        )
        atexit.register(self._stop)
        assert self._process.stdout.readline() == b"ready\n"

    def _stop(self) -> None:
        self._process.kill()
        self._process.communicate()


def serve(path: str) -> None:
    """Fork for every request, until the tests are gone."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door, selectors.DefaultSelector() as waiting:
        door.bind(path)
        door.listen(64)
        waiting.register(door, selectors.EVENT_READ)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while os.getppid() != 1:
            for key, _ in waiting.select(timeout=5):
                if key.fileobj is door:
                    line, _ = door.accept()
                    pid = _forked(line, door)
                    waiting.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, line))
                    continue
                waiting.unregister(key.fd)
                os.close(key.fd)
                pid, line = key.data
                _, status = os.waitpid(pid, 0)
                with line:
                    line.sendall(json.dumps(os.waitstatus_to_exitcode(status)).encode() + b"\n")


def _forked(line: socket.socket, door: socket.socket) -> int:
    content, streams, _, _ = socket.recv_fds(line, REQUEST_BYTES_MAX, 2)
    while not content.endswith(b"\n"):
        content += line.recv(REQUEST_BYTES_MAX)
    pid = os.fork()
    if pid == 0:
        door.close()
        line.close()
        _become(json.loads(content), streams)
    for stream in streams:
        os.close(stream)
    return pid


def _become(request, streams) -> NoReturn:
    """Do as a command that was just started, to its end."""
    for number, stream in enumerate(streams, start=1):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.argv = ["precheck", *request["words"]]
    _end(_command())


def _command() -> int:
    from payee_precheck import main

    try:
        main()
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


def prepare() -> None:
    """Have all that a command imports, and the page's template: to compile it takes as long as a command."""
    import payee_precheck  # noqa: F401 (first, as where a command starts)
    import pipeline
    from pipeline.reports.page import template

    for module in walk_packages(pipeline.__path__, "pipeline."):
        import_module(module.name)
    template()


if __name__ == "__main__":
    prepare()
    threads = {(task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()}
    assert threads <= {"python", *IDLE_THREADS}, f"a fork would be without {threads}"
    serve(sys.argv[1])
