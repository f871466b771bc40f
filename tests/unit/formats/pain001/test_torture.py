"""Files that are hostile, damaged or something else: refused by a sentence, or read for what they are."""

import gzip
import time

import polars as pl
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from paymentfiles.pain001 import DIALECTS, UTF_16, Batch, Dialect, Other, Payment, document
from refusals import refused

from pipeline.errors import InputError
from pipeline.formats import pain001
from pipeline.formats.pain001 import reading
from pipeline.formats.table import ReadingOptions
from pipeline.formats.xml_stream import TOKEN_BYTES_MAX
from pipeline.wording import Sentence

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
        (FILE.replace(b"<Document", b"<!DOCTYPE Document><Document"), "pain001.has_doctype"),
        (
            FILE.replace(b"<Document", b'<!DOCTYPE Document SYSTEM "http://127.0.0.1:9/x.dtd"><Document'),
            "pain001.has_doctype",
        ),
        (
            FILE.replace(b"<Document", LAUGHS + b"]><Document").replace(b"M\xc3\xbc", b"&k;"),
            "pain001.has_doctype",
        ),
        (FILE.replace(b"Ada", b"&eacute;", 1), "pain001.entity_not_defined"),
        (FILE[:2000], "pain001.cut_short"),
        (FILE[: FILE.index(b"</PmtInf>") + 3], "pain001.cut_short"),
        (FILE[: FILE.index(b"<!-- second") + 9], "pain001.cut_short"),
        (b"\n\n", "pain001.cut_short"),
        (FILE + FILE, "pain001.outside_document"),
        (FILE + b"\x1a", "pain001.outside_document"),
        (FILE + b"\x00" * 4096, "pain001.outside_document"),
        (FILE + b"-- signed --", "pain001.outside_document"),
        (b"\n" + FILE, "pain001.outside_document"),
        (FILE[:2000] + b"\x00" * 4096, "pain001.not_well_formed_xml"),
        (FILE.replace(b"Ada", b"A & B", 1), "pain001.bare_ampersand"),
        (FILE.replace(b"Ada", b"A&B", 1), "pain001.bare_ampersand"),
        (FILE.replace(b"Ada", b"A &amp B", 1), "pain001.bare_ampersand"),
        (FILE.replace(b"</CdtTrfTxInf>", b"</CdtTrfTxinf>"), "pain001.not_well_formed_xml"),
        (FILE.replace(b"Ada", b"\x00da", 1), "pain001.not_well_formed_xml"),
        (FILE.replace(b"Ada", b"&#1;da", 1), "pain001.not_well_formed_xml"),
        (gzip.compress(FILE), "pain001.not_well_formed_xml"),
        (FILE.replace(b"M\xc3\xbc", b"M\xfc", 1), "pain001.bytes_not_in_encoding"),
        (
            FILE.replace(b"UTF-8", b"KLINGON"),
            Sentence("pain001.encoding_not_supported", declared="'KLINGON'"),
        ),
        (FILE.replace(b"UTF-8", b"UTF-7"), Sentence("pain001.encoding_not_supported", declared="'UTF-7'")),
        (
            FILE.replace(b"UTF-8", b"Shift_JIS"),
            Sentence("pain001.encoding_not_supported", declared="'Shift_JIS'"),
        ),
        (FILE.replace(b"UTF-8", b"UTF-16"), "pain001.not_in_declared_encoding"),
        (
            b"\xef\xbb\xbf" + FILE.replace(b"UTF-8", b"ISO-8859-1"),
            Sentence("pain001.is_utf_8_despite_declaration", declared="iso-8859-1"),
        ),
        (FILE.decode().encode("utf-16"), "pain001.not_in_declared_encoding"),
        (FILE.replace(b'"1.0"', b'"1.1"'), "pain001.xml_version_not_supported"),
        (wrapped(b"CstmrDrctDbtInitn"), "pain001.is_direct_debits"),
        (wrapped(b"x:CstmrDrctDbtInitn"), "pain001.is_direct_debits"),
        (wrapped(b"CstmrPmtStsRpt"), "pain001.is_bank_report"),
        (wrapped(b"BkToCstmrStmt"), "pain001.is_account_statement"),
        (b"<html><body/></html>", "pain001.no_credit_transfers"),
        (wrapped(b"Other", b"<a>" * 6 + b"<CstmrCdtTrfInitn/>" + b"</a>" * 6), "pain001.no_credit_transfers"),
        (b"<a>" + wrapped(b"CstmrCdtTrfInitn") * 2 + b"</a>", "pain001.several_messages"),
        (
            wrapped(b"CstmrCdtTrfInitn", b"<a>" * 40 + b"</a>" * 40),
            Sentence("pain001.nested_too_deep", depth=32, line=1),
        ),
        (
            wrapped(b"CstmrCdtTrfInitn", b"<a>" * 100_000),
            Sentence("pain001.nested_too_deep", depth=32, line=1),
        ),
        (FILE.replace(b"<PmtMtd>TRF<", b"<PmtMtd>TRX<"), "pain001.payment_method_unknown"),
        (FILE.replace(b"<NbOfTxs>", b"<NbOfTxs>9</NbOfTxs><NbOfTxs>"), "pain001.element_twice_in_level"),
        (
            FILE.replace(b">Ada Quillon<", b"><![CDATA[Ada]]x> <![CDATA[Quillon]]><", 1),
            Sentence("pain001.markup_not_closed", decode="<![CDATA["),
        ),
        (
            FILE.replace(b"<PmtTpInf>", b"<?erp <?erp ?>"),
            Sentence("pain001.markup_not_closed", decode="<?"),
        ),
    ],
)
def test_what_is_no_whole_file_of_credit_transfers_is_refused(data, sentence):
    with refused(InputError, sentence) as error:
        read(data)
    assert not any(secret in str(error.value) for secret in ("Ada", "Quillon", "ABNA", "00112233"))


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "pain001.file_empty"),
        (wrapped(b"CstmrCdtTrfInitn"), "pain001.no_payments"),
        (FILE[:-30], "pain001.cut_short"),
        (FILE.replace(b"<Document", LAUGHS + b"]><Document"), "pain001.has_doctype"),
    ],
)
def test_a_refusal_names_the_file(data, sentence):
    with refused(InputError, sentence, where="pay.xml"):
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
    with refused(InputError, "pain001.token_too_long"):
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
        with refused(InputError, "pain001.token_too_long"):
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
    with refused(InputError, "pain001.cut_short"):
        read(FILE[:end])


def test_a_message_is_found_eight_elements_deep():
    envelope = ("a", "b", "c", "d", "e", "f", "Document")
    assert read(document(BATCHES, Dialect(envelope=envelope))).payments.height == 4


def test_a_dialect_that_nobody_knows_is_read_by_its_elements():
    dialect = Dialect("pain.001.001.99", "urn:bank:{}:own", prefix="b-1.x:")
    message = read(document(BATCHES, dialect))
    assert message.facts["version"] == "pain.001.001.99"
    assert message.payments.height == 4
