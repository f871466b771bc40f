"""--compare-with: a known payee with another account is told first, and nothing is sent for it."""

import csv
import json
import shutil
import stat

import openpyxl
import pytest

HEADER = ("Employee No", "name", "account_type", "sort_code", "account_number", "iban", "amount", "currency")
UK = {"account_type": "Personal", "sort_code": "001122", "currency": "GBP"}
AVERY = UK | {
    "Employee No": "E1",
    "name": "Avery Thornwood",
    "account_number": "00012345",
    "amount": "1850.00",
}
ROWAN = UK | {
    "Employee No": "E2",
    "name": "Rowan Blackmere",
    "account_number": "00054321",
    "amount": "2100.00",
}
SOLENE = {
    "Employee No": "E3",
    "name": "Solène Montferrand",
    "iban": "FR7630003012340000482100733",
    "amount": "990.00",
    "currency": "EUR",
}
NEWCOMER = UK | {"Employee No": "E4", "name": "Imre Vasko", "account_number": "00098765", "amount": "1200.00"}
CHANGED = [
    SOLENE | {"name": "Marguerite Delorme"},
    AVERY | {"account_number": "00067890"},
    ROWAN,
    NEWCOMER,
]
CODES = {1: "NAME_CHANGED", 2: "ACCOUNT_CHANGED", 4: "PAYEE_NEW"}


@pytest.fixture
def run(desk, sandbox):
    return lambda file, *words: desk("run", file, *sandbox.using("sandbox"), *words)


@pytest.fixture
def january(desk, run):
    """The folder of a finished run of last month's payroll, made like any other."""
    file = desk.payments([AVERY, ROWAN, SOLENE], name="january.csv", header=HEADER)
    assert run(file).status == 0
    return desk.folder / "january.precheck"


@pytest.fixture
def february(desk):
    """This month's payroll: another name, another account, the same, and a newcomer."""
    return desk.payments(CHANGED, name="february.csv", header=HEADER)


def summary_of(desk, folder):
    return json.loads((desk.folder / folder / "summary.json").read_text())


def codes_of(desk, folder="february.precheck"):
    counts = summary_of(desk, folder)["warning_codes"]
    return {row: count["code"] for count in counts for row in count["every_row"]}


def test_what_changed_is_told_first_in_every_report_with_old_and_new_masked(desk, run, january, february):
    done = run(february, "--compare-with", january)

    assert done.status == 0
    assert codes_of(desk) == CODES
    told = done.err.index("Compared with january.precheck.")
    assert told < done.err.index("february.csv: 4 payments")
    lines = done.err[told:].splitlines()
    [account] = [line for line in lines if "other account" in line and "**" in line]
    assert account.split() == ["2", "3", "1,850.00", "GBP", "other", "account", "**2345", "**7890"]
    [name] = [line for line in lines if "other name" in line and "**" in line]
    assert name.split()[-4:] == ["S****e", "M*********d", "M********e", "D*****e"]
    folder = desk.folder / "february.precheck"
    page = (folder / "report.html").read_text()
    section = page[page.index("Changed since last time") : page.index("What came back")]
    for text in (
        "**2345",
        "**7890",
        "S****e M*********d",
        "M********e D*****e",
        "other account",
        "new payee",
    ):
        assert text in section
    sheet = openpyxl.load_workbook(folder / "report.xlsx")["Changed"]
    rows = [[cell.value for cell in row] for row in sheet.iter_rows(min_row=4)]
    assert (*rows[0][:2], *rows[0][4:7]) == (2, "line 3", "other account", "**2345", "**7890")
    assert [row[0] for row in rows] == [2, 1, 4], "accounts first, then names, then new payees"
    story = desk("show", folder, "--row", "1")
    assert "S****e M*********d then" in " ".join(story.err.split())


def test_nothing_is_sent_for_it_and_the_outcomes_stay(desk, sandbox, february):
    january = desk.payments([AVERY, ROWAN, SOLENE], name="january.csv", header=HEADER)
    desk("run", january, *sandbox.using("sandbox"))
    alone = desk("run", february, *sandbox.using("sandbox"), "--out", "alone", "--json")
    before = sandbox.call_count

    compared = desk(
        "run", february, *sandbox.using("sandbox"), "--compare-with", "january.precheck", "--json"
    )

    assert len(sandbox.questions(before)) == 4
    outcomes = [json.loads(done.out)["outcomes"] for done in (alone, compared)]
    assert outcomes[0] == outcomes[1]


def test_plan_tells_the_same(desk, january, february):
    done = desk("plan", february, "--compare-with", january)

    assert done.status == 0
    assert "1 payment: other account; 1 payment: other name; 1 payment: new payee" in done.err
    assert "**2345" in done.err
    assert not (desk.folder / "february.precheck").exists()


def test_running_again_gives_the_same_warnings_and_another_comparison_is_made_anew(
    desk, run, january, february
):
    words = (february, "--compare-with", january)
    run(*words)

    again = run(*words)
    assert "Finished already" in again.err
    assert "**2345" in again.err
    assert codes_of(desk) == CODES

    alone = run(february)
    assert "Finished already" not in alone.err
    assert codes_of(desk) == {}
    folder = desk.folder / "february.precheck"
    assert not (folder / "payees.csv").exists()
    assert desk("verify", folder).status == 0


def test_a_run_that_was_cut_short_warns_of_the_same_once_it_is_complete(desk, run, january, february):
    words = (february, "--compare-with", january)
    assert run(*words, "--limit", "1").status == 75
    assert codes_of(desk) == CODES

    assert run(*words).status == 0
    assert codes_of(desk) == CODES


def test_fail_on_hears_of_a_changed_account(desk, run, january, february):
    words = (february, "--compare-with", january)
    assert run(*words, "--fail-on", "ACCOUNT_CHANGED").status == 1


def test_a_policy_holds_what_changed(desk, january, february):
    config = desk.file(
        "precheck.toml",
        '[profiles.sandbox]\ncompare_with = "newest of *.precheck"\n'
        '[profiles.sandbox.policy]\nno_match = "release"\nnot_possible = "release"\n'
        'ACCOUNT_CHANGED = "hold"\nNAME_CHANGED = "hold"\n',
    )
    assert desk("run", february, "--profile", "sandbox", "--config", config).status == 0

    folder = desk.folder / "february.precheck"
    assert codes_of(desk) == CODES
    assert desk("split", folder, "--config", config, "--allow-simulated", "--by", "T").status == 0
    with (folder / "hold_reasons.csv").open(newline="", encoding="utf-8-sig") as file:
        held = {row["row"]: row["why_held"] for row in csv.DictReader(file)}
    assert held["1"].endswith("The policy holds NAME_CHANGED.")
    assert "**2345 then, **7890 now" in held["2"]
    assert held["2"].endswith("The policy holds ACCOUNT_CHANGED.")
    assert desk("verify", folder).status == 0


def test_the_newest_run_of_another_file_that_had_ended_is_taken(desk, january, february):
    desk.file("precheck.toml", '[profiles.sandbox]\ncompare_with = "newest of *.precheck"\n')
    older = desk.payments([AVERY | {"account_number": "00011111"}], name="december.csv", header=HEADER)
    shutil.copytree(january, desk.folder / "kept")
    assert desk("run", older).status == 0  # newer than january's, and another file
    trial = desk("run", february, "--out", "trial.precheck")  # newest of all, and of the same file
    assert trial.status == 0

    desk("run", february, "--profile", "sandbox")

    runs = summary_of(desk, "february.precheck")["compared"]["runs"]
    assert [run["folder"] for run in runs] == ["december.precheck"]
    march = desk.payments([AVERY], name="march.csv", header=HEADER)
    desk("run", march)
    again = desk("run", february, "--profile", "sandbox", "--format", "parquet")
    assert "march" not in again.err, "a later run is no earlier one"


def test_a_first_run_says_so_in_a_sentence_and_keeps_what_the_next_one_needs(desk, february):
    desk.file("precheck.toml", '[profiles.sandbox]\ncompare_with = "newest of *.precheck"\n')

    done = desk("run", february, "--profile", "sandbox")

    assert done.status == 0
    assert "Compared with nothing" in done.err
    assert codes_of(desk) == {}
    assert (desk.folder / "february.precheck" / "payees.csv").exists()


def test_where_everybody_is_new_one_sentence_says_so(desk, run, january):
    file = desk.payments([NEWCOMER, NEWCOMER | {"Employee No": "E5", "name": "Ada Quill"}], header=HEADER)

    done = run(file, "--compare-with", january)

    assert "No payee and no account of this file was in january.precheck" in done.err
    assert "new payee  " not in done.err
    assert codes_of(desk, "payments.precheck")[1] == "PAYEE_NEW", "a policy can still hold them"


def test_what_is_kept_is_neither_a_name_nor_an_account_and_nobody_else_reads_it(desk, run, january, february):
    run(february, "--compare-with", january)

    folder = desk.folder / "february.precheck"
    for name in ("payees.csv", "changes.jsonl"):
        text = (folder / name).read_bytes().lower()
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
        for row in (AVERY, *CHANGED):
            for word in (
                *row["name"].split(),
                row.get("account_number"),
                row.get("iban"),
                row["Employee No"] + ",",
            ):
                assert not word or word.encode().lower() not in text
    manifest = json.loads((folder / "manifest.json").read_text())
    assert {"payees.csv", "changes.jsonl"} <= {file["name"] for file in manifest["files"]}


def test_once_names_are_purged_the_next_run_still_sees_a_changed_account(desk, run, january, february):
    run(february, "--compare-with", january)
    folder = desk.folder / "february.precheck"
    assert desk("purge", folder, "--outcomes").status == 0
    assert not (folder / "changes.jsonl").exists(), "it has masked names"
    assert desk("verify", folder).status == 0
    march = desk.payments(
        [ROWAN | {"account_number": "00000001"}, NEWCOMER | {"name": "Imre Vass"}], header=HEADER
    )

    done = run(march, "--compare-with", folder)

    assert codes_of(desk, "payments.precheck") == {1: "ACCOUNT_CHANGED", 2: "NAME_CHANGED"}
    assert "**4321" in done.err
    assert "no longer kept" in done.err


def test_a_purged_run_that_kept_no_keys_is_refused_with_what_to_do(desk, run, january, february):
    desk("purge", january, "--outcomes")

    done = run(february, "--compare-with", january)

    assert done.status == 65
    [sentence] = done.sentences
    assert "run its command again, which asks nothing twice" in sentence
    assert not (desk.folder / "february.precheck").exists()


@pytest.mark.parametrize("name", ["outcomes.csv", "summary.json", "report.xlsx"])
def test_a_folder_that_is_not_as_its_run_left_it_is_refused_before_anything_is_asked(
    desk, run, january, february, name
):
    path = january / name
    path.write_bytes(path.read_bytes()[:-7] + b"changed")

    done = run(february, "--compare-with", january)

    assert done.status == 65
    assert str(january) in done.sentences[0]
    assert not (desk.folder / "february.precheck").exists()


def test_a_folder_without_a_run_and_that_of_this_very_run_are_refused(desk, run, january, february):
    (desk.folder / "empty").mkdir()

    assert run(february, "--compare-with", "empty").status == 2
    own = run(desk.folder / "january.csv", "--compare-with", january)
    assert own.status == 2
    assert "this very run" in own.sentences[0]


def test_a_changed_account_is_not_known_until_a_bank_has_said_match(desk, run, january, february):
    run(february, "--compare-with", january)
    march = desk.payments(CHANGED, name="march.csv", header=HEADER)

    run(march, "--compare-with", "february.precheck", "--compare-with", january)

    assert codes_of(desk, "march.precheck")[2] == "ACCOUNT_CHANGED", (
        "it was never confirmed, perhaps never paid"
    )
