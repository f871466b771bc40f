"""The reports of a data set."""

import gc
import json
import weakref

import polars as pl
import pytest

from pipeline.frames import CHANGES, OUTCOMES, PAYMENTS, REASONS, Reasons
from pipeline.jobs.data_set_outcomes import added_banks
from pipeline.jobs.writing import keep_reasons
from pipeline.reports.changes import gravest
from pipeline.reports.documents import ATTENTION_MAX, ROW, SIZE, PartReport, of_all
from pipeline.reports.groups import LISTED, sums_of
from pipeline.runs.ended import reasons_in

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


@pytest.mark.parametrize(
    "sizes",
    [
        (range(ATTENTION_MAX), [ATTENTION_MAX, 7_000_000, 3, 0, -5, None], [50_000, 2, None]),
        ([None] * ATTENTION_MAX, [-5, None]),
    ],
    ids=["of any size", "without an amount"],
)
def test_the_largest_payments_are_found_whichever_part_they_stand_in(sizes):
    rows = pl.concat(pl.DataFrame({SIZE: pl.Series(some, dtype=pl.Int64)}) for some in sizes)
    rows = rows.with_row_index(ROW, 1)
    parts, first = [], 0
    for some in sizes:
        part = rows.slice(first, len(some)).sort(SIZE, ROW, descending=[True, False], nulls_last=True)
        parts.append(PartReport(part, NO_PAYMENTS, NO_SUMS, NO_CHANGES))
        first += len(some)

    largest = rows.sort(SIZE, ROW, descending=[True, False], nulls_last=True).head(ATTENTION_MAX)
    assert of_all(parts).attention.equals(largest)


def test_a_reason_of_several_parts_is_written_once_and_one_that_names_a_row_stays(tmp_path):
    common = ("It fits.", '[["answer.name_belongs",{}]]')
    notes = [(f"It fits. See row {row}.", f'[["answer.note",{{"row":{row}}}]]') for row in (1, 2)]
    parts = [Reasons(pl.DataFrame([common, note], schema=REASONS, orient="row")) for note in notes]

    lines = keep_reasons(parts, tmp_path).read_text().splitlines()

    assert [json.loads(line)["reason"] for line in lines] == [common[0], notes[0][0], notes[1][0]]
    assert reasons_in(tmp_path) == dict([common, *notes])
    assert reasons_in(tmp_path, of=[notes[1][0], "unknown"]) == dict([notes[1]])


def test_banks_of_several_parts_are_counted_together():
    starts = (0, 300_000, 0)
    parts = [
        pl.DataFrame({"bank": pl.int_range(start, start + 600_000, eager=True).cast(pl.String), "count": 1})
        for start in starts
    ]

    added = added_banks(parts)

    assert (added.height, added["count"].sum()) == (900_000, 1_800_000)
    assert added.filter(bank="400000")["count"].item() == 3
