"""Decisions by people about a run, their approver, and whether its answers may be used."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import polars as pl

from pipeline.errors import InputError, UsageError
from pipeline.formats.excel import decisions as workbook
from pipeline.frames import DECISIONS, Decisions, cast_to
from pipeline.runs.ended import FinishedRun
from pipeline.runs.families import released_before
from pipeline.runs.folder import decider
from pipeline.wording import Sentence
from schemas.review import Approval, Decision, Shaped

NO_REASON = "no reason given"


class RunDecisions(NamedTuple):
    """The decisions of people about one run, row by row."""

    run_id: str  # the run that the decisions are about
    rows: Decisions
    by: str  # who submitted the decisions for approval, or else the uploader
    time: str  # when they were submitted; UTC, ISO 8601 with Z
    shaped: Sequence[Shaped] = ()  # who shaped the file at the desk
    written: Mapping[int, str] = MappingProxyType({})  # row -> the corrected cell


class Approver(NamedTuple):
    """The user who approves decisions and has payment files made."""

    by: str
    time: str  # UTC, ISO 8601 with Z
    is_identified: bool = False  # True if approver and deciders had to identify themselves

    def is_own(self, deciders: Iterable[str]) -> bool:
        """True if the approver may be one of the deciders."""
        return not self.is_identified or self.by.casefold() in {by.casefold() for by in deciders}


@dataclass(frozen=True, slots=True)
class ReviewJob:
    """Decisions about the payments of a run, and how to write its files."""

    folder: Path  # the folder of the run
    decisions: Path | RunDecisions | None = None  # a workbook with decisions, or recorded decisions
    input_file: Path | None = None  # where the file to be edited lies now; None to search for it
    by: str | None = None  # the approver of the files, and author of decisions in a workbook
    is_identified: bool = False  # see `Approver.is_identified`
    allow_simulated: bool = False
    sign_with: Path | None = None  # the private key that signs; None means the profile's, if any
    released_in: Mapping[int, str] | None = None
    """Row -> the file that released the payment before; None to look in the runs of its family."""

    def released_before(self) -> Mapping[int, str]:
        """Return the given earlier releases, or find them; same errors as `families.released_before`."""
        return released_before(self.folder) if self.released_in is None else self.released_in

    def approver(self, time: str) -> Approver:
        """Return the approver, with the time; same errors as `decider`."""
        return Approver(decider(self.by), time, self.is_identified)


def refuse_simulated(run: FinishedRun, *, allowed: bool) -> None:
    """Refuse to make payment files from simulated answers unless the user allows it (UsageError)."""
    if run.summary.simulated and not allowed:
        raise UsageError(
            Sentence("review.run_is_simulated", folder=run.folder),
            advice=(Sentence("review.check_with_real_profile"), Sentence("advice.allow_simulated")),
        )


def decisions_of(given: Path | RunDecisions | None, run: FinishedRun, approver: Approver) -> Decisions:
    """Return the `Decisions` about this run; a workbook's are the approver's (InputError: of another run)."""
    if given is None:
        return Decisions(pl.DataFrame(schema=DECISIONS))
    if isinstance(given, RunDecisions):
        if given.run_id != run.summary.run_id:
            raise InputError(Sentence("review.answers_changed_since", folder=run.folder))
        return given.rows
    decided = workbook.read(
        given,
        run_id=run.summary.run_id,
        row_count=run.summary.input.row_count,
        positions=run.summary.input.positions,
    )
    return signed(decided, by=approver.by, time=approver.time)


def signed(decided: pl.DataFrame, *, by: str, time: str) -> Decisions:
    """Return `Decisions` by one person at one time: rows, decisions, reasons, and the names in a workbook."""
    return Decisions(cast_to(decided.with_columns(by=pl.lit(by), time=pl.lit(time)), DECISIONS))


def approval_of_none(approver: Approver, given: Path | RunDecisions | None, what: str) -> Approval:
    """Return the record of an approval of `what` without decisions; it names who submitted the file."""
    by, time = (given.by, given.time) if isinstance(given, RunDecisions) else (approver.by, approver.time)
    return _approval(approver, what, by, time, None)


def approvals_for(
    approver: Approver, decisions: pl.DataFrame, what: str, decision: Decision | None
) -> list[Approval]:
    """Return one approval per person, time, reason and claim; each row names its decision and its effect."""
    return [
        _approval(approver, what, *said, rows=rows["row"].to_list(), decision=decision, claimed_by=claimed_by)
        for (*said, claimed_by), rows in decisions.group_by(
            "by", "time", "reason", "claimed_by", maintain_order=True
        )
    ]


def _approval(approver: Approver, what: str, by: str, time: str, why: str | None, **more: Any) -> Approval:  # noqa: ANN401 (fields)
    return Approval(
        by=by,
        time=time,
        what=what,
        why=why or NO_REASON,
        approved_by=approver.by,
        approved_at=approver.time,
        self_approved=approver.is_own([by]),
        **{"rows": [], **more},
    )
