"""Compressed payment files: read under limits, refused where they are bombs, written the same each time."""

import functools
import gzip
import io
import tracemalloc
import zipfile
import zlib

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from pipeline.errors import InputError
from pipeline.files.compressed import (
    Compression,
    pack,
    sniff,
    unpacked,
)

TEXT = b"name,sort_code,account_number\nAda Quillon,112233,12345678\n"
MIB = 1024**2
gzipped = functools.partial(gzip.compress, mtime=0)
"""The same each time, as tests are named by it."""


def unpack(data, **said):
    return unpacked(data, sniff(data), where="pay.csv.gz", **said)


def zipped(*members, method=zipfile.ZIP_DEFLATED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return file.getvalue()


def packed(data, compression):
    file = io.BytesIO()
    pack(data, compression, file, member="pay.csv")
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "compression", "member"),
    [
        (gzipped(TEXT), Compression.GZIP, None),
        (zipped(("pay.csv", TEXT)), Compression.ZIP, "pay.csv"),
        (zipped(("pay.csv", TEXT), method=zipfile.ZIP_STORED), Compression.ZIP, "pay.csv"),
        (zipped(("in/", b""), ("in/pay.csv", TEXT)), Compression.ZIP, "in/pay.csv"),
        (zipped(("pay.csv", TEXT), ("__MACOSX/._pay.csv", b"x")), Compression.ZIP, "pay.csv"),
        (gzipped(TEXT[:20]) + gzipped(TEXT[20:]), Compression.GZIP, None),
        (gzipped(TEXT) + b"\0" * 512, Compression.GZIP, None),
    ],
)
def test_what_was_packed_is_read(data, compression, member):
    assert unpack(data) == (TEXT, compression, member)


def test_a_gzip_of_very_many_parts_is_one_file():
    parts = 20_000
    assert unpack(gzipped(b"A") * parts).data == b"A" * parts


def test_an_empty_file_is_read_as_one():
    assert unpack(gzipped(b"")).data == b""


@pytest.mark.parametrize(
    "data",
    [
        TEXT,
        b"",
        zipped(("[Content_Types].xml", b"<Types/>"), ("xl/workbook.xml", b"")),
        zipped(("mimetype", b"application/vnd.oasis.opendocument.spreadsheet")),
    ],
)
def test_what_is_not_compressed_and_workbooks_are_left_to_their_formats(data):
    assert sniff(data) is None


@pytest.mark.parametrize("compression", Compression)
def test_a_bomb_is_refused(compression):
    bomb = packed(b"\0" * (8 * MIB), compression)
    with refused(InputError, "files.unpacks_too_large", where="pay.csv.gz"):
        unpack(bomb)


def test_a_bomb_is_refused_before_it_is_unpacked():
    bomb = gzipped(b"\0" * (64 * MIB))
    tracemalloc.start()
    with refused(InputError, "files.unpacks_too_large"):
        unpack(bomb, unpacked_bytes_max=2 * MIB)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 6 * MIB


def test_a_zip_that_lies_about_its_size_is_refused():
    data = zipped(("pay.csv", TEXT * 1000))
    size = len(TEXT * 1000)
    lying = data.replace(size.to_bytes(4, "little"), (10).to_bytes(4, "little"))
    assert lying != data
    with refused(InputError, "files.compressed_file_damaged"):
        unpack(lying)


@pytest.mark.parametrize("compression", Compression)
def test_a_small_file_that_is_all_the_same_is_no_bomb(compression):
    assert len(unpack(packed(b"A" * MIB, compression)).data) == MIB


@pytest.mark.parametrize(
    "data",
    [
        zipped(("a.csv", TEXT), ("b.csv", TEXT)),
        zipped(("a/", b"")),
        zipped(("pay.csv.gz", gzipped(TEXT))),
        gzipped(zipped(("pay.csv", TEXT))),
        zipped(("pay.csv", TEXT), method=zipfile.ZIP_BZIP2),
        gzipped(TEXT) + b"more",
    ],
)
def test_several_files_are_refused(data):
    with refused(InputError, "files.archive_of_several_files", where="pay.csv.gz"):
        unpack(data)


def test_a_zip_with_a_password_is_refused():
    data = bytearray(zipped(("pay.csv", TEXT)))
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    with refused(InputError, "files.protected_by_password"):
        unpack(bytes(data))


@pytest.mark.parametrize("compression", Compression)
def test_a_file_cut_anywhere_is_refused(compression):
    data = packed(TEXT, compression)
    for length in range(5, len(data)):
        with pytest.raises(InputError):
            unpack(data[:length])


@pytest.mark.parametrize("compression", Compression)
@examples(200)
@given(st.data())
def test_a_changed_byte_is_refused_or_changes_nothing_that_is_read(compression, chance):
    data = packed(TEXT, compression)
    at = chance.draw(st.integers(0, len(data) - 1))
    changed = data[:at] + bytes([data[at] ^ chance.draw(st.integers(1, 255))]) + data[at + 1 :]
    if sniff(changed) is None:
        return
    try:
        found = unpack(changed)
    except InputError:
        return
    assert found.data == TEXT


@given(st.binary(max_size=4096), st.sampled_from(Compression))
def test_what_is_packed_is_what_is_unpacked_and_the_same_each_time(data, compression):
    once = packed(data, compression)
    assert once == packed(data, compression)
    if sniff(data) is None:
        assert unpack(once).data == data


def test_others_can_read_what_is_packed():
    assert gzip.decompress(packed(TEXT, Compression.GZIP)) == TEXT
    with zipfile.ZipFile(io.BytesIO(packed(TEXT, Compression.ZIP))) as archive:
        assert archive.testzip() is None
        assert [(each.filename, each.date_time) for each in archive.infolist()] == [
            ("pay.csv", (1980, 1, 1, 0, 0, 0))
        ]


def test_gzip_tells_nothing_of_when_and_where_it_was_packed():
    header = packed(TEXT, Compression.GZIP)[:10]
    assert header[3] == 0  # no name, no comment
    assert header[4:8] == b"\0" * 4
    assert zlib.crc32(TEXT) == int.from_bytes(packed(TEXT, Compression.GZIP)[-8:-4], "little")
