"""Every dialect in which a pain.001 comes is read alike."""

import hashlib

import polars as pl
import pytest
from paymentfiles.pain001 import DIALECTS, UTF_16, Batch, Other, Payment, document, said_of, write_many
from refusals import says

from pipeline.formats import pain001
from pipeline.formats.pain001 import reading
from pipeline.formats.table import ReadingOptions
from pipeline.stages.read import read as read_stage
from schemas.payments import FIELDS

GERMAN = Payment(
    end_to_end_id="E2E-1",
    instruction_id="I-1",
    uetr="00000000-0000-4000-8000-000000000001",
    name="Müller & <Söhne> GmbH",
    iban="DE87200500001234567890",
    bic="COBADEFFXXX",
    amount="1.10",
    references=("Invoice 1", "Invoice 2"),
    ultimate="Somebody Else",
    comment=" for Müller ",
)
BRITISH = Payment(
    end_to_end_id="NOTPROVIDED",
    instruction_id="I-2",
    name="Ada Quillon",
    account="00112233",
    sort_code="001122",
    currency="GBP",
    amount="20",
    creditor_reference="RF18539007547034",
)
KNOWN = Payment(
    end_to_end_id="NOTPROVIDED",
    name="N" * 140,
    iban="FR7630006000011234567890189",
    bic="NOTPROVIDED",
    lei="529900T8BM49AURSDO55",
    organisation_bic="AGRIFRPP",
    others=(Other("X", "secret", proprietary=True), Other("FR40303265045", "TXID", "FR"), Other("9", "DUNS")),
    amount="300.123",
    currency="USD",
    equivalent_in="JPY",
    supplement=True,
)
NAMELESS = Payment(end_to_end_id="E2E-4", name="", iban="NL91ABNA0417164300", bic="NOTPROVIDED")
PAYMENTS = (GERMAN, BRITISH, KNOWN, NAMELESS)
BATCHES = (Batch((GERMAN, BRITISH), comment=" first "), Batch((KNOWN, NAMELESS), id="BATCH-2"))


def read(data):
    return pain001.message_of(pl.concat(list(reading.parse(data))))


def rows_of(message):
    return [
        {field: value for field, value in row.items() if value is not None}
        for row in message.payments.iter_rows(named=True)
    ]


@pytest.mark.parametrize("dialect", [*DIALECTS.values(), UTF_16], ids=[*DIALECTS, "UTF-16"])
def test_what_a_file_says_of_its_payments_is_read_in_every_dialect(dialect):
    data = document(BATCHES, dialect)
    assert pain001.sniff(data[:200])
    message = read(data)
    assert message.payments.columns == list(FIELDS)
    assert rows_of(message) == [said_of(payment) for payment in PAYMENTS]
    assert message.defects.is_null().all()
    assert message.controls["agrees"].all()
    assert message.difference is None
    assert message.facts["version"] == (dialect.version if dialect.namespace else "pain.001")
    assert message.facts["encoding"] == dialect.encoding.lower()
    assert message.locations["path"].to_list() == [
        *("PmtInf[1]/CdtTrfTxInf[1]", "PmtInf[1]/CdtTrfTxInf[2]"),
        *("PmtInf[2]/CdtTrfTxInf[1]", "PmtInf[2]/CdtTrfTxInf[2]"),
    ]
    assert message.locations["batch"].to_list() == ["BATCH-1", "BATCH-1", "BATCH-2", "BATCH-2"]
    assert message.ids.row(0) == ("E2E-1", "I-1", "00000000-0000-4000-8000-000000000001")


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_the_bytes_of_a_payment_and_of_its_name_are_known(dialect):
    data = document(BATCHES, dialect)
    places = read(data).locations
    tag = f"<{dialect.prefix}CdtTrfTxInf".encode()
    for start, end, element, line in places.select("start", "end", "element", "line").iter_rows():
        assert data[element:].startswith(tag)
        assert data[start:end].rstrip().endswith(b">")
        assert data[start:end].count(tag + b">") + data[start:end].count(tag + b" ") >= 1
        assert line == 1 + data[:element].count(b"\n")
    first = places.row(0, named=True)
    assert b"<!-- for M" in data[first["start"] : first["element"]]
    assert data[first["name_start"] - 1 : first["name_start"]] == b">"
    assert data[first["name_end"] :].startswith(f"</{dialect.prefix}Nm".encode())
    assert data[places["end"][0] :][: -places["end"][0]].startswith(data[places["start"][1] :][:40])


def test_a_message_is_read_in_a_child():
    message = pain001.read(document(BATCHES), ReadingOptions({}), where="pay.xml")
    assert rows_of(message) == [said_of(payment) for payment in PAYMENTS]


@pytest.mark.nightly
def test_thousands_of_batches_are_told_apart():
    batches = tuple(Batch((GERMAN,), id=f"B-{number}") for number in range(3_000))
    message = read(document(batches))
    assert message.levels.height == 3_001
    assert message.locations["batch"].to_list() == [f"B-{number}" for number in range(3_000)]
    assert message.controls.height == 2 * 3_001
    assert message.controls["agrees"].all()


def test_a_large_file_is_read_in_several_blocks(tmp_path):
    path = tmp_path / "large.xml"
    write_many(path, 10_000, per_batch=3_000)
    message = read(path.read_bytes())
    assert message.payments.height == 10_000
    assert message.ids["end_to_end_id"].to_list() == [f"E2E-2026-11-{at:09}" for at in range(10_000)]
    assert message.locations["batch"].value_counts(sort=True)["count"].to_list() == [
        3_000,
        3_000,
        3_000,
        1_000,
    ]
    assert message.controls["agrees"].all()
    assert message.payments["sort_code"].is_not_null().sum() == 2_000


@pytest.mark.parametrize("clearing", ["Cd", "Prtry", "text"])
@pytest.mark.parametrize("scheme", [None, "BBAN"])
def test_a_uk_account_is_known_by_its_clearing_system(clearing, scheme):
    payment = Payment(
        account="00112233", sort_code="001122", clearing=clearing, account_scheme=scheme, bic="BARCGB22"
    )
    message = read(document((Batch((payment,)),)))
    assert rows_of(message) == [said_of(payment)]


def test_an_iban_that_is_no_iban_by_its_element_is_one_by_its_looks_or_its_scheme():
    payments = (
        Payment(account="NL91ABNA0417164300"),
        Payment(account="nl91 abna", account_scheme="IBAN"),
    )
    message = read(document((Batch(payments),)))
    assert message.payments["iban"].to_list() == ["NL91ABNA0417164300", "nl91 abna"]
    assert message.defects.is_null().all()


def test_cheques_are_told_and_the_other_batches_are_not_touched():
    batches = (Batch((GERMAN,), method="CHK"), Batch((GERMAN,), method="TRA"), Batch((GERMAN,), method=None))
    assert read(document(batches)).defects.to_list() == ["CHEQUE", None, None]


def test_a_lei_among_other_identifications_is_one_and_a_person_has_none():
    payment = Payment(others=(Other("529900T8BM49AURSDO55", "LEI"), Other("5", "CCPT")))
    data = document((Batch((payment,)),))
    assert rows_of(read(data))[0]["lei"] == "529900T8BM49AURSDO55"
    private = data.replace(b"OrgId>", b"PrvtId>")
    fields = ["lei", "organisation_id", "organisation_id_scheme"]
    assert read(private).payments.select(fields).row(0) == (None, None, None)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ({"count": "7"}, ("GrpHdr/NbOfTxs", "7", "4", False)),
        ({"count": "four"}, ("GrpHdr/NbOfTxs", "four", "4", False)),
        ({"sum": "322.2231"}, ("GrpHdr/CtrlSum", "322.2231", "322.2230", False)),
        ({"sum": "322.22300"}, ("GrpHdr/CtrlSum", "322.22300", "322.22300", True)),
        ({"sum": None, "count": None}, ("PmtInf[1]/NbOfTxs", "2", "2", True)),
    ],
)
def test_control_totals_are_compared(said, found):
    message = read(document(BATCHES, **said))
    assert found in message.controls.drop("difference", "place").rows()
    where, stated, has, agrees = found
    if agrees:
        assert message.difference is None
    else:
        says(message.difference, "formats.control_differs", stated=stated, where=where, found=has)


def test_control_totals_of_a_batch_are_compared_with_its_own_payments():
    message = read(document((Batch((GERMAN,), count="2", sum="2.20"), Batch((GERMAN,)))))
    assert message.controls.filter(~pl.col("agrees"))["where"].to_list() == [
        "PmtInf[1]/NbOfTxs",
        "PmtInf[1]/CtrlSum",
    ]
    says(message.difference, "formats.control_differs", stated="2", where="PmtInf[1]/NbOfTxs", found="1")


def test_a_sum_that_cannot_be_found_out_is_not_said_to_agree():
    template = Payment(amount="7")
    data = document((Batch((template,)),)).replace(b'"EUR">7<', b'"EUR">@AMOUNT@<')
    message = read(data)
    says(message.difference, "formats.amounts_cannot_be_added", stated="7", where="GrpHdr/CtrlSum")
    assert message.payments["amount"].to_list() == ["@AMOUNT@"]


def test_a_file_is_known_by_the_bytes_that_the_child_has_parsed(tmp_path):
    data = document((Batch((GERMAN, BRITISH)),))
    path = tmp_path / "pay.xml"
    path.write_bytes(data)
    of_bytes = pain001.read(data, ReadingOptions({}), where=path.name)
    source = read_stage(path, mapping={})
    with path.open("rb") as file:
        assert pain001.read_file(file, where=path.name).identity == (source.sha256, source.byte_count)
    assert (source.sha256, source.byte_count) == (hashlib.sha256(data).hexdigest(), len(data))
    assert source.message.payments.equals(of_bytes.payments)
    assert source.message.locations.equals(of_bytes.locations)
    assert dict(source.message.facts) == dict(of_bytes.facts)
    assert "sha256" not in source.message.facts
