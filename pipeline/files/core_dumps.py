"""Prevent core dumps, which would hold payments and secrets.

Children inherit the limit on core files. The limit does not bind programs that the kernel pipes dumps to
(systemd-coredump, apport); against those, Linux has a process flag, which each child sets for itself.
"""

import ctypes
import resource
import sys

_PR_SET_DUMPABLE = 4


def forbid_core_dumps() -> None:
    """Forbid core dumps of this process, and core files of its children."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
