"""What people decided about a run, and whether its answers may be used."""

from pathlib import Path

import polars as pl

from pipeline.errors import Advice, UsageError
from pipeline.formats.excel import decisions as workbook
from pipeline.frames import Decisions
from pipeline.runs.finished import FinishedRun
from schemas.approvals import Approval
from schemas.review import Decision


def refuse_simulated(run: FinishedRun, *, allowed: bool) -> None:
    """Refuse to make payment files of simulated answers, unless the user allowed it.

    Raises:
        UsageError: the answers are simulated, and that was not allowed.
    """
    if run.summary.simulated and not allowed:
        raise UsageError(
            f"{run.folder}: SIMULATED by a sandbox: no answer says anything about a real account",
            advice=("check the file with a real profile", Advice.ALLOW_SIMULATED),
        )


def decisions_of(path: Path | None, run: FinishedRun) -> Decisions:
    """`Decisions` of a workbook about this run; none without a workbook.

    Raises:
        InputError, UsageError: as `formats.excel.decisions.read`.
    """
    if path is None:
        return Decisions(workbook.no_decisions())
    decided = workbook.read(
        path,
        run_id=run.summary.run_id,
        row_count=run.outcomes.height,
        places=run.summary.input.places,
    )
    return Decisions(decided)


def approvals_for(
    by: str, time: str, decisions: pl.DataFrame, what: str, decision: Decision | None
) -> list[Approval]:
    """One approval for each reason that was given.

    Args:
        by: who decided.
        time: UTC, ISO 8601 with Z.
        decisions: `Decisions`.
        what: was decided, in words.
        decision: the same, if it was followed; None where it was refused.
    """
    return [
        Approval(
            by=by,
            time=time,
            what=what,
            why=str(why or "no reason given"),
            rows=said["row"].to_list(),
            decision=decision,
        )
        for (why,), said in decisions.group_by("reason", maintain_order=True)
    ]
