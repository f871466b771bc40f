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
import time
import unicodedata
from hashlib import sha256
from pathlib import Path

import anyio
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


def test_e1_no_cell_for_people_is_run_by_a_spreadsheet(desk, bank, words, tell, hostile_returns):
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
    cells = desk.cells("payments.precheck", "attention.csv")
    live = [cell for cell in cells if is_live(cell)]
    raw = desk.cells("payments.precheck", "outcomes.csv")
    matched = {row["check_matched_name"] for row in desk.rows("payments.precheck")} - {""}
    assert any(is_live(name) for name in matched), "no bank returned a hostile name"
    # For programs the cells are as they came: this is the contract, and why there are two files.
    assert set(FORMULAS) <= set(raw)
    assert len(cells) > len(payers)
    tell(
        "E1",
        "formulas from payers and from banks",
        tried=len(cells),
        survived=len(cells) - len(live),
        figure=f"{len(live)} live cells in attention.csv ({len(matched)} hostile names returned)",
        goal="0",
    )


def test_e1_libreoffice_finds_no_formula_either(desk, bank, words, tell, reply):
    office = shutil.which("soffice") or shutil.which("libreoffice")
    if office is None:
        pytest.skip("LibreOffice is not installed: only the scan of every cell was made")

    async def no_match(request, _body):
        return reply(request, "ANNM")

    rows = [{**UK, "payment_id": text, "account_number": f"1000{n:04d}"} for n, text in enumerate(FORMULAS)]
    with bank(no_match) as running:
        desk("run", desk.payments(rows), *words(running), "--quiet")
    source = desk.folder / "payments.precheck" / "attention.csv"
    profile = f"-env:UserInstallation=file://{desk.folder / 'office'}"
    subprocess.run(
        [office, profile, "--headless", "--convert-to", "fods", "--outdir", desk.folder, source],
        check=True,
        timeout=120,
        capture_output=True,
    )
    live = (desk.folder / "attention.fods").read_text().count("table:formula")
    tell(
        "E1",
        "attention.csv opened by LibreOffice",
        tried=len(rows),
        survived=len(rows) - live,
        figure=f"{live} formulas",
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


def test_e5_every_file_is_for_its_owner_only_also_after_a_kill(desk, bank, words, tell, reply):
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
            until(lambda: len(running.bodies) > 50)
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


def until(holds):
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, "it never came"
        threading.Event().wait(0.005)


PAYEE = "Canary Featherstonehaugh"
HELD = "Canary Heldname"
ACCOUNTS = ("87654321", "01020387654321", "FR7630003012340000482100733")
TOKEN, SECRET = "canary-token-5f1d", "canary-secret-77aa"
PRIVATE = [
    {**UK, "name": PAYEE, "account_number": ACCOUNTS[0]},
    {**UK, "name": f"{PAYEE} II", "account_number": ACCOUNTS[0], "account_type": "Business"},
    {"name": PAYEE, "iban": ACCOUNTS[2], "amount": "1"},
    {"name": f"{PAYEE}\x07", "iban": ACCOUNTS[2][:-1]},
    {**UK, "name": f"{PAYEE} III", "account_number": "8765432"},
]


def careless(reply, problem):
    """Servers that say more than they should, each by its own name."""

    async def close_match(request, _body):
        return reply(request, "MBAM" if "copgateway" in request.path else "CMTC", HELD)

    async def quotes(request, body):
        return problem(request, {"code": "FORMAT_ERROR", "status": 400, "detail": body.decode()}, 400)

    async def refuses(request, _body):
        said = {"code": "CLIENT_INVALID", "status": 401, "detail": request.headers.get("Authorization", "")}
        return problem(request, said, 401)

    async def invents(request, body):
        return problem(request, {"code": f"X_{body.decode()}", "status": 500, HELD: body.decode()}, 500)

    async def hangs_up(request, body):
        request.transport.abort()
        return problem(request, {})

    return {one.__name__: one for one in (close_match, quotes, refuses, invents, hangs_up)}


def seen_below(pid, stopped):
    """The command lines and environments of every process below this one, while it lasts."""
    seen = set()
    own = Path(f"/proc/{pid}/cmdline").read_bytes()
    while not stopped.is_set():
        pids = [pid]
        for parent in pids:
            with contextlib.suppress(OSError):
                children = Path(f"/proc/{parent}/task/{parent}/children").read_text()
                pids += [int(child) for child in children.split()]
        for process in pids:
            with contextlib.suppress(OSError):
                command = Path(f"/proc/{process}/cmdline").read_bytes()
                environment = Path(f"/proc/{process}/environ").read_bytes()
                seen.add(command)
                # A child that has not yet begun its own program is still the image of its parent.
                if command not in (b"", own) and process != pid:
                    seen.add(b"environment of a child: " + environment)
        stopped.wait(0.01)
    return b"".join(seen)


def watched(desk, *words, **changes):
    """Run the command: its output, its errors, and what could be seen of it from outside."""
    stopped, seen = threading.Event(), []
    with desk.start(*words, **changes) as process:
        watcher = threading.Thread(target=lambda: seen.append(seen_below(process.pid, stopped)))
        watcher.start()
        out, err = process.communicate(timeout=120)
        stopped.set()
        watcher.join()
    return out, err, seen[0]


@pytest.mark.parametrize("profile", ["production", "production-standard"])
def test_e6_secrets_and_e7_names_are_where_the_contract_puts_them_only(
    desk, bank, words, tell, reply, problem, everything, key_password, profile
):
    rows = PRIVATE if profile == "production" else [{**row, "bic": "SOGEFRPPXXX"} for row in PRIVATE[2:]]
    file = desk.payments(
        rows, header=("name", "sort_code", "account_number", "account_type", "iban", "bic", "amount")
    )
    parquet = desk.folder / "payments.parquet"
    pl.read_csv(file, infer_schema=False).write_parquet(parquet)
    secret = (
        {"client_secret_env": "CANARY_ENV", "client_secret_file": None}
        if profile == "production"
        else {"client_key_password_env": "CANARY_ENV", "client_key_password_file": None}
    )
    # The password of the key is the sandbox's own: the certificate must load.
    changes = {"CANARY_ENV": SECRET if profile == "production" else key_password}
    secrets = [canary.encode() for canary in (TOKEN, *changes.values())]
    private = [canary.encode() for canary in (PAYEE, "Featherstonehaugh", HELD, *ACCOUNTS)]
    secret_hits, name_hits, looked_at, saw_a_child, asked = [], [], 0, False, []
    for name, handler in careless(reply, problem).items():
        with bank(handler) as running:
            said = words(running, profile, attempts_max=2, **secret)
            inputs = {path for path in desk.folder.iterdir() if path.is_file()}
            for number, source in enumerate((file, parquet)):
                texts = watched(desk, "run", source, *said, "--out", f"{name}-{number}", "--json", **changes)
                saw_a_child |= b"environment of a child" in texts[2]
                contents = [*enumerate(texts), *everything(*inputs).items()]
                looked_at += len(contents)
                for what, content in contents:
                    secret_hits += [(name, what) for canary in secrets if canary in content]
                    name_hits += [
                        (name, what) for canary in private if canary in content and not belongs(what, canary)
                    ]
            asked.append(len(running.bodies))
    assert all(asked), "a bank was asked nothing"
    assert saw_a_child, "no child process was seen"
    kind = "TLS key password" if "standard" in profile else "client secret, token"
    tell(
        "E6",
        f"canary: {kind}",
        tried=looked_at,
        survived=looked_at - len(secret_hits),
        figure=f"{len(secret_hits)} found in outputs, logs, processes, temporary files",
        goal="0",
    )
    tell(
        "E7",
        f"canary: names and accounts, {profile}",
        tried=looked_at,
        survived=looked_at - len(name_hits),
        figure=f"{len(name_hits)} found outside of the outcome files",
        goal="0",
    )


def belongs(what, canary):
    """Whether the contract puts this there: outcomes are the payments, the ledger has what banks said."""
    if not isinstance(what, Path):
        return False
    if what.name == "report.html":  # names it holds, but every account is masked
        return canary.decode() not in ACCOUNTS
    return what.name in ("outcomes.csv", "outcomes.parquet", "attention.csv") or (
        what.name == "ledger.db" and canary == HELD.encode()
    )


def test_e8_a_purged_name_is_gone_and_its_answer_stays(desk, bank, words, tell, reply, everything):
    canaries = [f"Canary {chr(65 + n // 26)}{chr(65 + n % 26)} Heldname" for n in range(200)]

    async def close(request, body):
        number = int(json.loads(body)["data"]["identification"][-4:])
        return reply(request, "MBAM", canaries[number])

    rows = [{**UK, "account_number": f"1000{n:04d}"} for n in range(len(canaries))]
    file = desk.payments(rows)
    with bank(close) as running:
        said = words(running)
        first = desk("run", file, *said, "--out", "out", "--quiet")
        before = desk.rows("out")
        kept = desk("purge", "out", "--older-than", "30d")
        assert all(name.encode() in (desk.folder / "out" / "ledger.db").read_bytes() for name in canaries)
        purged = desk("purge", "out", "--outcomes")
        left = {
            path.name: sum(content.count(name.encode()) for name in canaries)
            for path, content in everything().items()
        }
        asked_count = len(running.bodies)
        again = desk("run", file, *said, "--out", "out", "--quiet")
        repeated = len(running.bodies) - asked_count
    after = desk.rows("out")
    assert (first.status, kept.status, purged.status, again.status) == (0, 0, 0, 0), purged.err + again.err
    assert [row["check_matched_name"] for row in before] == canaries
    assert after == [{**row, "check_matched_name": ""} for row in before]
    residual = sum(left.values())
    tell(
        "E8",
        "purge of returned names",
        tried=len(canaries),
        survived=len(canaries) - residual - repeated,
        figure=f"{residual} copies left in any file, {repeated} questions repeated",
        goal="0 and 0",
    )


def test_e8_a_purge_after_a_kill_finds_the_names_in_the_log_too(desk, bank, words, tell, reply, everything):
    async def close_but_for_the_last(request, body):
        await anyio.sleep(30 if b"10000099" in body else 0)
        return reply(request, "MBAM", f"Canary {body[body.index(b'1000') + 4 :][:4].decode()} Heldname")

    file = desk.payments([{**UK, "account_number": f"1000{n:04d}"} for n in range(100)])
    with bank(close_but_for_the_last) as running:
        with desk.start("run", file, *words(running), "--out", "out") as process:
            until(lambda: len(running.bodies) == 100)
            threading.Event().wait(0.3)  # the last answers are on their way to the disk
            process.kill()
            process.communicate()
        folder = desk.folder / "out"
        copies = sum(path.read_bytes().count(b" Heldname") for path in folder.iterdir())
        purged = desk("purge", "out")
    left = sum(content.count(b" Heldname") for content in everything().values())
    with contextlib.closing(sqlite3.connect(folder / "ledger.db")) as db:
        [(answer_count,)] = db.execute("SELECT count(*) FROM answer")
    assert purged.status == 0, purged.err
    assert answer_count >= 90
    assert copies, "nothing was there to be purged"
    tell(
        "E8",
        "purge of a run that was killed",
        tried=copies,
        survived=copies - left,
        figure=f"{left} copies left",
        goal="0",
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
    outcomes = desk.rows("out")
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
