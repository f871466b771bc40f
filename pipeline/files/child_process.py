"""Options and environment of our child processes: enough to run our modules, and no secret."""

import os
import sys

INTERPRETER = (sys.executable, "-I" if sys.flags.isolated else "-P")
"""-P: the working folder may hold foreign files, and a module in it must not be imported as ours.

-I where this process was started so: no PYTHONPATH either.
"""

_NEEDED = frozenset(
    {"HOME", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "VIRTUAL_ENV"}
)


def environment() -> dict[str, str]:
    """The variables that an interpreter needs to find itself and its packages; no credentials."""
    return {name: value for name, value in os.environ.items() if name in _NEEDED or name.startswith("PYTHON")}
