"""The sentences behind outcomes' reasons, for pages in languages other than the outcome file's.

A run stores them next to its outcome file, each reason once. Earlier versions stored none; their reasons stay
English.
"""

import json
from collections.abc import Mapping
from typing import Any

from pipeline.frames import Reasons
from pipeline.wording import Sentence
from pipeline.wording.rows import rows_named
from schemas.row_positions import RowPositions

SaidReasons = Mapping[str, str]
"""Reason -> its sentences, as in `frames.REASONS`."""


def said_reasons(reasons: Reasons) -> SaidReasons:
    """Return the frame as a mapping."""
    return dict(reasons.iter_rows())


def sentences_of(reason: str, reasons: SaidReasons, positions: RowPositions | None) -> list[Sentence | str]:
    """Return the sentences of a `check_reason`, with positions of rows; its text if they are unknown."""
    recorded = reasons.get(reason)
    return [reason] if recorded is None else [sentence_of(one, positions) for one in json.loads(recorded)]


def sentence_of(data: list[Any], positions: RowPositions | None) -> Sentence:
    """Return a sentence of `frames.FINDINGS`, with positions for row numbers."""
    return _located(Sentence.of_data(data), positions)


def _located(sentence: Sentence, positions: RowPositions | None) -> Sentence:
    within = {
        name: _located(value, positions)
        for name, value in sentence.values.items()
        if isinstance(value, Sentence)
    }
    row = sentence.values.get("row")
    if isinstance(row, int):
        within["row"] = rows_named([row], positions)
    return sentence.having(**within)
