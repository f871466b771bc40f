"""Fault table E: what the command writes runs nowhere, is for its owner only, and tells no secret."""

import contextlib
import json
import os
import pty
import shutil
import sqlite3
import stat
import subprocess
import threading
import unicodedata
import zipfile
from hashlib import sha256

import anyio
import openpyxl
import polars as pl
import pytest

UK = {"name": "Ada Quillon", "sort_code": "010203", "account_number": "10000001", "amount": "1.00"}
FORMULAS = [
    *("=1+1", "+1", "-1", "@SUM(A1)", '=HYPERLINK("https://evil.example";"x")', "=cmd|' /C calc'!A0"),
    *(" =1+1", "\t=1", "\n=1", "\u00a0=1", "\u3000+1", "\ufeff=1", "\u200b=1", "\u202e=1"),
    *("\uff1d1+1", "\uff0b1", "\uff0d1", "\uff20SUM(A1)", " \uff1d1", "\x00=1", "\x01=1", '"=1', "=1\n=2"),
]
ESCAPES = [
    *("\x1b]0;CANARY\x07", "\x1b[31mCANARY", "\x9b31mCANARY", "\x1b[2JCANARY", "\x07CANARY", "\x08CANARY"),
    *("[bold]CANARY[/bold]", "CANARY [/ltd]", "\u202eCANARY", "\x1b]8;;https://evil.example\x1b\\CANARY"),
]


def is_live(cell):
    """Whether some spreadsheet takes the cell for more than text; with nothing of the program's own."""
    unseen = ("Cc", "Cf", "Zs", "Zl", "Zp", "Mn")
    shown = [character for character in cell if unicodedata.category(character) not in unseen]
    starts = unicodedata.normalize("NFKC", shown[0])[0] if shown else ""
    return starts in tuple("=+-@") or cell[:1] in tuple("\t\r\n\0")


@pytest.fixture
def hostile_returns(reply):
    """A bank with a different hostile name for every question, and no match for those with a seven."""

    async def answer(request, body):
        if b"0102032" in body:
            return reply(request, "ANNM")
        code = "MBAM" if "copgateway" in request.path else "CMTC"
        number = int(body.split(b"1000")[1][:4]) % len(FORMULAS)
        return reply(request, code, FORMULAS[number])

    return answer


@pytest.fixture
def hostile_run(desk, bank, words, hostile_returns):
    """The folder of a run of a file, and against a bank, that both try formulas in every field."""
    returned = [{**UK, "account_number": f"1000{n:04d}"} for n in range(len(FORMULAS))]
    payers = [
        {**UK, "account_number": f"2000{n:04d}", "name": "Some Payee", field: text}
        for n, text in enumerate(FORMULAS)
        for field in ("payment_id", "reference", "=1+1", "name")
    ]
    header = ("payment_id", "name", "sort_code", "account_number", "amount", "reference", "=1+1", "\t@note")
    file = desk.payments(returned + payers, header=header)
    with bank(hostile_returns) as running:
        finished = desk("run", file, *words(running), "--quiet")
    assert finished.status in (0, 75), finished.err
    return desk.folder / "payments.precheck"


def test_e1_no_cell_for_people_is_run_by_a_spreadsheet(desk, hostile_run, tell):
    cells = desk.cells(hostile_run, "attention.csv")
    live = [cell for cell in cells if is_live(cell)]
    raw = desk.cells(hostile_run, "outcomes.csv")
    matched = {row["check_matched_name"] for row in desk.outcomes(hostile_run)} - {""}
    assert any(is_live(name) for name in matched), "no bank returned a hostile name"
    # For programs the cells are as they came: this is the contract, and why there are two files.
    assert set(FORMULAS) <= set(raw)
    assert len(cells) > 4 * len(FORMULAS)
    tell(
        "E1",
        "formulas from payers and from banks",
        tried=len(cells),
        survived=len(cells) - len(live),
        figure=f"{len(live)} live cells in attention.csv ({len(matched)} hostile names returned)",
        goal="0",
    )


def formulas_in(office, file, folder):
    """How many cells of a CSV file LibreOffice takes for formulas."""
    profile = f"-env:UserInstallation=file://{folder / 'office'}"
    subprocess.run(
        [office, profile, "--headless", "--convert-to", "xlsx", "--outdir", folder / file.stem, file],
        check=True,
        timeout=120,
        capture_output=True,
    )
    with zipfile.ZipFile(folder / file.stem / f"{file.stem}.xlsx") as workbook:
        return workbook.read("xl/worksheets/sheet1.xml").count(b"<f")


def test_e1_libreoffice_finds_no_formula_either(desk, hostile_run, tell):
    office = shutil.which("soffice")
    if office is None:
        pytest.skip("LibreOffice is not installed: apt-get install libreoffice-calc-nogui")
    live_count = formulas_in(office, hostile_run / "attention.csv", desk.folder)
    # What programs get has the cells as they came: there the same look must find formulas.
    raw_count = formulas_in(office, hostile_run / "outcomes.csv", desk.folder)
    cell_count = len(desk.cells(hostile_run, "attention.csv"))
    assert raw_count > 0, "LibreOffice takes nothing for a formula: this tried nothing"
    tell(
        "E1",
        "attention.csv opened by LibreOffice",
        tried=cell_count,
        survived=cell_count - live_count,
        figure=f"{live_count} formulas; in outcomes.csv, which is for programs, {raw_count}",
        goal="0",
    )


def test_e2_the_workbook_holds_no_formula_and_no_link(hostile_run, tell):
    book = openpyxl.load_workbook(hostile_run / "report.xlsx")
    cells = [cell for sheet in book for row in sheet for cell in row if cell.value is not None]
    live = [cell for cell in cells if cell.data_type == "f" or cell.hyperlink is not None]
    texts = {cell.value for cell in cells if isinstance(cell.value, str)}
    # The formulas are there as text, or this looked at another file.
    assert {formula for formula in FORMULAS if formula.startswith("=")} & texts
    tell(
        "E2",
        "formulas and links in report.xlsx",
        tried=len(cells),
        survived=len(cells) - len(live),
        figure=f"{len(live)} formulas or links in {len(book.sheetnames)} sheets, by openpyxl",
        goal="0",
    )


def on_a_terminal(desk, *words, **changes):
    """All that the command sends to a terminal."""
    leader, follower = pty.openpty()
    shown = bytearray()

    def listen():
        # A terminal without anybody on its other side is an error on Linux.
        with contextlib.suppress(OSError):
            while chunk := os.read(leader, 65_536):
                shown.extend(chunk)

    with desk.start(*words, stdout=follower, stderr=follower, **changes) as process:
        os.close(follower)
        listener = threading.Thread(target=listen)
        listener.start()
        process.wait(120)
    listener.join()
    os.close(leader)
    assert b"Traceback" not in shown, shown.decode(errors="replace")
    return shown.decode("utf-8", errors="surrogateescape")


def test_e4_nothing_in_the_data_acts_on_the_terminal(desk, bank, words, tell, reply):
    async def no_match(request, _body):
        return reply(request, "ANNM")

    rows = [
        {**UK, "payment_id": text, "currency": text, "account_number": f"1000{n:04d}"}
        for n, text in enumerate(ESCAPES)
    ]
    header = ("payment_id", "name", "sort_code", "account_number", "amount", "currency", *ESCAPES)
    good = [{**row, "currency": "GBP"} for row in rows]
    file = desk.payments(good + rows, "\x1b[31mpay\x9bments [ltd].csv", header=header)
    plain = {"TERM": "dumb", "NO_COLOR": "1"}
    with bank(no_match) as running:
        said = words(running)
        shown = [
            on_a_terminal(desk, "run", file, *said, "--out", "out", **plain),
            on_a_terminal(desk, "plan", file, *said, **plain),
            on_a_terminal(desk, "columns", file, **plain),
            on_a_terminal(desk, "columns", file, "--map", f"name={ESCAPES[0]}x", **plain),
            on_a_terminal(desk, "run", file, "--out", "\x1b[31mout", "--fresh", *said, **plain),
        ]
        colourful = on_a_terminal(desk, "run", file, *said, "--out", "more", TERM="xterm-256color")
    assert "CANARY" in "".join(shown), "none of the hostile text was shown"
    controls = [
        character
        for text in shown
        for character in text
        if unicodedata.category(character) in ("Cc", "Cf", "Cs") and character not in "\r\n"
    ]
    # Colours are ours; what the data wanted is not among them.
    acted = [text for text in ESCAPES if text in colourful and not text.isprintable()]
    tell(
        "E4",
        "terminal escapes in ids, headers, file and folder names",
        tried=len(shown) + 1,
        survived=sum(not any(c in text for c in controls) for text in shown) + (not acted),
        figure=f"{len(controls)} control characters on a pty",
        goal="0",
    )


def modes(*folders):
    """Every file and folder that its group or others may do anything with."""
    paths = [path for folder in folders for path in (folder, *folder.rglob("*"))]
    return len(paths), [path for path in paths if stat.S_IMODE(path.lstat().st_mode) & 0o077]


def test_e5_every_file_is_for_its_owner_only_also_after_a_kill(desk, bank, words, tell, reply, wait_until):
    async def slow_at_the_end(request, body):
        await anyio.sleep(30 if b"10009999" in body else 0)
        return reply(request, "MBAM" if "copgateway" in request.path else "CMTC", "Returned Name")

    rows = [{**UK, "account_number": f"1000{n:04d}"} for n in range(50)]
    file = desk.payments([*rows, {**UK, "account_number": "10009999"}])
    parquet = desk.folder / "same.parquet"
    pl.read_csv(file, infer_schema=False).head(50).write_parquet(parquet)
    folders = [desk.folder / name for name in ("out", "parquet", "state/payee-precheck")]
    counts, open_to_others = [], []
    with bank(slow_at_the_end) as running:
        said = words(running, daily_cap=1000)
        with desk.start("run", file, *said, "--out", "out", umask=0) as process:
            wait_until(lambda: len(running.bodies) > 50)
            while_running = modes(folders[0], folders[2])
            process.kill()
            process.communicate()
        wal = list(folders[0].glob("ledger.db-wal"))
        after_kill = modes(folders[0], folders[2])
        finished = desk("run", parquet, *said, "--out", "parquet", "--quiet", umask=0)
        listed = [while_running, after_kill, modes(*folders)]
    counts = [count for count, _ in listed]
    open_to_others = [path.name for _, paths in listed for path in paths]
    assert finished.status == 0, finished.err
    assert wal, "the kill left no log to look at"
    tell(
        "E5",
        "modes under umask 000: running, killed, finished",
        tried=sum(counts),
        survived=sum(counts) - len(open_to_others),
        figure=f"open to others: {', '.join(open_to_others) or 'none'}",
        goal="0600 and 0700 only",
    )


def test_e10_the_summary_the_ledger_and_the_files_agree(desk, bank, words, tell, reply):
    async def by_the_last_digit(request, body):
        code = ("MTCH", "MBAM", "ANNM", "AC01", "OPTO")[
            int(json.loads(body)["data"]["identification"][-1]) % 5
        ]
        return reply(request, code, "Returned Name" if code == "MBAM" else None)

    rows = [{**UK, "account_number": f"{10_000_000 + n * 37}", "amount": f"{n}.25"} for n in range(200)]
    rows += [{**UK, "account_number": "1"}] * 7
    file = desk.payments(rows)
    with bank(by_the_last_digit) as running:
        desk("run", file, *words(running), "--out", "out", "--limit", "150", "--quiet")
        finished = desk("run", file, *words(running), "--out", "out", "--quiet")

    summary = json.loads((desk.folder / "out" / "summary.json").read_text())
    outcomes = desk.outcomes("out")
    with contextlib.closing(sqlite3.connect(desk.folder / "out" / "ledger.db")) as db:
        (input_sha256, profile_sha256, version) = db.execute(
            "SELECT input_sha256, profile_sha256, tool_version FROM run"
        ).fetchone()
        [(outcome_sha256,)] = db.execute("SELECT outcome_sha256 FROM finish ORDER BY id DESC LIMIT 1")
    cents = {total["outcome"]: 0 for total in summary["outcomes"]}
    for row in outcomes:
        cents[row["check_outcome"]] += int(row["amount"].replace(".", ""))
    agreed = [
        summary["input"]["sha256"] == input_sha256 == sha256(file.read_bytes()).hexdigest(),
        outcome_sha256 == sha256((desk.folder / "out" / "outcomes.csv").read_bytes()).hexdigest(),
        len(profile_sha256) == 64,
        summary["tool_version"] == version,
        summary["input"]["row_count"] == len(rows) == len(outcomes),
        *(
            total["row_count"] == sum(row["check_outcome"] == total["outcome"] for row in outcomes)
            for total in summary["outcomes"]
        ),
        *(
            sum(round(float(money["amount"]) * 100) for money in total["totals"]) == cents[total["outcome"]]
            for total in summary["outcomes"]
        ),
        sum(code["row_count"] for code in summary["codes"]) == len(rows),
    ]
    assert finished.status == 0, finished.err
    tell(
        "E10",
        "hashes, counts and amounts of summary, ledger and files",
        tried=len(agreed),
        survived=sum(agreed),
        figure=f"{sum(agreed)} of {len(agreed)} agree",
        goal="100 %",
    )
