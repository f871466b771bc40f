"""Files that cannot be used, as strangers make them, for the command and for the desk."""

import gzip
import io
import random
import re
import struct
import zipfile
import zlib

import polars as pl
import pyarrow as pa
import pyarrow.parquet
import xlsxwriter
from paymentfiles.pain001 import DIALECTS, Batch, Payment, document

MIB = 1024**2
CANARY = "Canary Featherstonehaugh"
"""A name that no message may repeat."""
IBANS = ("DE89370400440532013000", "FR1420041010050500013M02606", "NL91ABNA0417164300")
HEADER_LINE = b"name,sort_code,account_number,note\n"
ROW = f"{CANARY},010203,87654321,note\n".encode()
ZOE = "name,sort_code,account_number\nZoë Grünwald Søn,010203,10000001\n"


def unreadable_texts():
    """Name, bytes, and what the command is told of their encoding."""
    utf_8, windows, utf_16 = ZOE.encode(), ZOE.encode("cp1252"), ZOE.encode("utf-16-le")
    return [
        ("windows-unsaid", windows, ()),
        ("utf16-unmarked", utf_16, ()),
        ("cut", utf_8[:33] + utf_8[34:], ()),
        ("wrongly-said", utf_8 + b"\xc3\x28\n", ("--encoding", "utf-8")),
    ]


def ambiguous_headers():
    """Name -> a file whose headers could mean two things."""
    headers = [
        "name,name,sort_code,account_number",
        "name,Name ,sort_code,account_number",
        "Payee Name,Beneficiary Name,sort_code,account_number",
        "name,sort_code,Sort Code,account_number",
        "name,sort_code,SORT-CODE,account_number",
        "name,sort_code,account_number,ACCOUNT NUMBER",
        "name,sort_code,account_number,\uff21ccount\u00a0Number",  # full-width A
        "name,iban,IBAN,x",
        '"name","name_duplicated_0","name","iban"',
    ]
    row = "\nAda Quillon,010203,040506,10000001\n"
    return {f"header-{n}.csv": (header + row).encode() for n, header in enumerate(headers)}


def table(row_count):
    numbers = range(row_count)
    return pl.DataFrame(
        {
            "payment_id": [f"PAY-{n:05d}" for n in numbers],
            "name": [f"Invented Payee {n * 7919 % 1000}" for n in numbers],
            "sort_code": ["010203"] * row_count,
            "account_number": [f"{n * 104729 % 10**8:08d}" for n in numbers],
            "amount": pl.Series([f"{n}.50" for n in numbers]).cast(pl.Decimal(12, 2)),
        }
    )


def by_polars(frame):
    file = io.BytesIO()
    frame.write_parquet(file)
    return file.getvalue()


def bomb(frame_rows):
    """A small file of many rows: a column of one value takes no room."""
    file = io.BytesIO()
    pl.select(pl.lit("x" * 200).repeat_by(frame_rows).explode().alias("name")).with_columns(
        **{f"c{n}": "name" for n in range(40)}
    ).write_parquet(file)
    return file.getvalue()


def hostile_parquet():
    """Name -> what is not the Parquet file that it says it is."""
    data = by_polars(table(10))
    numbers = table(10).with_columns(sort_code=pl.lit(10203))
    floats = table(10).with_columns(amount=pl.lit(1.5))
    end = len(data) - 8
    return {
        "cut.parquet": data[: len(data) // 2],
        "magic.parquet": b"XXXX" + data[4:],
        "encrypted.parquet": data[:-4] + b"PARE",
        "no-footer.parquet": data[:end] + b"\xff\xff\xff\x7f" + data[-4:],
        "long-footer.parquet": data[:end] + (end + 100).to_bytes(4, "little") + data[-4:],
        "zeroed.parquet": data[:4] + bytes(len(data) - 12) + data[-8:],
        "numbers.parquet": by_polars(numbers),
        "floats.parquet": by_polars(floats),
        "csv.parquet": HEADER_LINE + ROW,
        "empty.parquet": b"",
        "bomb.parquet": bomb(2_000_000),
    }


def unfolding(value, row_count):
    """A Parquet file of a few KB, whose rows share a value."""
    number = pl.zeros(row_count, dtype=pl.Int32, eager=True).to_arrow()
    cells = {"name": CANARY, "sort_code": "010203", "account_number": "87654321", "note": value}
    shared = {
        header: pa.DictionaryArray.from_arrays(number, pa.array([cell])) for header, cell in cells.items()
    }
    file = io.BytesIO()
    pyarrow.parquet.write_table(
        pa.table(shared).replace_schema_metadata(None), file, compression="zstd", store_schema=False
    )
    return file.getvalue()


SHEET = "xl/worksheets/sheet1.xml"


def workbook(cells, declaration="", **parts):
    """A workbook of one sheet, with these cells in it and parts beside it."""
    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    sheet = f"{declaration}<worksheet {main}><sheetData>{cells}</sheetData></worksheet>"
    usual, packed = io.BytesIO(), io.BytesIO()
    with xlsxwriter.Workbook(usual, {"in_memory": True}) as book:
        book.add_worksheet("Pay")
    with (
        zipfile.ZipFile(usual) as old,
        zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new,
    ):
        for name, content in (
            {name: old.read(name) for name in old.namelist()} | {SHEET: sheet} | parts
        ).items():
            new.writestr(name, content)
    return packed.getvalue()


def text_row(number, *cells):
    return (
        f'<row r="{number}">'
        + "".join(
            f'<c r="{chr(65 + at)}{number}" t="inlineStr"><is><t>{cell}</t></is></c>'
            for at, cell in enumerate(cells)
        )
        + "</row>"
    )


def understated(data, *, forge_checksum):
    """The same archive, whose directory says that its sheet is a hundred bytes long."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        part = archive.getinfo(SHEET)
        start = zlib.crc32(archive.read(SHEET)[:100])
    said = struct.pack("<LLL", part.CRC, part.compress_size, part.file_size)
    assert data.count(said) == 2  # in front of the part, and in the directory at the end
    return data.replace(
        said, struct.pack("<LLL", start if forge_checksum else part.CRC, part.compress_size, 100)
    )


USUAL_ROWS = text_row(1, "name", "sort_code", "account_number") + text_row(2, CANARY, "010203", "87654321")


def usual_workbook():
    """The same as those below, and nothing wrong with it."""
    return workbook(USUAL_ROWS)


def hostile_workbooks():
    """Name -> a workbook that is small and would be large, or that is not what it says."""
    padding = " " * 400 * 1024**2
    entities = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
    return {
        "ratio.xlsx": workbook(USUAL_ROWS + padding),
        "size.xlsx": workbook(
            USUAL_ROWS + " " * 530 * 1024**2, **{"xl/x.xml": random.Random(1).randbytes(4_000_000)}
        ),
        "parts.xlsx": workbook(USUAL_ROWS, **{f"xl/{number}.xml": "" for number in range(2_001)}),
        "understated.xlsx": understated(workbook(USUAL_ROWS + padding), forge_checksum=False),
        "forged.xlsx": understated(workbook(USUAL_ROWS + padding), forge_checksum=True),
        "corners.xlsx": workbook(USUAL_ROWS + '<row r="1048576"><c r="ALL1048576"><v>1</v></c></row>'),
        "entities.xlsx": workbook(
            USUAL_ROWS + "<c>&a9;</c>", declaration=f'<!DOCTYPE w [<!ENTITY a0 "aaaaaaaaaa">{entities}]>'
        ),
    }


def pain_001(dialect="ISO .09"):
    payments = tuple(
        Payment(end_to_end_id=f"E{n}", name=f"{CANARY} {n}", iban=iban, amount=f"{n}.25")
        for n, iban in enumerate(IBANS, start=1)
    )
    return document((Batch(payments[:2]), Batch(payments[2:], id="BATCH-2")), DIALECTS[dialect])


def with_doctype(declared, text=b"&x;"):
    data = pain_001().replace(CANARY.encode(), text)
    return re.sub(rb"(<\?xml.*?\?>)", rb"\1<!DOCTYPE Document " + declared + b">", data, count=1)


def bomb_of_entities():
    entities = b"".join(b'<!ENTITY a%d "%s">' % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 12))
    return with_doctype(b'[<!ENTITY a0 "lol">' + entities + b"]", b"&a11;")


def hostile_documents(target):
    """What is wrong -> a pain.001; `target` is a file that an entity would fetch."""
    whole = pain_001()
    middle = whole.index(b"<PmtInf>")
    return {
        "entities": bomb_of_entities(),
        "a file": with_doctype(f'[<!ENTITY x SYSTEM "file://{target}">]'.encode()),
        "external DTD": with_doctype(b'SYSTEM "http://127.0.0.1:9/d.dtd"', b"x"),
        "parameter entity": with_doctype(b'[<!ENTITY % p SYSTEM "http://127.0.0.1:9/p"> %p;]', b"x"),
        "depth": whole[:middle] + b"<a>" * 100_000,
        "a huge attribute": whole[:middle] + b'<a b="' + b"x" * 30 * MIB + b'"/>' + whole[middle:],
        "a huge name": whole[:middle] + b"<" + b"a" * 30 * MIB + b"/>" + whole[middle:],
        "an endless comment": whole[:middle] + b"<!--" + b"x" * 30 * MIB,
        "an unknown encoding": whole.replace(b"UTF-8", b"EBCDIC-9"),
        "another encoding": whole.replace(CANARY.encode(), "Zoë".encode("latin-1")),
        "UTF-16 that is none": whole.replace(b"UTF-8", b"UTF-16"),
        "XML 1.1": whole.replace(b'version="1.0"', b'version="1.1"'),
        "cut": whole[: len(whole) * 2 // 3],
    }


def zipped(*members, password=False):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    data = file.getvalue()
    # The flag of a password, in front of the file and in the directory.
    flagged = data.replace(b"PK\x03\x04\x14\0\0\0", b"PK\x03\x04\x14\0\x01\0")
    listed = re.sub(rb"(?<=PK\x01\x02..\x14\0)\0", lambda _: b"\x01", flagged, flags=re.DOTALL)
    return listed if password else data


def hostile_archives():
    """Name -> a payment file in gzip or ZIP that is not unpacked."""
    plain = f"name,iban\n{CANARY},{IBANS[0]}\n".encode()
    zeros, lines = b"\0" * 300 * MIB, plain * 200_000
    small, packed = zipped(("pay.csv", plain)), gzip.compress(plain)
    return {
        "zeros.csv.gz": gzip.compress(zeros),
        "zeros.zip": zipped(("pay.csv", zeros)),
        "rows.csv.gz": gzip.compress(plain + f"{CANARY},{IBANS[0]}\n".encode() * 3_000_000),
        "parts.csv.gz": gzip.compress(zeros[:MIB]) * 200,
        "twice.csv.gz": gzip.compress(gzip.compress(lines)),
        "within.zip": zipped(("pay.zip", small)),
        "several.zip": zipped(("a.csv", plain), ("b.csv", plain)),
        "many.zip": zipped(*((f"{n}.csv", b"") for n in range(5_000))),
        "password.zip": zipped(("pay.csv", plain), password=True),
        "cut.csv.gz": packed[:-9],
        "cut.zip": small[:-30],
        "sum.csv.gz": packed[:-8] + bytes([packed[-8] ^ 1]) + packed[-7:],
        "more.csv.gz": packed + b"and more",
    }


LAUGHS = b"".join(b'<!ENTITY a%d "%s">' % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 9))


def zip_of(**parts):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return packed.getvalue()


UNUSABLE = {
    "headers_only.csv": HEADER_LINE,
    "blank.csv": b"\n\n\n",
    "no_payee.csv": HEADER_LINE.replace(b"name", b"colour") + ROW,
    "wrong_encoding.csv": HEADER_LINE + ROW.replace(b"Canary", b"Can\xe4ry"),
    "nulls.csv": b"\x00" * 4096,
    "picture.csv": b"\x89PNG\r\n\x1a\n" + b"\x00" * 64,
    "letter.pdf": b"%PDF-1.7\n",
    "page.csv": b"<!doctype html><html><body>Sign in</body></html>",
    "old.xls": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\x00" * 512,
    "damaged.xlsx": b"PK\x03\x04" + b"\x00" * 100,
    "encrypted.xlsx": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
    + bytes(504)
    + "EncryptedPackage".encode("utf-16-le")
    + bytes(992),
    "empty.xlsx": zip_of(nothing="x"),
    "damaged.parquet": b"PAR1" + b"\x00" * 64 + b"PAR1",
    "damaged.csv.gz": gzip.compress(HEADER_LINE + ROW)[:-9],
    "laughs.xml": b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a0 "ha">' + LAUGHS + b"]><x>&a8;</x>",
    "other.xml": b"<?xml version='1.0'?><Invoice/>",
    "noname": b"hello",
}
"""Name -> small files with one thing wrong."""
