"""Options and environment of our child processes: enough to run our modules, without secrets."""

import os
import sys

INTERPRETER = (sys.executable, "-I" if sys.flags.isolated else "-P")
"""-P, so that a module in the working folder is not imported as ours.

-I, which also ignores PYTHONPATH, if this process has it.
"""

_NEEDED = frozenset(
    {"HOME", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "VIRTUAL_ENV"}
)


def environment() -> dict[str, str]:
    """Return the variables that an interpreter needs to find itself and its packages; no credentials."""
    return {name: value for name, value in os.environ.items() if name in _NEEDED or name.startswith("PYTHON")}
