"""What the batches of a payment file come to, and how they are shown."""

import polars as pl
import pytest
from bank_files import bank_file
from paymentfiles.pain001 import Batch, Dialect, Payment, document
from standard_18 import File
from standard_18 import Payment as Credit

from pipeline.formats import bacs18, pain001
from pipeline.formats.batches import batch_places, batch_totals, masked_batches
from pipeline.formats.pain001 import reading
from pipeline.formats.registry import entry_named
from pipeline.formats.table import ReadingOptions
from pipeline.rules.totals import money_of

ANY_FORMAT = ReadingOptions(None, None, None)


def rows_of(message, *outcomes):
    return pl.DataFrame({"check_outcome": outcomes}).with_columns(
        money_of(message.payments.with_row_index("row"))
    )


def pain001_of(*batches_of_file):
    parts = reading.parse(document(batches_of_file, Dialect()))
    return pain001.message_of(pl.concat(list(parts)))


def told(found):
    return [
        (
            batch.batch,
            batch.location,
            batch.row_count,
            batch.to_look_at_count,
            [f"{money.amount} {money.currency}" for money in batch.totals],
        )
        for batch in found.listed
    ]


def test_batches_of_a_pain_001_stand_apart_also_where_they_share_an_id():
    euro, pound = Payment(amount="2.50"), Payment(amount="1.00", currency="GBP")
    message = pain001_of(
        Batch((euro, pound, euro), id="PAY"), Batch((pound,), id="PAY"), Batch((euro,), id=None)
    )

    found = batch_totals(
        batch_places(message), rows_of(message, "match", "no_match", "deferred", "close_match", "match")
    )

    assert told(found) == [
        ("PAY", "PmtInf[1]", 3, 1, ["5.00 EUR", "1.00 GBP"]),
        ("PAY", "PmtInf[2]", 1, 1, ["1.00 GBP"]),
        (None, "PmtInf[3]", 1, 0, ["2.50 EUR"]),
    ]


def test_payments_of_standard_18_are_gathered_by_account_and_day_and_the_account_is_masked():
    first, other = Credit(pence=100), Credit(pence=1, originator="40000177777777")
    message = bacs18.read(File((first, other, first)).data(), ANY_FORMAT, where="pay.bac")

    found = batch_totals(batch_places(message), rows_of(message, "match", "match", "rejected"))

    assert [line[2:] for line in told(found)] == [(2, 1, ["2.00 GBP"]), (1, 0, ["0.01 GBP"])]
    assert [
        batch.batch.endswith(end)
        for batch, end in zip(found.listed, ("400001 **8888", "400001 **7777"), strict=True)
    ]


def test_only_the_first_batches_are_listed_and_all_are_counted():
    message = pain001_of(*(Batch((Payment(),), id=f"B-{number}") for number in (1, 2, 3)))

    found = batch_totals(batch_places(message), rows_of(message, *["match"] * 3), listed_max=2)

    assert ([batch.batch for batch in found.listed], found.batch_count) == (["B-1", "B-2"], 3)


def test_a_file_without_batches_has_none():
    layout = entry_named("barclays").format
    message = layout.read(bank_file("barclays"), ANY_FORMAT, where="pay.csv")

    assert batch_totals(batch_places(message), rows_of(message, *["match"] * 3)) == ([], 0)
    assert batch_places(None).is_empty()


@pytest.mark.parametrize("layout", ["bankline", "bank-of-scotland", "lloyds", "paygate", "santander"])
def test_no_account_of_a_layout_is_shown_whole(layout):
    message = entry_named(layout).format.read(bank_file(layout), ANY_FORMAT, where="pay.csv")
    whole = message.locations["batch"].drop_nulls().to_list()

    shown = masked_batches(message.locations["batch"], are_ids=False).drop_nulls().to_list()

    assert len(shown) == 3
    assert not any("88888888" in batch for batch in shown)
    assert all("88888888" not in batch or "**8888" in mine for batch, mine in zip(whole, shown, strict=True))
