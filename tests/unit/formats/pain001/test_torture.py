"""Files that are hostile, damaged or something else: refused by a sentence, or read for what they are."""

import gzip
import time

import polars as pl
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from paymentfiles.pain001 import DIALECTS, UTF_16, Batch, Dialect, Other, Payment, document

from pipeline.errors import InputError
from pipeline.formats import pain001
from pipeline.formats.pain001 import reading
from pipeline.formats.table import ReadingOptions
from pipeline.formats.xml_stream import TOKEN_BYTES_MAX

ADA = Payment(iban="NL91ABNA0417164300", others=(Other("FR40303265045", "TXID", "FR"),), comment=" c ")
BRITISH = Payment(
    end_to_end_id="b", account="00112233", sort_code="001122", currency="GBP", supplement=True, name="Müller"
)
BATCHES = (Batch((ADA, BRITISH)), Batch((BRITISH, ADA), id="BATCH-2", comment=" second "))
FILE = document(BATCHES)
LAUGHS = b"<!DOCTYPE D [<!ENTITY a 'ha'>" + b"".join(
    b"<!ENTITY %c '%s'>" % (at + 1, b"&%c;" % at * 10) for at in range(ord("a"), ord("k"))
)


def read(data):
    return pain001.message_of(pl.concat(list(reading.parse(data))))


def wrapped(element, inside=b""):
    return b"<Document><%s>%s</%s></Document>" % (element, inside, element)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (FILE.replace(b"<Document", b"<!DOCTYPE Document><Document"), "has a DOCTYPE, which payment files"),
        (
            FILE.replace(b"<Document", b'<!DOCTYPE Document SYSTEM "http://127.0.0.1:9/x.dtd"><Document'),
            "has a DOCTYPE, which payment files never need; remove it",
        ),
        (FILE.replace(b"<Document", LAUGHS + b"]><Document").replace(b"M\xc3\xbc", b"&k;"), "has a DOCTYPE"),
        (FILE.replace(b"Ada", b"&eacute;", 1), r"has an entity at line \d+, column \d+ that is not defined"),
        (FILE[:2000], "ends at line .*; it may have been cut: copy or export it again"),
        (FILE[: FILE.index(b"</PmtInf>") + 3], "ends at line .*; it may have been cut"),
        (FILE[: FILE.index(b"<!-- second") + 9], "ends at line .*; it may have been cut"),
        (b"\n\n", "ends at line .*; it may have been cut"),
        (FILE + FILE, "is not well-formed XML at line"),
        (FILE + b"\x1a", "is not well-formed XML at line"),
        (FILE.replace(b"</CdtTrfTxInf>", b"</CdtTrfTxinf>"), "is not well-formed XML at line"),
        (FILE.replace(b"Ada", b"\x00da", 1), "is not well-formed XML at line"),
        (FILE.replace(b"Ada", b"&#1;da", 1), "is not well-formed XML at line"),
        (gzip.compress(FILE), "is not well-formed XML|not in the encoding"),
        (
            FILE.replace(b"M\xc3\xbc", b"M\xfc", 1),
            r"has bytes at line \d+, column \d+ that are not valid in the encoding",
        ),
        (
            FILE.replace(b"UTF-8", b"KLINGON"),
            "is written in 'KLINGON', which cannot be read; export it as UTF-8",
        ),
        (FILE.replace(b"UTF-8", b"UTF-7"), "is written in 'UTF-7', which cannot be read"),
        (FILE.replace(b"UTF-8", b"Shift_JIS"), "is written in 'Shift_JIS', which cannot be read"),
        (FILE.replace(b"UTF-8", b"UTF-16"), "is not in the encoding that it declares"),
        (
            b"\xef\xbb\xbf" + FILE.replace(b"UTF-8", b"ISO-8859-1"),
            "declares the encoding iso-8859-1 but is UTF-8",
        ),
        (FILE.decode().encode("utf-16"), "is not in the encoding that it declares"),
        (FILE.replace(b'"1.0"', b'"1.1"'), "is not XML 1.0, the only version that is read"),
        (wrapped(b"CstmrDrctDbtInitn"), r"is a pain.008 \(direct debits\); only credit transfers"),
        (wrapped(b"x:CstmrDrctDbtInitn"), "is a pain.008"),
        (wrapped(b"CstmrPmtStsRpt"), r"is a pain.002 \(a report from the bank\)"),
        (wrapped(b"BkToCstmrStmt"), "is a camt.053"),
        (b"<html><body/></html>", "is XML, but holds no credit transfers"),
        (
            wrapped(b"Other", b"<a>" * 6 + b"<CstmrCdtTrfInitn/>" + b"</a>" * 6),
            "is XML, but holds no credit transfers",
        ),
        (
            b"<a>" + wrapped(b"CstmrCdtTrfInitn") * 2 + b"</a>",
            "holds several messages; give each a file of its own",
        ),
        (
            wrapped(b"CstmrCdtTrfInitn", b"<a>" * 40 + b"</a>" * 40),
            "has elements more than 32 deep at line 1",
        ),
        (wrapped(b"CstmrCdtTrfInitn", b"<a>" * 100_000), "has elements more than 32 deep at line 1"),
        (FILE.replace(b"<PmtMtd>TRF<", b"<PmtMtd>TRX<"), r"has a payment method at line \d+ other than"),
        (
            FILE.replace(b"<NbOfTxs>", b"<NbOfTxs>9</NbOfTxs><NbOfTxs>"),
            "has the same element twice in one level",
        ),
        (
            FILE.replace(b">Ada Quillon<", b"><![CDATA[Ada]]x> <![CDATA[Quillon]]><", 1),
            r"is damaged before line \d+: what begins with <!\[CDATA\[ does not end",
        ),
        (FILE.replace(b"<PmtTpInf>", b"<?erp <?erp ?>"), "is damaged before line .*: what begins with <[?]"),
    ],
)
def test_what_is_no_whole_file_of_credit_transfers_is_refused(data, sentence):
    with pytest.raises(InputError, match=rf"^({sentence})") as error:
        read(data)
    assert not any(secret in str(error.value) for secret in ("Ada", "Quillon", "ABNA", "00112233"))


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "pay.xml: the file is empty"),
        (wrapped(b"CstmrCdtTrfInitn"), r"pay.xml: has no payments \(CdtTrfTxInf\)"),
        (FILE[:-30], "pay.xml: ends at line .*; it may have been cut"),
        (FILE.replace(b"<Document", LAUGHS + b"]><Document"), "pay.xml: has a DOCTYPE"),
    ],
)
def test_a_refusal_names_the_file(data, sentence):
    with pytest.raises(InputError, match=rf"^{sentence}"):
        pain001.read(data, ReadingOptions({}), where="pay.xml")


HUGE = b"A" * 20 * 1024**2
HUGE_FILES = {
    "attribute": lambda: b"<Document a='" + HUGE + b"'/>",
    "tag that does not end": lambda: b"<Document " + HUGE,
    "name of an element": lambda: b"<" + HUGE + b"/>",
    "attributes": lambda: b"<Document " + b" ".join(b"a%d='1'" % at for at in range(10**6)) + b"/>",
    "comment": lambda: b"<Document><!--" + HUGE + b"--></Document>",
    "instruction": lambda: b"<Document><?a " + HUGE + b"?></Document>",
    "text": lambda: FILE.replace(b"Ada Quillon", HUGE, 1),
    "text of a level": lambda: FILE.replace(b"BATCH-2", HUGE, 1),
    "text after a comment": lambda: FILE.replace(b"Ada Quillon", b"<!-- a -->" + HUGE, 1),
}


@pytest.mark.parametrize("name", HUGE_FILES)
def test_what_is_longer_than_any_payment_is_refused_before_it_costs_anything(name):
    data = HUGE_FILES[name]()
    began = time.process_time()
    with pytest.raises(InputError, match=r"longer than 64 KiB at line|not well-formed"):
        read(data)
    assert time.process_time() - began < 2, name


@pytest.mark.parametrize("size", [64 * 1024, 64 * 1024 + 1])
@pytest.mark.parametrize("before", [0, 1, 1000, 65_535])
def test_the_limit_of_a_token_holds_wherever_it_stands(size, before):
    comment = b"<!--" + b"x" * (size - 7) + b"-->"
    data = FILE.replace(b"<PmtTpInf>", b" " * before + comment + b"<PmtTpInf>", 1)
    if size <= TOKEN_BYTES_MAX:
        assert read(data).payments.height == 4
    else:
        with pytest.raises(InputError, match="longer than 64 KiB"):
            read(data)


def test_long_data_of_another_program_are_passed_over():
    data = FILE.replace(b">Nobody<", b">" + HUGE + b"<", 1)
    assert read(data).payments.equals(read(FILE).payments)


def test_what_stands_twice_is_a_defect_of_its_payment_alone():
    data = FILE.replace(b"<Nm>Ada Quillon</Nm>", b"<Nm>Ada Quillon</Nm><Nm>Bob</Nm>", 1)
    message = read(data)
    assert message.defects.to_list() == ["ELEMENT_TWICE", None, None, None]
    assert message.payments.equals(read(FILE).payments)


@pytest.mark.parametrize(
    ("head", "is_ours"),
    [
        (b'<?xml version="1.0"?>', True),
        (b"\xef\xbb\xbf<?xml version='1.0'?>", True),
        (b"\n <Document>", True),
        (b"<!-- a\n --> <ns:Document xmlns:ns='urn'>", True),
        (b"<CstmrCdtTrfInitn>", True),
        (b"<!DOCTYPE Document>", True),
        ("<?xml version='1.0'?>".encode("utf-16"), True),
        ("<Document>".encode("utf-16-be"), True),
        (b"<html>", False),
        (b"<Documents>", False),
        (b"name,iban\n<Document>,x", False),
        (b"PK\x03\x04", False),
        (b"", False),
    ],
)
def test_a_file_is_known_by_its_first_bytes(head, is_ours):
    assert pain001.sniff(head) is is_ours


@pytest.mark.parametrize(
    "name", ["CDATA", "instructions", "prefixed", "Latin 9", "ISO .02", "roomy", "UTF-16"]
)
@examples(60)
@given(choice=st.data())
def test_a_changed_byte_is_refused_or_changes_its_own_payment_alone(name, choice):
    data = document(BATCHES, {**DIALECTS, "UTF-16": UTF_16}[name])
    at = choice.draw(st.integers(0, len(data) - 1))
    byte = choice.draw(st.sampled_from(b"<>/\"' x&-]?!=;\x00\xff#\n1") | st.integers(0, 255))
    try:
        found = read(data[:at] + bytes([byte]) + data[at + 1 :])
    except InputError:
        return
    message = read(data)
    assert found.payments.height == message.payments.height
    rows = zip(
        message.payments.rows(),
        found.payments.rows(),
        message.defects,
        found.defects,
        message.locations.select("start", "end").rows(),
        strict=True,
    )
    for was, became, defect, new_defect, (start, end) in rows:
        if not start <= at < end:
            assert (was, defect) == (became, new_defect)


@examples(60)
@given(st.integers(1, len(FILE) - 12))
def test_a_cut_file_is_refused_wherever_it_is_cut(end):
    with pytest.raises(InputError, match=r"it may have been cut|has a tag"):
        read(FILE[:end])


def test_a_message_is_found_eight_elements_deep():
    envelope = ("a", "b", "c", "d", "e", "f", "Document")
    assert read(document(BATCHES, Dialect(envelope=envelope))).payments.height == 4


def test_a_dialect_that_nobody_knows_is_read_by_its_elements():
    dialect = Dialect("pain.001.001.99", "urn:bank:{}:own", prefix="b-1.x:")
    message = read(document(BATCHES, dialect))
    assert message.facts["version"] == "pain.001.001.99"
    assert message.payments.height == 4
