"""Find the payment file of a finished run again, for jobs that edit its bytes."""

from glob import escape
from pathlib import Path
from typing import NamedTuple

from pipeline.errors import InputError, UsageError
from pipeline.formats import MessageEntry, format_as_read, pain001
from pipeline.formats.message import Message
from pipeline.runs.manifest import identity_of
from pipeline.stages.read import ReadingArguments
from pipeline.stages.read.messages import read_message
from pipeline.stages.read.opening import opened
from pipeline.wording import Sentence
from schemas.summary import InputFile, Summary


class MessageFile(NamedTuple):
    """A payment file in a message format, read again."""

    name: str
    data: bytes  # unpacked
    entry: MessageEntry
    message: Message
    arguments: ReadingArguments  # how to read it


def read_again(folder: Path, file: InputFile, given: Path | None) -> MessageFile:
    """Read the message file of a run again, in its format; without `given`, it is searched for.

    Raises:
        UsageError: it is not there.
        InputError: it is another file, or was changed.
    """
    path = input_path(folder, file, given)
    arguments = ReadingArguments(
        {}, None if file.encoding == "utf-8" else file.encoding, format_choice=format_as_read(file)
    )
    data, entry, packed = opened(path, arguments)
    assert isinstance(entry, MessageEntry)
    assert isinstance(data, bytes)
    source = read_message(data, entry, arguments, where=path.name)
    if file.sha256 != (source.sha256 if packed is None else packed[1].sha256):
        raise _another(path)
    assert source.message is not None
    return MessageFile(path.name, data, entry, source.message, arguments)


def require_pain001(format_name: str, *, name: str) -> None:
    """Refuse an option that needs a pain.001 for other files (UsageError)."""
    if format_name != pain001.NAME:
        raise UsageError(Sentence("jobs.answers_pain_none", name=name))


def pain001_of(folder: Path, summary: Summary, given: Path | None) -> Message:
    """The content of a run's payment file, which must be a pain.001; without `given`, it is searched for.

    Raises:
        UsageError: it is missing, or not a pain.001.
        InputError: it is another file, or was changed.
    """
    require_pain001(summary.input.format, name=summary.input.name)
    return read_again(folder, summary.input, given).message


def input_path(folder: Path, file: InputFile, given: Path | None) -> Path:
    """The current path of a run's payment file.

    Without `given`, it is the file with its name and hash next to the run's folder, in the working folder, or
    in a folder next to the run's, like files that `precheck fix` corrected.

    Raises:
        UsageError: it is not there.
        InputError: the file found is another one, or was changed.
    """
    beside = folder.absolute().parent
    searched = (beside / file.name, Path(file.name), *sorted(beside.glob(f"*/{escape(file.name)}")))
    there = [path for path in (searched if given is None else (given,)) if path.is_file()]
    if not there:
        raise UsageError(
            Sentence("runs.input_not_there", path=given or searched[0]), advice=Sentence("advice.name_input")
        )
    for path in there:
        if _is_as_checked(path, file):
            return path
    raise _another(there[0])


def _is_as_checked(path: Path, file: InputFile) -> bool:
    try:
        return path.stat().st_size == file.byte_count and identity_of(path)[0] == file.sha256
    except OSError as error:
        raise InputError(Sentence("runs.cannot_read_check_path", path=path, why=error)) from error


def _another(path: Path) -> InputError:
    return InputError(Sentence("runs.not_file_checked", path=path), advice=Sentence("advice.name_input"))
