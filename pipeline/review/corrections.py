"""Correct a file: Outcomes -> Corrections, and accepted corrections -> the file's own columns.

Corrections come only from answers: the name on the account, or the other account type. None is guessed.
"""

from collections.abc import Mapping, Sequence

import polars as pl

from pipeline import frames
from pipeline.apis.cop import ACCOUNT_TYPES_FOUND
from pipeline.apis.own_codes import TOO_LARGE, WRONG_FORM
from pipeline.rules.account_types import account_type_in
from pipeline.rules.rules import NAME_RULES
from pipeline.wording import Sentence
from schemas.cop import AccountType
from schemas.outcomes import Action, Outcome
from schemas.payments import FIELDS
from schemas.review import Acceptance

BY_HAND = ("name", "account_type")
"""Fields that people may correct in a rejected row; accounts are corrected only in the payer's own file."""
OF_REJECTED = pl.when(pl.col("check_outcome") == Outcome.REJECTED).then(
    pl.col("check_reason").str.extract("^([a-z_]+): ")
)
"""The field whose rule a rejected row breaks first, taken from the start of the reason."""
_NAME = (Action.FIX_NAME, Action.FIX_NAME_AND_ACCOUNT_TYPE)
_ACCOUNT_TYPE = (Action.FIX_ACCOUNT_TYPE, Action.FIX_NAME_AND_ACCOUNT_TYPE)
_PAYEE_HAS = {
    Action.ADD_SECONDARY_REFERENCE: "secondary_reference",
    Action.GET_NEW_ACCOUNT_DETAILS: "account_number",
}
_SEVERAL_COLUMNS, _NO_COLUMN = map(str, (Sentence("review.several_columns"), Sentence("review.no_column")))
_PAYEE_KNOWS, _ONLY_A_PERSON = map(str, (Sentence("review.payee_knows"), Sentence("review.only_a_person")))
_NOT_THE_ROW = dict.fromkeys(("NO_API", TOO_LARGE, WRONG_FORM), str(Sentence("review.row_not_the_cause")))


def fix(
    payments: frames.Payments, outcomes: frames.Outcomes, headers: Mapping[str, Sequence[str]]
) -> frames.Corrections:
    """List corrections by row, possibly two for one row; `headers` are those of each field's columns."""
    assert payments.schema == frames.PAYMENTS
    assert outcomes.schema == frames.OUTCOMES
    rows = payments.join(outcomes, on="row", how="inner", maintain_order="left")
    assert rows.height == payments.height
    corrections = [
        _names(rows, headers.get("name", ())),
        _account_types(rows, headers.get("account_type", ())),
        *(
            _corrections(rows.filter(check_action=action), field=field, obstacle=_PAYEE_KNOWS)
            for action, field in _PAYEE_HAS.items()
        ),
        _rejected(rows),
    ]
    return frames.Corrections(pl.concat(corrections).sort("row", maintain_order=True))


def correctable(corrections: frames.Corrections) -> frames.Corrections:
    """Return the corrections of rows that can be corrected completely: no row is corrected in part."""
    stuck = corrections.filter(pl.col("obstacle").is_not_null())
    return frames.Corrections(corrections.join(stuck, on="row", how="anti", maintain_order="left"))


def released_ones_stay(corrections: frames.Corrections, released_in: Mapping[int, str]) -> frames.Corrections:
    """Drop corrections of payments that were released before, which would otherwise be paid twice."""
    before = {row: str(Sentence("review.released_before_in", file=file)) for row, file in released_in.items()}
    obstacle = pl.col("row").replace_strict(before, default=None, return_dtype=pl.String)
    found = corrections.with_columns(obstacle=pl.coalesce(obstacle, "obstacle"))
    return frames.Corrections(found) if before else corrections


def by_hand(
    corrections: frames.Corrections, written: Mapping[int, str], headers: Mapping[str, Sequence[str]]
) -> frames.Corrections:
    """Add people's corrections of rejected rows (row -> text), in the field whose rule was broken."""
    is_written = pl.col("row").is_in([*written]) & pl.col("field").is_in(BY_HAND) & pl.col("kind").is_null()
    header = pl.col("field").replace_strict(
        {field: _only(headers.get(field, ())) for field in BY_HAND}, default=None, return_dtype=pl.String
    )
    to = pl.col("row").replace_strict(dict(written), default=None, return_dtype=pl.String)
    values = {
        "header": header,
        "to": to,
        "obstacle": pl.when(header.is_null()).then(pl.lit(_SEVERAL_COLUMNS)),
    }
    found = corrections.with_columns(
        pl.when(is_written).then(value).otherwise(name).alias(name) for name, value in values.items()
    )
    return frames.Corrections(found) if written else corrections


def accepted_corrections(corrections: frames.Corrections, kinds: Sequence[Acceptance]) -> pl.DataFrame:
    """Return the corrections of rows whose corrections are all of accepted kinds."""
    others = corrections.filter(~pl.col("kind").is_in(list(kinds)).fill_null(value=False))
    return corrections.join(others, on="row", how="anti", maintain_order="left")


def unknown_corrections(outcomes: frames.Outcomes, rows: pl.Series) -> pl.DataFrame:
    """Return impossible `Corrections` for rows that a person wants corrected but that have none."""
    due = outcomes.filter(frames.is_row_in(rows))
    return _corrections(due, field=None, obstacle=str(Sentence("review.answer_gives_no_correction")))


def correct(original: frames.Original, corrections: frames.Corrections) -> pl.DataFrame:
    """Apply corrections that have no obstacle to the columns of the file; other cells stay unchanged."""
    assert corrections["obstacle"].null_count() == corrections.height
    changed = []
    for header in corrections["header"].unique(maintain_order=True):
        mine = corrections.filter(pl.col("header") == header)
        assert mine["row"].is_unique().all()
        column = original[header].cast(pl.String)
        changed.append(column.scatter(mine["row"] - 1, mine["to"]))
    return original.with_columns(changed)


def _names(rows: pl.DataFrame, headers: Sequence[str]) -> pl.DataFrame:
    due = rows.filter(pl.col("check_action").is_in(_NAME))
    unfit = pl.any_horizontal(rule.broken for rule in NAME_RULES)
    is_unfit = due.select(name="check_matched_name").select(unfit).to_series()
    obstacle = (
        pl.when(pl.col("check_matched_name").is_null())
        .then(pl.lit(str(Sentence("review.bank_name_purged"))))
        .when(is_unfit)
        .then(pl.lit(str(Sentence("review.bank_name_breaks_rule"))))
        .when(pl.lit(len(headers) != 1))
        .then(pl.lit(_SEVERAL_COLUMNS if headers else _NO_COLUMN))
    )
    return _corrections(
        due,
        field="name",
        kind=Acceptance.CLOSE_MATCH.value,
        header=_only(headers),
        to=pl.col("check_matched_name"),
        obstacle=obstacle,
    )


def _account_types(rows: pl.DataFrame, headers: Sequence[str]) -> pl.DataFrame:
    due = rows.filter(pl.col("check_action").is_in(_ACCOUNT_TYPE))
    by_use = rows["account_type"].drop_nulls().value_counts(sort=True)["account_type"]
    # The file's usual word for each account type that occurs in it.
    words = {kind: kind.value for kind in AccountType} | {
        kind: word for word in by_use.reverse() if (kind := account_type_in(word)) is not None
    }
    found = {code.value: words[kind] for code, kind in ACCOUNT_TYPES_FOUND.items()}
    return _corrections(
        due,
        field="account_type",
        kind=Acceptance.ACCOUNT_TYPE.value,
        header=_only(headers),
        to=pl.col("check_code").replace_strict(found, return_dtype=pl.String),
        obstacle=None if len(headers) == 1 else _NO_COLUMN,
    )


def _rejected(rows: pl.DataFrame) -> pl.DataFrame:
    """Return corrections of rejected rows: the field of the first broken rule, which starts the reason."""
    due = rows.filter(pl.col("check_outcome") == Outcome.REJECTED).with_columns(
        field=pl.when(OF_REJECTED.is_in(FIELDS)).then(OF_REJECTED)
    )
    cell = pl.coalesce(pl.when(pl.col("field") == name).then(pl.col(name)) for name in FIELDS)
    return _corrections(
        due.with_columns(cell=cell),
        field=pl.col("field"),
        obstacle=pl.col("check_code").replace_strict(_NOT_THE_ROW, default=_ONLY_A_PERSON),
        **{"from": pl.col("cell")},
    )


def _only(headers: Sequence[str]) -> str | None:
    return headers[0] if len(headers) == 1 else None


def _corrections(due: pl.DataFrame, **values: pl.Expr | str | None) -> pl.DataFrame:
    """Return `Corrections` for these rows; a value given as text is the same for all, others are null."""
    if isinstance(values["field"], str):
        values["from"] = pl.col(values["field"])
    columns = {
        name: value if isinstance(value, pl.Expr) else pl.lit(value, dtype=pl.String)
        for name, value in {**dict.fromkeys(frames.CORRECTIONS), **values}.items()
    }
    columns |= {"row": pl.col("row"), "why": pl.col("check_reason")}
    return frames.cast_to(due.select(**columns), frames.CORRECTIONS)
