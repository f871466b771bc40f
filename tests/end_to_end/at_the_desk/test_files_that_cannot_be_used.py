"""Files that cannot be used: the page gives the command's reason, and the desk lives."""

import gzip
import html
import io
import re
import zipfile

import pytest

ROW = b"Ada Quillon,001122,00012345,10.00,GBP\n"
HEADER = b"name,sort_code,account_number,amount,currency\n"
LAUGHS = b"".join(b'<!ENTITY a%d "%s">' % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 9))


def workbook(**parts):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return packed.getvalue()


FILES = {
    "headers_only.csv": HEADER,
    "blank.csv": b"\n\n\n",
    "no_payee.csv": HEADER.replace(b"name", b"colour") + ROW,
    "wrong_encoding.csv": HEADER + ROW.replace(b"Ada", b"Ad\xe4"),
    "nulls.csv": b"\x00" * 4096,
    "picture.csv": b"\x89PNG\r\n\x1a\n" + b"\x00" * 64,
    "letter.pdf": b"%PDF-1.7\n",
    "page.csv": b"<!doctype html><html><body>Sign in</body></html>",
    "old.xls": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\x00" * 512,
    "damaged.xlsx": b"PK\x03\x04" + b"\x00" * 100,
    "empty.xlsx": workbook(nothing="x"),
    "damaged.parquet": b"PAR1" + b"\x00" * 64 + b"PAR1",
    "damaged.csv.gz": gzip.compress(HEADER + ROW)[:-9],
    "laughs.xml": b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a0 "ha">' + LAUGHS + b"]><x>&a8;</x>",
    "other.xml": b"<?xml version='1.0'?><Invoice/>",
    "noname": b"hello",
}


@pytest.mark.parametrize("name", FILES)
def test_the_page_gives_the_reason_that_the_command_gives(own_desk, mara, name):
    data = FILES[name]
    refused = own_desk.desk("columns", own_desk.desk.file(name, data))
    assert refused.status in (2, 65), refused
    [sentence] = refused.sentences
    reason = sentence.removeprefix("precheck: ").split(";")[0].split(" --")[0]
    at = mara.file(data, name)
    answer = mara.get(f"/files/{at}/columns")
    assert answer.status == 200
    page = html.unescape(re.sub(r"<[^>]*>", "", answer.text))
    told = reason.removeprefix(str(own_desk.desk.folder / name)).removeprefix(name)
    assert told.strip(": ") in page
    assert "--" not in page
    assert "precheck columns" not in page
    assert mara.post(f"/files/{at}/columns", {"then": "plan"}).to.endswith("/columns")
    assert mara.post(f"/files/{at}/start").status == 409
    assert own_desk.process.poll() is None
