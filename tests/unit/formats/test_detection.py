"""Which format a file is: by what it starts as, whatever its name; else by its suffix; else it is refused."""

import csv
import gzip
import io
import time
import zipfile
from pathlib import PurePath

import polars as pl
import pytest
import standard_18
import xlsxwriter
from bank_files import MAKERS, bank_file
from header_corpus import corpus
from paymentfiles.pain001 import DIALECTS, UTF_16, Batch, Payment, document
from refusals import refused
from tables import for_each

from pipeline.errors import InputError, UsageError
from pipeline.formats.layouts import LAYOUTS, BankLayout
from pipeline.formats.registry import FORMATS, INPUT_NAMES, FormatChoice, entry_of
from pipeline.stages.read import read
from pipeline.wording import Sentence

PAYMENT = Payment(name="Ada Quillon", iban="DE89370400440532013000", amount="1.00")
TABLE = b"name,iban\nAda Quillon,DE89370400440532013000\n"
CPU_MAX_S = 0.005
"""For all formats to know that a table of a thousand rows is none of theirs."""


def pain_001(dialect=DIALECTS["ISO .09"]):
    return document((Batch((PAYMENT,)),), dialect)


def format_of(data, name="pay.csv", **said):
    return entry_of(PurePath(name), lambda: data, **said).format.NAME


def csv_text(each, delimiter):
    text = io.StringIO()
    rows = [*each.get("preamble", []), each["headers"], *each["rows"]]
    csv.writer(text, delimiter=delimiter).writerows(rows)
    return text.getvalue()


@for_each("each", corpus, parts=4)
@for_each("delimiter", [",", ";", "\t", "|"])
def test_no_real_table_with_headers_is_taken_for_a_layout(each, delimiter):
    text = csv_text(each, delimiter)
    for encoding in ("utf-8", "utf-8-sig", "cp1252", "utf-16"):
        assert format_of(text.encode(encoding, errors="replace")) == "csv"


@pytest.mark.parametrize("name", ["pay.csv", "pay.txt", "pay.xml", "pay.bac", "pay.xlsx", "pay"])
def test_a_message_is_known_whatever_its_name(name):
    for layout in MAKERS:
        assert format_of(bank_file(layout), name) == layout
    for seed in range(10):
        assert format_of(standard_18.any_file(seed).data(), name) == "bacs18"
    for dialect in (*DIALECTS.values(), UTF_16):
        assert format_of(pain_001(dialect), name) == "pain001"


def test_a_table_that_has_a_start_is_known_whatever_its_name(tmp_path):
    frame = pl.DataFrame({"name": ["Ada Quillon"], "iban": ["DE89370400440532013000"]})
    frame.write_parquet(tmp_path / "parquet.csv")
    with xlsxwriter.Workbook(tmp_path / "excel.csv") as book:
        book.add_worksheet().write_row(0, 0, frame.columns)
        book.worksheets()[0].write_row(1, 0, frame.row(0))
    for name in ("parquet", "excel"):
        source = read(tmp_path / f"{name}.csv", mapping={})
        assert source.format == name
        assert source.payments["name"].to_list() == ["Ada Quillon"]


def test_it_costs_a_table_next_to_nothing():
    rows = "".join(f"P{n},Ada Quillon,112233,{n:08d},{n}.00,GBP,INVOICE {n}\n" for n in range(1000))
    head = f"payment_id,name,sort_code,account_number,amount,currency,reference\n{rows}".encode()
    format_of(head)
    started = time.process_time()
    for _ in range(5):
        format_of(head)
    assert (time.process_time() - started) / 5 < CPU_MAX_S


def test_many_comments_before_no_document_cost_next_to_nothing():
    started = time.process_time()
    assert format_of(b"<!-- a --> " * 6000 + b"name,iban\n") == "csv"
    assert time.process_time() - started < 1


def test_a_file_that_has_two_layouts_is_refused_with_both_names():
    said = FormatChoice(layouts={"payroll": LAYOUTS["barclays"]})
    names = ["barclays", "payroll"]
    with refused(
        InputError, Sentence("formats.could_be_several", where="pay.csv", names=names),
        Sentence("advice.choose_format", choices=names),
    ):  # fmt: skip
        format_of(bank_file("barclays"), choice=said)
    for name in ("barclays", "payroll"):
        assert format_of(bank_file("barclays"), choice=said._replace(name=name)) == name


def test_the_format_that_is_said_goes_before_all_others():
    assert [format_of(b"", "pay", choice=FormatChoice(name)) for name in INPUT_NAMES] == list(INPUT_NAMES)
    assert len(INPUT_NAMES) == len(FORMATS) == len(set(INPUT_NAMES))


def test_a_format_that_there_is_not_is_refused_with_those_that_there_are():
    own = {"northgate": BankLayout.model_validate(LAYOUTS["cashbacs"].model_dump())}
    with refused(
        UsageError, Sentence("formats.unknown_format", choice="'southgate'"),
        Sentence("advice.choose_format", choices=[*INPUT_NAMES, "northgate"]),
        Sentence("formats.describe_as_layout", choice="southgate"),
    ):  # fmt: skip
        format_of(TABLE, choice=FormatChoice("southgate", own))


def of_kind(kind):
    return lambda layout: Sentence(f"formats.is_{kind}", layout=layout)


is_layout, is_statement, is_direct_debit = map(of_kind, ("layout", "statement", "direct_debit"))
NOT_18 = Sentence("formats.not_what_name_says", title="Bacs Standard 18")
REFUSED = {
    "a PDF named as a table": ("pay.csv", b"%PDF-1.7\n", "formats.is_pdf"),
    "a web page": ("pay.csv", b"\n<!DOCTYPE html><html>", "formats.is_web_page"),
    "JSON": ("pay.csv", b'[{"name": "x"}]', "formats.is_json"),
    "RTF": ("pay.txt", b"{\\rtf1\\ansi", "formats.is_rtf"),
    "a picture": ("pay.csv", b"\x89PNG\r\n\x1a\n", "formats.is_picture"),
    "another archive": ("pay.csv.xz", b"\xfd7zXZ\x00", "formats.is_archive"),
    "encrypted": ("pay.xml.pgp", b"-----BEGIN PGP MESSAGE-----\n", "formats.is_encrypted"),
    "MT101": ("pay.txt", b"{1:F01BANKGB2LAXXX0000000000}", "formats.is_swift"),
    "ABO, whose label is one of Standard 18": (
        "pay.kpc",
        b"UHL1291126MARROW MILLS        0000123456001999000123\r\n1 1501 001000 0100\r\n",
        is_layout("ABO (KPC)"),
    ),
    "Norma 43, which has the digits of Standard 18": (
        "pay.txt",
        b"112100046123456789012611012611292000000000100009783MARROW MILLS".ljust(80) + b"\r\n",
        is_statement("Norma 43"),
    ),
    "Elixir": (
        "pay.csv",
        b'110,20261129,10000,11402004,0,"04109024020000000123456788","MARROW|MILLS","ADA QUILLON|UL. X 1"\n',
        is_layout("Elixir"),
    ),
    "ClieOp03": ("pay.txt", b"0001A291126CLIEOP03MILLS011".ljust(50) + b"\r\n", is_layout("ClieOp03")),
    "EDIFACT": ("pay.edi", b"UNA:+.? '\r\nUNB+UNOA:1+MILLS+BANK+261129:1200+1'", is_layout("EDIFACT")),
    "NACHA": (
        "pay.csv",
        b"101 021000021 1234567892611291200A094101BANK".ljust(94) + b"\n",
        is_layout("NACHA"),
    ),
    "BAI2": ("pay.csv", b"01,121000358,MILLS,261129,1200,1,80,1,2/\n", is_statement("BAI2")),
    "CODA": ("pay.txt", b"0000029112672505        00123456".ljust(128) + b"\n", is_statement("CODA")),
    "Direct Entry": (
        "pay.aba",
        b"0                 01CBA       MILLS".ljust(120),
        is_layout("ABA (Direct Entry)"),
    ),
    "Autogiro": ("pay.txt", b"0120261129AUTOGIRO".ljust(80) + b"\n", is_direct_debit("Autogiro")),
    "Swiss DTA, domestic": (
        "pay.dta",
        b"01000000            000002611299000   MILLS000018270MILLS00000000001".ljust(128) + b"\r\n",
        is_layout("DTA (Switzerland)"),
    ),
    "Swiss DTA, IBAN": (
        "pay.txt",
        b"01261130            00000261129       MILLS000018360MILLS00000000001".ljust(128),
        is_layout("DTA (Switzerland)"),
    ),
    "LSV+": ("pay.lsv", b"8750P2026113009000202611299000 MILLS".ljust(128), is_direct_debit("LSV+")),
    "LUM2": ("pay.txt", b"LUM200000000012345678".ljust(300) + b"\n", is_layout("LUM2")),
    "PS2": ("pay.txt", b"PS21TFI0000000001234".ljust(80) + b"\r\n", is_layout("PS2 (Portugal)")),
    "Zengin": (
        "pay.txt",
        b"12100000012345MILLS".ljust(54) + b"11300001BANK".ljust(66) + b"\r\n",
        is_layout("Zengin"),
    ),
    "CNAB 240": ("pay.rem", b"34100000         212345678000190".ljust(240) + b"\r\n", is_layout("CNAB 240")),
    "ANSI X12": (
        "pay.820",
        b"ISA*00*          *00*          *ZZ*MILLS          *ZZ*BANK           *261129*1200*U*00401*1*0*P*>~",
        is_layout("ANSI X12"),
    ),
    "XML of another kind": ("pay.csv", b"<Payments>\n<Payment/>", "formats.is_other_xml"),
    "CSV named as Standard 18": ("pay.bac", TABLE, NOT_18),
    "CSV named as XML": (
        "pay.xml",
        TABLE,
        Sentence("formats.not_what_name_says", title="formats.title_pain001"),
    ),
    "another suffix": ("pay.dta", TABLE, "formats.not_a_readable_format"),
}


@pytest.mark.parametrize(("name", "data", "said"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_payment_file_is_refused_in_a_sentence(name, data, said, tmp_path):
    (tmp_path / name).write_bytes(data)
    with refused(InputError, said, where=name) as refusal:
        read(tmp_path / name, mapping={})
    assert ";" in str(refusal.value)


def test_columns_of_a_message_are_not_mapped(tmp_path):
    (tmp_path / "pay.xml").write_bytes(pain_001())
    with refused(UsageError, "stages.format_without_columns", "advice.map_nothing", where="pay.xml"):
        read(tmp_path / "pay.xml", mapping={"name": "Payee"})


ROOMS = {"parquet": "formats", "excel": "formats", "pain001": "pain001", "bacs18": "formats"}
"""Whose sentence an empty file gets by its name; CSV has one for all other suffixes."""


@pytest.mark.parametrize(
    ("suffix", "room"),
    {
        suffix: ROOMS.get(each.format.NAME, "csv")
        for each in reversed(FORMATS)
        for suffix in each.format.SUFFIXES
    }.items(),
)
def test_an_empty_file_is_said_to_be_empty(suffix, room, tmp_path):
    (tmp_path / (name := f"pay{suffix}")).write_bytes(b"")
    with refused(InputError, f"{room}.file_empty", where=name):
        read(tmp_path / name, mapping={})


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (bank_file("lloyds"), "layouts.utf_16_not_accepted"),
        (standard_18.any_file(3).data(), "bacs18.utf_16_text"),
    ],
)
def test_utf_16_is_told_by_what_it_holds(data, said, tmp_path):
    (tmp_path / "pay.txt").write_bytes(data.decode().encode("utf-16"))
    with refused(InputError, said, where="pay.txt"):
        read(tmp_path / "pay.txt", mapping={})


def zipped(data, member):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, data)
    return file.getvalue()


def workbook():
    file = io.BytesIO()
    with xlsxwriter.Workbook(file) as book:
        book.add_worksheet().write_row(0, 0, ["name", "iban"])
        book.worksheets()[0].write_row(1, 0, ["Ada Quillon", "DE89370400440532013000"])
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "unpacked_name", "found"),
    [
        ("pay.csv.gz", gzip.compress(TABLE), "pay.csv", "csv"),
        ("pay.csv", gzip.compress(TABLE), "pay.csv", "csv"),
        ("pay.xml.gz", gzip.compress(pain_001()), "pay.xml", "pain001"),
        ("pay.zip", zipped(pain_001(), "out/of/SAP.XML"), "pay.XML", "pain001"),
        ("pay.csv.zip", zipped(TABLE, "pay.csv"), "pay.csv", "csv"),
        ("pay.zip", zipped(bank_file("lloyds"), "x\x1b[2J.\u202ecsv"), "pay", "lloyds"),
        ("pay.zip", zipped(standard_18.any_file(1).data(), "pay"), "pay", "bacs18"),
        ("pay.zip", zipped(workbook(), "pay.xlsx"), "pay.xlsx", "excel"),
        ("pay.xlsx", workbook(), None, "excel"),
    ],
    ids=range(9),
)
def test_what_is_in_a_compressed_file_has_a_format_too(name, data, unpacked_name, found, tmp_path):
    (tmp_path / name).write_bytes(data)
    source = read(tmp_path / name, mapping={})
    assert source.format == found
    assert source.payments.height
    assert source.byte_count == len(data)
    assert (source.packing and source.packing.unpacked_name) == unpacked_name


def test_what_is_wrong_in_a_compressed_file_is_told_by_the_name_of_the_file(tmp_path):
    (tmp_path / "pay.gz").write_bytes(gzip.compress(TABLE))
    with refused(
        InputError, "formats.not_a_readable_format", "formats.give_file_with_suffix", where="pay.gz"
    ):
        read(tmp_path / "pay.gz", mapping={})
    (tmp_path / "pay.zip").write_bytes(zipped(b"%PDF-1.7", "pay.csv"))
    with refused(InputError, "formats.is_something_else", "formats.is_pdf", where="pay.zip"):
        read(tmp_path / "pay.zip", mapping={})
