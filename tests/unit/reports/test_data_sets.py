"""The reports of a data set."""

import gc
import weakref

import polars as pl
import pytest

from pipeline.frames import CHANGES, OUTCOMES, PAYMENTS
from pipeline.reports.changes import gravest
from pipeline.reports.documents import ATTENTION_MAX, ROW, SIZE, PartReport, of_all
from pipeline.reports.groups import LISTED, sums_of

NO_PAYMENTS = pl.DataFrame(schema={**PAYMENTS, **OUTCOMES}).select(LISTED)
NO_CHANGES = gravest(pl.DataFrame(schema=CHANGES), pl.DataFrame(schema=PAYMENTS))
NO_SUMS = sums_of(pl.DataFrame(schema={**PAYMENTS, **OUTCOMES}))


@pytest.mark.nightly
def test_the_largest_payments_are_found_without_all_parts_in_memory():
    held, most_at_once = [], 0

    def parts():
        nonlocal most_at_once
        for number in range(8):
            sizes = pl.int_range(number, ATTENTION_MAX * 2, 8, eager=True).sort(descending=True)
            part = pl.DataFrame({SIZE: sizes, ROW: sizes, "payment_id": sizes.cast(pl.String)})
            held.append(weakref.ref(part))
            gc.collect()
            most_at_once = max(most_at_once, sum(one() is not None for one in held))
            yield PartReport(part, NO_PAYMENTS, NO_SUMS, NO_CHANGES)
            del part

    found = of_all(parts()).attention

    assert found[ROW].to_list() == list(range(2 * ATTENTION_MAX - 1, ATTENTION_MAX - 1, -1))
    assert most_at_once <= 3, "the part at hand, the one before, and what was found so far"
