"""No image of this process's memory on a disk: it would hold the payments, and secrets.

The limit on core files is inherited by children. It does not bind a program that the kernel pipes images
to (systemd-coredump, apport): for that Linux has a flag of the process, which a child sets for itself.
"""

import ctypes
import resource
import sys

_PR_SET_DUMPABLE = 4


def forbid_core_dumps() -> None:
    """Have the kernel keep no image of this process, and of its children no core file."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
