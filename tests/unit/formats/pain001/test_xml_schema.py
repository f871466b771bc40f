"""A pain.001 is XML Schema: its numbers, what may stand where, what seals it, and in which encoding it is."""

from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from paymentfiles.pain001 import Batch, Dialect, Payment, document
from refusals import refused, says

from pipeline.errors import InputError
from pipeline.formats import pain001
from pipeline.formats.pain001 import reading
from pipeline.rules.totals import money_of
from pipeline.stages.read import read as read_stage
from pipeline.stages.validate import Routes, validate
from pipeline.wording import Sentence
from schemas.outcomes import ApiName

CASES = Path(__file__).parents[3] / "cases"
ADA = Payment(iban="NL91ABNA0417164300")
FILE = document((Batch((ADA, ADA)),))
PAYMENT = b"<CdtTrfTxInf><Cdtr><Nm>Hidden</Nm></Cdtr></CdtTrfTxInf>"
BATCH = b"<PmtInf><PmtInfId>H</PmtInfId>" + PAYMENT + b"</PmtInf>"
SEAL = b'<ds:Signature xmlns:ds="http://www.w3.org/2000/09/xmldsig#"><ds:SignedInfo/></ds:Signature>'


def read(data):
    return pain001.message_of(pl.concat(list(reading.parse(data))))


def of_case(name):
    return read((CASES / name).read_bytes())


def around(inside, before):
    assert before in FILE
    return FILE.replace(before, inside + before, 1)


def supplement(inside):
    return b"<SplmtryData><Envlp>" + inside + b"</Envlp></SplmtryData>"


OUT_OF_PLACE = {
    "a payment after the batches": around(PAYMENT, b"</CstmrCdtTrfInitn>"),
    "a payment before the batches": around(PAYMENT, b"<PmtInf>"),
    "a payment in the header": around(PAYMENT, b"</GrpHdr>"),
    "a payment in a party of the header": around(PAYMENT, b"</InitgPty>"),
    "a payment in a payment": around(PAYMENT, b"</CdtTrfTxInf>"),
    "a payment in a name": around(PAYMENT, b"</Nm></Cdtr>".replace(b"</Cdtr>", b"")),
    "a payment in an element that is not read": around(b"<Foo>" + PAYMENT + b"</Foo>", b"</PmtInf>"),
    "a payment beside the message": around(PAYMENT, b"</Document>"),
    "a payment of another prefix": around(
        PAYMENT.replace(b"CdtTrfTxInf", b"x:CdtTrfTxInf"), b"</CstmrCdtTrfInitn>"
    ),
    "a batch in a batch": around(BATCH, b"</PmtInf>"),
    "a batch in a payment": around(BATCH, b"</CdtTrfTxInf>"),
    "a batch in the header": around(BATCH, b"</GrpHdr>"),
    "a batch beside the message": around(BATCH, b"</Document>"),
    "a batch in another element of the message": around(b"<Foo>" + BATCH + b"</Foo>", b"</CstmrCdtTrfInitn>"),
    "a batch too deep in the envelope": around(b"<a>" * 9 + BATCH + b"</a>" * 9, b"</Document>"),
}


@pytest.mark.parametrize("name", OUT_OF_PLACE)
def test_a_payment_or_a_batch_out_of_its_place_refuses_the_file(name):
    with refused(InputError, "pain001.payment_out_of_place"):
        read(OUT_OF_PLACE[name])


def test_the_payment_outside_every_batch_refuses_its_file():
    with refused(InputError, "pain001.payment_out_of_place", element="CdtTrfTxInf", line=8):
        of_case("hidden.xml")


@pytest.mark.parametrize("before", [b"</CdtTrfTxInf>", b"</PmtInf>", b"</CstmrCdtTrfInitn>", b"</Document>"])
@pytest.mark.parametrize("inside", [PAYMENT * 2, BATCH, b"<PmtInf/><PmtInf></PmtInf>"])
def test_what_looks_like_a_payment_or_a_batch_in_supplementary_data_is_data_and_counted(before, inside):
    message = read(around(supplement(inside), before))
    assert message.payments.height == 2
    assert message.notes == (Sentence("pain001.payments_in_supplementary_data", count=2),)
    assert "sealed" not in message.facts
    assert message.difference is None


@pytest.mark.parametrize("before", [b"<CdtTrfTxInf>", b"</PmtInf>"])
def test_supplementary_data_of_a_batch_stay_when_a_payment_goes(before):
    data = around(supplement(PAYMENT), before)
    message = read(data)
    edits = pain001.kept(data, message, pl.Series([False, True]), "release")
    assert not any(b"Envlp" in data[edit.start : edit.end] for edit in edits)


def test_what_is_deep_in_supplementary_data_is_refused_as_it_is_elsewhere():
    deep = b"<CdtTrfTxInf>" * 40 + b"</CdtTrfTxInf>" * 40
    with refused(InputError, "pain001.nested_too_deep", depth=32):
        read(around(supplement(deep), b"</CdtTrfTxInf>"))


@pytest.mark.parametrize(
    ("written", "currency", "money"),
    [
        ("1.250", "BHD", "1.250"),
        ("1.234", "BHD", "1.234"),
        ("250.500", "TND", "250.5"),
        ("100.000", "EUR", "100"),
        ("2500.00000", "EUR", "2500"),
        ("3200.", "EUR", "3200"),
        (".50", "EUR", "0.5"),
        ("+100.00", "EUR", "100"),
        ("+.250", "KWD", "0.25"),
        ("007.50", "EUR", "7.5"),
        (" 1.250\n", "BHD", "1.25"),
    ],
)
def test_an_amount_is_a_decimal_of_xml_schema(written, currency, money):
    message = read(
        document((Batch((Payment(iban=ADA.iban, amount=written, currency=currency),), sum=None),), sum=None)
    )
    assert message.defects.to_list() == [None]
    assert money_of(message.payments)[0].to_list() == [Decimal(money)]


@pytest.mark.parametrize(
    "written", ["100,50", "1.000,00", "1 000.00", "1,000.00", "1e3", "EUR 5", "1.2.3", "+", "."]
)
def test_what_is_no_decimal_of_xml_schema_is_no_amount(written):
    message = read(document((Batch((Payment(iban=ADA.iban, amount=written),), sum=None),), sum=None))
    assert message.defects.to_list() == ["AMOUNT_MALFORMED"]


def test_amounts_of_a_file_of_many_currencies():
    source = read_stage(CASES / "p01_three_decimals.xml", mapping={})
    validated = validate(source.payments, Routes([ApiName.VOP_GATEWAY]))
    codes = validated.rejects.unique("row", keep="first", maintain_order=True).select("row", "code")
    assert codes.rows() == [
        (6, "AMOUNT_DECIMALS"),
        (8, "AMOUNT_MALFORMED"),
        (9, "AMOUNT_MALFORMED"),
        (11, "AMOUNT_MALFORMED"),
    ]


@pytest.mark.parametrize(
    ("said", "is_number"), [("300,50", False), ("2 .00", False), ("+2.00", True), ("2.", True)]
)
def test_a_sum_is_a_decimal_of_xml_schema(said, is_number):
    message = read(document((Batch((ADA, ADA)),), sum=said))
    if is_number:
        assert message.difference is None
    else:
        says(message.difference, "formats.control_not_a_number", stated=said, where="GrpHdr/CtrlSum")


def test_a_sum_with_a_comma_is_none():
    difference = of_case("p14_ctrlcomma.xml").difference
    says(difference, "formats.control_not_a_number", stated="300,50", where="GrpHdr/CtrlSum")


CHEQUE = b"<ChqInstr><Sgntr>A. Quillon</Sgntr><Hash>1</Hash></ChqInstr>"
MANDATE = b"<MndtRltdInf><DtOfSgntr>2026-01-15</DtOfSgntr><ElctrncSgntr>x</ElctrncSgntr></MndtRltdInf>"


@pytest.mark.parametrize(
    ("inside", "before", "is_sealed"),
    [
        (SEAL, b"</Document>", True),
        (SEAL, b"</CstmrCdtTrfInitn>", True),
        (SEAL, b"</GrpHdr>", True),
        (supplement(SEAL), b"</CdtTrfTxInf>", True),
        (supplement(SEAL), b"</CstmrCdtTrfInitn>", True),
        (b'<Signature xmlns="urn:x">x</Signature>', b"</CdtTrfTxInf>", True),
        (b"<x:SignatureValue>x</x:SignatureValue>", b"</CdtTrfTxInf>", True),
        (supplement(b"<SgntrSt><Sgntr>MIIC</Sgntr></SgntrSt>"), b"</CstmrCdtTrfInitn>", True),
        (supplement(b"<FileHash>00</FileHash>"), b"</PmtInf>", True),
        (b"<MsgDigest>00</MsgDigest>", b"</GrpHdr>", True),
        (b"<AppHdr><Sgntr>x</Sgntr></AppHdr>", b"</Document>", True),
        (CHEQUE, b"</CdtTrfTxInf>", False),
        (MANDATE, b"</CdtTrfTxInf>", False),
        (b"<Signature>J. Olm</Signature>", b"</CdtTrfTxInf>", False),
        (supplement(b"<DocumentHash>00</DocumentHash>"), b"</CdtTrfTxInf>", False),
    ],
)
def test_signed_is_only_what_is_sealed(inside, before, is_sealed):
    message = read(around(inside, before))
    assert ("sealed" in message.facts) is is_sealed
    assert (pain001.obstacle(message) is not None) is is_sealed


def test_the_date_of_signature_of_a_mandate_is_data():
    message = of_case("mandate.xml")
    assert "sealed" not in message.facts
    assert pain001.obstacle(message) is None


@pytest.mark.parametrize(
    ("payment", "defect"),
    [
        (Payment(iban="GB33BUKB20201555555555", sort_code="400002", currency="GBP"), "SORT_CODES_DIFFER"),
        (Payment(iban="gb33 bukb 2020 1555 5555 55", sort_code="40-00-02"), "SORT_CODES_DIFFER"),
        (Payment(account="GB33BUKB20201555555555", sort_code="400002"), "SORT_CODES_DIFFER"),
        (Payment(account="gb33bukb20201555555555", sort_code="202015"), None),
        (Payment(iban="GB33BUKB20201555555555", sort_code="20-20-15"), None),
        (Payment(iban="GB33BUKB20201555555555", sort_code="GBDSC202015"), None),
        (Payment(iban="DE89370400440532013000", sort_code="400002"), None),
        (Payment(iban="GB33BUKB20201555555555", sort_code="40000", clearing_system="CHBCC"), None),
    ],
)
def test_the_sort_code_of_a_gb_iban_is_compared_with_that_of_the_bank(payment, defect):
    assert read(document((Batch((payment,)),))).defects.to_list() == [defect]


@pytest.mark.parametrize("number", ["400002", "40-00-02", "GBDSC400002"])
def test_a_clearing_number_may_begin_with_its_system(number):
    payment = Payment(account="12345678", sort_code=number, currency="GBP")
    message = read(document((Batch((payment,)),)))
    assert message.payments.select("sort_code", "account_number").row(0) == ("400002", "12345678")


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("mark", ["\ufeff", ""])
@pytest.mark.parametrize("declared", ["UTF-16", "utf-16le", None])
def test_utf_16_is_read_in_both_orders(codec, mark, declared):
    text = document(
        (Batch((Payment(iban=ADA.iban, name="Zoë Łuk 李"),)),), Dialect(declaration=declared is not None)
    ).decode()
    data = (mark + text.replace("UTF-8", declared or "")).encode(codec)
    assert pain001.sniff(data[:200])
    message = read(data)
    assert message.payments["name"].to_list() == ["Zoë Łuk 李"]
    assert message.identity.byte_count == len(data)
    assert "UTF-16" in str(pain001.obstacle(message))


def test_utf_16_with_its_big_end_first():
    message = of_case("utf16be.xml")
    assert message.payments["name"].to_list() == ["Ada Quillon", "Bo Saver"]
    assert message.controls["agrees"].all()


@pytest.mark.parametrize("declared", ["ISO-8859-1", "windows-1252", "iso-8859-15", "US-ASCII"])
def test_utf_8_that_is_declared_as_something_else_is_refused(declared):
    data = document((Batch((Payment(iban=ADA.iban, name="Zoë Größe"),)),)).replace(
        b"UTF-8", declared.encode()
    )
    with refused(InputError, "pain001.is_utf_8_despite_declaration"):
        read(data)


def test_latin_1_that_is_utf_8():
    with refused(InputError, "pain001.is_utf_8_despite_declaration", declared="iso-8859-1"):
        of_case("p09_says_latin1_is_utf8.xml")


DECLARED = [
    ("windows-1250", "cp1250", "Żaneta Łęcka"),
    ("ISO-8859-2", "iso-8859-2", "Jiří Němeček"),
    ("windows-1253", "cp1253", "Γιώργος Παπάς"),
    ("KOI8-R", "koi8-r", "Иван Петров"),
    ("windows-1254", "cp1254", "Şükrü İğne"),
    ("windows-1255", "cp1255", "דנה לוי"),
    ("windows-1257", "cp1257", "Jānis Bērziņš"),
    ("IBM852", "cp852", "Győző Szűcs"),
    ("UTF-32", "utf-32", "Zoë Łuk 李"),
    ("UTF-32", "utf-32-be", "Zoë Łuk 李"),
]


@pytest.mark.parametrize(("declared", "codec", "name"), DECLARED)
def test_an_encoding_that_is_declared_is_read(declared, codec, name):
    text = document((Batch((Payment(iban=ADA.iban, name=name),)),)).decode()
    data = text.replace("UTF-8", declared).encode(codec)
    assert pain001.sniff(data[:400])
    message = read(data)
    assert message.payments["name"].to_list() == [name]
    obstacle = pain001.obstacle(message)
    assert ("UTF-32" in str(obstacle)) if declared == "UTF-32" else (obstacle is None)


def test_a_declaration_that_misspells_most_names_is_refused_and_one_odd_name_is_not():
    names = ["Łukasz Żółw", "Święta Ćma", "Małgorzata"]
    for count, data in ((count, _of(names[:count])) for count in (1, 3)):
        wrong = data.replace("UTF-8", "ISO-8859-1").encode("cp1250")
        if count == 1:
            assert read(wrong).payments.height == 1
        else:
            with refused(InputError, "pain001.encoding_misdeclared", declared="iso-8859-1", other="cp1250"):
                read(wrong)


@pytest.mark.parametrize(
    ("names", "codec"),
    [
        (["Jiří Dvořák", "Ondřej Kříž", "Růžena Němcová", "Petra Bílá"], "iso-8859-2"),
        (["Ştefan Ionaşcu", "Brânduşa Ţîrlea"], "cp1250"),
        (["Jūratė Žukauskienė", "Šarūnas Čepas"], "cp1257"),
    ],
)
def test_a_declaration_that_mixes_letters_of_languages_in_most_words_is_refused(names, codec):
    wrong = _of(names).replace("UTF-8", "windows-1252").encode(codec)
    with refused(InputError, "pain001.encoding_misdeclared", declared="windows-1252", other=codec):
        read(wrong)


def test_names_of_several_countries_do_not_make_a_declaration_false():
    names = ["João Gonçalves", "Søren Ølgård", "Benoît Dûpré", "Mª José Núñez", "Jürgen Weiß", "Þór Æsir"]
    declared = _of(names).replace("UTF-8", "ISO-8859-1").encode("latin-1")
    assert read(declared).payments["name"].to_list() == names


def _of(names):
    return document((Batch(tuple(Payment(iban=ADA.iban, name=name) for name in names)),)).decode()
