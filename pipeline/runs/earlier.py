"""The earlier run in a folder, which a new run never destroys."""

from glob import escape
from pathlib import Path
from typing import NamedTuple

from pipeline.errors import InputError, OtherRunError, OutputError, PrecheckError, UsageError
from pipeline.files.disk_errors import writing
from pipeline.files.folder_lock import locked
from pipeline.files.plain import real_path
from pipeline.runs.folder import has_begun, ledger_of
from pipeline.runs.manifest import read_manifest
from pipeline.stores.sqlite.reader import ledger_reader
from pipeline.wording import Sentence
from schemas.folder import APPROVALS, files_of_review
from schemas.outcomes import Environment

_OTHER_FOLDER = Sentence("advice.other_folder")


class PriorRun(NamedTuple):
    """An earlier run that the new one would replace."""

    folder: Path
    environment: Environment | None
    """The kind of server that answered; None if the ledger cannot be read, so it may be any."""
    has_answers: bool
    profile: str | None
    """The name of the run's profile; None if the run never ended."""

    @property
    def is_paid_for(self) -> bool:
        """True if a real server answered, or may have answered."""
        return self.has_answers and self.environment is not Environment.SANDBOX

    @property
    def is_kept(self) -> bool:
        """True if the run must be moved aside, to keep its answers or people's decisions and files."""
        was_reviewed = (self.folder / APPROVALS).exists() or any(files_of_review(self.folder))
        return self.is_paid_for or was_reviewed

    def require_replaceable(self, environment: Environment) -> None:
        """Refuse to replace a real run by a simulated one (OtherRunError)."""
        if environment is Environment.SANDBOX and self.is_paid_for:
            raise OtherRunError(
                Sentence("runs.real_answers_there", folder=self.folder),
                advice=(*self._own_profile, _OTHER_FOLDER),
            )

    def refusal(self, refused: OtherRunError, environment: Environment, profile: str) -> OtherRunError:
        """Explain why another run cannot continue in this folder, and how to continue without loss."""
        is_lost = environment is Environment.SANDBOX and self.is_paid_for
        others = (_OTHER_FOLDER,) if is_lost else (_OTHER_FOLDER, Sentence("advice.start_over"))
        if self.profile in (None, profile):
            return OtherRunError(refused.reason, advice=others)
        reason = Sentence("runs.of_other_profile", folder=self.folder, profile=self.profile)
        return OtherRunError(reason, advice=(*self._own_profile, *others))

    @property
    def _own_profile(self) -> tuple[Sentence, ...]:
        return () if self.profile is None else (Sentence("advice.run_with_profile", profile=self.profile),)

    def move_aside(self, now: str) -> Path:
        """Move the folder aside, and return its new path.

        Raises:
            LockedError: another process works in the folder.
            OutputError, DiskError: the folder cannot be moved.
        """
        here = real_path(self.folder)
        if Path.cwd().is_relative_to(here):
            raise OutputError(Sentence("runs.cannot_move_current", folder=self.folder), advice=_OTHER_FOLDER)
        with locked(self.folder, now, otherwise=(_OTHER_FOLDER,)):
            stamp = now[:19].replace(":", "")
            names = (f"{here.name}.{stamp}{'' if number == 1 else f'-{number}'}" for number in range(1, 1000))
            aside = next(path for path in map(here.with_name, names) if not path.exists())
            with writing(self.folder):
                here.rename(aside)
        return self.folder.with_name(aside.name) if self.folder.name else aside


def earlier_run(folder: Path, now: str) -> PriorRun | None:
    """Return the run in a folder, or None."""
    if not has_begun(folder):
        return None
    try:
        profile = read_manifest(folder).profile.name
    except (UsageError, InputError):
        profile = None
    try:
        with ledger_reader(ledger_of(folder), now=now) as record:
            counts = record.counts
            has_answers = counts.answer_count + counts.reused_count + record.finish_count > 0
            return PriorRun(folder, Environment(record.run.environment), has_answers, profile)
    except PrecheckError:
        return PriorRun(folder, None, has_answers=True, profile=profile)


def moved_from(folder: Path) -> list[Path]:
    """Find the earlier runs that were moved aside from a folder, oldest first."""
    stamp = f"{'[0-9]' * 4}-{'[0-9]' * 2}-{'[0-9]' * 2}T{'[0-9]' * 6}"
    return sorted(path for path in folder.parent.glob(f"{escape(folder.name)}.{stamp}*") if path.is_dir())
