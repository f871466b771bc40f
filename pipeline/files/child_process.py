"""Our child processes: they get enough to run our modules, but no secrets, and write no core dumps."""

import ctypes
import os
import resource
import sys

INTERPRETER = (sys.executable, "-I" if sys.flags.isolated else "-P")
"""-P, so that a module in the working folder is not imported as ours, or -I if this process has it."""

_NEEDED = frozenset(
    {"HOME", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "VIRTUAL_ENV"}
)


def environment() -> dict[str, str]:
    """Return the variables that an interpreter needs to find itself and its packages; no credentials."""
    return {name: value for name, value in os.environ.items() if name in _NEEDED or name.startswith("PYTHON")}


_PR_SET_DUMPABLE = 4


def forbid_core_dumps() -> None:
    """Forbid core dumps of this process, and core files of its children: they would hold payments.

    Children inherit the limit on core files. The limit does not bind programs that the kernel pipes dumps to
    (systemd-coredump, apport); against those, Linux has a process flag, which each child sets for itself.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
