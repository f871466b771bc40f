"""From the folder of a run to a corrected file, and to files to release and to hold."""

import csv
import io
import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import openpyxl
import polars as pl
import pytest
from pydantic import SecretStr
from refusals import refused, said, says
from rich.console import Console

from pipeline.errors import (
    ConfigurationError,
    IncompleteError,
    InputError,
    LockedError,
    OutputError,
    UsageError,
)
from pipeline.frames import DECISIONS, WARNED
from pipeline.headers.parties import payee_ids
from pipeline.jobs.fix import FixJob, fix_folder
from pipeline.jobs.report import report
from pipeline.jobs.split import SplitJob, split_folder
from pipeline.jobs.verify import VerifyJob, verify
from pipeline.reports.terminal import print_split
from pipeline.review.decisions import RunDecisions
from pipeline.review.placements import judged, preview
from pipeline.runs.ended import ended_run
from pipeline.runs.manifest import read_manifest
from pipeline.stores.sqlite.ledger import SqliteLedger
from pipeline.stores.values import RunIdentity
from pipeline.wording import Sentence
from schemas.review import Acceptance, ControlTotal
from schemas.strict import parse
from schemas.summary import Summary

BOTH = (Acceptance.CLOSE_MATCH, Acceptance.ACCOUNT_TYPE)
CLOSE = {"outcome": "close_match", "code": "MBAM", "action": "fix_name", "matched_name": "Ada Quillon"}
BANM = {"outcome": "no_match", "code": "BANM", "action": "fix_account_type"}
BAMM = {**CLOSE, "code": "BAMM", "action": "fix_name_and_account_type"}
ANNM = {"outcome": "no_match", "code": "ANNM", "action": "ask_payee"}
REJECTED = {"outcome": "rejected", "code": "NAME_MISSING", "action": "correct_row", "reason": "name: none."}
UNANSWERED = {"outcome": "unanswered", "code": "NETWORK", "action": "retry_later"}
NOW = datetime(2030, 1, 2, tzinfo=UTC)
HEADER = "payment_id,name,account_type,sort_code,account_number,amount,currency"
LINES = (
    "1,Ada Quilon,Personal,112233,00000001,10.00,GBP",
    "2,Bram Oakes,Personal,112233,00000002,20.05,GBP",
    "3,Cora Lint,Personal,112233,00000003,0.10,GBP",
)
COP = """
[profiles.main.cop]
server = "production"
base_url = "https://cop.example"
token_url = "https://login.example/token"
client_id = "ID"
client_secret_env = "SECRET"
scope = "s"
"""
NO_DECISION = "no decision on any row"
"""What is on record, in English whatever the language, of an approval without any decision."""


@pytest.fixture
def tmp_path(tmp_path):
    """A folder whose neighbours are not those of other tests: equal bytes there are the same payments."""
    (folder := tmp_path / "work").mkdir()
    return folder


@pytest.fixture
def folder_of(tmp_path, finish_run, outcomes_of):
    """Outcomes, and the bytes of a file -> the folder of its run, with reports if `reported`."""

    def build(*outcomes, data=None, name="pay.csv", reported=False, **options):
        file = tmp_path / name
        file.write_bytes(data or "\n".join((HEADER, *LINES[: len(outcomes)], "")).encode())
        return finish_run(file, outcomes_of(*outcomes), reported=reported, **options)

    return build


@pytest.fixture
def config_of(tmp_path):
    def build(**policy):
        path = tmp_path / "precheck.toml"
        table = "".join(f'{key} = "{verdict}"\n' for key, verdict in policy.items())
        path.write_text(f"[profiles.main.policy]\n{table}{COP}")
        return path

    return build


@pytest.fixture
def split_of(config_of):
    """Split under a policy, given as keyword arguments beside those of the job."""

    def run(folder, *, policy=None, **job):
        return split_folder(
            SplitJob(folder, config=config_of(**(policy or {})), **{"by": "Mara", **job}), now=NOW
        )

    return run


def fixed(folder, **job):
    return fix_folder(FixJob(folder, **{"accept": BOTH, "reason": "agreed", "by": "Mara", **job}), now=NOW)


def decided(folder, decisions, name="decided.xlsx", sheet="All"):
    """A copy of the folder's workbook with decisions: row -> (decision, reason)."""
    book = openpyxl.load_workbook(folder / "report.xlsx")
    cells = book[sheet]
    headers = [cell.value for cell in cells[3]]
    for row in cells.iter_rows(min_row=4):
        if row[0].value in decisions:
            decision, reason = decisions[row[0].value]
            row[headers.index("Decision")].value = decision
            row[headers.index("Reason")].value = reason
    path = folder.parent / name
    book.save(path)
    return path


def rows_of(path, delimiter=",", encoding="utf-8"):
    with Path(path).open(newline="", encoding=encoding) as file:
        return list(csv.DictReader(file, delimiter=delimiter))


def printed(show, done):
    """What a person reads of it, on a terminal wide enough for any line."""
    console = Console(file=io.StringIO(), width=400)
    show(done, console)
    return console.file.getvalue()


def approvals(folder):
    return json.loads((folder / "approvals.json").read_text())


# fix


def test_corrections_say_row_field_from_to_and_why(folder_of):
    folder = folder_of(BAMM, BANM, REJECTED)
    done = fixed(folder, accept=(), reason=None)
    assert [
        (line["row"], line["field"], line["from"], line["to"])
        for line in rows_of(done.corrections, encoding="utf-8-sig")
    ] == [
        ("1", "name", "Ada Quilon", "Ada Quillon"),
        ("1", "account_type", "Personal", "Business"),
        ("2", "account_type", "Personal", "Business"),
        ("3", "name", "Cora Lint", ""),
    ]
    assert (done.corrected, done.row_count, done.correctable_count) == (None, 3, 2)
    assert not (folder / "approvals.json").exists()


def test_a_name_that_a_spreadsheet_would_run_is_harmless_in_the_corrections(folder_of):
    folder = folder_of({**CLOSE, "matched_name": "=HYPERLINK(1)"})
    done = fixed(folder, accept=())
    assert rows_of(done.corrections, encoding="utf-8-sig")[0]["to"] == "'=HYPERLINK(1)"


def test_accepted_corrections_change_their_cells_and_no_other_byte(folder_of):
    folder = folder_of(CLOSE, BANM, ANNM)
    done = fixed(folder)
    expected = [
        HEADER,
        LINES[0].replace("Ada Quilon", "Ada Quillon"),
        LINES[1].replace("Personal", "Business"),
        LINES[2],
    ]
    assert Path(done.corrected.path).read_text() == "\n".join((*expected, ""))
    assert done.corrected_rows == [1, 2]


def test_only_the_accepted_kind_is_corrected(folder_of):
    folder = folder_of(CLOSE, BANM)
    assert fixed(folder, accept=(Acceptance.ACCOUNT_TYPE,)).corrected_rows == [2]


def test_a_row_that_needs_two_corrections_is_not_corrected_by_half(folder_of):
    folder = folder_of(BAMM, CLOSE)
    assert fixed(folder, accept=(Acceptance.CLOSE_MATCH,)).corrected_rows == [2]


def test_the_account_type_is_written_in_the_word_that_the_file_uses(folder_of):
    data = "\n".join(
        (HEADER, LINES[0].replace("Personal", "person"), LINES[1].replace("Personal", "institution"))
    )
    folder = folder_of(BANM, {}, data=data.encode())
    done = fixed(folder)
    assert rows_of(done.corrected.path)[0]["account_type"] == "institution"


def test_a_name_in_two_columns_is_left_for_a_person(folder_of):
    data = b"First Name,Last Name,sort_code,account_number\nAda,Quilon,112233,00000001\n"
    folder = folder_of(CLOSE, data=data)
    done = fixed(folder)
    assert (done.corrected, done.refused_rows) == (None, [1])
    assert "several columns" in rows_of(done.corrections, encoding="utf-8-sig")[0]["why"]


def test_an_account_type_without_a_column_is_left_for_a_person(folder_of):
    folder = folder_of(BANM, data=b"name,sort_code,account_number\nAda Quilon,112233,00000001\n")
    done = fixed(folder)
    assert (done.corrected, done.refused_rows) == (None, [1])


@pytest.mark.parametrize("name", ["=1+1", "Ada\u202eQuillon", "Ada\nQuillon", "x" * 141])
def test_a_returned_name_that_breaks_a_local_rule_is_not_written_into_a_payment_file(folder_of, name):
    folder = folder_of({**CLOSE, "matched_name": name})
    done = fixed(folder)
    assert (done.corrected, done.refused_rows) == (None, [1])


def test_decisions_of_the_workbook_correct_their_rows_and_are_on_record_with_their_reasons(folder_of):
    folder = folder_of(CLOSE, CLOSE, BANM, reported=True)
    workbook = decided(folder, {1: ("fix", "seen on the invoice"), 3: ("Fix", "it is a firm")}, sheet="Fix")
    done = fixed(folder, accept=(), decisions=workbook)
    assert done.corrected_rows == [1, 3]
    assert [(a["by"], a["why"], a["rows"]) for a in approvals(folder)] == [
        ("Mara", "seen on the invoice", [1]),
        ("Mara", "it is a firm", [3]),
    ]
    assert done.corrected.sha256 in approvals(folder)[0]["what"]


def test_approvals_only_grow(folder_of):
    folder = folder_of(CLOSE)
    fixed(folder)
    fixed(folder, reason="once more")
    assert [approval["why"] for approval in approvals(folder)] == ["agreed", "once more"]


def test_damaged_approvals_are_not_added_to_and_no_file_is_written(folder_of):
    folder = folder_of(CLOSE)
    (folder / "approvals.json").write_text("[{}]")
    with refused(InputError, "runs.decisions_unreadable", path="approvals.json"):
        fixed(folder)
    assert (folder / "approvals.json").read_text() == "[{}]"
    assert not list(folder.glob("corrected*"))


def test_the_next_command_says_how_the_corrected_file_is_read(folder_of):
    data = "Wer;Konto Nr;sort_code\nAdä Quilon;00000001;112233\n".encode("cp1252")
    mapping = {"name": "Wer", "account_number": "Konto Nr"}
    folder = folder_of(CLOSE, data=data, mapping=mapping, encoding="cp1252")
    words = fixed(folder).next_step
    assert "--map name=Wer --map 'account_number=Konto Nr' --encoding cp1252" in words
    assert "--profile main" in words
    assert words.endswith("pay.corrected.precheck")


# The style of the input


DELIMITERS = ",;|\t"
LINE_ENDS = ("\n", "\r\n", "\r")
ENCODINGS = ((None, b""), (None, b"\xef\xbb\xbf"), ("cp1252", b""), ("utf-16", b"\xff\xfe"))
STYLES = [
    # By day each encoding with each end of a line and, among them, each delimiter.
    pytest.param(
        DELIMITERS[at], line_end, *ENCODINGS[nth], marks=() if at == (nth + ends) % 4 else pytest.mark.nightly
    )
    for at in range(4)
    for ends, line_end in enumerate(LINE_ENDS)
    for nth in range(4)
]


@pytest.mark.parametrize(("delimiter", "line_end", "encoding", "mark"), STYLES)
def test_the_corrected_file_has_the_style_of_the_input(folder_of, delimiter, line_end, encoding, mark):
    text = line_end.join(("name\tsort_code\taccount_number", "Adä Quilon\t112233\t00000001", ""))
    text = text.replace("\t", delimiter)
    codec = "utf-16-le" if encoding == "utf-16" else encoding or "utf-8"
    folder = folder_of(CLOSE, data=mark + text.encode(codec), encoding=encoding)
    done = fixed(folder)
    expected = text.replace("Adä Quilon", "Ada Quillon")
    assert Path(done.corrected.path).read_bytes() == mark + expected.encode(codec)


def test_a_name_that_the_encoding_does_not_have_is_no_question_mark(folder_of):
    data = b"name,sort_code,account_number\nAda,112233,00000001\n"
    folder = folder_of({**CLOSE, "matched_name": "Łucja"}, data=data, encoding="cp1252")
    with refused(OutputError, "csv.name_not_in_encoding", encoding="cp1252"):
        fixed(folder)
    assert not list(folder.glob("corrected*"))


def test_a_parquet_file_keeps_its_types(tmp_path, finish_run, outcomes_of):
    table = pl.DataFrame(
        {
            "name": ["Ada Quilon", "Bram Oakes"],
            "sort_code": ["112233", "112233"],
            "account_number": ["00000001", "00000002"],
            "amount": [Decimal("10.50"), Decimal("0.01")],
            "currency": pl.Series(["GBP", "GBP"], dtype=pl.Categorical),
            "batch": [7, 8],
        }
    )
    file = tmp_path / "pay.parquet"
    table.write_parquet(file)
    folder = finish_run(file, outcomes_of(CLOSE, {}))
    corrected = pl.read_parquet(fixed(folder).corrected.path)
    assert corrected.schema == table.schema
    assert corrected.drop("name").equals(table.drop("name"))
    assert corrected["name"].to_list() == ["Ada Quillon", "Bram Oakes"]


def test_types_that_the_outcome_file_forgot_are_not_guessed(tmp_path, finish_run, outcomes_of):
    file = tmp_path / "pay.parquet"
    pl.DataFrame({"name": ["Ada"], "iban": ["x"], "batch": [7]}).write_parquet(file)
    folder = finish_run(file, outcomes_of(CLOSE), format_name="csv")
    with refused(InputError, "review.obstacle", "parquet.run_again_as_parquet"):
        fixed(folder)


# split


def test_matches_are_released_and_all_else_is_held(folder_of, split_of):
    folder = folder_of({}, CLOSE, ANNM)
    done = split_of(folder)
    assert Path(done.release.path).read_text() == "\n".join((HEADER, LINES[0], ""))
    assert Path(done.hold.path).read_text() == "\n".join((HEADER, *LINES[1:], ""))
    assert [
        (held["row"], held["account"], held["code"]) for held in rows_of(done.reasons, encoding="utf-8-sig")
    ] == [
        ("2", "**0002", "MBAM"),
        ("3", "**0003", "ANNM"),
    ]
    assert (done.input.row_count, done.release.row_count, done.hold.row_count) == (3, 1, 2)
    assert [total.amount for total in done.input.totals] == [Decimal("30.15")]


def test_a_held_row_whose_answer_is_kept_is_not_sent_back_to_the_same_command(folder_of, split_of):
    kept = {"outcome": "not_possible", "code": "HTTPERR", "action": "retry_later"}
    done = split_of(folder_of(kept, UNANSWERED), hold_undecided=True)
    advice = [row["what_to_do"] for row in rows_of(done.reasons, encoding="utf-8-sig")]
    assert said("todo.ask_again_elsewhere", "") in advice[0]
    assert advice[1] == said("todo.run_again_later", "")


def test_each_held_row_says_why_and_what_to_do(folder_of, split_of):
    done = split_of(folder_of(ANNM, REJECTED, BANM))
    held = rows_of(done.reasons, encoding="utf-8-sig")
    assert [row["row"] for row in held if row["why_held"] and row["what_to_do"]] == ["1", "2", "3"]


def test_no_file_is_released_where_no_row_may_be_paid(folder_of, split_of):
    folder = folder_of({}, ANNM)
    split_of(folder)
    assert (folder / "release.csv").exists()
    done = split_of(folder, policy={"match": "hold"})
    assert done.release is None
    assert not (folder / "release.csv").exists()


def test_a_code_goes_before_its_outcome(folder_of, split_of):
    done = split_of(folder_of(CLOSE, BAMM), policy={"close_match": "release", "BAMM": "hold"})
    assert [row["payment_id"] for row in rows_of(done.release.path)] == ["1"]


def test_a_row_for_review_is_held_until_a_person_releases_it_with_a_reason(folder_of, split_of):
    folder = folder_of(CLOSE, CLOSE, ANNM, reported=True)
    decisions = decided(folder, {2: ("release", "known supplier"), 3: ("release", "I insist")})
    done = split_of(folder, policy={"close_match": "review"}, decisions=decisions, by="Mara")
    assert [row["payment_id"] for row in rows_of(done.release.path)] == ["2"]
    assert done.unheeded_rows == [3]
    [approval, refusal] = approvals(folder)
    assert (approval["by"], approval["why"], approval["rows"]) == ("Mara", "known supplier", [2])
    assert done.release.sha256 in approval["what"]
    assert (refusal["by"], refusal["why"], refusal["rows"]) == ("Mara", "I insist", [3])
    assert refusal["what"].startswith("release refused")


def test_a_person_can_hold_what_the_policy_releases(folder_of, split_of):
    folder = folder_of({}, {}, {}, reported=True)
    decisions = decided(folder, {1: ("hold", None), 2: ("fix", "typing error")})
    done = split_of(folder, decisions=decisions)
    assert [row["payment_id"] for row in rows_of(done.release.path)] == ["3"]
    assert [approval["rows"] for approval in approvals(folder)] == [[1], [2]]


def test_undecided_rows_stop_the_split_unless_they_are_to_be_held(folder_of, split_of):
    folder = folder_of({}, UNANSWERED)
    with refused(IncompleteError, "jobs.rows_without_answer", "jobs.rerun_or_hold_undecided"):
        split_of(folder)
    assert not list(folder.glob("release*"))
    assert split_of(folder, hold_undecided=True).hold.row_count == 1


def test_no_decision_releases_a_row_that_no_bank_answered_for(folder_of, split_of):
    folder = folder_of({}, UNANSWERED, REJECTED, reported=True)
    decisions = decided(folder, {2: ("release", "urgent"), 3: ("release", "urgent")})
    done = split_of(folder, decisions=decisions, hold_undecided=True)
    assert (done.hold.row_count, done.unheeded_rows) == (2, [2, 3])


@pytest.mark.parametrize("outcome", ["rejected", "deferred", "unanswered"])
@pytest.mark.parametrize("verdict", ["release", "review"])
def test_no_policy_releases_what_no_bank_answered_for(folder_of, split_of, outcome, verdict):
    with refused(ConfigurationError, "config.outcome_can_only_be_held", outcome=outcome):
        split_of(folder_of({}), policy={outcome: verdict})


def test_a_policy_for_an_outcome_that_does_not_exist_is_an_error(folder_of, split_of):
    with refused(ConfigurationError, "config.policy_did_you_mean", near="close_match"):
        split_of(folder_of({}), policy={"closematch": "release"})


def test_without_its_profile_nothing_is_released(folder_of, tmp_path):
    folder = folder_of({})
    with pytest.raises(ConfigurationError):
        split_folder(SplitJob(folder, config=tmp_path / "none.toml", by="Mara"), now=NOW)


def test_simulated_answers_release_nothing_unless_told_and_then_the_names_say_so(folder_of, split_of):
    folder = folder_of({}, ANNM, environment="sandbox")
    with refused(UsageError, "review.run_is_simulated", "advice.allow_simulated"):
        split_of(folder)
    assert not list(folder.glob("release*"))
    done = split_of(folder, allow_simulated=True)
    assert done.release.path.endswith("release.simulated.csv")
    with refused(UsageError, "review.run_is_simulated", "advice.allow_simulated"):
        fixed(folder_of(CLOSE, environment="sandbox"))


def test_cells_that_a_row_had_too_many_are_held_and_never_released(folder_of, split_of):
    data = f"{HEADER}\n{LINES[0]}\n{LINES[1]},spare\n".encode()
    done = split_of(folder_of({}, {**REJECTED, "code": "ROW_TOO_LONG"}, data=data))
    assert Path(done.release.path).read_text() == f"{HEADER}\n{LINES[0]}\n"
    assert Path(done.hold.path).read_text() == f"{HEADER}\n{LINES[1]},spare\n"


TWICE = (LINES[0], LINES[0], LINES[1].replace("20.05,GBP", ","))
REPEATED = {"data": "\n".join((HEADER, *TWICE, "")).encode(), "warnings": [(2, "PAYMENT_REPEATED")]}


def test_a_released_row_with_a_warning_is_told_with_how_to_hold_it(folder_of, split_of):
    done = split_of(folder_of({}, {}, {}, **REPEATED))
    [warned] = done.released_warnings
    assert (warned.code, warned.row_count, warned.every_row) == ("PAYMENT_REPEATED", 1, [2])
    assert 'PAYMENT_REPEATED = "hold" into [profiles.main.policy]' in done.how_to_hold
    shown = printed(print_split, done)
    repeated = Sentence("warned.PAYMENT_REPEATED")
    warning = Sentence("terminal.warned_rows", what=repeated, count=1, rows="2")
    assert said("review.released_anyway", warning=warning) in shown
    assert done.how_to_hold in shown


def test_a_policy_holds_the_rows_with_a_warning_and_says_so(folder_of, split_of):
    done = split_of(folder_of({}, {}, {}, **REPEATED), policy={"PAYMENT_REPEATED": "hold"})
    [held] = rows_of(done.reasons, encoding="utf-8-sig")
    why = said("review.held_by_policy", of="PAYMENT_REPEATED")
    assert (held["row"], held["why_held"].endswith(why)) == ("2", True)
    assert (done.released_warnings, done.how_to_hold) == ([], None)


def test_the_control_totals_count_a_row_without_an_amount(folder_of, split_of):
    one = said("terminal.rows_without_amount", rows=Sentence("counted.row", count=1))
    assert one in printed(print_split, split_of(folder_of({}, {}, {}, **REPEATED)))


def test_more_rows_with_a_warning_than_are_listed_are_all_held(folder_of, split_of):
    data = "\n".join((HEADER, *[LINES[0]] * 12, "")).encode()
    warnings = [(row, "PAYMENT_REPEATED") for row in range(2, 13)]
    folder = folder_of(*[{}] * 12, data=data, warnings=warnings)
    assert split_of(folder, policy={"PAYMENT_REPEATED": "hold"}).hold.row_count == 11


def test_no_policy_releases_for_a_warning(folder_of, split_of):
    with refused(ConfigurationError, "config.warning_releases_nothing", warning="PAYMENT_REPEATED"):
        split_of(folder_of({}), policy={"PAYMENT_REPEATED": "release"})


def test_a_persons_reason_stands_in_the_hold_list_in_their_words(folder_of, split_of):
    folder = folder_of({}, {}, {}, reported=True)
    decisions = decided(folder, {1: ("hold", "not sure"), 2: ("hold", None), 3: ("fix", "wrong iban.")})
    done = split_of(folder, decisions=decisions)
    whys = [row["why_held"] for row in rows_of(done.reasons, encoding="utf-8-sig")]
    assert [why.partition("account. ")[2] for why in whys] == [
        f"{said('review.held_by_person').removesuffix('.')}: not sure.",
        said("review.held_by_person"),
        f"{said('review.held_to_correct').removesuffix('.')}: wrong iban.",
    ]
    assert "not sure" not in done.model_dump_json()


def test_what_turns_text_around_is_seen_in_the_lists_for_people_and_kept_in_the_payments(folder_of, split_of):
    line = LINES[0].replace("Ada Quilon", "Ada\u202eQuilon")
    folder = folder_of(REJECTED, data=f"{HEADER}\n{line}\n".encode())
    done = split_of(folder)
    assert rows_of(done.reasons, encoding="utf-8-sig")[0]["payee"] == r"Ada\u202eQuilon"
    assert rows_of(done.hold.path)[0]["name"] == "Ada\u202eQuilon"
    assert rows_of(fixed(folder).corrections, encoding="utf-8-sig")[0]["from"] == r"Ada\u202eQuilon"


@pytest.mark.parametrize("code", ["NO_API", "HTTP_413", "HTTP_415"])
def test_what_the_row_did_not_bring_about_is_no_correction_that_a_person_is_asked_for(folder_of, code):
    folder = folder_of(REJECTED | {"code": code}, REJECTED)
    whys = [row["why"] for row in rows_of(fixed(folder).corrections, encoding="utf-8-sig")]
    assert whys[0].endswith(str(Sentence("review.row_not_the_cause")))
    assert whys[1].endswith(str(Sentence("review.only_a_person")))


def test_the_manifest_has_the_policy_of_a_split_and_verify_checks_its_files(folder_of, split_of):
    folder = folder_of({}, CLOSE, ANNM, reported=True)
    decisions = decided(folder, {3: ("release", "cfo said so")})
    done = split_of(folder, policy={"close_match": "release"}, decisions=decisions, by="Mara")
    [made] = read_manifest(folder).splits
    assert (made.by, made.policy["close_match"], made.policy["no_match"]) == ("Mara", "release", "hold")
    assert (made.release.name, made.release.sha256) == ("release.csv", done.release.sha256)
    assert (made.release.row_count, made.hold.row_count, made.refused_rows) == (2, 1, [3])
    assert made.release.totals == done.release.totals
    found = {str(finding.what): finding for finding in verify(VerifyJob(folder), now=NOW)}
    assert found["split"].exit_code == 0
    files = [
        Sentence("evidence.rows_in_file", count=count, file=file)
        for count, file in ((2, "release.csv"), (1, "hold.csv"))
    ]
    says(found["split"].detail, "evidence.split_by", name="Mara", files=files)
    (folder / "release.csv").write_text("")
    found = {str(finding.what): finding for finding in verify(VerifyJob(folder), now=NOW)}
    says(found["release.csv"].detail, "runs.rewrite_by_command", command=f"precheck split {folder}")


def test_a_split_whose_record_was_changed_is_found(folder_of, split_of):
    folder = folder_of({}, ANNM)
    split_of(folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["splits"][0]["release"]["sha256"] = "0" * 64
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert "split" in {
        str(finding.what) for finding in verify(VerifyJob(folder), now=NOW) if finding.exit_code
    }


# The words that lead on


def test_the_hint_names_a_copy_of_the_workbook(folder_of):
    folder = folder_of(CLOSE)
    done = fixed(folder, accept=())
    assert f"cp {folder / 'report.xlsx'} {folder.parent / 'pay.decided.xlsx'}" in done.before_next
    assert done.next_step.endswith(f"--decisions {folder.parent / 'pay.decided.xlsx'}")
    assert fixed(folder_of(CLOSE, environment="sandbox"), accept=()).next_step.endswith(" --allow-simulated")


def test_a_workbook_that_corrects_nothing_is_told_so(folder_of):
    folder = folder_of(CLOSE, reported=True)
    workbook = decided(folder, {})
    done = fixed(folder, accept=(), decisions=workbook)
    assert done.before_next.startswith(said("review.corrects_no_row", file=workbook))
    assert done.next_step.endswith(f"--decisions {workbook}")


def test_a_row_with_nothing_to_correct_says_why_it_was_not_corrected(folder_of):
    folder = folder_of(CLOSE, ANNM, reported=True)
    done = fixed(folder, accept=(), decisions=decided(folder, {1: ("fix", "seen"), 2: ("fix", "wrong")}))
    assert (done.corrected_rows, done.refused_rows) == ([1], [2])
    lines = rows_of(done.corrections, encoding="utf-8-sig")
    assert [line["row"] for line in lines] == ["1", "2"]
    assert lines[1]["why"].endswith(said("review.answer_gives_no_correction"))


def test_a_workbook_with_decisions_in_it_is_kept_when_the_reports_are_written_anew(folder_of):
    folder = folder_of(CLOSE, reported=True)
    decided(folder, {1: ("fix", "seen")}).replace(folder / "report.xlsx")
    mine = (folder / "report.xlsx").read_bytes()
    _, kept = report(folder, now=NOW)
    assert (folder / kept).read_bytes() == mine
    assert (folder / "report.xlsx").read_bytes() != mine
    assert "report.xlsx" not in {
        str(finding.what) for finding in verify(VerifyJob(folder), now=NOW) if finding.exit_code
    }
    assert report(folder, now=NOW)[1] is None


def test_what_can_be_made_anew_names_the_command_that_does_and_never_asks_all_banks_again(folder_of):
    folder = folder_of(CLOSE, reported=True)
    for name in ("report.html", "report.xlsx", "attention.csv", "outcomes.csv", "summary.json"):
        (folder / name).write_text("changed")
    found = {
        str(finding.what): finding.detail
        for finding in verify(VerifyJob(folder), now=NOW)
        if finding.exit_code
    }
    report_again = Sentence("runs.rewrite_by_command", command=f"precheck report {folder}")
    run_again = Sentence("runs.rerun_to_rewrite")
    again = dict.fromkeys(("report.html", "report.xlsx", "attention.csv"), report_again)
    for name, step in {**again, "outcomes.csv": run_again, "summary.json": run_again}.items():
        aside = Sentence("runs.move_aside_first", step=step)
        assert found[name] == Sentence("evidence.changed", remedy=aside)
        (folder / name).unlink()
    gone = {str(finding.what): finding.detail for finding in verify(VerifyJob(folder), now=NOW)}
    no_file = Sentence("evidence.unreadable", why=Sentence("system.enoent"), remedy=run_again)
    assert gone["outcomes.csv"] == no_file, "there is nothing to move"
    assert not [sentence for sentence in map(str, found.values()) if "--fresh" in sentence]


# What is refused


def test_a_changed_outcome_file_is_refused(folder_of, split_of):
    folder = folder_of(ANNM, {})
    path = folder / "outcomes.csv"
    path.write_text(path.read_text().replace("no_match", "match").replace("ANNM", "MTCH"))
    with refused(InputError, "runs.differs_from_run", path="outcomes.csv"):
        split_of(folder)


@pytest.mark.parametrize(
    ("part", "value"),
    [("environment", "test"), ("outcomes", []), ("input", None)],
)
def test_a_summary_that_does_not_fit_the_ledger_is_refused(folder_of, split_of, part, value):
    folder = folder_of({}, environment="sandbox")
    summary = json.loads((folder / "summary.json").read_text())
    summary[part] = {**summary["input"], "sha256": "0" * 64} if part == "input" else value
    (folder / "summary.json").write_text(json.dumps(summary))
    with refused(InputError, "runs.changed_since", path="summary.json"):
        split_of(folder, allow_simulated=True)


def test_a_folder_in_which_a_run_is_working_is_refused(folder_of, split_of):
    folder = folder_of({})
    now = "2030-01-02T03:04:05.678Z"
    run = RunIdentity(
        json.loads((folder / "summary.json").read_text())["input"]["sha256"], "0" * 64, "production", "0"
    )
    with SqliteLedger.open(folder / "ledger.db", run, now=now), pytest.raises(LockedError):
        split_of(folder)


def test_a_folder_without_a_run_is_refused_and_not_made(tmp_path, split_of):
    with refused(UsageError, "files.no_such_folder"):
        split_of(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()


# Decisions that cannot be meant


def test_the_workbook_of_another_run_is_refused(folder_of, split_of):
    workbook = decided(folder_of({}, ANNM, name="other.csv", reported=True), {})
    with refused(InputError, "excel.not_workbook_of_current_answers"):
        split_of(folder_of({}, CLOSE, reported=True), decisions=workbook)


@pytest.mark.parametrize(
    ("decision", "reason", "sentence"),
    [
        ("release", None, "excel.decision_without_reason"),
        ("  ", "because", "excel.reason_without_decision"),
        ("pay it", "because", "excel.not_a_decision"),
        ("=1+1", "because", "excel.reason_without_decision"),
    ],
)
def test_a_decision_that_cannot_be_meant_is_refused_with_its_row(
    folder_of, split_of, decision, reason, sentence
):
    folder = folder_of(CLOSE, reported=True)
    with refused(InputError, sentence, rows=["1"]):
        split_of(folder, decisions=decided(folder, {1: (decision, reason)}))


def test_two_sheets_that_decide_a_row_differently_are_refused(folder_of, split_of):
    folder = folder_of(CLOSE, reported=True)
    book = openpyxl.load_workbook(decided(folder, {1: ("release", "known")}))
    headers = [cell.value for cell in book["Close match"][3]]
    book["Close match"].cell(4, headers.index("Decision") + 1).value = "hold"
    book.save(folder.parent / "both.xlsx")
    with refused(InputError, "excel.row_decided_differently", "places.rows", rows=["1"]):
        split_of(folder, decisions=folder.parent / "both.xlsx")


def test_a_row_number_that_the_file_does_not_have_is_refused(folder_of, split_of):
    folder = folder_of(CLOSE, reported=True)
    book = openpyxl.load_workbook(decided(folder, {1: ("release", "known")}))
    book["All"].cell(4, 1).value = 99
    book.save(folder.parent / "row.xlsx")
    with refused(InputError, "excel.decision_without_row_number"):
        split_of(folder, decisions=folder.parent / "row.xlsx")


def test_what_is_no_workbook_is_refused(folder_of, split_of, tmp_path):
    (tmp_path / "decided.xlsx").write_bytes(b"PK\x03\x04 and nothing more")
    with refused(InputError, "excel.workbook_damaged"):
        split_of(folder_of({}), decisions=tmp_path / "decided.xlsx")


def test_a_folder_whose_names_are_under_a_key_is_split_without_the_key(folder_of, split_of):
    folder = folder_of({}, secret=SecretStr("a key that the split is never given"))
    assert split_of(folder).release.row_count == 1


EARLIER, LATER = "2030-01-01T09:00:00.000Z", "2030-01-01T10:00:00.000Z"


def recorded(folder, *rows, run_id=None):
    """What people decided at a desk: (row, decision, reason, by, time)."""
    found = pl.DataFrame([(*row, None) for row in rows], schema=DECISIONS, orient="row")
    summary = json.loads((folder / "summary.json").read_text())
    run_id = run_id or parse(Summary, json.dumps(summary).encode()).run_id
    return RunDecisions(run_id, found, "Cleo", LATER)


def test_evidence_names_who_decided_each_row_and_when_and_the_approver_apart(folder_of, split_of):
    folder = folder_of(CLOSE, ANNM, CLOSE)
    decisions = recorded(
        folder, (1, "release", "phoned", "Ada", EARLIER), (2, "hold", "unknown", "Bram", LATER),
        (3, "release", "phoned", "Bram", LATER),
    )  # fmt: skip
    split_of(folder, policy={"close_match": "review"}, decisions=decisions, is_identified=True)
    told = [(a["by"], a["time"], a["rows"], a["approved_by"], a["self_approved"]) for a in approvals(folder)]
    assert sorted(told, key=lambda one: one[2]) == [
        ("Ada", EARLIER, [1], "Mara", False),
        ("Bram", LATER, [2], "Mara", False),
        ("Bram", LATER, [3], "Mara", False),
    ]
    assert json.loads((folder / "manifest.json").read_text())["splits"][-1]["self_approved"] is False
    [finding] = [found for found in verify(VerifyJob(folder), now=NOW) if str(found.what) == "approvals"]
    who = {"deciders": ["Ada", "Bram"], "approvers": ["Mara"]}
    assert finding.detail == Sentence("evidence.decided", count=3, **who)


@pytest.mark.parametrize(
    ("is_identified", "key"), [(True, "evidence.submitted"), (False, "evidence.submitted_alone")]
)
def test_an_approval_where_nobody_decided_about_a_row_is_on_record_too(
    folder_of, split_of, is_identified, key
):
    folder = folder_of({})
    split_of(folder, decisions=recorded(folder), is_identified=is_identified)
    [one] = approvals(folder)
    assert (one["by"], one["time"], one["approved_by"], one["rows"]) == ("Cleo", LATER, "Mara", [])
    assert one["what"].startswith(f"{NO_DECISION}: the released payments are release.csv, SHA-256 ")
    [finding] = [found for found in verify(VerifyJob(folder), now=NOW) if str(found.what) == "approvals"]
    assert finding.detail == Sentence(key, count=1, deciders=["Cleo"], approvers=["Mara"])


def test_a_split_by_one_person_who_decided_nothing_is_self_approved(folder_of, split_of):
    folder = folder_of({})
    split_of(folder)
    assert [(one["by"], one["approved_by"], one["self_approved"]) for one in approvals(folder)] == [
        ("Mara", "Mara", True)
    ]


def test_a_row_that_was_fixed_and_kept_out_of_the_release_is_on_record_once(folder_of, split_of):
    folder = folder_of(CLOSE, {})
    decisions = recorded(folder, (1, "fix", "their letter", "Ada", EARLIER))
    fixed(folder, accept=(), decisions=decisions)
    split_of(folder, decisions=decisions)
    assert [(one["decision"], one["rows"]) for one in approvals(folder)] == [("fix", [1])]


@pytest.mark.parametrize(
    ("by", "is_identified", "own"), [("mara", True, True), ("Ada", False, True), ("Ada", True, False)]
)
def test_nobody_is_four_eyes_alone_nor_without_having_identified_themselves(
    folder_of, split_of, by, is_identified, own
):
    folder = folder_of(CLOSE)
    decisions = recorded(folder, (1, "release", "phoned", by, EARLIER))
    split_of(folder, policy={"close_match": "review"}, decisions=decisions, is_identified=is_identified)
    assert read_manifest(folder).splits[-1].self_approved is own
    assert approvals(folder)[0]["self_approved"] is own


@pytest.mark.parametrize(
    "change",
    [{"approved_by": "Ada"}, {"self_approved": True}, {"approved_at": EARLIER[:-1]}, {"rows": [2]}],
)
def test_evidence_of_an_approval_that_cannot_be_true_is_found(folder_of, split_of, change):
    folder = folder_of(CLOSE)
    decisions = recorded(folder, (1, "release", "phoned", "Ada", EARLIER))
    split_of(folder, policy={"close_match": "review"}, decisions=decisions, is_identified=True)
    changed = [{**approvals(folder)[0], **change}]
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "approvals.json").write_text(json.dumps(changed))
    (folder / "manifest.json").write_text(json.dumps({**manifest, "approvals": changed}))
    [finding] = [found for found in verify(VerifyJob(folder), now=NOW) if str(found.what) == "approvals"]
    assert finding.exit_code == 65


def test_recorded_decisions_and_those_of_a_workbook_make_the_same_files(folder_of, split_of):
    folder = folder_of(CLOSE, ANNM, CLOSE, reported=True)
    said = {1: ("release", "phoned"), 2: ("hold", "unknown")}
    policy = {"close_match": "review"}
    names = ("release.csv", "hold.csv", "hold_reasons.csv")
    split_of(folder, policy=policy, decisions=decided(folder, said))
    by_workbook = [(folder / name).read_bytes() for name in names]
    rows = [(row, *words, "Ada", EARLIER) for row, words in said.items()]
    split_of(folder, policy=policy, decisions=recorded(folder, *rows))
    assert [(folder / name).read_bytes() for name in names] == by_workbook


def test_recorded_decisions_about_other_answers_are_refused(folder_of, split_of):
    folder = folder_of(CLOSE)
    decisions = recorded(folder, (1, "hold", None, "Ada", EARLIER), run_id="0" * 32)
    with refused(InputError, "review.answers_changed_since"):
        split_of(folder, decisions=decisions)
    assert not list(folder.glob("hold*"))


def test_a_preview_is_what_the_split_does(folder_of, split_of):
    folder = folder_of(CLOSE, ANNM, CLOSE)
    decisions = recorded(
        folder, (1, "release", "phoned", "Ada", EARLIER), (2, "release", "phoned", "Ada", EARLIER)
    )
    rows = ended_run(folder).rows()
    policy = {"close_match": "review"}
    every = judged(rows.payments, rows.outcomes, pl.DataFrame(schema=WARNED), policy)
    before = preview(every, decisions.rows.select("row", "decision"))
    done = split_of(folder, policy=policy, decisions=decisions)
    assert before.release == ControlTotal(**done.release.model_dump(include={"row_count", "totals"}))
    assert before.hold == ControlTotal(**done.hold.model_dump(include={"row_count", "totals"}))
    assert before.refused.to_list() == done.unheeded_rows == [2]


@pytest.mark.parametrize(
    ("header", "found"),
    [("Vendor No", ["V1"]), ("supplier_id", ["V1"]), ("Lieferanten-Nr.", ["V1"]), ("Vendor name", [None])],
)
def test_a_correction_names_the_payee_as_the_users_own_system_does(header, found):
    assert payee_ids(pl.DataFrame({"name": ["A"], header: ["V1"]})).to_list() == found
