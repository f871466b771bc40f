"""From what people said about a file to the arguments of jobs.

What they said about its columns is kept by its header line: the same export is read the same way next time.
"""

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

from pipeline.config import BUILT_IN, read, usual
from pipeline.config.profiles import choose
from pipeline.desk.folders import DeskHome, FileFolder
from pipeline.errors import PrecheckError
from pipeline.files.atomic import write_atomically
from pipeline.runs.request import CheckJob, ReusePermission
from schemas.columns import ColumnsRead
from schemas.outcomes import Environment
from schemas.summary import REHEARSAL

SIMULATED = BUILT_IN[0]
"""The profile by which a sandbox answers; it is always there."""


def profiles() -> list[str]:
    """The profiles that a file may be checked by; the first is the usual one. Raises as `config.read`."""
    path = usual()
    configured = [] if path is None else [*read(path).profiles]
    return list(dict.fromkeys([*configured, SIMULATED, REHEARSAL]))


def is_simulated(profile: str | None) -> bool:
    """Whether a sandbox answers those who check by a profile; not so where the configuration has mistakes."""
    try:
        return choose(profile, None).environment is Environment.SANDBOX
    except PrecheckError:
        return False


def job_of(folder: FileFolder) -> CheckJob:
    """How to check the file of a folder, as people said.

    The configuration is the usual one: PRECHECK_CONFIG names that of the desk, for it and its children.

    Raises:
        InputError: what they said cannot be read.
    """
    file = folder.read()
    before = () if file.corrects is None else (folder.path.with_name(file.corrects) / folder.run.name,)
    return CheckJob(
        file=folder.path / "input" / file.name,
        out=folder.run,
        profile=file.profile,
        mapping=file.mapping,
        encoding=file.encoding,
        sheet=file.sheet,
        input_format=file.input_format,
        country=file.country,
        many_names_reason=file.many_names_reason,
        retry_unanswered=file.retry_unanswered,
        pain002=file.is_pain001,
        language=file.language,
        reusable=ReusePermission(() if file.profile == REHEARSAL else before),
    )


_NAME = "mappings.json"
REMEMBERED_MAX = 500


class RememberedMapping(NamedTuple):
    """What was said about the columns of a file."""

    mapping: dict[str, str]
    by: Sequence[str]
    """Who said it: they shape every file that is read by it."""


def remember(home: DeskHome, read: ColumnsRead, said: RememberedMapping) -> None:
    """Keep what was said about the columns of a file that is read by it."""
    known = _known(home)
    key = _key(read)
    if remembered(home, read).mapping == said.mapping:
        return
    known.pop(key, None)
    known[key] = said
    latest = dict([*known.items()][-REMEMBERED_MAX:])
    with write_atomically(home.path / _NAME) as file:
        file.write(json.dumps(latest).encode())


def remembered(home: DeskHome, read: ColumnsRead) -> RememberedMapping:
    """What was said about a file with the same headers; nothing where there was none."""
    return RememberedMapping(*_known(home).get(_key(read), ({}, ())))


def _known(home: DeskHome) -> dict[str, tuple[dict[str, str], Sequence[str]]]:
    try:
        known = json.loads((home.path / _NAME).read_bytes())
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _key(read: ColumnsRead) -> str:
    return sha256("\0".join(column.header for column in read.columns).encode()).hexdigest()
