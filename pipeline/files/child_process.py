"""Options and environment of our child processes: enough to run our modules, and no secret."""

import os
import sys

INTERPRETER = (sys.executable, "-I" if sys.flags.isolated else "-P")
"""-P: a module in the working folder must not be imported as ours.

-I if this process has it: PYTHONPATH is ignored too.
"""

_NEEDED = frozenset(
    {"HOME", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "VIRTUAL_ENV"}
)


def environment() -> dict[str, str]:
    """The variables that an interpreter needs to find itself and its packages; no credentials."""
    return {name: value for name, value in os.environ.items() if name in _NEEDED or name.startswith("PYTHON")}
