"""The memory that is available, so that a file that is too large is refused before the process is killed."""

import ctypes
import os
import resource
from contextlib import suppress
from pathlib import Path

from pipeline.errors import InputError
from pipeline.wording import Sentence

GIB = 1024**3
_CGROUP = Path("/sys/fs/cgroup/memory.max")
"""Where a container states its limit (cgroup v2); "max" or no such file where there is none."""


_RESERVED_BYTES = GIB // 2
"""Address space that the libraries take before they hold any data."""


def memory_max_bytes() -> int:
    """The memory that this process can fill at most: of the machine, the container and its own limit."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    own, _ = resource.getrlimit(resource.RLIMIT_AS)
    if own != resource.RLIM_INFINITY:
        # A limit of address space: allocators reserve twice what they fill.
        limits.append(max(0, own - _RESERVED_BYTES) // 2)
    try:
        container = _CGROUP.read_text("ascii").strip()
    except OSError:
        container = "max"
    if container.isdecimal():
        limits.append(int(container))
    return min(limits)


def refuse_too_large(byte_count: int, *, per_byte: int, where: str) -> None:
    """Refuse a file that this machine cannot hold, at so much memory for each of its bytes (InputError)."""
    needed, there = byte_count * per_byte, memory_max_bytes()
    if needed > there:
        raise InputError(
            Sentence(
                "files.gib_which_needs",
                where=where,
                byte_count=byte_count / GIB,
                needed=needed / GIB,
                there=there / GIB,
            )
        )


_ARENA_MAX, _MMAP_THRESHOLD = -8, -3
"""What `mallopt` of the GNU C library calls them."""
_KEPT_BYTES_MAX = 128 * 1024


def give_freed_memory_back() -> None:
    """Have large blocks returned to the system once they are free, whichever thread had them.

    For a process that lives long: by default each thread has memory of its own that it keeps for later. Where
    the C library is another one, it stays with what that does.
    """
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(_ARENA_MAX, 1)
        library.mallopt(_MMAP_THRESHOLD, _KEPT_BYTES_MAX)
