"""verify: a manifest and what it is about -> Findings. Does the evidence still agree with itself?"""

from collections.abc import Iterable
from typing import NamedTuple

import polars as pl

from pipeline.apis.own_codes import UNASKED
from pipeline.apis.totals import control_totals, outcome_totals, outcomes_with_money
from pipeline.errors import InputError
from pipeline.frames import OUTCOMES, PAYMENTS
from pipeline.ledger import Counts, FinalAnswer, Finish, RunIdentity
from schemas.folder import RUN_AGAIN
from schemas.manifest import Manifest
from schemas.outcomes import Outcome
from schemas.places import Places, in_brackets
from schemas.summary import Summary

DIFFERS = InputError.exit_code
_ANSWERED = (Outcome.MATCH, Outcome.CLOSE_MATCH, Outcome.NO_MATCH, Outcome.NOT_POSSIBLE)


class Finding(NamedTuple):
    """One thing that was looked at."""

    what: str
    said: str
    """What was found, or what differs and what to do."""
    exit_code: int = 0
    """0 where it is as it should be."""


class Kept(NamedTuple):
    """What the ledger of the run holds."""

    run: RunIdentity
    counts: Counts
    finish: Finish | None
    answers: Iterable[FinalAnswer]


def rows_agree(manifest: Manifest, payments: pl.DataFrame, outcomes: pl.DataFrame) -> list[Finding]:
    """Count the outcome file again.

    Args:
        manifest: what it says there is.
        payments: `Payments`, read from the outcome file.
        outcomes: `Outcomes`, read from it too.
    """
    assert payments.schema == PAYMENTS
    assert outcomes.schema == OUTCOMES
    totals = outcome_totals(outcomes_with_money(payments, outcomes))
    counts = {total.outcome: total.row_count for total in totals}
    said_counts = {total.outcome: total.row_count for total in manifest.outcomes}
    decided = ", ".join(
        f"{count:,} {outcome.replace('_', ' ')}" for outcome, count in counts.items() if count
    )
    amounts = ", ".join(f"{money.amount:,} {money.currency or '(no currency)'}" for money in manifest.totals)
    return [
        _finding(
            "rows",
            payments.height == manifest.input.row_count and counts == said_counts,
            f"{payments.height:,}: {decided}",
            f"{payments.height:,} rows ({decided}), and the manifest says {manifest.input.row_count:,}; "
            f"the outcome file: {RUN_AGAIN}",
        ),
        _finding(
            "totals",
            totals == manifest.outcomes and control_totals(totals) == manifest.totals,
            amounts or "no amounts",
            "the amounts in the outcome file add up to something else than the manifest says; "
            f"the outcome file: {RUN_AGAIN}",
        ),
    ]


def summary_agrees(manifest: Manifest, summary: Summary) -> Finding:
    """Compare the summary with the manifest."""
    pairs = {
        "input": (summary.input, manifest.input),
        "outcomes": (summary.outcomes, manifest.outcomes),
        "environment": (summary.environment, manifest.environment),
        "profile": (summary.profile, manifest.profile.name),
        "tool version": (summary.tool_version, manifest.tool_version),
        "times": ((summary.started, summary.finished), (manifest.started, manifest.finished)),
        "questions": (
            sum(call.question_count for call in summary.calls),
            manifest.ledger.question_count,
        ),
    }
    differs = [what for what, (theirs, ours) in pairs.items() if theirs != ours]
    return _finding(
        "summary",
        not differs,
        "says the same as the manifest",
        f"differs from the manifest in: {', '.join(differs)}; summary.json: {RUN_AGAIN}",
    )


def ledger_agrees(manifest: Manifest, kept: Kept, outcomes: pl.DataFrame | None) -> list[Finding]:
    """Compare the ledger, whose seals are whole, with the manifest and with the answers in the outcome file.

    Args:
        manifest: of the run.
        kept: what the ledger holds.
        outcomes: `Outcomes`, read from the outcome file; None where that was purged.
    """
    run, counts, finish, answers = kept
    is_same_run = (run.input_sha256, run.profile_sha256, run.environment) == (
        manifest.input.sha256,
        manifest.profile.sha256,
        manifest.environment.value,
    )
    said = Counts(manifest.ledger.attempt_count, manifest.ledger.answer_count, manifest.ledger.reused_count)
    is_same_file = finish is not None and finish.outcome_sha256 == manifest.outcome_file.sha256
    return [
        _finding(
            "run",
            is_same_run,
            f"of the same input, profile and environment ({run.environment})",
            "the ledger is of another input, profile or environment than the manifest; "
            "bring ledger.db back from a copy",
        ),
        _finding(
            "ledger",
            counts == said and is_same_file,
            f"seals whole; {counts.attempt_count:,} requests, {counts.answer_count:,} answers, "
            f"{counts.reused_count:,} of earlier runs",
            f"{counts.attempt_count:,} requests and {counts.answer_count:,} answers, and the manifest says "
            f"{said.attempt_count:,} and {said.answer_count:,}, or it is about another outcome file: a later "
            "run did not end; run its command again",
        ),
        *([] if outcomes is None else [_answers_are_on_record(answers, outcomes, manifest.input.places)]),
    ]


def _answers_are_on_record(
    answers: Iterable[FinalAnswer], outcomes: pl.DataFrame, places: Places | None
) -> Finding:
    """Whether every answer in the outcome file is one that the ledger has, word for word."""
    key = ("check_id", "check_code", "check_time")
    on_record = pl.DataFrame(
        [(final.request_id, final.code, final.time) for final in answers],
        schema=dict.fromkeys(key, pl.String),
        orient="row",
    ).unique()
    was_asked = (pl.col("check_outcome") != Outcome.NOT_POSSIBLE) | ~pl.col("check_code").is_in(list(UNASKED))
    is_answered = pl.col("check_outcome").is_in(list(_ANSWERED)) & was_asked
    needs_one = is_answered | pl.col("check_id").is_not_null()
    answered = outcomes.filter(needs_one)
    strange = answered.join(on_record, on=key, how="anti").sort("row")["row"].to_list()
    more = f" and {len(strange) - 5:,} more" if len(strange) > 5 else ""
    return _finding(
        "answers",
        not strange,
        f"{answered.height:,} answered rows, each with an answer on record",
        f"an answer that is not on record stands in row{'' if len(strange) == 1 else 's'} "
        f"{', '.join(map(str, strange[:5]))}{in_brackets(strange[:5], places)}{more}; "
        f"the outcome file: {RUN_AGAIN}",
    )


def _finding(what: str, well: bool, said: str, differs: str) -> Finding:
    return Finding(what, said) if well else Finding(what, differs, DIFFERS)
