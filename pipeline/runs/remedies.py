"""Explain how to restore a file of a run without asking a bank; changed files are never deleted."""

import shlex
from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path

from pipeline.wording import Sentence
from schemas.folder import (
    CORRECTED,
    CORRECTIONS,
    HOLD,
    HOLD_REASONS,
    OTHER_NAMES,
    PAIN002,
    PAIN002_SIMULATED,
    RELEASE,
    REPORTS,
)

_RUN_AGAIN = Sentence("runs.write_again")
_COMMANDS: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("report",): (*REPORTS, OTHER_NAMES),
    ("report", "--pain002"): (PAIN002, PAIN002_SIMULATED),
    ("fix",): (CORRECTIONS, f"{CORRECTED}.*"),
    ("split",): (HOLD_REASONS, f"{RELEASE}.*", f"{HOLD}.*"),
}
"""A command with its options -> the files that it writes."""


def _after_moving(step: Sentence) -> Sentence:
    return Sentence("runs.keep_first", step=step)


RUN_AGAIN = _after_moving(_RUN_AGAIN)
"""For changed outcome files and summaries, whose answers are in the ledger."""


def made_anew(path: Path) -> Sentence:
    """Explain how to restore a file of a run, as the end of a sentence."""
    step = _RUN_AGAIN
    for (command, *options), patterns in _COMMANDS.items():
        if any(fnmatch(path.name, pattern) for pattern in patterns):
            words = shlex.join(["precheck", command, str(path.parent), *options])
            step = Sentence("runs.write_again_by", command=words)
    return _after_moving(step) if path.exists() else step
