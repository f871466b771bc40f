"""resolve: what came back -> Outcomes. One outcome for every payment, and never a guessed one."""

from collections.abc import Iterable

import polars as pl

from pipeline.apis import Api, Basis, own_codes
from pipeline.frames import (
    ANSWERS,
    ASSIGNMENTS,
    CHECKS,
    OUTCOMES,
    REJECTS,
    WARNINGS,
    AnswerState,
)
from schemas.outcomes import Action, Environment, Outcome


def resolve(
    findings: tuple[pl.DataFrame, pl.DataFrame],
    planned: tuple[pl.DataFrame, pl.DataFrame],
    answers: pl.DataFrame,
    apis: Iterable[Api],
    environment: Environment,
) -> pl.DataFrame:
    """Decide every payment.

    Args:
        findings: `Rejects` and `Warnings`.
        planned: `Checks` and `Assignments`.
        answers: `Answers`, exactly one per check.
        apis: the APIs that were asked; their tables say what a code means.
        environment: which kind of server answered.

    Returns:
        `Outcomes` in row order.
    """
    rejects, warnings = findings
    checks, assignments = planned
    assert rejects.schema == REJECTS
    assert warnings.schema == WARNINGS
    assert checks.schema == CHECKS
    assert assignments.schema == ASSIGNMENTS
    assert answers.schema == ANSWERS
    assert answers["check"].n_unique() == answers.height == checks.height
    decided = _decide(checks, answers, apis)
    asked = assignments.join(decided, on="check", how="inner", validate="m:1")
    assert asked.height == assignments.height
    outcomes = (
        pl.concat([asked.drop("check"), _rejected(rejects)], how="diagonal_relaxed")
        .join(_notes(warnings), on="row", how="left")
        .with_columns(
            check_reason=pl.concat_str("check_reason", "note", separator=" ", ignore_nulls=True),
            check_environment=pl.lit(environment.value),
            check_attempts=pl.col("check_attempts").fill_null(0),
        )
        .select(pl.col(column).cast(kind) for column, kind in OUTCOMES.items())
        .sort("row")
    )
    assert outcomes["row"].n_unique() == outcomes.height
    assert outcomes["check_outcome"].null_count() == 0
    return outcomes


def _decide(checks: pl.DataFrame, answers: pl.DataFrame, apis: Iterable[Api]) -> pl.DataFrame:
    """Add to every answer what it means; an answered code without a meaning is our own mistake."""
    basis = pl.when(pl.col("name").is_null()).then(pl.lit(Basis.IDENTIFICATION)).otherwise(pl.lit(Basis.NAME))
    decided = (
        answers.join(checks.select("check", "api", basis=basis), on="check", how="inner")
        .join(_meanings(apis), on=["api", "basis", "code", "state"], how="left")
        .join(_own_meanings(), on=["state", "code"], how="left")
        .join(_state_meanings(), on="state", how="left")
    )
    reason = pl.coalesce("reason", "own_reason", "state_reason")
    reused = pl.format("{} Answered on {} by an earlier run.", reason, pl.col("time").str.head(10))
    decided = decided.select(
        "check",
        check_outcome=pl.coalesce("outcome", "state_outcome"),
        check_code="code",
        check_reason=pl.when(pl.col("state") == AnswerState.REUSED).then(reused).otherwise(reason),
        check_action=pl.coalesce("action", "state_action"),
        check_matched_name="matched_name",
        check_api="api",
        check_id="request_id",
        check_time="time",
        check_attempts="attempts",
    )
    assert decided["check_outcome"].null_count() == 0, "a code that no table knows was accepted"
    return decided


def _meanings(apis: Iterable[Api]) -> pl.DataFrame:
    return pl.DataFrame(
        [
            (api.name, basis, code, state, meaning.outcome, meaning.action, meaning.reason)
            for api in apis
            for (basis, code), meaning in api.meanings.items()
            for state in (AnswerState.ANSWERED, AnswerState.REUSED)
        ],
        schema=dict.fromkeys(("api", "basis", "code", "state", "outcome", "action", "reason"), pl.String),
        orient="row",
    )


def _own_meanings() -> pl.DataFrame:
    return pl.DataFrame(
        [(state.value, str(code), meaning.reason) for (state, code), meaning in own_codes.MEANINGS.items()],
        schema=dict.fromkeys(("state", "code", "own_reason"), pl.String),
        orient="row",
    )


def _state_meanings() -> pl.DataFrame:
    return pl.DataFrame(
        [
            (state, meaning.outcome, meaning.action, meaning.reason)
            for state, meaning in own_codes.BY_STATE.items()
        ],
        schema=dict.fromkeys(("state", "state_outcome", "state_action", "state_reason"), pl.String),
        orient="row",
    )


def _rejected(rejects: pl.DataFrame) -> pl.DataFrame:
    """One outcome per rejected payment: the code of the first broken rule, the sentences of all."""
    sentence = pl.format("{}: {}", "field", "message")
    return rejects.group_by("row", maintain_order=True).agg(
        check_outcome=pl.lit(Outcome.REJECTED.value),
        check_code=pl.col("code").first(),
        check_reason=sentence.str.join(". ") + ".",
        check_action=pl.lit(Action.CORRECT_ROW.value),
    )


def _notes(warnings: pl.DataFrame) -> pl.DataFrame:
    note = pl.format("Note: {}.", "message")
    return warnings.group_by("row", maintain_order=True).agg(note=note.str.join(" "))
