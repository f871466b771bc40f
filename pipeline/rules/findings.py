"""Findings about rows as columns: English for documents, key and values for pages in any language."""

from collections.abc import Mapping

import polars as pl

from pipeline.frames import WARNINGS, Warnings
from pipeline.wording import Sentence
from schemas.outcomes import WarningCode


def finding_columns(sentence: Sentence) -> Mapping[str, pl.Expr]:
    """Return the columns `message` and `sentence` of `FINDINGS`, the same in each row."""
    return {"message": pl.lit(str(sentence)), "sentence": pl.lit(sentence.as_text())}


def row_finding_columns(
    key: str, *, in_english: Mapping[str, pl.Expr] | None = None, **values: pl.Expr
) -> Mapping[str, pl.Expr]:
    """Return the columns `message` and `sentence` of `FINDINGS` for values that differ by row.

    `values` are in the order of the English words; `in_english` has other words for some, never null.
    """
    english = str(Sentence(key, **dict.fromkeys(values, "{}")))
    shown = {**values, **(in_english or {})}
    data = pl.struct([value.alias(name) for name, value in values.items()]).struct.json_encode()
    data_list = pl.concat_str(pl.lit(f'["{key}",'), data, pl.lit("]"))
    return {"message": pl.format(english, *shown.values()), "sentence": data_list}


def coded_warnings(
    rows: pl.DataFrame, field: str | pl.Expr, code: WarningCode, text: Sentence | Mapping[str, pl.Expr]
) -> Warnings:
    """Return `Warnings` with one code about each `row`, in order; `text` has a sentence or its columns."""
    warnings = rows.select(
        "row",
        field=pl.lit(field) if isinstance(field, str) else field,
        code=pl.lit(code.value),
        **(finding_columns(text) if isinstance(text, Sentence) else text),
    )
    return Warnings(warnings.cast(WARNINGS))  # type: ignore[arg-type]  # polars' stubs want an invariant mapping
