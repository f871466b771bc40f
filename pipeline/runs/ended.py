"""A run that has ended: the files in its folder, by its manifest."""

from dataclasses import dataclass
from pathlib import Path

import polars as pl
from pydantic import SecretStr

from pipeline.config.profiles import choose, ledger_key
from pipeline.errors import ConfigurationError, InputError
from pipeline.frames import CHANGES, OUTCOMES, Changes, Outcomes
from pipeline.reports.documents import Rows
from pipeline.runs.folder import read_summary, require_idle
from pipeline.runs.manifest import identity_of, purged, read_manifest
from pipeline.stages.read import PaymentSource, read
from pipeline.stores.sqlite.reader import LedgerReader
from pipeline.wording import Sentence
from schemas.folder import CHANGES as CHANGES_NAME
from schemas.folder import SUMMARY, made_anew
from schemas.manifest import Manifest
from schemas.summary import Summary


@dataclass(frozen=True, slots=True)
class EndedRun:
    """The folder of a run, and its manifest."""

    folder: Path
    manifest: Manifest

    @property
    def outcome_file(self) -> Path:
        """Where the outcome file lies, if it was not deleted."""
        return self.folder / self.manifest.outcome_file.name

    def forgotten(self, name: str) -> str | None:
        """When a purge deleted a file, as a phrase; None where none did."""
        time = None if (self.folder / name).exists() else purged(self.manifest, name)
        return None if time is None else f"deleted by precheck purge at {time}"

    def summary(self) -> Summary:
        """The summary, as the run left it.

        Raises:
            InputError: it is not there any more, or was changed.
        """
        path = self.folder / SUMMARY
        recorded = next((file.sha256 for file in self.manifest.files if file.name == SUMMARY), None)
        try:
            is_as_recorded = identity_of(path)[0] == recorded
        except OSError:
            is_as_recorded = False
        if not is_as_recorded:
            raise InputError(Sentence("runs.changed_since", path=path, remedy=made_anew(path)))
        return read_summary(self.folder)

    def key_of_names(self, record: LedgerReader, config: Path | None = None) -> SecretStr | None:
        """The key of the names in the ledger, where they are encrypted and the run's profile still has it.

        Args:
            record: the ledger.
            config: where the profile is; None: the usual configuration, which need not have it.

        Raises:
            ConfigurationError: the configuration that was named does not have it.
        """
        if not record.is_encrypted:
            return None
        try:
            secret = ledger_key(choose(self.manifest.profile.name, config))
            return secret if secret is not None and record.opens_with(secret) else None
        except ConfigurationError:
            if config is not None:
                raise
            return None

    def rows(self, *, changed: bool = False) -> Rows:
        """Every payment, read from the outcome file, which may be a changed one only on request.

        Raises:
            InputError: it is not there, not an outcome file, or was changed.
        """
        path = self.outcome_file
        if (forgotten := self.forgotten(path.name)) is not None:
            raise InputError(Sentence("runs.run_same_command", path=path, forgotten=forgotten))
        source = read(path, mapping=self.manifest.mapping, decided=self.manifest.input.decision)
        if not changed and source.sha256 != self.manifest.outcome_file.sha256:
            raise InputError(Sentence("runs.changed_since", path=path, remedy=made_anew(path)))
        return Rows(source.payments, outcomes_in(source, path), source.original, changes_in(self.folder))


def ended_run(folder: Path) -> EndedRun:
    """Open a folder in which no run works.

    Raises:
        UsageError: it is not the folder of a run that has ended.
        InputError: its manifest cannot be read.
        LockedError: a run works in the folder.
    """
    require_idle(folder)
    return EndedRun(folder, read_manifest(folder))


def outcomes_in(source: PaymentSource, path: Path) -> Outcomes:
    """`Outcomes` of a file that was read as a payment file.

    Raises:
        InputError: it is no outcome file.
    """
    try:
        numbered = source.earlier.with_columns(source.payments["row"])
        return Outcomes(numbered.select(pl.col(column).cast(kind) for column, kind in OUTCOMES.items()))
    except pl.exceptions.PolarsError:
        raise InputError(
            Sentence("runs.columns_outcome_file", path=path, made_anew=made_anew(path))
        ) from None


def changes_in(folder: Path) -> Changes | None:
    """`Changes` of a run; None where it compared nothing, or where they are purged.

    Raises:
        InputError: they cannot be read.
    """
    path = folder / CHANGES_NAME
    try:
        return Changes(pl.read_ndjson(path.read_bytes(), schema=CHANGES))
    except FileNotFoundError:
        return None
    except (OSError, pl.exceptions.PolarsError):
        raise InputError(Sentence("runs.cannot_read", path=path, made_anew=made_anew(path))) from None
