"""Turn a user's choices about a file into job arguments.

Column mappings are saved by header line, so the same kind of export is read the same way next time.
"""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import date
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from traceback import clear_frames
from typing import NamedTuple

from pipeline.config import ConfigurationFile
from pipeline.config.file import BUILT_IN, read, usual
from pipeline.config.inputs import ReadAs
from pipeline.config.profiles import choose
from pipeline.desk.folders import DeskHome, FileFolder, stamp_of
from pipeline.errors import InputError, PrecheckError, UsageError
from pipeline.files.atomic import write_atomically
from pipeline.jobs.columns import columns_of
from pipeline.jobs.forecast import forecast_file, under_limits_now
from pipeline.runs.folder import ledger_of, matching_folders
from pipeline.runs.request import CheckJob, Clock, ReusePermission
from schemas.columns import ColumnsRead
from schemas.folder import MANIFEST
from schemas.forecast import Forecast
from schemas.outcomes import Environment
from schemas.summary import REHEARSAL

SIMULATED = BUILT_IN[0]  # the built-in profile that uses the sandbox; it always exists


def profiles() -> list[str]:
    """List the profiles that a file may be checked with, the default first; same errors as `config.read`."""
    path = usual()
    configured = [] if path is None else [*read(path).profiles]
    return list(dict.fromkeys([*configured, SIMULATED, REHEARSAL]))


def is_simulated(profile: str | None) -> bool:
    """True if a sandbox answers for this profile; False if the configuration is invalid."""
    try:
        return choose(profile, None).environment is Environment.SANDBOX
    except PrecheckError:
        return False


def job_of(folder: FileFolder) -> CheckJob:
    """Return the job that checks a file; PRECHECK_CONFIG makes child processes use the same configuration."""
    file = folder.read()
    before = () if file.corrects is None else (folder.path.with_name(file.corrects) / folder.run.name,)
    return CheckJob(
        file=folder.path / "input" / file.name,
        out=folder.run,
        profile=file.profile,
        config=ConfigurationFile(),
        mapping=file.mapping,
        encoding=file.encoding,
        sheet=file.sheet,
        input_format=file.input_format,
        country=file.country,
        account_type=file.account_type,
        many_names_reason=file.many_names_reason,
        retry_unanswered=file.retry_unanswered,
        pain002=file.is_pain001 and file.reported_by is None,
        language=file.language,
        reusable=ReusePermission(() if file.profile == REHEARSAL else before),
    )


ColumnsOrError = tuple[ColumnsRead | None, PrecheckError | None]


def columns_once(path: Path, sha256: str, given: ReadAs) -> ColumnsOrError:
    """The file's columns under these choices, or the error; cached until file or configuration changes."""
    return _columns(path, sha256, (*given.mapping.items(),), given[1:], _seen([usual()]))


def forget_columns() -> None:
    """Clear the cache: an error in it may be out of date, now that memory or disk space is free."""
    _columns.cache_clear()


@lru_cache(maxsize=64)
def _columns(
    path: Path,
    _sha256: str,
    mapping: tuple[tuple[str, str], ...],
    options: tuple[str | None, str | None, str | None, str | None],
    _configuration: object,
) -> ColumnsOrError:
    try:
        found: ColumnsOrError = columns_of(path, ReadAs(dict(mapping), *options))
    except UsageError as error:
        found = None, error
    if (refusal := found[1]) is not None:
        clear_frames(refusal.__traceback__)  # releases the file that the frames hold
    return found


def forecast_once(folder: FileFolder, clock: Clock, *, is_running: bool) -> Forecast | PrecheckError:
    """The forecast of a file, or a permanent error; cached until the file changes, except limits."""
    job, now = job_of(folder), clock()
    chosen = choose(job.profile, None)
    profile = chosen.profile
    tables = [] if profile is None else [profile.modulus_weights, profile.modulus_substitutions]
    compared = [] if chosen.settings.compare_with is None else matching_folders(chosen.settings.compare_with)
    ledgers = [*job.reusable.folders, *([] if is_running else [job.out])]
    seen = [usual(), *tables, *map(ledger_of, ledgers), *(earlier / MANIFEST for earlier in compared)]
    found = _forecast(folder, clock, folder.read().model_dump_json(), is_running, now.date(), _seen(seen))
    return found if isinstance(found, PrecheckError) else under_limits_now(found, chosen, now)


def can_resume(folder: FileFolder, clock: Clock) -> bool:
    """True if a check that waits for its daily cap may resume now, or can report why not."""
    made = _forecast_or_none(folder, clock)
    return made is None or any(
        one.call_count and (one.daily_cap is None or one.used_count < one.daily_cap) for one in made.apis
    )


def has_no_answer(folder: FileFolder, clock: Clock) -> bool:
    """True if no check of the file has received an answer yet; False if that is unknown."""
    made = _forecast_or_none(folder, clock)
    return made is not None and not any(one.answered_before_count for one in made.apis)


def _forecast_or_none(folder: FileFolder, clock: Clock) -> Forecast | None:
    try:
        made = forecast_once(folder, clock, is_running=False)
    except PrecheckError:
        return None
    return None if isinstance(made, PrecheckError) or made.why_uncounted else made


@lru_cache(maxsize=64)
def _forecast(
    folder: FileFolder, clock: Clock, _file: str, _is_running: bool, _day: date, _seen: object
) -> Forecast | PrecheckError:
    try:
        return forecast_file(job_of(folder), clock)
    except (InputError, UsageError) as error:
        return error


def _seen(paths: Iterable[Path | None]) -> tuple[tuple[object, ...], ...]:
    """Return a key that changes when any of these files changes."""
    found = []
    for path in filter(None, paths):
        with suppress(OSError):
            found.append((path, stamp_of(path)))
    return (*found,)


_NAME = "mappings.json"
REMEMBERED_MAX = 500


class RememberedMapping(NamedTuple):
    """A saved mapping of a file's columns."""

    mapping: dict[str, str]
    by: Sequence[str]  # its authors, who count as having shaped every file that uses it


def remember(home: DeskHome, read: ColumnsRead, mapping: RememberedMapping) -> None:
    """Save the mapping of a file's columns for later files."""
    if remembered(home, read).mapping == mapping.mapping:
        return
    key = _key(read)
    others = {other: saved for other, saved in _known(home).items() if other != key}
    latest = dict([*others.items(), (key, mapping)][-REMEMBERED_MAX:])
    with write_atomically(home.path / _NAME) as file:
        file.write(json.dumps(latest).encode())


def remembered(home: DeskHome, read: ColumnsRead) -> RememberedMapping:
    """Return the saved mapping for a file with the same headers; empty if there is none."""
    return RememberedMapping(*_known(home).get(_key(read), ({}, ())))


def _known(home: DeskHome) -> dict[str, tuple[dict[str, str], Sequence[str]]]:
    try:
        known = json.loads((home.path / _NAME).read_bytes())
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _key(read: ColumnsRead) -> str:
    return sha256("\0".join(column.header for column in read.columns).encode()).hexdigest()
