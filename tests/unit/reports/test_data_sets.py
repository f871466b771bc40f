"""The reports of a data set."""

import gc
import weakref

import polars as pl
import pytest

from pipeline.reports.data_sets import ATTENTION_MAX, attention_of_all


@pytest.mark.nightly
def test_the_largest_payments_are_found_without_all_parts_in_memory():
    held, most_at_once = [], 0

    def parts():
        nonlocal most_at_once
        for number in range(8):
            sizes = pl.int_range(number, ATTENTION_MAX * 2, 8, eager=True).sort(descending=True)
            part = pl.DataFrame({"_size": sizes, "row": sizes, "payment_id": sizes.cast(pl.String)})
            held.append(weakref.ref(part))
            gc.collect()
            most_at_once = max(most_at_once, sum(one() is not None for one in held))
            yield part
            del part

    found = attention_of_all(parts())

    assert found["row"].to_list() == list(range(2 * ATTENTION_MAX - 1, ATTENTION_MAX - 1, -1))
    assert most_at_once <= 3, "the part at hand, the one before, and what was found so far"
