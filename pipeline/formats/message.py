"""What a format of messages reads a file into: payments that stand in a text that is not a table."""

from typing import NamedTuple

import polars as pl


class Message(NamedTuple):
    """The payments of a file, and where in its bytes they stand."""

    payments: pl.DataFrame
    """The canonical fields of `schemas.payments`, all text; null where absent. One row per payment."""
    defects: pl.Series
    """Why a payment cannot be checked, as a code; null where nothing is in the way. Same height."""
    places: pl.DataFrame
    """Of each payment: `row` from 1, `start` and `end` of its bytes, `line`, `batch`, `path`, and what else
    the format needs for its changes."""
    ids: pl.DataFrame
    """What a report on the file must name each payment by, as the file does; null where absent."""
    levels: pl.DataFrame
    """The message, in the first row, and its batches: what they say of themselves, and where."""
    controls: pl.DataFrame
    """The control totals of all levels: `where`, `said`, `found` (null where it cannot be found out) and
    whether the two agree (`agrees`, null where `found` is)."""
    facts: dict[str, str]
    """What is known of the file as a whole: `version`, `namespace`, `encoding`..."""

    @property
    def batch_ids(self) -> pl.Series:
        """What the file calls the batch of each payment; null where it calls it nothing."""
        return self.levels["id"].gather(self.places["batch"]).alias("batch_id")

    @property
    def totals_differ(self) -> bool:
        """Whether the file contradicts itself, or cannot be added up."""
        return not self.controls["agrees"].fill_null(value=False).all()
