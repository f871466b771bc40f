"""A worker: it asks the questions of one profile's runs, which it finds in a work folder."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.config.profiles import choose, ledger_key, ledger_url, opened
from pipeline.errors import ConfigurationError, IncompleteError
from pipeline.runs.request import Notice, Surface
from pipeline.runs.work_folder import require_private
from pipeline.wording import Sentence

if TYPE_CHECKING:
    from pipeline.executors.helping import HelpGiven


@dataclass(frozen=True, slots=True)
class WorkerJob:
    """The arguments of `precheck worker`."""

    profile: str
    config: Path | None
    work: Path  # the folder given to `precheck run --work`
    until_idle: bool = False  # True to end when no question is left


def work(job: WorkerJob, surface: Surface) -> "HelpGiven":
    """Help until no question is left, or until a stop is requested, which is not an error.

    Raises:
        ConfigurationError: the profile has no shared ledger, or its ledger cannot be used.
        OutputError: the work folder cannot be read, or other users can read it.
        IncompleteError: questions are left that this worker cannot ask now, or its ledger is unavailable.
        PrecheckError: errors that end a run of this profile, such as refused credentials.
    """
    chosen = choose(job.profile, job.config)
    if (url := ledger_url(chosen)) is None:
        raise ConfigurationError(
            Sentence("jobs.profile_workers_help", chosen=chosen.name),
            advice=Sentence("jobs.name_one"),
        )
    require_private(job.work)
    from pipeline.executors.helping import HelpWanted, help_with_runs
    from pipeline.executors.shared import open_store

    secret = ledger_key(chosen)
    assert secret is not None, "a profile with a shared ledger has a key"
    with opened(chosen) as profile, open_store(url, secret, surface.clock) as store:
        environment = chosen.environment
        facts = {"profile": chosen.name, "work": str(job.work), "ledger": url}
        surface.notify(Notice(Sentence("jobs.notice_helping"), facts))
        wanted = HelpWanted(job.work, profile, chosen.fingerprint, environment, job.until_idle)
        given = help_with_runs(store, wanted, surface)
    if given.ended_by is not None:
        raise given.ended_by
    if job.until_idle and not given.is_idle and surface.stop.first is None:
        raise IncompleteError(Sentence("jobs.questions_left_cannot", work=job.work))
    return given
