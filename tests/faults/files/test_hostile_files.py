"""Fault table D: whatever the file is, nothing is guessed, nothing is lost, and the command survives."""

import codecs
import io
import json
import random
import re
import shutil
import subprocess
import sys
import time
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import polars as pl
import pyarrow.parquet
import pytest
from hostile_files import (
    CANARY,
    HEADER_LINE,
    ROW,
    ZOE,
    ambiguous_headers,
    by_polars,
    hostile_parquet,
    hostile_workbooks,
    table,
    unfolding,
    unreadable_texts,
    usual_workbook,
)

from pipeline.errors import InputError
from pipeline.stages.read import read

GIB = 1024**3
PEAK_MAX_BYTES = 512 * 1024**2
UK = {"name": "Ada Quillon", "sort_code": "010203", "account_number": "10000001", "amount": "1.00"}


def mib(byte_count):
    return f"{byte_count / 1024**2:,.0f} MiB"


def test_d1_what_a_spreadsheet_did_to_an_account_is_never_repaired(desk, bank, words, tell):
    harmless = [("01-02-03", "10000001"), ("01 02 03", "1000 0002"), ('="010203"', "'10000003")]
    damaged = [
        *(("10203", "10000004"), ("0102", "10000005"), ("1.0203E+04", "10000006"), ("010203.0", "10000007")),
        *(("010203", "123456"), ("010203", "1.23E+05"), ("010203", "1234567"), ("010203", "12345678.0")),
        *(("01/02/03", "10000008"), ("O10203", "10000009"), ("010203", "1O000001"), ("010203", "-1234567")),
    ]
    rows = [{**UK, "sort_code": code, "account_number": account} for code, account in harmless + damaged]
    file = desk.payments(rows)
    numbers = pl.DataFrame({**UK, "sort_code": 10203})
    numbers.write_parquet(desk.folder / "numbers.parquet")

    with bank() as running:
        finished = desk("run", file, *words(running), "--quiet")
        as_numbers = desk("run", desk.folder / "numbers.parquet", *words(running), "--quiet")

    right = {"01020310000001", "01020310000002", "01020310000003"}
    wrong = [account for account in running.accounts if account not in right]
    outcomes = [row["check_outcome"] for row in desk.outcomes("payments.precheck")]
    refused_count = outcomes[len(harmless) :].count("rejected") + (as_numbers.status == 65)
    assert finished.status == 0
    assert set(running.accounts) == right
    tell(
        "D1",
        "accounts damaged by a spreadsheet",
        tried=len(damaged) + 1,
        survived=refused_count - len(wrong),
        figure=f"{len(wrong)} wrong accounts asked",
        goal="0",
    )


LINES = ["name,sort_code,account_number,note", *(f"Payee {n},010203,1000000{n},n{n}" for n in range(1, 7))]
LINE_ENDS = {
    "lf": ("\n".join(LINES) + "\n", 6),
    "crlf": ("\r\n".join(LINES) + "\r\n", 6),
    "cr": ("\r".join(LINES) + "\r", 6),
    "no-last": ("\n".join(LINES), 6),
    "mixed": ("\n".join(LINES[:3]) + "\r\n" + "\r".join(LINES[3:5]) + "\n" + "\r\n".join(LINES[5:]), 6),
    "blank-before": ("\n\n" + "\n".join(LINES), 6),
    "blank-after": ("\n".join(LINES) + "\n\n\n", 6),
    "blank-between": ("\n\n".join(LINES), 12),  # six blank lines, which come back as rows
    "quoted": ("\n".join(line.replace(",n", ',"n\r\n\rm') + '"' for line in LINES[1:]), 6),
    "empty-cells-between": ("\n".join([LINES[0], ",,,", *LINES[1:]]), 7),
    "empty-cells-after": (
        "\n".join([*LINES, ",,,", ",,,"]),
        6,
    ),  # what a spreadsheet leaves below the payments
}
LINE_ENDS["quoted"] = (f"{LINES[0]}\n{LINE_ENDS['quoted'][0]}", 6)


def test_d2_rows_in_are_rows_out_however_lines_end(desk, bank, words, tell):
    files = [desk.file(f"{name}.csv", text.encode()) for name, (text, _) in LINE_ENDS.items()]

    with bank() as running:
        finished = desk("run", *files, *words(running), "--json", "--quiet")

    read = [json.loads(line)["input"] for line in finished.out.splitlines()]
    left_out = [note["sentence"] for note in read[list(LINE_ENDS).index("empty-cells-after")]["notes"]]
    assert ["stages.rows_blank", {"count": 2}] in left_out
    counts = [one["row_count"] for one in read]
    expected = [count for _, count in LINE_ENDS.values()]
    written = [len(desk.outcomes(f"{name}.precheck")) for name in LINE_ENDS]
    kept = sum(
        counted == wanted == out for counted, wanted, out in zip(counts, expected, written, strict=True)
    )
    tell(
        "D2",
        "line ends, blank lines",
        tried=len(files),
        survived=kept,
        figure=f"{sum(written)} of {sum(expected)} rows out",
        goal="rows in = rows out",
    )


def test_d3_text_is_read_in_its_encoding_or_not_at_all(desk, bank, words, tell):
    text = ZOE
    utf_8, windows, utf_16 = text.encode(), text.encode("cp1252"), text.encode("utf-16-le")
    bom_16 = codecs.BOM_UTF16_LE + utf_16
    readable = [
        ("plain", utf_8, ()),
        ("marked", codecs.BOM_UTF8 + utf_8, ()),
        ("windows", windows, ("--encoding", "cp1252")),
        ("utf16", bom_16, ("--encoding", "utf-16")),
        ("utf16-unsaid", bom_16, ()),
        ("utf16be", codecs.BOM_UTF16_BE + text.encode("utf-16-be"), ("--encoding", "utf-16")),
    ]
    unreadable = unreadable_texts()
    asked = []
    survived = 0
    with bank() as running:
        for name, data, said in readable:
            done = desk("run", desk.file(f"{name}.csv", data), *said, *words(running), "--quiet")
            survived += done.status == 0 and running.names[-1] == "Zoë Grünwald Søn"
        lost = desk.file("lost.csv", text.replace("ë", "\ufffd"))
        rejected = desk("run", lost, *words(running), "--quiet")
        survived += rejected.status == 0 and desk.outcomes("lost.precheck")[0]["check_code"] == "DAMAGED_TEXT"
        asked = running.names
    for name, data, said in unreadable:
        survived += desk("columns", desk.file(f"{name}.csv", data), *said).is_one_sentence_about_the_file
    sent = sum("\ufffd" in name for name in asked)
    tell(
        "D3",
        "UTF-16, BOM, cp1252",
        tried=len(readable) + len(unreadable) + 1,
        survived=survived - sent,
        figure=f"{sent} U+FFFD sent to the API",
        goal="0",
    )


def sparse(path, byte_count):
    with path.open("wb") as file:
        file.write(HEADER_LINE + ROW)
        file.truncate(byte_count)
    return path


def large_files(folder):
    """Each name with a file that is too much in one way."""
    megabyte = b"x" * 1024**2
    with (folder / "field.csv").open("wb") as file:
        file.write(HEADER_LINE + ROW + CANARY.encode() + b",010203,87654321,")
        file.writelines(megabyte for _ in range(200))
        file.write(b"\n" + ROW)
    with (folder / "quoted-field.csv").open("wb") as file:
        file.write(HEADER_LINE + ROW + CANARY.encode() + b',010203,87654321,"')
        file.writelines((megabyte[:1000] + b"\n") * 1000 for _ in range(40))
        file.write(b'"\n' + ROW)
    with (folder / "unclosed.csv").open("wb") as file:
        file.write(HEADER_LINE + ROW * 1000 + b'"' + ROW + ROW * 1_000_000)
    with (folder / "columns.csv").open("wb") as file:
        file.write(b",".join(b"c%d" % number for number in range(1_000_000)) + b"\n" + ROW)
    with (folder / "cells.csv").open("wb") as file:
        file.write(HEADER_LINE + ROW + b"," * 60_000 + b"\n" + ROW)
    return [
        sparse(folder / "sparse-10.csv", 10 * GIB),
        sparse(folder / "sparse-7.csv", 7 * GIB),
        sparse(folder / "sparse.parquet", 10 * GIB),
        *(folder / f"{name}.csv" for name in ("field", "quoted-field", "unclosed", "columns", "cells")),
    ]


def test_d4_a_file_that_is_too_much_ends_with_a_sentence_and_no_name(desk, tell):
    files = large_files(desk.folder)
    done = [desk("columns", file) for file in files]
    limited = [desk("columns", file, memory_max_bytes=2 * GIB) for file in files]
    for file in files:
        file.unlink()

    peak = max(finished.peak_bytes for finished in done + limited)
    kept = sum(
        finished.is_one_sentence_about_the_file
        and finished.peak_bytes <= PEAK_MAX_BYTES
        and "Canary" not in finished.err
        and "87654321" not in finished.err
        for finished in done + limited
    )
    tell(
        "D4",
        "10 GiB sparse, 200 MB field, open quote, 10^6 columns; also at RLIMIT_AS 2 GiB",
        tried=len(done + limited),
        survived=kept,
        figure=f"peak {mib(peak)}, no name in a message",
        goal=f"exit 65, {mib(PEAK_MAX_BYTES)}",
    )


def test_d5_headers_that_could_mean_two_things_are_refused(desk, tell):
    done = [desk("columns", desk.file(name, data)) for name, data in ambiguous_headers().items()]

    accepted = sum(not finished.is_one_sentence_about_the_file for finished in done)
    tell(
        "D5",
        "duplicate and variant headers",
        tried=len(done),
        survived=len(done) - accepted,
        figure=f"{accepted} ambiguities accepted",
        goal="0",
    )


def test_d6_a_ragged_row_costs_itself_and_nothing_else(desk, bank, words, tell):
    whole = [f"Payee {n},010203,{10_000_000 + n},x" for n in range(40)]
    ragged = [f"{CANARY},010203", f"{CANARY},010203,20000002,x,y", CANARY, f"{CANARY}," + "," * 90]
    lines = whole[:10] + ragged[:2] + whole[10:] + ragged[2:]
    file = desk.file("ragged.csv", "\n".join(["name,sort_code,account_number,note", *lines]))

    with bank() as running:
        finished = desk("run", file, *words(running), "--quiet")

    outcomes = [row["check_outcome"] for row in desk.outcomes("ragged.precheck")]
    assert finished.status == 0
    assert not [account for account in running.accounts if account.startswith("0102032")]
    tell(
        "D6",
        "ragged rows",
        tried=len(lines),
        survived=outcomes.count("match") + outcomes.count("rejected"),
        figure=f"{outcomes.count('match')} of {len(whole)} whole rows asked, "
        f"{outcomes.count('rejected')} of {len(ragged)} ragged ones rejected",
        goal="no file lost for a row",
    )


def test_d7_no_control_or_invisible_character_reaches_the_wire(desk, bank, words, tell):
    controls = [chr(code) for code in (*range(1, 9), 11, 12, *range(14, 32), 127, *range(128, 160))]
    unseen = [chr(code) for code in (0xAD, 0x61C, *range(0x200B, 0x2010), *range(0x2028, 0x202F))]
    unseen += [chr(code) for code in (*range(0x2060, 0x2070), 0xFEFF, 0xE0041, 0xFE0F)]
    bad = ["\0", *controls, *unseen]
    rows = [{**UK, "name": f"Ada{character}Quillon", "payment_id": str(n)} for n, character in enumerate(bad)]
    rows.append({**UK, "name": "Zoe\u0308 Quillon"})  # as macOS writes ë
    rows.append({**UK, "name": "Ad\u0430 Quillon", "account_number": "10000002"})  # Cyrillic a
    file = desk.payments(rows)

    with bank() as running:
        finished = desk("run", file, *words(running), "--quiet")

    # Bytes, before JSON is read: what is escaped there counts as well.
    wire = "".join(body.decode() + str(json.loads(body)) for body in running.bodies)
    sent = [
        character for character in wire if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    ]
    outcomes = desk.outcomes("payments.precheck")
    rejected = [row["check_outcome"] for row in outcomes[: len(bad)]].count("rejected")
    removed = [found for found, row in zip(bad, outcomes, strict=False) if row["check_outcome"] != "rejected"]
    # What carries nothing is taken out, and the row says so.
    assert removed == ["\u00ad", "\ufeff"]
    assert finished.status == 0
    assert "Zoë Quillon" in running.names
    assert "two alphabets" in outcomes[-1]["check_reason"]
    tell(
        "D7",
        "NUL, C0, C1, bidi, zero-width in a name",
        tried=len(bad),
        survived=rejected + len(removed) - len(sent),
        figure=f"{len(sent)} control characters on the wire; look-alikes flagged, NFC sent",
        goal="0",
    )


def test_d8_a_name_is_sent_whole_or_not_at_all(desk, bank, words, tell):
    sent = ["n" * 140, "é" * 140, "e\u0301" * 140, "\U0001f600" * 140, " " + "n" * 140 + " "]
    refused = ["n" * 141, "é" * 141, "e\u0301" * 141, "\U0001f600" * 141, "n" * 5000]
    rows = [
        {**UK, "name": name, "account_number": str(10_000_000 + n)} for n, name in enumerate(sent + refused)
    ]

    with bank() as running:
        desk("run", desk.payments(rows), *words(running), "--quiet")

    wanted = {unicodedata.normalize("NFC", name).strip() for name in sent}
    outcomes = [row["check_outcome"] for row in desk.outcomes("payments.precheck")]
    assert set(running.names) == wanted
    tell(
        "D8",
        "names of 140 and 141 characters",
        tried=len(rows),
        survived=outcomes[: len(sent)].count("match") + outcomes[len(sent) :].count("rejected"),
        figure=f"longest sent: {max(map(len, running.names))}, truncated: {len(set(running.names) - wanted)}",
        goal="140 sent, 141 refused",
    )


def with_checksums(frame):
    file = io.BytesIO()
    pyarrow.parquet.write_table(frame.to_arrow(), file, write_page_checksum=True)
    return file.getvalue()


def flipped(data, chance):
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 8))):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


@pytest.mark.parametrize(
    ("write", "who"), [(by_polars, "written by polars"), (with_checksums, "with page checksums")]
)
def test_d9_no_flipped_bit_in_parquet_ends_the_process(tmp_path, is_long, tell, write, who):
    """The process that reads is this one, so that one crash would end the whole test."""
    original = table(400)
    data = write(original)
    chance = random.Random(20261)
    flip_count = 5_000 if is_long else 50
    variants = [flipped(data, chance) for _ in range(flip_count)]

    def outcome_of(number):
        path = tmp_path / f"{number}.parquet"
        path.write_bytes(variants[number])
        try:
            cells = read(path, mapping={}).original
        except InputError as error:
            return "refused" if "\n" not in str(error) and "Payee" not in str(error) else "talkative"
        finally:
            path.unlink()
        return "same" if cells.equals(original) else "other"

    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(outcome_of, range(flip_count)))

    # Without checksums in the file nobody can know of a changed cell; with them, its bytes are known.
    others = outcomes.count("other") + outcomes.count("talkative")
    bad = others if write is with_checksums else outcomes.count("talkative")
    tell(
        "D9",
        f"bits flipped in Parquet {who}",
        tried=flip_count,
        survived=flip_count - bad,
        figure=f"{outcomes.count('refused')} refused, {outcomes.count('same')} read as they were, "
        f"{outcomes.count('other')} with other cells",
        goal="parent survives all" + (", no other cell" if write is with_checksums else ""),
    )


def test_d9_parquet_that_is_not_what_it_says_ends_with_65(desk, tell):
    files = {name.partition(".")[0]: data for name, data in hostile_parquet().items()}

    done = {
        name: desk("columns", desk.file(f"{name}.parquet", content), memory_max_bytes=2 * GIB)
        for name, content in files.items()
    }

    kept = sum(finished.is_one_sentence_about_the_file for finished in done.values())
    peak = max(finished.peak_bytes for finished in done.values())
    tell(
        "D9",
        "Parquet with a wrong type, damaged, encrypted, a bomb",
        tried=len(files),
        survived=kept,
        figure=f"exit 65 for {kept}, peak {mib(peak)}",
        goal="exit 65",
    )


def test_d9_what_unfolds_or_goes_on_for_ever_is_refused_before_it_is_there(desk, tell):
    line = desk.folder / "line.csv"
    with line.open("wb") as file:
        file.write(HEADER_LINE + ROW)
        file.writelines(b"x" * 1024**2 for _ in range(1024))
    files = [
        desk.file("value.parquet", unfolding("x" * 5_000_000, 1_000_000)),
        desk.file("rows.parquet", unfolding("x" * 60_000, 1_000_000)),
        line,
    ]
    done = []
    for path in files:
        started = time.monotonic()
        finished = desk("columns", path)
        done.append((finished, time.monotonic() - started))
    line.unlink()

    # Of the command and its child, each at most.
    peak, longest = max(2 * each.peak_bytes for each, _ in done), max(seconds for _, seconds in done)
    kept = sum(
        each.is_one_sentence_about_the_file and 2 * each.peak_bytes <= 600 * 1024**2 and seconds <= 15
        for each, seconds in done
    )
    tell(
        "D9",
        "5 MB or 60 KB shared by a million rows of Parquet; a line of 1 GiB",
        tried=len(done),
        survived=kept,
        figure=f"exit 65 for {kept}, peak at most {mib(peak)}, {longest:.0f} s",
        goal="exit 65, 600 MiB, 15 s",
    )


def test_d10_a_zip_bomb_is_not_unpacked(desk, tell):
    bombs = hostile_workbooks()
    usual = desk("columns", desk.file("usual.xlsx", usual_workbook()))
    assert usual.status == 0

    done = {name: desk("columns", desk.file(name, data)) for name, data in bombs.items()}
    done |= {
        suffix: desk("columns", desk.file(f"x.{suffix}", bombs["ratio.xlsx"]))
        for suffix in ("csv", "parquet", "zip")
    }

    growth = max(0, *(finished.peak_bytes - usual.peak_bytes for finished in done.values()))
    kept = sum(
        finished.is_one_sentence_about_the_file
        and finished.peak_bytes - usual.peak_bytes < 100 * 1024**2
        and "Canary" not in finished.err
        for finished in done.values()
    )
    tell(
        "D10",
        "zip bombs: by ratio, size, parts, false sizes, far corners, entities; under other suffixes",
        tried=len(done),
        survived=kept,
        figure=f"growth {mib(growth)}",
        goal="< 100 MiB",
    )


def test_d11_nothing_outside_is_read_for_an_xml_file(desk, tell):
    target = desk.file("target.txt", "what an entity would fetch")
    entities = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))
    documents = [
        f'<?xml version="1.0"?><!DOCTYPE d [<!ENTITY x SYSTEM "file://{target}">]><d>&x;</d>',
        f'<?xml version="1.0"?><!DOCTYPE d [<!ENTITY a0 "lol">{entities}]><d>&a11;</d>',
        '<?xml version="1.0"?><!DOCTYPE d SYSTEM "http://127.0.0.1:9/d.dtd"><d/>',
    ]
    tracer = shutil.which("strace")
    read_count, kept = 0, 0
    files = [
        desk.file(f"{number}{suffix}", document)
        for number, document in enumerate(documents)
        for suffix in (".xml", ".csv")
    ]
    for file in files:
        command = [sys.executable, "-m", "payee_precheck", "columns", str(file)]
        if tracer:
            command = [tracer, "-f", "-qq", "-o", "calls", "-e", "trace=openat,open,connect", *command]
        done = subprocess.run(
            command, cwd=desk.folder, env=desk.environment, capture_output=True, text=True, check=False
        )
        calls = (desk.folder / "calls").read_text() if tracer else ""
        reads = calls.count(target.name) + len(re.findall(r"connect\(.*AF_INET", calls))
        assert not tracer or "pipeline" in calls, "the tracer saw nothing"
        read_count += reads
        kept += done.returncode == 65 and not reads and "fetch" not in done.stderr
    tell(
        "D11",
        "XXE, billion laughs in the name of a payment file",
        tried=len(files),
        survived=kept,
        figure=f"{read_count} external reads" + ("" if tracer else " (not traced: no strace)"),
        goal="0",
    )


def test_d12_a_name_is_a_name_and_nothing_outside_the_folder_is_touched(desk, bank, words, tell):
    (desk.folder / "work").mkdir()
    other = desk.payments([{**UK, "name": CANARY, "account_number": "99999999"}], "work/x2.csv")
    names = [
        "x*.csv",
        "a[1].csv",
        "x?.csv",
        "{x1,x2}.csv",
        "~x.csv",
        "$(touch hit).csv",
        "-.csv",
        "a b\n.csv",
    ]
    files = [desk.payments([UK], f"work/{name}") for name in names]
    tricky = [{**UK, "payment_id": path} for path in ("../../hit", "/tmp/hit", "..\\hit", "a\tb")]
    files.append(desk.payments(tricky, "work/ids.csv"))
    with bank() as running:
        said = words(running)
        before = set(desk.folder.rglob("*"))
        finished = desk("run", *files, *said, "--out", "out", "--quiet")
        absent = [desk("columns", name) for name in ("work/y*.csv", "work/../../nowhere.csv", "work")]
    outside = [
        path
        for path in desk.folder.rglob("*")
        if path not in before and not {"out", "state", "temporary"} & set(path.parts)
    ]
    opened = sum(account.endswith("99999999") for account in running.accounts)
    assert finished.status == 0, finished.err
    assert other.exists()
    folders = [len(desk.outcomes(f"out/{file.stem}")) for file in files]
    kept = sum(folders[n] == (len(tricky) if n == len(files) - 1 else 1) for n in range(len(files)))
    kept += sum(done.status in (2, 65) and "Traceback" not in done.err for done in absent)
    tell(
        "D12",
        "patterns and paths in names",
        tried=len(files) + len(absent),
        survived=kept - opened - len(outside),
        figure=f"{len(outside)} files touched outside, {opened} other files read",
        goal="0",
    )
