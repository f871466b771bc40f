"""Fault table H: the check is not for finding out who holds an account, or which accounts exist."""

import contextlib
import json
import sqlite3

from refusals import said

UK = {"name": "Ada Quillon", "sort_code": "010203", "amount": "1.00"}
NAMES = [f"Guess Number{chr(65 + n)}" for n in range(20)]
REASON = "umbrella company: forty contractors are paid to one account"
IBAN = "FR7630003012340000482100733"
HEADER = ("name", "sort_code", "account_number", "iban", "lei", "secondary_reference", "amount")


def guesses(count, **account):
    """Rows that try so many names on one account."""
    return [{**UK, **account, "name": name} for name in NAMES[:count]]


def test_h_names_tried_on_one_account_stop_the_run_before_anything_is_sent(desk, bank, words, tell):
    uk = {"account_number": "10000001"}
    honest = [{**UK, "account_number": f"{20_000_000 + n * 37}"} for n in range(30)]
    tries = {
        "four": honest + guesses(4, **uk),
        "twenty": guesses(20, **uk) + honest,
        "iban": guesses(4, sort_code="", iban=IBAN),
        "scattered": [row for pair in zip(honest, guesses(20, **uk), strict=False) for row in pair],
        "types": [
            {**row, "lei": lei, "sort_code": "", "iban": IBAN}
            for row in guesses(2)
            for lei in ("", "529900QUILLONMILLS66")
        ]
        + guesses(4, **uk),
    }
    allowed = {
        "three": honest + guesses(3, **uk),
        "spellings": [
            {**UK, **uk, "name": n} for n in ("ADA QUILLON", "Ada Quillon", "ada  quillon", "A Q", "Q")
        ],
        "roll-numbers": [{**row, "secondary_reference": f"R{n}"} for n, row in enumerate(guesses(9, **uk))],
    }
    said = []
    with bank() as running:
        for name, rows in tries.items():
            file = desk.payments(rows, f"{name}.csv", header=HEADER)
            said.append(desk("run", file, *words(running), "--quiet"))
        sent = len(running.bodies)
        passed = [
            desk("run", desk.payments(rows, f"{name}.csv", header=HEADER), *words(running), "--quiet")
            for name, rows in allowed.items()
        ]
    stopped = [
        done.is_one_sentence_about_the_file and "--allow-many-names" in done.err and "Guess" not in done.err
        for done in said
    ]
    tell(
        "H",
        "more than 3 names for one account",
        tried=len(said) + len(passed),
        survived=0 if sent else sum(stopped) + sum(done.status == 0 for done in passed),
        figure=f"{sum(stopped)} of {len(said)} stopped, {sent} calls made",
        goal="0 calls",
    )


def test_h_a_reason_lets_the_run_go_on_and_is_recorded(desk, bank, words, tell):
    file = desk.payments(guesses(8, account_number="10000001"))
    with bank() as running:
        stopped = desk("run", file, *words(running), "--out", "out", "--quiet")
        planned = desk("plan", file, *words(running))
        blank = desk("run", file, *words(running), "--out", "out", "--allow-many-names", " ", "--quiet")
        finished = desk("run", file, *words(running), "--out", "out", "--allow-many-names", REASON, "--quiet")
        asked_count = len(running.bodies)

    summary = json.loads((desk.folder / "out" / "summary.json").read_text())
    with contextlib.closing(sqlite3.connect(desk.folder / "out" / "ledger.db")) as db:
        reasons = [reason for (reason,) in db.execute("SELECT reason FROM allowance")]
    held = [
        stopped.status == 65,
        planned.status == 0,
        blank.status == 2,
        finished.status == 0,
        asked_count == 8,
        summary.get("many_names_reason") == REASON,
        reasons == [REASON],
        summary["warning_count"] == 8,
        all("8 different names" in row["check_reason"] for row in desk.outcomes("out")),
    ]
    tell(
        "H",
        "the same, with --allow-many-names REASON",
        tried=len(held),
        survived=sum(held),
        figure=f"{sum(held)} of {len(held)} hold",
        goal="recorded in summary.json and ledger.db, a warning in every row",
    )


def test_h_unknown_accounts_in_sequence_look_like_enumeration(desk, bank, words, tell, reply):
    async def unknown(request, body):
        number = int(json.loads(body)["data"]["identification"][-8:])
        return reply(request, "AC01" if number < 20_000_000 else "MTCH")

    honest = [{**UK, "account_number": f"{20_000_000 + n}"} for n in range(400)]  # in sequence, and known
    files = {
        "sequence": honest + [{**UK, "account_number": f"{10_000_000 + n}"} for n in range(40)],
        "backwards": [{**UK, "account_number": f"{10_000_009 - n}"} for n in range(9)],
        "chance": honest + [{**UK, "account_number": f"{10_000_000 + n * 37}"} for n in range(40)],
        "pair": honest + [{**UK, "account_number": f"{10_000_000 + n}"} for n in range(2)],
    }
    with bank(unknown) as running:
        for name, rows in files.items():
            assert not desk("run", desk.payments(rows, f"{name}.csv"), *words(running), "--quiet").status
    warned = {
        name: sum(
            said("rule.enumeration") in row["check_reason"] for row in desk.outcomes(f"{name}.precheck")
        )
        for name in files
    }
    expected = {"sequence": 40, "backwards": 9, "chance": 0, "pair": 0}
    tell(
        "H",
        "unknown account numbers in sequence",
        tried=len(files),
        survived=sum(warned[name] == expected[name] for name in files),
        figure=", ".join(f"{name} {count}" for name, count in warned.items()) + " rows warned",
        goal="warned, and only there",
    )


def test_h_a_returned_name_is_never_asked_about_by_itself(desk, bank, words, tell, reply):
    async def close(request, _body):
        return reply(request, "MBAM", "Returned Name")

    rows = [{**UK, "account_number": f"{20_000_000 + n * 37}"} for n in range(20)]
    file = desk.payments(rows)
    with bank(close) as running:
        for _ in range(3):
            desk("run", file, *words(running), "--quiet")
    fed_back = running.names.count("Returned Name")
    tell(
        "H",
        "names returned on close matches",
        tried=len(rows),
        survived=len(rows) - fed_back - (len(running.bodies) - len(rows)),
        figure=f"{fed_back} fed back in three runs",
        goal="0",
    )
