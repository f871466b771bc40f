"""Find the payment file of a finished run, for jobs that edit its bytes."""

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
    """The payment file of a run, read again, if it is a message."""

    name: str
    data: bytes  # decompressed
    entry: MessageEntry
    message: Message
    arguments: ReadingArguments  # how it was read


def read_again(folder: Path, file: InputFile, given: Path | None) -> MessageFile:
    """Read a run's message file again, in its format; without `given`, search for it.

    Raises:
        UsageError: the file is missing.
        InputError: it is a different file, or was changed.
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
    """Refuse an option that needs a pain.001, for any other file (UsageError)."""
    if format_name != pain001.NAME:
        raise UsageError(Sentence("jobs.answers_pain_none", name=name))


def pain001_of(folder: Path, summary: Summary, given: Path | None) -> Message:
    """Return a run's payment file, which must be a pain.001; without `given`, search for it.

    Raises:
        UsageError: the file is missing, or not a pain.001.
        InputError: it is a different file, or was changed.
    """
    if summary.parts:
        raise UsageError(Sentence("runs.folder_data_set", folder=folder))
    require_pain001(summary.input.format, name=summary.input.name)
    return read_again(folder, summary.input, given).message


def input_path(folder: Path, file: InputFile, given: Path | None) -> Path:
    """Return the current path of a run's payment file.

    Without `given`, search for its name and hash beside the run's folder, in the working folder, and in
    folders beside the run's, where `precheck fix` puts corrected files.

    Raises:
        UsageError: the file is missing.
        InputError: the file found is a different one, or was changed.
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
        return identity_of(path)[0] == file.sha256
    except OSError as error:
        raise InputError(Sentence("runs.cannot_read_check_path", path=path, why=error)) from error


def _another(path: Path) -> InputError:
    return InputError(Sentence("runs.not_file_checked", path=path), advice=Sentence("advice.name_input"))
