"""The number of files and connections that this process may have open."""

import resource

from pipeline.errors import ConfigurationError
from pipeline.wording import Sentence

_NEEDED = 32  # open files that a command needs to send one request at a time to each of two servers


def open_files_allowed(wanted: int) -> int:
    """Allow this process `wanted` open files, or the system's maximum; return the number."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


def require_open_files() -> None:
    """Refuse to start if the system allows too few open files (ConfigurationError)."""
    if (allowed := open_files_allowed(_NEEDED)) < _NEEDED:
        raise ConfigurationError(Sentence("files.too_few_open_files", allowed=allowed, needed=_NEEDED))
