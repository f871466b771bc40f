"""Findings about rows as columns: English for documents, key and values for pages in any language."""

from collections.abc import Mapping

import polars as pl

from pipeline.wording import Sentence


def finding_columns(sentence: Sentence) -> Mapping[str, pl.Expr]:
    """Return the columns `message` and `sentence` of `FINDINGS`, the same in each row."""
    return {"message": pl.lit(str(sentence)), "sentence": pl.lit(sentence.as_text())}


def row_finding_columns(
    key: str, *, in_english: Mapping[str, pl.Expr] | None = None, **values: pl.Expr
) -> Mapping[str, pl.Expr]:
    """Return the columns `message` and `sentence` of `FINDINGS` for values that differ by row.

    Args:
        key: the key of the sentence.
        in_english: values with different wording in English; never null.
        values: the values of each row, in the order of the English words.
    """
    english = str(Sentence(key, **dict.fromkeys(values, "{}")))
    shown = {**values, **(in_english or {})}
    data = pl.struct([value.alias(name) for name, value in values.items()]).struct.json_encode()
    data_list = pl.concat_str(pl.lit(f'["{key}",'), data, pl.lit("]"))
    return {"message": pl.format(english, *shown.values()), "sentence": data_list}
