"""resolve: what came back -> Outcomes. One outcome for every payment, and never a guessed one.

What is told of a payment is a *verdict*: outcome, code, reason, action and API. A file of millions has a
few dozen of them and as many as it has rejected rows. So verdicts are found first, once each; then every
row takes its verdict, and what came with its answer, by their places.
"""

from collections.abc import Iterable

import polars as pl

from pipeline.apis import Api, Basis, Meaning, own_codes
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

_KIND = ("api", "basis", "state", "code", "day")
"""What a verdict follows from; the day is that of an answer of an earlier run, null for others."""


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
    told = _told(checks, answers)
    verdicts = _verdicts(told.select(_KIND).unique(maintain_order=True), apis)
    placed = told.join(verdicts, on=_KIND, nulls_equal=True).select("check", "place", "verdict")
    asked = assignments.join(placed, on="check", validate="m:1").drop("check")
    assert asked.height == assignments.height
    rejected = _rejected(rejects).with_row_index("verdict", offset=verdicts.height)
    rows = pl.concat([asked, rejected.select("row", "verdict")], how="diagonal").sort("row")
    verdicts = pl.concat([verdicts.drop("verdict", *_KIND), rejected.drop("verdict", "row")], how="diagonal")
    outcomes = (
        rows.select("row")
        .hstack(verdicts.select(pl.all().gather(rows["verdict"])))
        .hstack(_particulars(answers).select(pl.all().gather(rows["place"])))
        .join(_notes(warnings), on="row", how="left", maintain_order="left")
        .with_columns(
            # Most rows have no note, and share the text of their reason.
            check_reason=pl.coalesce(pl.concat_str("check_reason", "note", separator=" "), "check_reason"),
            check_environment=pl.lit(environment.value),
            check_attempts=pl.col("check_attempts").fill_null(0),
        )
        .select(pl.col(column).cast(kind) for column, kind in OUTCOMES.items())
    )
    assert outcomes["row"].n_unique() == outcomes.height
    assert outcomes["check_outcome"].null_count() == 0
    return outcomes


def _told(checks: pl.DataFrame, answers: pl.DataFrame) -> pl.DataFrame:
    """Every check with its place among the answers and the kind of its answer."""
    basis = pl.when(pl.col("name").is_null()).then(pl.lit(Basis.IDENTIFICATION)).otherwise(pl.lit(Basis.NAME))
    reused_on = pl.when(pl.col("state") == AnswerState.REUSED).then(pl.col("time").str.head(10))
    return (
        answers.select("check", "state", "code", day=reused_on)
        .with_row_index("place")
        .join(checks.select("check", "api", basis=basis), on="check", how="inner")
    )


def _verdicts(kinds: pl.DataFrame, apis: Iterable[Api]) -> pl.DataFrame:
    """The verdict of every kind of answer, numbered from 0."""
    by_name = {api.name: api for api in apis}
    meanings = [
        _meaning(by_name[api], Basis(basis), AnswerState(state), code)
        for api, basis, state, code, _ in kinds.select(_KIND).iter_rows()
    ]
    said = pl.DataFrame(
        [(meaning.outcome, meaning.reason, meaning.action) for meaning in meanings],
        schema={column: OUTCOMES[column] for column in ("check_outcome", "check_reason", "check_action")},
        orient="row",
    )
    reused = pl.format("{} Answered on {} by an earlier run.", "check_reason", "day")
    return (
        kinds.hstack(said)
        .with_columns(check_reason=pl.coalesce(reused, "check_reason"), check_code="code", check_api="api")
        .with_row_index("verdict")
    )


def _meaning(api: Api, basis: Basis, state: AnswerState, code: str) -> Meaning:
    """What a code means in this state; an answered code without a meaning is our own mistake."""
    if state in (AnswerState.ANSWERED, AnswerState.REUSED):
        assert (basis, code) in api.meanings, "a code that no table knows was accepted"
        return api.meanings[basis, code]
    return own_codes.MEANINGS.get((state, code), own_codes.BY_STATE[state])


def _rejected(rejects: pl.DataFrame) -> pl.DataFrame:
    """One verdict per rejected payment: the code of the first broken rule, the sentences of all."""
    sentence = pl.format("{}: {}", "field", "message")
    return rejects.group_by("row", maintain_order=True).agg(
        check_outcome=pl.lit(Outcome.REJECTED, OUTCOMES["check_outcome"]),
        check_code=pl.col("code").first(),
        check_reason=sentence.str.join(". ") + ".",
        check_action=pl.lit(Action.CORRECT_ROW, OUTCOMES["check_action"]),
    )


def _particulars(answers: pl.DataFrame) -> pl.DataFrame:
    """What came with each answer."""
    return answers.select(
        check_matched_name="matched_name",
        check_id="request_id",
        check_time="time",
        check_attempts="attempts",
    )


def _notes(warnings: pl.DataFrame) -> pl.DataFrame:
    note = pl.format("Note: {}.", "message")
    return warnings.group_by("row", maintain_order=True).agg(note=note.str.join(" "))
