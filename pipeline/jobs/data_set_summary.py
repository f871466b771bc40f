"""Add the summaries of parts up to the summary of the data set."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import polars as pl

from pipeline.formats.message import CONTROLS_MAX
from pipeline.jobs.prepare import assumed_types
from pipeline.rules.totals import added_outcomes, control_totals
from pipeline.runs.data_set import DataPart
from pipeline.stages.summarise import SummaryHeader, listed_banks
from pipeline.wording import Sentence
from schemas.cop import AccountType
from schemas.data_set import PartDecided, PartRead
from schemas.folder import OUTCOMES
from schemas.localized import LocalizedText
from schemas.outcomes import ApiName, Outcome, WarningCode
from schemas.summary import (
    ROWS_LISTED_MAX,
    ROWS_NAMED_MAX,
    ApiCalls,
    CodeCount,
    CurrencySources,
    ModulusUsed,
    PartTotal,
    RouteCount,
    Summary,
    WarningCount,
)


class CheckedPart(NamedTuple):
    """One part of a data set, with its result."""

    part: DataPart
    read: PartRead
    decided: PartDecided | None  # None if the part cannot be used


def add_up(
    header: SummaryHeader,
    parts: Sequence[CheckedPart],
    calls: Sequence[ApiCalls],
    banks: Sequence[pl.DataFrame],
) -> Summary:
    """Return the summary of a data set, from its parts in order and their `bank_counts`."""
    summaries = [part.decided.summary for part in parts if part.decided is not None]
    is_complete = not any(part.read.problem is not None for part in parts) and not any(
        summary.undecided_count for summary in summaries
    )
    attention = sorted(
        (row for summary in summaries for row in summary.attention),
        key=lambda row: (row.amount is None, -(row.amount or 0), row.row),
    )
    warnings = [warning for summary in summaries for warning in summary.warnings]
    return Summary(
        **header.summary_fields(is_left=not is_complete),
        outcomes=added_outcomes(summary.outcomes for summary in summaries),
        codes=_codes(summaries),
        parts=list(_part_totals(parts)),
        **listed_banks(pl.concat(banks).group_by("bank").sum()),
        calls=list(calls),
        # Sums over the parts, each counted as if it had asked no question.
        saved_call_count=sum(summary.saved_call_count for summary in summaries)
        - sum(call.question_count for call in calls),
        attention=attention[:ROWS_LISTED_MAX],
        attention_count=sum(summary.attention_count for summary in summaries),
        warnings=warnings[:ROWS_LISTED_MAX],
        warning_count=sum(summary.warning_count for summary in summaries),
        warning_codes=_warning_codes(summaries),
        warned_match_count=sum(summary.warned_match_count for summary in summaries),
        complete=is_complete,
    )


def _codes(summaries: Sequence[Summary]) -> list[CodeCount]:
    found: dict[tuple[Outcome, str], CodeCount] = {}
    for count in (count for summary in summaries for count in summary.codes):
        before = found.get((count.outcome, count.code))
        if before is not None:
            count = count.model_copy(  # noqa: PLW2901 (earlier counts added)
                update={
                    # The shortest reason says nothing beyond this code.
                    "reason": min(before.reason, count.reason, key=len),
                    "row_count": before.row_count + count.row_count,
                    "rows": [*before.rows, *count.rows][:ROWS_NAMED_MAX],
                }
            )
        found[count.outcome, count.code] = count
    return sorted(found.values(), key=lambda count: (-count.row_count, count.code, count.outcome))


def _warning_codes(summaries: Sequence[Summary]) -> list[WarningCount]:
    found: dict[WarningCode, WarningCount] = {}
    for count in (count for summary in summaries for count in summary.warning_codes):
        before = found.get(count.code)
        rows = count.rows if before is None else [*before.rows, *count.rows][:ROWS_NAMED_MAX]
        row_count = count.row_count + (0 if before is None else before.row_count)
        found[count.code] = WarningCount(code=count.code, row_count=row_count, rows=rows)
    return [found[code] for code in WarningCode if code in found]


def _part_totals(parts: Iterable[CheckedPart]) -> Iterator[PartTotal]:
    row = 1
    for part, read, decided in parts:
        if decided is None:
            yield PartTotal(name=part.name, problem=read.problem)
            continue
        summary = decided.summary
        yield PartTotal(
            **dict(read.dialect),
            name=part.name,
            sha256=part.sha256,
            first_row=row,
            row_count=read.row_count,
            to_look_at_count=summary.to_look_at_count,
            undecided_count=summary.undecided_count,
            totals=control_totals(summary.outcomes),
            outcome_file=f"{OUTCOMES}/{decided.outcome_name}",
            outcome_sha256=decided.outcome_sha256,
            outcome_byte_count=decided.outcome_byte_count,
        )
        row += read.row_count


def routes_of(parts: Iterable[PartRead]) -> list[RouteCount]:
    """Count the rows of all parts by route."""
    found = Counter[tuple[ApiName, str, str | None]]()
    for route in (route for part in parts for route in part.routes):
        found[route.api, route.reason, route.bic_source] += route.row_count
    return [
        RouteCount(api=api, reason=reason, bic_source=source, row_count=count)
        for (api, reason, source), count in found.items()
    ]


def modulus_of(buckets: Iterable[ModulusUsed | None]) -> ModulusUsed | None:
    """Return the modulus tables that were used in any bucket."""
    used = [bucket for bucket in buckets if bucket is not None]
    if not used:
        return None
    return used[0].model_copy(update={"uncovered_count": sum(bucket.uncovered_count for bucket in used)})


def found_in_parts(parts: Sequence[tuple[DataPart, PartRead]], default: AccountType) -> dict[str, Any]:
    """Return the fields that `InputFile` and `Forecast` share, from the usable parts."""
    sources, assumed_count = Counter[str](), sum(read.assumed_type_count for _, read in parts)
    for _, read in parts:
        sources.update(read.currency_sources.model_dump())
    not_payments = [
        row.model_copy(update={"sentence": _in_part(row.sentence, part)})
        for part, read in parts
        for row in read.not_payments
    ]
    controls = [
        control.model_copy(update={"difference": _in_part(control.difference, part)})
        for part, read in parts
        for control in read.controls
        if control.difference is not None
    ]
    shared = [note for note in parts[0][1].notes if all(note in read.notes for _, read in parts)]
    own = [_in_part(note, part) for part, read in parts for note in read.notes if note not in shared]
    assumed = [note.recorded() for note in assumed_types(assumed_count, default)]
    return {
        "not_payments": not_payments[:ROWS_LISTED_MAX],
        "controls": controls[:CONTROLS_MAX],
        "set_aside": [aside for _, read in parts for aside in read.set_aside],
        "notes": [*shared, *own[:ROWS_LISTED_MAX], *assumed],
        "currency_sources": CurrencySources(**sources),
    }


def _in_part(sentence: LocalizedText, part: DataPart) -> LocalizedText:
    """Return a sentence about a part, with the name of the part."""
    return Sentence("footer.in_part", part=part.name, sentence=Sentence.of_data(sentence.sentence)).recorded()
