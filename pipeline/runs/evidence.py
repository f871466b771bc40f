"""verify: a manifest and what it is about -> Findings. Does the evidence still agree with itself?"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pipeline.apis import basis_of
from pipeline.apis.own_codes import meaning_of
from pipeline.apis.registry import APIS
from pipeline.errors import InputError
from pipeline.formats.csv.writing import as_text
from pipeline.frames import ASSIGNMENTS, CHECKS, OUTCOMES, PAYMENTS, AnswerState, Check
from pipeline.rules.totals import control_totals, outcome_totals, outcomes_with_money
from pipeline.rules.unasked import UNASKED
from pipeline.runs.manifest import identity_of
from pipeline.stores.values import FinalAnswer, FinishRecord, LedgerCounts, RunIdentity
from schemas.folder import LEDGER, RUN_AGAIN, SUMMARY, made_anew
from schemas.manifest import FileEvidence, Manifest
from schemas.outcomes import ApiName, Outcome
from schemas.places import Places, in_brackets
from schemas.summary import Summary

DIFFERS = InputError.exit_code
ROWS_NAMED_MAX = 5
_ANSWERED = (Outcome.MATCH, Outcome.CLOSE_MATCH, Outcome.NO_MATCH, Outcome.NOT_POSSIBLE)
_COMPARED = (
    *("check_outcome", "check_code", "check_action", "check_matched_name"),
    *("check_api", "check_id", "check_time"),
)
"""The columns of an answer that both the outcome file and the ledger have."""
_ON_RECORD = "_on_record"


class Finding(NamedTuple):
    """The result of one check of the evidence, or of one trial."""

    what: str
    said: str
    """What was found, or what differs and what to do."""
    exit_code: int = 0
    """0 where nothing is wrong."""


class LedgerContents(NamedTuple):
    """The ledger of the run, as far as the manifest records it."""

    run: RunIdentity
    counts: LedgerCounts
    finish: FinishRecord | None
    answers: Iterable[FinalAnswer]


class LedgerAnswers(NamedTuple):
    """The answers in the ledger of the run, by question."""

    key_of: Callable[[Check], bytes]
    """Gives the key of a question."""
    answers: Iterable[FinalAnswer]
    """All of them, with their matched names."""
    has_names: bool
    """False where they are encrypted, and their key was not given."""
    purged_before: str
    """Those of answers before this time may be purged; empty where none is."""


def file_agrees(path: Path, evidence: FileEvidence, purged_at: str | None = None) -> Finding:
    """Whether a file has the hash in the manifest; one that was purged may be missing."""
    try:
        sha256, byte_count = identity_of(path)
    except OSError as error:
        if purged_at is not None and isinstance(error, FileNotFoundError):
            return Finding(evidence.name, f"deleted by precheck purge at {purged_at}")
        return Finding(evidence.name, f"{error.strerror}; {made_anew(path)}", DIFFERS)
    if (sha256, byte_count) != (evidence.sha256, evidence.byte_count):
        return Finding(evidence.name, f"changed since the run; {made_anew(path)}", DIFFERS)
    return Finding(evidence.name, f"unchanged, {byte_count:,} bytes, sha256 {sha256[:16]}...")


def cells_agree(name: str, original: pl.DataFrame, written: pl.DataFrame, places: Places | None) -> Finding:
    """Compare every cell of the payment file with the one in the outcome file, without our own columns."""
    if (original.columns, original.height) != (written.columns, written.height):
        return _finding(
            "cells",
            well=False,
            said="",
            differs=f"the outcome file has {written.height:,} rows of {written.width:,} columns, {name} has "
            f"{original.height:,} of {original.width:,}, or their headers differ; "
            f"the outcome file: {RUN_AGAIN}",
        )
    other = pl.Series(range(0), dtype=pl.UInt32)
    columns = []
    for column in original.columns:
        theirs, ours = (
            as_text(table.select(column)).to_series().fill_null("") for table in (original, written)
        )
        if not theirs.equals(ours):
            columns.append(column)
            other = other.append(1 + (theirs != ours).arg_true())
    rows = other.unique().sort().to_list()
    return _finding(
        "cells",
        well=not rows,
        said=f"every cell of {name} stands in the outcome file as it was",
        differs=f"the outcome file has other cells than {name}, in {', '.join(columns)}: "
        f"{_named(rows, places)}; the outcome file: {RUN_AGAIN}",
    )


def rows_agree(manifest: Manifest, payments: pl.DataFrame, outcomes: pl.DataFrame) -> list[Finding]:
    """Count the payments and outcomes that were read from the outcome file again."""
    assert payments.schema == PAYMENTS
    assert outcomes.schema == OUTCOMES
    totals = outcome_totals(outcomes_with_money(payments, outcomes))
    counts = {total.outcome: total.row_count for total in totals}
    said_counts = {total.outcome: total.row_count for total in manifest.outcomes}
    decided, said_decided = (
        ", ".join(f"{count:,} {outcome.replace('_', ' ')}" for outcome, count in each.items() if count)
        for each in (counts, said_counts)
    )
    amounts = ", ".join(f"{money.amount:,} {money.currency or '(no currency)'}" for money in manifest.totals)
    return [
        _finding(
            "rows",
            payments.height == manifest.input.row_count and counts == said_counts,
            f"{payments.height:,}: {decided}",
            f"{payments.height:,} rows ({decided}), and the manifest says {manifest.input.row_count:,} "
            f"({said_decided}); the outcome file: {RUN_AGAIN}",
        ),
        _finding(
            "totals",
            totals == manifest.outcomes and control_totals(totals) == manifest.totals,
            amounts or "no amounts",
            "the amounts in the outcome file, by outcome, add up to something else than the manifest says; "
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
        f"differs from the manifest in: {', '.join(differs)}; {SUMMARY}: {RUN_AGAIN}",
    )


def ledger_agrees(manifest: Manifest, kept: LedgerContents, outcomes: pl.DataFrame | None) -> list[Finding]:
    """Compare the ledger, whose seals are whole, with the manifest and with the answers in the outcome file.

    There are no outcomes where that file was purged.
    """
    run, counts, finish, answers = kept
    is_same_run = (run.input_sha256, run.profile_sha256, run.environment) == (
        manifest.input.sha256,
        manifest.profile.sha256,
        manifest.environment.value,
    )
    recorded = LedgerCounts(
        manifest.ledger.attempt_count, manifest.ledger.answer_count, manifest.ledger.reused_count
    )
    is_same_file = finish is not None and finish.outcome_sha256 == manifest.outcome_file.sha256
    return [
        _finding(
            "run",
            is_same_run,
            f"of the same input, profile and environment ({run.environment})",
            "the ledger is of another input, profile or environment than the manifest; "
            f"bring {LEDGER} back from a copy",
        ),
        _finding(
            "ledger",
            counts == recorded and is_same_file,
            f"seals whole; {counts.attempt_count:,} requests, {counts.answer_count:,} answers, "
            f"{counts.reused_count:,} of earlier runs",
            f"{counts.attempt_count:,} requests and {counts.answer_count:,} answers, and the manifest says "
            f"{recorded.attempt_count:,} and {recorded.answer_count:,}: a later run did not end; run its "
            "command again"
            if counts != recorded
            else "the last run that it records left another outcome file; keep a copy of the folder, and "
            "bring the outcome file and the manifest back from a backup",
        ),
        *([] if outcomes is None else [_answers_are_on_record(answers, outcomes, manifest.input.places)]),
    ]


def _answers_are_on_record(
    answers: Iterable[FinalAnswer], outcomes: pl.DataFrame, places: Places | None
) -> Finding:
    """Whether every answer in the outcome file is on record in the ledger, verbatim."""
    key = ("check_id", "check_code", "check_time")
    on_record = pl.DataFrame(
        [(final.request_id, final.code, final.time) for final in answers],
        schema=dict.fromkeys(key, pl.String),
        orient="row",
    ).unique()
    answered = _answered(outcomes)
    strange = answered.join(on_record, on=key, how="anti").sort("row")["row"].to_list()
    return _finding(
        "answers",
        not strange,
        f"{answered.height:,} answered rows, each with an answer on record",
        f"an answer that is not on record stands in {_named(strange, places)}; the outcome file: {RUN_AGAIN}",
    )


def answers_agree(
    manifest: Manifest,
    planned: tuple[pl.DataFrame, pl.DataFrame],
    outcomes: pl.DataFrame,
    known: LedgerAnswers,
) -> list[Finding]:
    """Look up the question of each answered row in the ledger, and compare the answer with the row.

    The questions are planned again from the payments.
    """
    checks, assignments = planned
    assert checks.schema == CHECKS
    assert assignments.schema == ASSIGNMENTS
    places = manifest.input.places
    answered = _answered(outcomes).select("row", pl.col(_COMPARED).cast(pl.String).fill_null(""))
    asked = assignments.join(answered, on="row", how="semi")
    on_record = _on_record(checks.join(asked, on="check", how="semi"), known)
    both = answered.join(asked, on="row").join(on_record, on="check", suffix=_ON_RECORD).sort("row")
    name, name_on_record = pl.col("check_matched_name"), pl.col(f"check_matched_name{_ON_RECORD}")
    is_forgotten = (name_on_record == "") & (pl.col("check_time") < known.purged_before)
    both = both.with_columns(is_known=(name == "") | (is_forgotten | (not known.has_names)).not_())
    both = both.with_columns(
        pl.when("is_known").then(name_on_record).otherwise(name).alias(f"check_matched_name{_ON_RECORD}")
    )
    differs = {
        column: both.filter(pl.col(column) != pl.col(column + _ON_RECORD))["row"] for column in _COMPARED
    }
    strange = answered.join(both, on="row", how="anti").sort("row")["row"].to_list()
    wrong = pl.concat(differs.values()).unique().sort().to_list()
    return [
        _finding(
            "questions",
            not strange,
            f"{answered.height:,} answered rows, each with the payee and account that was asked about",
            "another payee or account than was asked about, or an answer that is not on record, stands in "
            f"{_named(strange, places)}; the outcome file: {RUN_AGAIN}",
        ),
        _finding(
            "answers",
            not wrong,
            f"{both.height:,} answered rows, each as the answer on record{_not_compared(both, known)}",
            f"another {', '.join(column for column, rows in differs.items() if rows.len())} than on record "
            f"stands in {_named(wrong, places)}; the outcome file: {RUN_AGAIN}",
        ),
    ]


def _not_compared(both: pl.DataFrame, known: LedgerAnswers) -> str:
    count = both["is_known"].not_().sum()
    why = "purged from the ledger" if known.has_names else "encrypted, --config says where their key is"
    return f"; matched names that are {why}, and not compared: {count:,}" if count else ""


def _on_record(checks: pl.DataFrame, known: LedgerAnswers) -> pl.DataFrame:
    """What the rows of these questions must hold, where there is an answer; empty text for nothing."""
    final = {answer.question: answer for answer in known.answers}
    rows = []
    for number, api, *rest in checks.iter_rows():
        check = Check(number, ApiName(api), *rest)
        if (answer := final.get(known.key_of(check))) is not None:
            outcome, action = _outcome_of(check, answer)
            name, asked = answer.matched_name, (check.api, answer.request_id, answer.time)
            rows.append((number, outcome, answer.code, action, name, *asked))
    schema = {"check": pl.UInt32(), **dict.fromkeys(_COMPARED, pl.String())}
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col(_COMPARED).fill_null(""))


def _outcome_of(check: Check, answer: FinalAnswer) -> tuple[str, str]:
    """The outcome and the action that follow from an answer; empty for a code that does not exist."""
    meanings, basis = APIS[check.api].meanings, basis_of(check)
    if answer.state is not AnswerState.REFUSED and (basis, answer.code) not in meanings:
        return "", ""
    meaning = meaning_of(meanings, basis, answer.state, answer.code)
    return meaning.outcome, meaning.action


def _answered(outcomes: pl.DataFrame) -> pl.DataFrame:
    """The rows with an answer from a server."""
    was_asked = (pl.col("check_outcome") != Outcome.NOT_POSSIBLE) | ~pl.col("check_code").is_in(list(UNASKED))
    is_answered = pl.col("check_outcome").is_in(list(_ANSWERED)) & was_asked
    return outcomes.filter(is_answered | pl.col("check_id").is_not_null())


def _named(rows: list[int], places: Places | None) -> str:
    """The first of some rows, with their places, as the end of a sentence."""
    first, more = rows[:ROWS_NAMED_MAX], len(rows) - ROWS_NAMED_MAX
    which = f"row{'' if len(rows) == 1 else 's'} {', '.join(map(str, first))}{in_brackets(first, places)}"
    return f"{which} and {more:,} more" if more > 0 else which


def _finding(what: str, well: bool, said: str, differs: str) -> Finding:
    return Finding(what, said) if well else Finding(what, differs, DIFFERS)
