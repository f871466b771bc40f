"""Check that evidence is consistent: a manifest and its files -> Findings."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pipeline.apis import basis_of
from pipeline.apis.own_codes import meaning_of
from pipeline.apis.registry import DECLARED
from pipeline.errors import InputError
from pipeline.formats.table import as_text
from pipeline.frames import ASSIGNMENTS, CHECKS, AnswerState, Check, each_check
from pipeline.rules.policy import ANSWERED
from pipeline.rules.totals import added_outcomes, control_totals, outcome_totals, outcomes_with_money
from pipeline.rules.unasked import UNASKED
from pipeline.runs.folder import RUN_AGAIN, made_anew
from pipeline.runs.manifest import identity_of
from pipeline.stores.values import FinalAnswer, FinishRecord, LedgerCounts, RunIdentity
from pipeline.wording import Moment, Sentence
from pipeline.wording.rows import rows_named
from schemas.folder import LEDGER, SUMMARY
from schemas.manifest import FileEvidence, Manifest
from schemas.outcomes import Outcome
from schemas.row_positions import RowPositions
from schemas.summary import InputFile, Money, Summary

DIFFERS = InputError.exit_code
ROWS_NAMED_MAX = 5
DIGITS_SHOWN = 16  # how many digits of a SHA-256 sentences show

_COMPARED = (
    *("check_outcome", "check_code", "check_action", "check_matched_name"),
    *("check_api", "check_id", "check_time"),
)
"""Columns of an answer that are in the outcome file and in the ledger."""
_AS_TEXT = pl.col(_COMPARED).cast(pl.String).fill_null("")
_ON_RECORD = "_on_record"


class Finding(NamedTuple):
    """The result of one check of the evidence, or of one test."""

    what: Sentence | str  # the subject in words, or a file name
    detail: Sentence  # what was found or, if something differs, also what to do
    exit_code: int = 0  # 0 if the check passed
    is_tried: bool = True


class LedgerContents(NamedTuple):
    """The parts of a run's ledger that the manifest records."""

    run: RunIdentity
    counts: LedgerCounts
    finish: FinishRecord | None
    answers: Iterable[FinalAnswer]
    digests: Mapping[str, str]  # hashes of the lines when the manifest was written


class LedgerAnswers(NamedTuple):
    """The answers in a run's ledger, by question."""

    key_of: Callable[[Check], bytes]  # returns a question's key
    answers_to: Callable[[Sequence[bytes]], Mapping[bytes, FinalAnswer]]
    """Looks up the answers to questions by their keys, with matched names."""
    has_names: bool  # False if names are encrypted and no key was given
    purged_before: str  # names of answers from before this time may be purged; empty if there was no purge


def file_agrees(path: Path, evidence: FileEvidence, purged_at: str | None = None) -> Finding:
    """Check that a file has the hash in the manifest; a file that was purged may be missing."""
    if path.is_symlink():
        return Finding(evidence.name, Sentence("evidence.is_link", remedy=made_anew(path)), DIFFERS)
    try:
        sha256, byte_count = identity_of(path)
    except OSError as error:
        if purged_at is not None and isinstance(error, FileNotFoundError):
            return Finding(evidence.name, Sentence("evidence.deleted", time=Moment(purged_at)))
        detail = Sentence("evidence.unreadable", why=error, remedy=made_anew(path))
        return Finding(evidence.name, detail, DIFFERS)
    if (sha256, byte_count) != (evidence.sha256, evidence.byte_count):
        return Finding(evidence.name, Sentence("evidence.changed", remedy=made_anew(path)), DIFFERS)
    detail = Sentence("evidence.unchanged", byte_count=byte_count, digits=sha256[:DIGITS_SHOWN])
    return Finding(evidence.name, detail)


def cells_agree(file: InputFile, parts: Iterable[tuple[str, int, pl.DataFrame, pl.DataFrame]]) -> Finding:
    """Compare the payment file with the outcome file, cell by cell and part by part, ignoring our columns."""
    what = Sentence("evidence.cells")
    rows, columns = list[int](), dict[str, None]()
    for name, first_row, original, written in parts:
        if (original.columns, original.height) != (written.columns, written.height):
            detail = Sentence(
                "evidence.other_shape",
                file=name,
                row_count=written.height,
                column_count=written.width,
                row_count_there=original.height,
                column_count_there=original.width,
                remedy=RUN_AGAIN,
            )
            return Finding(what, detail, DIFFERS)
        other = pl.Series(range(0), dtype=pl.UInt32)
        for column in original.columns:
            theirs, ours = (
                as_text(table.select(column)).to_series().fill_null("") for table in (original, written)
            )
            if not theirs.equals(ours):
                columns[column] = None
                other = other.append(first_row + (theirs != ours).arg_true())
        rows += other.unique().sort().to_list()
    if not rows:
        return Finding(what, Sentence("evidence.same_cells", file=file.name))
    named = _named(rows, file.positions)
    detail = Sentence(
        "evidence.other_cells", file=file.name, columns=[*columns], rows=named, remedy=RUN_AGAIN
    )
    return Finding(what, detail, DIFFERS)


def rows_agree(manifest: Manifest, parts: Iterable[tuple[pl.DataFrame, pl.DataFrame]]) -> list[Finding]:
    """Count the payments and outcomes in the outcome files, and compare with the manifest."""
    totals = added_outcomes(outcome_totals(outcomes_with_money(*part)) for part in parts)
    counts = {total.outcome: total.row_count for total in totals}
    said_counts = {total.outcome: total.row_count for total in manifest.outcomes}
    row_count, decided, decided_there = sum(counts.values()), _decided(counts), _decided(said_counts)
    return [
        _finding(
            Sentence("evidence.rows"),
            row_count == manifest.input.row_count and counts == said_counts,
            Sentence("evidence.rows_counted", row_count=row_count, outcomes=decided),
            Sentence(
                "evidence.rows_differ",
                row_count=row_count,
                outcomes=decided,
                row_count_there=manifest.input.row_count,
                outcomes_there=decided_there,
                remedy=RUN_AGAIN,
            ),
        ),
        _finding(
            Sentence("evidence.totals"),
            totals == manifest.outcomes and control_totals(totals) == manifest.totals,
            _amounts(manifest.totals),
            Sentence("evidence.totals_differ", remedy=RUN_AGAIN),
        ),
    ]


def _decided(counts: Mapping[Outcome, int]) -> list[Sentence]:
    return [
        Sentence("evidence.rows_with", row_count=count, outcome=Sentence(f"outcome.{outcome}"))
        for outcome, count in counts.items()
        if count
    ]


def _amounts(totals: Iterable[Money]) -> Sentence:
    amounts = [
        Sentence("footer.amount_with_currency", amount=money.amount, currency=money.currency)
        if money.currency
        else Sentence("evidence.amount_without_currency", amount=money.amount)
        for money in totals
    ]
    return Sentence("evidence.amounts", amounts=amounts) if amounts else Sentence("evidence.no_amounts")


def summary_agrees(manifest: Manifest, summary: Summary) -> Finding:
    """Compare the summary with the manifest."""
    pairs = {
        "evidence.input": (summary.input, manifest.input),
        "evidence.outcomes": (summary.outcomes, manifest.outcomes),
        "evidence.environment": (summary.environment, manifest.environment),
        "evidence.profile": (summary.profile, manifest.profile.name),
        "evidence.tool_version": (summary.tool_version, manifest.tool_version),
        "evidence.times": ((summary.started, summary.finished), (manifest.started, manifest.finished)),
        "evidence.questions": (
            sum(call.question_count for call in summary.calls),
            manifest.ledger.question_count,
        ),
    }
    differs = [Sentence(part) for part, (theirs, ours) in pairs.items() if theirs != ours]
    return _finding(
        Sentence("evidence.summary"),
        not differs,
        Sentence("evidence.summary_agrees"),
        Sentence("evidence.summary_differs", parts=differs, summary=SUMMARY, remedy=RUN_AGAIN),
    )


def ledger_agrees(
    manifest: Manifest, kept: LedgerContents, parts: Iterable[pl.DataFrame] | None
) -> list[Finding]:
    """Compare the sealed ledger with the manifest and, unless they were purged, with the outcome files."""
    run, counts, finish, answers, digests = kept
    recorded_digests = manifest.ledger.digests
    forged = [table for table, digest in recorded_digests.items() if digests.get(table) != digest]
    if forged:
        detail = Sentence("evidence.ledger_forged", ledger=LEDGER, tables=forged)
        return [Finding(Sentence("evidence.ledger"), detail, DIFFERS)]
    is_same_run = (run.input_sha256, run.profile_sha256, run.environment) == (
        manifest.ledger.input_sha256 or manifest.input.sha256,
        manifest.profile.sha256,
        manifest.environment.value,
    )
    recorded = LedgerCounts(
        manifest.ledger.attempt_count, manifest.ledger.answer_count, manifest.ledger.reused_count
    )
    is_same_file = finish is not None and finish.outcome_sha256 == manifest.outcome_file.sha256
    return [
        _finding(
            Sentence("evidence.run"),
            is_same_run,
            Sentence("evidence.same_run", environment=run.environment),
            Sentence("evidence.another_run", ledger=LEDGER),
        ),
        _finding(
            Sentence("evidence.ledger"),
            counts == recorded and is_same_file,
            Sentence(
                "evidence.seals_intact",
                request_count=counts.attempt_count,
                answer_count=counts.answer_count,
                reused_count=counts.reused_count,
            ),
            Sentence(
                "evidence.later_run",
                request_count=counts.attempt_count,
                answer_count=counts.answer_count,
                request_count_there=recorded.attempt_count,
                answer_count_there=recorded.answer_count,
            )
            if counts != recorded
            else Sentence("evidence.another_outcome_file"),
        ),
        *([] if parts is None else [_answers_are_on_record(answers, parts, manifest.input.positions)]),
    ]


def _answers_are_on_record(
    answers: Iterable[FinalAnswer], parts: Iterable[pl.DataFrame], positions: RowPositions | None
) -> Finding:
    """Check that the ledger has every answer in the outcome files, word for word."""
    key = ("check_id", "check_code", "check_time")
    on_record = pl.DataFrame(
        [(final.request_id, final.code, final.time) for final in answers],
        schema=dict.fromkeys(key, pl.String),
        orient="row",
    ).unique()
    row_count, strange = 0, list[int]()
    for outcomes in parts:
        answered = _answered(outcomes)
        row_count += answered.height
        strange += answered.join(on_record, on=key, how="anti").sort("row")["row"].to_list()
    return _finding(
        Sentence("evidence.answers"),
        not strange,
        Sentence("evidence.answers_recorded", row_count=row_count),
        Sentence("evidence.answers_unrecorded", rows=_named(strange, positions), remedy=RUN_AGAIN),
    )


def answers_agree(
    manifest: Manifest,
    parts: Iterable[tuple[tuple[pl.DataFrame, pl.DataFrame], pl.DataFrame]],
    known: LedgerAnswers,
) -> list[Finding]:
    """Compare each answered row with the ledger; `parts` has `Checks` and `Assignments`, and `Outcomes`."""
    found = [_compared_answers(planned, outcomes, known) for planned, outcomes in parts]
    positions, row_count = manifest.input.positions, sum(part.row_count for part in found)
    strange = [row for part in found for row in part.strange]
    wrong = pl.concat(rows for part in found for rows in part.differs.values()).unique().sort().to_list()
    return [
        _finding(
            Sentence("evidence.questions"),
            not strange,
            Sentence("evidence.questions_agree", row_count=row_count),
            Sentence("evidence.questions_differ", rows=_named(strange, positions), remedy=RUN_AGAIN),
        ),
        _finding(
            Sentence("evidence.answers"),
            not wrong,
            _agreed(found, known),
            Sentence(
                "evidence.answers_differ",
                columns=[column for column in _COMPARED if any(part.differs[column].len() for part in found)],
                rows=_named(wrong, positions),
                remedy=RUN_AGAIN,
            ),
        ),
    ]


def outcomes_agree(manifest: Manifest, parts: Iterable[tuple[pl.DataFrame, pl.DataFrame]]) -> Finding:
    """Compare the outcomes of each part with those that follow from the bank's reports, but for rejects."""
    row_count, differs = 0, dict.fromkeys(_COMPARED, pl.Series(dtype=pl.UInt32))
    for written, again in parts:
        rows = written.filter(pl.col("check_outcome") != Outcome.REJECTED).select("row", _AS_TEXT)
        both = rows.join(again.select("row", _AS_TEXT), on="row", how="left", suffix=_ON_RECORD)
        row_count += rows.height
        for column, some in differs.items():
            is_other = pl.col(column).ne_missing(pl.col(column + _ON_RECORD))
            differs[column] = pl.concat([some, both.filter(is_other)["row"]])
    wrong = pl.concat(differs.values()).unique().sort().to_list()
    return _finding(
        Sentence("evidence.answers"),
        not wrong,
        Sentence("evidence.reports_agree", row_count=row_count),
        Sentence(
            "evidence.reports_differ",
            columns=[column for column, some in differs.items() if some.len()],
            rows=_named(wrong, manifest.input.positions),
            remedy=RUN_AGAIN,
        ),
    )


class _ComparedAnswers(NamedTuple):
    """The answered rows of a part, compared with the ledger."""

    row_count: int
    compared_count: int  # rows whose question is in the ledger
    unknown_name_count: int
    strange: list[int]  # all other answered rows
    differs: Mapping[str, pl.Series]  # column -> rows where it differs from the ledger


def _compared_answers(
    planned: tuple[pl.DataFrame, pl.DataFrame], outcomes: pl.DataFrame, known: LedgerAnswers
) -> _ComparedAnswers:
    checks, assignments = planned
    assert checks.schema == CHECKS
    assert assignments.schema == ASSIGNMENTS
    answered = _answered(outcomes).select("row", _AS_TEXT)
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
    unknown_name_count = int(both["is_known"].not_().sum())
    return _ComparedAnswers(answered.height, both.height, unknown_name_count, strange, differs)


def _agreed(found: Iterable[_ComparedAnswers], known: LedgerAnswers) -> Sentence:
    detail = Sentence("evidence.answers_agree", row_count=sum(part.compared_count for part in found))
    count = sum(part.unknown_name_count for part in found)
    if not count:
        return detail
    why = "evidence.names_purged" if known.has_names else "evidence.names_encrypted"
    return Sentence(why, finding=detail, name_count=count)


def _on_record(checks: pl.DataFrame, known: LedgerAnswers) -> pl.DataFrame:
    """Return the ledger's cells for the rows of these questions; empty text if a cell is missing."""
    every = [*each_check(checks)]
    keys = [known.key_of(check) for check in every]
    final, rows = known.answers_to(keys), []
    for check, key in zip(every, keys, strict=True):
        if (answer := final.get(key)) is not None:
            outcome, action = _outcome_of(check, answer)
            name, asked = answer.matched_name, (check.api, answer.request_id, answer.time)
            rows.append((check.check, outcome, answer.code, action, name, *asked))
    schema = {"check": pl.UInt32(), **dict.fromkeys(_COMPARED, pl.String())}
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col(_COMPARED).fill_null(""))


def _outcome_of(check: Check, answer: FinalAnswer) -> tuple[str, str]:
    """Return the outcome and action of an answer; both are empty for an unknown code."""
    meanings, basis = DECLARED[check.api].meanings, basis_of(check)
    if answer.state is not AnswerState.REFUSED and (basis, answer.code) not in meanings:
        return "", ""
    meaning = meaning_of(meanings, basis, answer.state, answer.code)
    return meaning.outcome, meaning.action


def _answered(outcomes: pl.DataFrame) -> pl.DataFrame:
    was_asked = (pl.col("check_outcome") != Outcome.NOT_POSSIBLE) | ~pl.col("check_code").is_in(list(UNASKED))
    return outcomes.filter((ANSWERED & was_asked) | pl.col("check_id").is_not_null())


def _named(rows: list[int], positions: RowPositions | None) -> Sentence:
    return rows_named(rows[:ROWS_NAMED_MAX], positions, row_count=len(rows))


def _finding(what: Sentence, well: bool, detail: Sentence, differs: Sentence) -> Finding:
    return Finding(what, detail) if well else Finding(what, differs, DIFFERS)
