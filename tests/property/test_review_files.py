"""Splits and corrections of any file: nothing is lost, doubled or changed."""

import csv
import io
import tempfile
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import polars as pl
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from pipeline.jobs.fix import FixJob, fix_folder
from pipeline.jobs.split import SplitJob, split_folder
from schemas.outcomes import Outcome
from schemas.review import Acceptance

NOW = datetime(2030, 1, 2, tzinfo=UTC)
TROUBLE = st.text(st.sampled_from("\"',;|\t\r\n =a0\u00e9\u200b\u2028\U0001f600"), max_size=6)
AMOUNTS = st.decimals("0", "99999", places=2).map(str) | st.sampled_from(["", "x", "1,000.50"])
CURRENCIES = st.sampled_from(["GBP", "EUR", "eur ", ""])
HEADERS = ["name", "iban", "amount", "currency", "Note", "account_type"]
TYPES = {"Personal": ("BANM", "Business"), "Business": ("PANM", "Personal")}
"""The word in the file -> the code by which a bank says that it is the other one, and that one."""
CODES = {
    Outcome.MATCH: ("MTCH", "pay"),
    Outcome.CLOSE_MATCH: ("CMTC", "fix_name"),
    Outcome.NO_MATCH: (None, "fix_account_type"),
    Outcome.NOT_POSSIBLE: ("NOAP", "ask_payee"),
    Outcome.REJECTED: ("IBAN_FORMAT", "correct_row"),
    Outcome.UNANSWERED: ("NETWORK", "retry_later"),
}
SOME = TROUBLE.map(lambda text: f"0{text}")
"""Never blank: a row without a payee and an account may be the totals of those above it."""
ROWS = st.lists(
    st.tuples(
        TROUBLE, SOME, AMOUNTS, CURRENCIES, TROUBLE, st.sampled_from([*TYPES]), st.sampled_from([*CODES])
    ),
    min_size=1,
    max_size=8,
)


def csv_of(rows, delimiter, line_end):
    """CSV by hand, with quotes where the rules want them and nowhere else."""

    def written(cell):
        return '"' + cell.replace('"', '""') + '"' if any(c in cell for c in f'{delimiter}"\r\n') else cell

    return "".join(delimiter.join(map(written, row)) + line_end for row in [HEADERS, *rows]).encode()


def money_of(rows):
    """What the rows are worth, by this test's own reckoning."""
    sums = {}
    for row in rows:
        if row[2] not in ("", "x"):
            currency = row[3].strip().upper() or None
            sums[currency] = sums.get(currency, 0) + Decimal(row[2].replace(",", ""))
    return sums


def told(part):
    return {total.currency: total.amount for total in part.totals} if part else {}


def right_name(number):
    """What the bank says of a row: of no other row the same."""
    return f"Ada Quillon {chr(ord('A') + number)}"


def code_of(row):
    return CODES[row[-1]][0] or TYPES[row[5]][0]


def finished_folder(folder, rows, delimiter, line_end, finish_run, outcomes_of):
    file = Path(folder, "pay.csv")
    file.write_bytes(csv_of([row[:-1] for row in rows], delimiter, line_end))
    outcomes = []
    for number, row in enumerate(rows):
        action = CODES[row[-1]][1]
        name = right_name(number) if action == "fix_name" else None
        outcomes.append({"outcome": row[-1], "code": code_of(row), "action": action, "matched_name": name})
    return finish_run(file, outcomes_of(*outcomes), environment="sandbox", reported=False)


SHAPES = {
    "rows": ROWS,
    "delimiter": st.sampled_from(",;|\t"),
    "line_end": st.sampled_from(["\n", "\r\n"]),
}


@examples(60, by_day=10)
@given(**SHAPES, verdicts=st.dictionaries(st.sampled_from(["close_match", "NOAP", "MTCH"]), st.booleans()))
def test_a_split_loses_doubles_and_changes_nothing(
    rows, delimiter, line_end, verdicts, finish_run, outcomes_of
):
    released = {"MTCH": True, "CMTC": False, "NOAP": False}
    released |= {{"close_match": "CMTC"}.get(key, key): verdict for key, verdict in verdicts.items()}
    with tempfile.TemporaryDirectory() as name:
        folder = finished_folder(name, rows, delimiter, line_end, finish_run, outcomes_of)
        config = Path(name, "precheck.toml")
        table = "".join(
            f'{key} = "{"release" if verdict else "hold"}"\n' for key, verdict in verdicts.items()
        )
        config.write_text(f"[profiles.main.policy]\n{table}{SECTION}")
        job = SplitJob(folder, config=config, hold_undecided=True, allow_simulated=True, by="Mara")
        done = split_folder(job, now=NOW)
        written = [part and Path(part.path).read_bytes() for part in (done.release, done.hold)]
    release = [row[:-1] for row in rows if released.get(code_of(row))]
    hold = [row[:-1] for row in rows if not released.get(code_of(row))]
    assert written == [(part and csv_of(part, delimiter, line_end)) or None for part in (release, hold)]
    assert told(done.release) == money_of(release)
    assert told(done.hold) == money_of(hold)
    assert told(done.input) == money_of(rows)


@examples(60)
@given(**SHAPES, accept=st.sets(st.sampled_from(Acceptance), min_size=1))
def test_a_correction_changes_its_cell_and_no_other(
    rows, delimiter, line_end, accept, finish_run, outcomes_of
):
    with tempfile.TemporaryDirectory() as name:
        folder = finished_folder(name, rows, delimiter, line_end, finish_run, outcomes_of)
        job = FixJob(folder, accept=tuple(accept), reason="agreed", allow_simulated=True, by="Mara")
        done = fix_folder(job, now=NOW)
        written = None if done.corrected is None else Path(done.corrected.path).read_bytes()
        listed = Path(done.corrections).read_bytes().decode("utf-8-sig")
    changes = {}  # (row, field) -> what it should be, whether or not that was accepted
    expected = []
    for number, row in enumerate(rows):
        cells = list(row[:-1])
        if row[-1] is Outcome.CLOSE_MATCH:
            changes[number + 1, "name"] = right_name(number)
            if Acceptance.CLOSE_MATCH in accept:
                cells[0] = right_name(number)
        if row[-1] is Outcome.NO_MATCH:
            changes[number + 1, "account_type"] = TYPES[row[5]][1]
            if Acceptance.ACCOUNT_TYPE in accept:
                cells[5] = TYPES[row[5]][1]
        expected.append(tuple(cells))
    lines = csv.DictReader(io.StringIO(listed, newline=""), delimiter=delimiter)
    assert {(int(line["row"]), line["field"]): line["to"] for line in lines if line["to"]} == changes
    if expected == [row[:-1] for row in rows]:
        assert written is None or written == csv_of(expected, delimiter, line_end)
    else:
        assert written == csv_of(expected, delimiter, line_end)


SECTION = """
[profiles.main.vop]
api = "gateway"
server = "sandbox"
base_url = "https://vop.example"
token_url = "https://login.example/token"
client_id = "ID"
client_secret_env = "SECRET"
scope = "s"
"""


@examples(4)  # a child process parses each Parquet file
@given(cells=st.lists(st.tuples(TROUBLE, TROUBLE), min_size=1, max_size=5))
def test_a_parquet_file_is_split_without_a_change(cells, finish_run, outcomes_of):
    table = pl.DataFrame(
        {"name": [a for a, _ in cells], "iban": [b for _, b in cells], "batch": range(len(cells))},
        schema={"name": pl.String, "iban": pl.String, "batch": pl.Int16},
    )
    outcomes = [{} if number % 2 else {"outcome": "no_match", "code": "NMTC"} for number in range(len(cells))]
    with tempfile.TemporaryDirectory() as name:
        file = Path(name, "pay.parquet")
        table.write_parquet(file)
        Path(name, "precheck.toml").write_text(SECTION)
        folder = finish_run(file, outcomes_of(*outcomes), environment="sandbox", reported=False)
        config = Path(name, "precheck.toml")
        done = split_folder(SplitJob(folder, config=config, allow_simulated=True, by="Mara"), now=NOW)
        parts = [pl.read_parquet(part.path) for part in (done.release, done.hold) if part is not None]
    assert pl.concat(parts).sort("batch").equals(table)
