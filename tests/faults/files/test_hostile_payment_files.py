"""Fault table D, files as banks take them: refused in a sentence, or read as they are; what lies is told."""

import random
import re
from functools import partial

import polars as pl
import pytest
import standard_18
from bank_files import MAKERS, bank_file
from hostile_files import CANARY, IBANS, MIB, hostile_archives, hostile_documents, pain_001

from pipeline.errors import InputError
from pipeline.formats.pain001 import message_of, reading
from pipeline.stages.read import read

GROWTH_MAX_BYTES = 100 * MIB


def test_d13_a_hostile_document_is_refused_before_it_costs_anything(desk, tell):
    target = desk.file("target.txt", "what an entity would fetch")
    usual = desk("columns", desk.file("usual.xml", pain_001()))
    assert usual.status == 0
    done = {
        name: desk("columns", desk.file(f"{number}.xml", data))
        for number, (name, data) in enumerate(hostile_documents(target).items())
    }
    growth = max(0, *(finished.peak_bytes - usual.peak_bytes for finished in done.values()))
    kept = [
        name
        for name, finished in done.items()
        if finished.is_one_sentence_about_the_file
        and finished.peak_bytes - usual.peak_bytes < GROWTH_MAX_BYTES
        and not re.search("Canary|fetch", finished.out + finished.err)
    ]
    tell(
        "D13",
        "pain.001: entity bombs, external DTDs, depth, huge tokens, wrong encodings, cut",
        tried=len(done),
        survived=len(kept),
        figure=f"growth {growth / MIB:,.0f} MiB; not held: {', '.join(done.keys() - kept) or 'none'}",
        goal="exit 65, < 100 MiB",
    )


def xml_rows(data):
    message = message_of(pl.concat(list(reading.parse(data))))
    return message.payments.with_columns(message.defects.alias("defect")).rows(), message


def rows_by_line(data, path):
    path.write_bytes(data)
    source = read(path, mapping={})
    message = source.message
    assert message is not None, "read as a table"
    return message.payments.with_columns(message.defects.alias("defect")).rows(), message


def is_kept(before, after, own):
    """Whether what is read of a changed file has every row but its own as it was."""
    if len(before) == len(after):
        return all(row in own for row, (old, new) in enumerate(zip(before, after, strict=True)) if old != new)
    beside = {*own, *(row + 1 for row in own)}
    return {line for row, line in enumerate(before) if row not in beside} <= set(after)


@pytest.mark.parametrize("kind", ["pain.001", "lines"])
def test_d14_a_flipped_byte_is_refused_or_changes_its_own_row_only(tmp_path, is_long, tell, kind):
    chance = random.Random(14)
    if kind == "pain.001":
        look = xml_rows
        files = {name: pain_001(name) for name in ("ISO .03", "ISO .09", "prefixed", "CDATA", "Swiss")}
    else:
        look = partial(rows_by_line, path=tmp_path / "pay.txt")
        files = {name: bank_file(name) for name in MAKERS}
        files |= {f"bacs18 {seed}": standard_18.any_file(seed).data() for seed in range(4)}
    count = (2_000 if is_long else 300) // len(files)
    tried = refused = same = own_row = 0
    for data in files.values():
        before, message = look(data)
        spans = message.locations.select("start", "end").rows()
        for _ in range(count):
            at = chance.randrange(len(data))
            damaged = data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]
            own = [row for row, (start, end) in enumerate(spans) if start <= at < end]
            tried += 1
            try:
                after, _ = look(damaged)
            except InputError:
                refused += 1
                continue
            same += after == before
            own_row += after != before and is_kept(before, after, own)
    tell(
        "D14",
        f"a bit flipped in {'pain.001' if kind == 'pain.001' else 'Standard 18 and the layouts of banks'}",
        tried=tried,
        survived=refused + same + own_row,
        figure=f"{refused} refused, {same} read as they were, {own_row} with another row of its own, "
        f"{tried - refused - same - own_row} with others",
        goal="0 with others",
    )


def test_d15_a_bomb_of_gzip_or_zip_is_not_unpacked(desk, tell):
    usual = desk("columns", desk.file("usual.csv", f"name,iban\n{CANARY},{IBANS[0]}\n"))
    assert usual.status == 0
    done = {name: desk("columns", desk.file(name, data)) for name, data in hostile_archives().items()}
    growth = max(0, *(finished.peak_bytes - usual.peak_bytes for finished in done.values()))
    kept = [
        name
        for name, finished in done.items()
        if finished.is_one_sentence_about_the_file
        and finished.peak_bytes - usual.peak_bytes < 2 * GROWTH_MAX_BYTES
        and "Canary" not in finished.out + finished.err
    ]
    tell(
        "D15",
        "payment files in gzip and ZIP: bombs, several, nested, a password, cut, damaged",
        tried=len(done),
        survived=len(kept),
        figure=f"growth {growth / MIB:,.0f} MiB; not held: {', '.join(done.keys() - kept) or 'none'}",
        goal="exit 65, < 200 MiB",
    )


def lying_files():
    """Files whose totals are not those of their payments, by what they say, or by what they lost."""
    whole = pain_001()
    for name, value in ((b"NbOfTxs", b"9"), (b"CtrlSum", b"999.99")):
        pattern = re.compile(rb"<%b>[^<]*<" % name)
        for at, found in enumerate(pattern.finditer(whole)):
            lie = b"<%b>%b<" % (name, value)
            yield f"pain.001 {name.decode()} {at}", "xml", whole[: found.start()] + lie + whole[found.end() :]
    start, end = whole.index(b"<CdtTrfTxInf>"), whole.index(b"</CdtTrfTxInf>") + len(b"</CdtTrfTxInf>")
    yield "pain.001 with a payment less", "xml", whole[:start] + whole[end:]
    for layout in ("lloyds", "santander"):
        lines = bank_file(layout).splitlines(keepends=True)
        yield f"{layout} with a payment less", "csv", b"".join(lines[:2] + lines[3:])
    payments = tuple(standard_18.Payment(account=f"1234567{n}", pence=100 + n) for n in range(4))
    lines = standard_18.File(payments).data().splitlines(keepends=True)
    first = next(at for at, line in enumerate(lines) if line[:3] not in (b"VOL", b"HDR", b"UHL"))
    yield "Standard 18 with a payment less", "bac", b"".join(lines[:first] + lines[first + 1 :])
    trailer = next(at for at, line in enumerate(lines) if line.startswith(b"UTL1"))
    lie = lines[trailer][:20] + b"9" + lines[trailer][21:]
    yield "Standard 18 with another total", "bac", b"".join([*lines[:trailer], lie, *lines[trailer + 1 :]])


def test_d16_totals_that_lie_are_told_and_keep_a_file_from_being_changed(tmp_path, tell):
    held = {}
    for name, suffix, data in lying_files():
        path = tmp_path / f"pay.{suffix}"
        path.write_bytes(data)
        source = read(path, mapping={})
        held[name] = source.message is not None and source.message.difference is not None
    tell(
        "D16",
        "totals that are not those of the payments: at every level, by a lie or by a cut",
        tried=len(held),
        survived=sum(held.values()),
        figure=f"not reported: {', '.join(name for name, told in held.items() if not told) or 'none'}",
        goal="all reported",
    )
