"""How to have a warm process (tests/warm.py) run something; each import here costs every child its time.

So there are none but of what is built in: a child that imported `socket` and `json` took twice as long.

Children that the program starts by itself are run so too: an interpreter that finds our folder first on
its PYTHONPATH runs sitecustomize there, which asks at the door for what this interpreter was to run,
and ends as that ended. Whoever started it sees a child of its own, with its streams and its end.
"""

import marshal
import os
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket

HERE = os.path.dirname(__file__)  # noqa: PTH120 (without pathlib)
STARTED = []
"""The processes behind doors that this process has started."""
PR_SET_CHILD_SUBREAPER = 36
REQUEST_BYTES_MAX = 1 << 20
IS_OURS = """import os, sys
CHILDREN = {{
    "command": ["-m", "payee_precheck"],
    "parser": ["-c", "from pipeline.files.confined import main; main()"],
}}
for role, words in CHILDREN.items():
    if os.environ["PYTHONPATH"] == {python_path!r} and sys.orig_argv[1 : 2 + len(words)] == ["-P", *words]:
        sys.path.insert(0, {here!r})
        from door import stand_in
        stand_in(__file__, {tests!r}, role, sys.orig_argv[2 + len(words) :])
POOL = "from multiprocessing.spawn import spawn_main; "
if os.environ["PYTHONPATH"] == {python_path!r} and sys.orig_argv[-2:][0].startswith(POOL):
    sys.path.insert(0, {here!r})
    from door import stand_in
    stand_in(__file__, {tests!r}, "command", ["pool", sys.orig_argv[-2]])
"""
"""What sitecustomize runs: -P, as `pipeline/files/child_process.py` starts children; and those of pools."""


def make_place(folder, inherited: str) -> str:
    """Put what children run into the folder; give the PYTHONPATH which makes them run it."""
    python_path = os.pathsep.join(filter(None, [str(folder), inherited]))
    text = IS_OURS.format(python_path=python_path, here=HERE, tests=os.getpid())
    (folder / "sitecustomize.py").write_text(text)
    return python_path


def door_of(folder, role: str, *, tests: int, name: str = ""):
    """The door of the process that has this role for these tests, which is started unless it runs.

    Args:
        folder: of the doors.
        role: "command" or "parser".
        tests: the number of the process of tests; with it, what is started ends.
        name: of the door, where there are several for one role.
    """
    door = folder / (name or role)
    if not door.exists():
        import fcntl

        with door.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not door.exists():
                _start(door, role, tests)
    return door


def _start(door, role, tests):
    """Start it, and return when its door is open; a parser's libraries obey the environment of the child."""
    import subprocess

    kept = os.environ.keys() if role == "parser" else {"PATH", "LANG"}
    process = subprocess.Popen(
        [sys.executable, f"{HERE}/warm.py", door, role, str(tests)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={name: value for name, value in os.environ.items() if name in kept},
        start_new_session=True,
    )
    STARTED.append(process)
    assert process.stdout.readline() == b"ready\n"


def ask(door, words, *, folder, environment, streams) -> int:
    """Have it run something to its end; give the status, negative where a signal ended it.

    The streams have in the fork the numbers 0, 1 and 2; those after these the numbers that they have here.
    """
    request = {"words": [str(word) for word in words], "folder": str(folder), "environment": environment}
    return _answer(door, request | {"numbers": [0, 1, 2, *streams[3:]]}, streams)


def start(door, words, *, folder, environment, streams) -> int:
    """Have it run something in a process that is a child of this one; give its number.

    The one that is forked forks again and ends, and its child becomes ours: for as long as it takes, we are
    whom the system gives orphans to.
    """
    request = {"words": [str(word) for word in words], "folder": str(folder), "environment": environment}
    adopt(True)
    try:
        pid = _answer(door, request | {"numbers": [0, 1, 2], "is_ours": True}, streams)
    finally:
        adopt(False)
    with open(f"/proc/{pid}/status", encoding="ascii") as status:  # noqa: PTH123 (without pathlib)
        assert f"\nPPid:\t{os.getpid()}\n" in status.read()
    return pid


def _answer(door, request, streams) -> int:
    """What is said at a door to a request, which is read by `asked`."""
    line, answer = socket(AF_UNIX, SOCK_STREAM), b""
    try:
        line.connect(str(door))
        numbers = b"".join(stream.to_bytes(4, sys.byteorder) for stream in streams)
        content = marshal.dumps(request).hex().encode() + b"\n"
        sent = line.sendmsg([content], [(SOL_SOCKET, SCM_RIGHTS, numbers)])
        if sent < len(content):  # even nothing cannot be sent to one that has answered by now
            line.sendall(content[sent:])
        while not answer.endswith(b"\n") and (more := line.recv(64)):
            answer += more
    finally:
        line.close()
    return int(answer)


def asked(content: bytes) -> dict:
    """The request that a line holds."""
    return marshal.loads(bytes.fromhex(content.decode()))


def adopt(whether: bool) -> None:
    """Whether orphans among our descendants become our children."""
    from ctypes import CDLL

    assert CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(whether), 0, 0, 0) == 0


def is_open(number: int) -> bool:
    """Whether a file has this number."""
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def stand_in(place, tests, role, words):
    """Be that child: ends as it ends, and it is ended where we are killed."""
    folder = os.path.dirname(place)  # noqa: PTH120 (without pathlib)
    door = f"{folder}/{role}"
    if not os.path.exists(door):  # noqa: PTH110 (likewise)
        from pathlib import Path

        door_of(Path(folder), role, tests=tests)
    streams = (0, 1, 2)
    if words[:1] == ["pool"]:  # its pipes are known by their numbers
        ours = map(int, os.listdir("/proc/self/fd"))  # noqa: PTH208 (likewise)
        streams += tuple(number for number in ours if number > 2 and is_open(number))
    status = ask(door, words, folder=os.getcwd(), environment=dict(os.environ), streams=streams)  # noqa: PTH109
    if status < 0:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.kill(os.getpid(), -status)
    os._exit(status)
