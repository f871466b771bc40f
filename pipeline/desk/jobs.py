"""From what people said about a file to the arguments of jobs."""

from pipeline.config import BUILT_IN, read, usual
from pipeline.config.profiles import choose
from pipeline.desk.folders import FileFolder
from pipeline.errors import PrecheckError
from pipeline.runs.request import CheckJob, ReusePermission
from schemas.outcomes import Environment

SIMULATED = BUILT_IN[0]
"""The profile by which a sandbox answers; it is always there."""


def profiles() -> list[str]:
    """The profiles that a file may be checked by; the first is the usual one.

    Raises:
        ConfigurationError: the configuration has mistakes.
    """
    path = usual()
    configured = [] if path is None else [*read(path).profiles]
    return list(dict.fromkeys([*configured, SIMULATED]))


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
        many_names_reason=file.many_names_reason,
        retry_unanswered=file.retry_unanswered,
        pain002=file.is_pain001,
        reusable=ReusePermission(before),
    )
