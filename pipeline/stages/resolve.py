"""resolve: Answers -> Outcomes. Exactly one outcome for every payment, without guessing.

A *verdict* is what the payer learns about a payment: outcome, code, reason, action and API. A file of
millions has a few dozen verdicts, and one for each rejected row. So each verdict is made once; then every row
gets its verdict and the details of its answer by position.
"""

from collections.abc import Iterable
from typing import NamedTuple

import polars as pl

from pipeline import frames
from pipeline.apis import Api, ApiDeclaration, Basis, ReportDeclaration
from pipeline.apis.own_codes import meaning_of
from pipeline.rules.unasked import UNASKED
from pipeline.wording import Sentence
from schemas.outcomes import Action, Environment, Outcome

_KIND = ("api", "by_name", "state", "code", "day")
"""Columns that determine a verdict; `day` is set only for answers of earlier runs."""


class Resolved(NamedTuple):
    """The outcome of every payment."""

    outcomes: frames.Outcomes  # in row order
    reasons: frames.Reasons  # one sentence per reason


def resolve(
    findings: frames.Findings,
    asked: frames.Questions,
    answers: frames.Answers,
    apis: Iterable[Api | ApiDeclaration | ReportDeclaration],
    environment: Environment,
) -> Resolved:
    """Decide every payment from one answer per question; the APIs' tables give the meaning of codes."""
    rejects, warnings = findings
    bases, assignments = asked
    assert rejects.schema == frames.REJECTS
    assert warnings.schema == frames.WARNINGS
    assert bases.schema == frames.BASES
    assert assignments.schema == frames.ASSIGNMENTS
    assert answers.schema == frames.ANSWERS
    assert answers.height == bases.height
    verdicts, rows = _asked(asked, answers, apis)
    rejected = _rejected(rejects).with_row_index("verdict", offset=verdicts.height)
    verdicts = pl.concat([verdicts, rejected.drop("verdict", "row")], how="diagonal")
    rows = pl.concat([rows, rejected.select("row", "verdict")], how="diagonal").sort("row")
    verdicts, rows = _with_notes(verdicts, rows, warnings)
    details = answers.select(
        check_matched_name="matched_name", check_id="request_id", check_time="time", check_attempts="attempts"
    )
    outcomes = (
        rows.select("row", check_environment=pl.lit(environment, frames.OUTCOMES["check_environment"]))
        .hstack(verdicts.select(pl.all().gather(rows["verdict"])))
        .hstack(details.select(pl.all().gather(rows["place"])))
        .with_columns(pl.col("check_attempts").fill_null(0))
        .select(list(frames.OUTCOMES))
    )
    assert outcomes.schema == frames.OUTCOMES
    assert outcomes["row"].n_unique() == outcomes.height
    assert outcomes["check_outcome"].null_count() == 0
    reasons = verdicts.select(reason="check_reason", sentence="sentence").unique(
        "reason", maintain_order=True
    )
    assert reasons.schema == frames.REASONS
    return Resolved(frames.Outcomes(outcomes), frames.Reasons(reasons))


def _asked(
    asked: frames.Questions, answers: frames.Answers, apis: Iterable[Api | ApiDeclaration | ReportDeclaration]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the verdicts on answers, and `row`, `verdict` and `place` of every payment with a question."""
    bases, assignments = asked
    order = _order_by_number(answers["check"])
    assert assignments["check"].is_between(1, bases.height).all()
    day = pl.when(pl.col("state") == frames.AnswerState.REUSED).then(pl.col("time").str.head(10))
    answered = answers.select("state", "code", day=day).hstack(
        bases[_order_by_number(bases["check"]).gather(answers["check"] - 1)].drop("check")
    )
    kinds = answered.select(_KIND).unique(maintain_order=True).with_row_index("verdict")
    verdicts = answered.join(kinds, on=_KIND, how="left", nulls_equal=True, maintain_order="left")["verdict"]
    place = order.gather(assignments["check"] - 1).alias("place")
    return _verdicts(kinds, apis), assignments.select("row", verdicts.gather(place), place)


def _order_by_number(numbers: pl.Series) -> pl.Series:
    """Return the position of each check by its number; n checks have the numbers 1 to n."""
    order = numbers.arg_sort()
    assert numbers.gather(order).equals(pl.int_range(1, numbers.len() + 1, eager=True))
    return order


def _verdicts(kinds: pl.DataFrame, apis: Iterable[Api | ApiDeclaration | ReportDeclaration]) -> pl.DataFrame:
    by_name = {api.name: api.meanings for api in apis}
    meanings = [
        meaning_of(
            by_name[api], Basis.NAME if is_by_name else Basis.IDENTIFICATION, frames.AnswerState(state), code
        )
        for api, is_by_name, state, code in kinds.select("api", "by_name", "state", "code").iter_rows()
    ]
    sentences = pl.DataFrame(
        [
            (meaning.outcome, str(meaning.reason), meaning.action, f"[{meaning.reason.as_text()}]")
            for meaning in meanings
        ],
        schema={
            **{
                column: frames.OUTCOMES[column]
                for column in ("check_outcome", "check_reason", "check_action")
            },
            "sentence": pl.String,
        },
        orient="row",
    )
    reused = pl.format(f"{{}} {Sentence(_REUSED, day='{}')}", "check_reason", "day")
    said_reused = pl.concat_str(_OPEN, pl.lit(f',["{_REUSED}",{{"day":{{"day":"'), "day", pl.lit('"}}]]'))
    return sentences.hstack(kinds.select("day", check_code="code", check_api="api")).select(
        pl.exclude("day", "check_reason", "sentence"),
        check_reason=pl.coalesce(reused, "check_reason"),
        sentence=pl.coalesce(said_reused, "sentence"),
    )


_OF_ROW, _OF_FIELD, _NOTE, _REUSED = "answer.of_row", "answer.of_field", "answer.note", "answer.reused"
_OPEN = pl.col("sentence").str.strip_suffix("]")
"""A JSON list of sentences without its final bracket, to append to."""


def _rejected(rejects: pl.DataFrame) -> pl.DataFrame:
    """Return one verdict per unchecked payment, rejected or excluded: its first code, all its sentences."""
    row = pl.when(pl.col("field") == "row")
    sentence = row.then("message").otherwise(pl.format("{}: {}", "field", "message"))
    of_field = pl.concat_str(
        pl.lit(f'["{_OF_FIELD}",{{"field":{{"sentence":["field.'), "field", pl.lit('",{}]},')
    )
    subject = row.then(pl.lit(f'["{_OF_ROW}",{{')).otherwise(of_field)
    sentences = pl.concat_str(subject, pl.lit('"message":{"sentence":'), "sentence", pl.lit("}}]"))
    code = pl.col("check_code")
    outcomes = {unasked: meaning.outcome for unasked, meaning in UNASKED.items()}
    actions = {unasked: meaning.action for unasked, meaning in UNASKED.items()}
    return (
        rejects.group_by("row", maintain_order=True)
        .agg(
            check_code=pl.col("code").first(),
            check_reason=sentence.str.join(". ") + ".",
            sentence=_list_of(sentences),
        )
        .with_columns(
            check_outcome=code.replace_strict(
                outcomes, default=Outcome.REJECTED, return_dtype=frames.OUTCOMES["check_outcome"]
            ),
            check_action=code.replace_strict(
                actions, default=Action.CORRECT_ROW, return_dtype=frames.OUTCOMES["check_action"]
            ),
        )
    )


def _list_of(sentences: pl.Expr) -> pl.Expr:
    return pl.format("[{}]", sentences.str.join(","))


def _with_notes(
    verdicts: pl.DataFrame, rows: pl.DataFrame, warnings: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Give rows with a warning verdicts of their own."""
    note = pl.format(f"{frames.NOTE}{{}}.", "message")
    note_sentence = pl.concat_str(pl.lit(f'["{_NOTE}",{{"message":{{"sentence":'), "sentence", pl.lit("}}]"))
    notes = warnings.group_by("row", maintain_order=True).agg(
        note=note.str.join(" "), more=_list_of(note_sentence).str.strip_prefix("[")
    )
    noted = rows.with_row_index("position").join(notes, on="row", maintain_order="left")
    own = verdicts.select(pl.all().gather(noted["verdict"])).with_columns(
        check_reason=pl.concat_str("check_reason", noted["note"], separator=" "),
        sentence=pl.concat_str(_OPEN, noted["more"], separator=","),
    )
    numbers = pl.int_range(verdicts.height, verdicts.height + own.height, dtype=pl.UInt32, eager=True)
    renumbered = rows["verdict"].scatter(noted["position"], numbers)
    # In one chunk: from several, polars copies every text instead of its position.
    return pl.concat([verdicts, own]).rechunk(), rows.with_columns(renumbered)
