"""Find the available memory, so that a file too large for it is refused before the process is killed."""

import ctypes
import os
import resource
from contextlib import suppress
from pathlib import Path

from pipeline.errors import InputError
from pipeline.wording import Sentence

GIB = 1024**3
_CGROUP = Path("/sys/fs/cgroup/memory.max")  # a container's limit (cgroup v2): a number, "max" or no file
_RESERVED_BYTES = GIB // 2  # address space that the libraries take before they hold any data


def memory_max_bytes() -> int:
    """Return the memory that this process can use: the least of machine, container and own limit."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    own, _ = resource.getrlimit(resource.RLIMIT_AS)
    if own != resource.RLIM_INFINITY:
        # The limit is on address space, and allocators reserve twice what they use.
        limits.append(max(0, own - _RESERVED_BYTES) // 2)
    try:
        container = _CGROUP.read_text("ascii").strip()
    except OSError:
        container = "max"
    if container.isdecimal():
        limits.append(int(container))
    return min(limits)


def refuse_too_large(byte_count: int, *, per_byte: int, where: str) -> None:
    """Refuse a file that is too large for this machine at `per_byte` bytes per file byte (InputError)."""
    size, needed, there = byte_count / GIB, byte_count * per_byte / GIB, memory_max_bytes() / GIB
    if needed > there:
        raise InputError(
            Sentence("files.needs_more_memory", where=where, byte_count=size, needed=needed, there=there)
        )


_ARENA_MAX, _MMAP_THRESHOLD = -8, -3  # parameters for `mallopt` in the GNU C library
_KEPT_BYTES_MAX = 128 * 1024


def give_freed_memory_back() -> None:
    """Make every thread return large blocks to the system once they are free.

    For long-lived processes: by default each thread keeps freed memory. No effect on other C libraries.
    """
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(_ARENA_MAX, 1)
        library.mallopt(_MMAP_THRESHOLD, _KEPT_BYTES_MAX)
