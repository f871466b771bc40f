"""The report for bank software, a pain.002: about which payment files it can be."""

from pathlib import Path

from pipeline.errors import UsageError
from pipeline.formats import pain001
from pipeline.formats.message import Message
from pipeline.runs.input_file import read_again
from pipeline.wording import Sentence
from schemas.summary import Summary


def require_pain001(format_name: str, *, name: str) -> None:
    """Refuse it of a file that has nothing it could refer to.

    Raises:
        UsageError: the file is no pain.001.
    """
    if format_name != pain001.NAME:
        raise UsageError(Sentence("jobs.answers_pain_none", name=name))


def pain001_of(folder: Path, summary: Summary, given: Path | None) -> Message:
    """What the payment file of a run says, which must be a pain.001.

    Args:
        folder: of the run.
        summary: of the run.
        given: where the file is now; None: where `input_path` finds it.

    Raises:
        UsageError: it is no pain.001, or it is not there.
        InputError: it is another file, or was changed.
    """
    require_pain001(summary.input.format, name=summary.input.name)
    return read_again(folder, summary.input, given).message
