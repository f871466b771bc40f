"""--compare-with: a known payee with another account is told first, and nothing is sent for it."""

import csv
import json
import shutil
import stat

import openpyxl
import pytest
from forgers import swapped_after
from refusals import said

pytestmark = pytest.mark.usefixtures("in_this_process")

HEADER = ("Employee No", "name", "account_type", "sort_code", "account_number", "iban", "amount", "currency")
UK = {"account_type": "Personal", "sort_code": "001122", "currency": "GBP"}
AVERY = UK | {
    "Employee No": "E1",
    "name": "Avery Thornwood",
    "account_number": "00012345",
    "amount": "1850.00",
}
IMOGEN = UK | {
    "Employee No": "E2",
    "name": "Imogen Farraday",
    "sort_code": "200415",
    "account_number": "31926819",
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
    IMOGEN,
    NEWCOMER,
]
NEWEST = 'compare_with = "newest of *.precheck"'
CODES = {1: "NAME_CHANGED", 2: "ACCOUNT_CHANGED", 4: "PAYEE_NEW"}


def by_night(*values):
    """Values that show no more than the one before them."""
    return [pytest.param(value, marks=pytest.mark.nightly) for value in values]


@pytest.fixture
def run(desk, sandbox):
    """As the command; what it leaves in one folder it leaves in another: see `Desk.ran`."""
    return lambda file, *words: desk.ran("run", file, *sandbox.using("sandbox"), *words)


@pytest.fixture
def configured(desk, sandbox):
    """`configured(lines, policy="")`: the words for a profile that says this."""

    def words(lines="", policy=""):
        config = desk.configuration(
            "precheck.toml", mine={api: sandbox.section("sandbox", api) for api in ("cop", "vop")}
        )
        said = f"[profiles.mine]\n{lines}\n[profiles.mine.policy]\n{policy}\n"
        config.write_text(said + config.read_text())
        return "--profile", "mine"

    return words


@pytest.fixture
def january(desk, sandbox):
    """The folder of a finished run of last month's payroll, made like any other."""
    file = desk.payments([AVERY, IMOGEN, SOLENE], name="january.csv", header=HEADER)
    assert desk.ran("run", file, *sandbox.using("sandbox")).status == 0
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
    told = done.out.index("Compared with january.precheck.")
    assert told < done.out.index("february.csv: 4 payments")
    lines = done.out[told:].splitlines()
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
    assert "S****e M*********d then" in " ".join(story.out.split())


def test_nothing_is_sent_for_it_and_the_outcomes_stay(desk, sandbox, january, february):
    alone = desk("run", february, *sandbox.using("sandbox"), "--out", "alone", "--json")
    before = sandbox.call_count

    compared = desk("run", february, *sandbox.using("sandbox"), "--compare-with", january, "--json")

    assert len(sandbox.questions(before)) == 4
    outcomes = [json.loads(done.out)["outcomes"] for done in (alone, compared)]
    assert outcomes[0] == outcomes[1]


def test_plan_tells_the_same(desk, january, february):
    done = desk("plan", february, "--compare-with", january)

    assert done.status == 0
    kinds = said("changes.account_changed"), said("changes.name_changed"), said("changes.payee_new")
    assert "; ".join(f"1 payment: {kind}" for kind in kinds) in done.out
    assert "**2345" in done.out
    assert not (desk.folder / "february.precheck").exists()


@pytest.mark.nightly
def test_running_again_gives_the_same_warnings_and_another_comparison_is_made_anew(
    desk, sandbox, january, february
):
    def run(*words):
        return desk("run", *words, *sandbox.using("sandbox"))

    words = (february, "--compare-with", january)
    run(*words)

    again = run(*words)
    assert "Finished already" in again.out
    assert "**2345" in again.out
    assert codes_of(desk) == CODES

    alone = run(february)
    assert "Finished already" not in alone.out
    assert codes_of(desk) == {}
    folder = desk.folder / "february.precheck"
    assert not (folder / "payees.csv").exists()
    assert desk("verify", folder).status == 0


@pytest.mark.nightly
def test_a_run_that_was_cut_short_warns_of_the_same_once_it_is_complete(desk, run, january, february):
    words = (february, "--compare-with", january)
    assert run(*words, "--limit", "1").status == 75
    assert codes_of(desk) == CODES

    assert run(*words).status == 0
    assert codes_of(desk) == CODES


@pytest.mark.nightly
def test_fail_on_hears_of_a_changed_account(desk, run, january, february):
    words = (february, "--compare-with", january)
    assert run(*words, "--fail-on", "ACCOUNT_CHANGED").status == 1


def test_a_policy_holds_what_changed(desk, configured, january, february):
    policy = (
        'no_match = "release"\nnot_possible = "release"\nACCOUNT_CHANGED = "hold"\nNAME_CHANGED = "hold"\n'
    )
    assert desk("run", february, *configured(NEWEST, policy)).status == 0

    folder = desk.folder / "february.precheck"
    assert codes_of(desk) == CODES
    assert desk("split", folder, "--allow-simulated", "--by", "T").status == 0
    with (folder / "hold_reasons.csv").open(newline="", encoding="utf-8-sig") as file:
        held = {row["row"]: row["why_held"] for row in csv.DictReader(file)}
    assert held["1"].endswith(said("review.held_by_policy", of="NAME_CHANGED"))
    assert "**2345 then, **7890 now" in held["2"]
    assert held["2"].endswith(said("review.held_by_policy", of="ACCOUNT_CHANGED"))
    assert desk("verify", folder).status == 0


@pytest.mark.nightly
def test_the_newest_run_of_another_file_that_had_ended_is_taken(desk, run, configured, january, february):
    words = configured(NEWEST)
    older = desk.payments([AVERY | {"account_number": "00011111"}], name="december.csv", header=HEADER)
    shutil.copytree(january, desk.folder / "kept")
    assert run(older).status == 0  # newer than january's, and another file
    trial = run(february, "--out", "trial.precheck")  # newest of all, and of the same file
    assert trial.status == 0

    desk("run", february, *words)

    runs = summary_of(desk, "february.precheck")["compared"]["runs"]
    assert [run["folder"] for run in runs] == ["december.precheck"]
    march = desk.payments([AVERY], name="march.csv", header=HEADER)
    run(march)
    again = desk("run", february, *words, "--format", "parquet")
    assert "march" not in again.err, "a later run is no earlier one"


def test_a_first_run_says_so_in_a_sentence_and_keeps_what_the_next_one_needs(desk, configured, february):
    done = desk("run", february, *configured(NEWEST))

    assert done.status == 0
    assert "Not compared: " in done.out
    assert codes_of(desk) == {}
    assert (desk.folder / "february.precheck" / "payees.csv").exists()


def test_where_everybody_is_new_one_sentence_says_so(desk, run, january):
    file = desk.payments([NEWCOMER, NEWCOMER | {"Employee No": "E5", "name": "Ada Quill"}], header=HEADER)

    done = run(file, "--compare-with", january)

    assert said("changes.all_payees_are_new", folders=["january.precheck"]) in done.out
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
        [IMOGEN | {"account_number": "00000001"}, NEWCOMER | {"name": "Imre Vass"}], header=HEADER
    )

    done = run(march, "--compare-with", folder)

    assert codes_of(desk, "payments.precheck") == {1: "ACCOUNT_CHANGED", 2: "NAME_CHANGED"}
    assert "**6819" in done.out
    assert said("changes.no_longer_kept") in done.out


def test_a_run_whose_keys_were_purged_with_its_payments_is_refused(desk, run, january, february):
    run(february, "--compare-with", january)
    assert desk("purge", "february.precheck", "--payments").status == 0
    march = desk.payments([NEWCOMER], name="march.csv", header=HEADER)

    refused = run(march, "--compare-with", "february.precheck")

    assert refused.status == 65
    assert said("jobs.compare_with_purged_run", payees="payees.csv") in refused.err


def test_a_purged_run_that_kept_no_keys_is_refused_with_what_to_do(desk, run, january, february):
    desk("purge", january, "--outcomes")

    done = run(february, "--compare-with", january)

    assert done.status == 65
    [sentence] = done.sentences
    assert said("jobs.rerun_its_command") in sentence
    assert not (desk.folder / "february.precheck").exists()


@pytest.mark.parametrize("name", ["outcomes.csv", *by_night("summary.json", "report.xlsx")])
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
    assert said("jobs.compare_with_own_folder") in own.sentences[0]


# What counts as known: three months, each compared with the one before, and with nothing else.

NOT_AVERY = AVERY | {
    "name": "Brackenfell Joinery Ltd",
    "account_type": "Business",
    "account_number": "55779911",
}
"""Avery's number and another account, on which the bank says that the name matches."""


@pytest.fixture
def month(desk, sandbox):
    """Check the payroll of a month against that of the month before: by row, what is told of it, and how."""

    def month(name, rows, before=None):
        file = desk.payments(rows, name=f"{name}.csv", header=HEADER)
        words = [] if before is None else ["--compare-with", f"{before}.precheck"]
        desk.ran("run", file, *sandbox.using("sandbox"), *words)
        folder = desk.folder / f"{name}.precheck"
        changes = folder / "changes.jsonl"
        lines = changes.read_text().splitlines() if changes.exists() else []
        return {change["row"]: (change["code"], change["then"]) for change in map(json.loads, lines)}

    return month


@pytest.fixture
def decide(desk):
    """Split the payments of a month as a person decided in the workbook: row -> release or hold."""

    def decide(name, decisions, policy=""):
        folder, copy = desk.folder / f"{name}.precheck", desk.folder / f"{name}.decided.xlsx"
        book = openpyxl.load_workbook(folder / "report.xlsx")
        sheet = book["All"]
        headers = [cell.value for cell in sheet[3]]
        decision, reason = headers.index("Decision"), headers.index("Reason")
        for row in sheet.iter_rows(min_row=4):
            if (said := decisions.get(row[0].value)) is not None:
                row[decision].value, row[reason].value = said, "asked by the number on file"
        book.save(copy)
        config = desk.file("precheck.toml", f"[profiles.sandbox.policy]\n{policy}")
        done = desk(
            "split", folder, "--decisions", copy, "--config", config, "--allow-simulated", "--by", "T"
        )
        assert done.status == 0, done.err

    return decide


@pytest.mark.nightly
def test_a_changed_account_is_told_every_month_until_a_person_has_released_it(desk, month, decide):
    assert month("january", [AVERY, IMOGEN]) == {}
    changed = {1: ("ACCOUNT_CHANGED", "**2345")}
    rows = [NOT_AVERY, IMOGEN]

    assert month("february", rows, "january") == changed
    shutil.rmtree(desk.folder / "january.precheck")  # what it knew is carried on
    assert month("march", rows, "february") == changed, "a match of the name is not the payee's word"
    assert month("april", [AVERY, IMOGEN], "march") == {}, "it was never unlearnt"

    decide("march", {1: "release"})
    assert month("may", rows, "march") == {}
    assert month("june", [AVERY], "march") == {1: ("ACCOUNT_CHANGED", "**9911")}


@pytest.mark.nightly
def test_a_held_row_says_everything_that_holds_it_and_its_currency(desk, month, decide):
    month("january", [AVERY])
    month("february", [CHANGED[1] | {"currency": ""}], "january")
    decide("february", {}, policy='ACCOUNT_CHANGED = "hold"\n')

    with (desk.folder / "february.precheck" / "hold_reasons.csv").open(encoding="utf-8-sig") as file:
        [held] = csv.DictReader(file)
    assert held["why_held"].endswith(said("review.held_by_policy", of="not_possible and ACCOUNT_CHANGED"))
    assert (held["amount"], held["currency"]) == ("1850.00", "GBP")


@pytest.mark.nightly
def test_a_person_who_holds_takes_back_a_release(month, decide):
    month("january", [AVERY])
    month("february", [NOT_AVERY], "january")
    decide("february", {1: "release"})
    decide("february", {1: "hold"})

    assert month("march", [NOT_AVERY], "february") == {1: ("ACCOUNT_CHANGED", "**2345")}


@pytest.mark.nightly
def test_what_a_policy_would_hold_is_released_by_nobody(desk, month, decide):
    month("january", [AVERY])
    month("february", [NOT_AVERY], "january")
    decide("february", {1: "release"}, policy='ACCOUNT_CHANGED = "hold"\n')

    assert month("march", [NOT_AVERY], "february") == {1: ("ACCOUNT_CHANGED", "**2345")}


@pytest.mark.nightly
def test_a_new_payee_is_known_by_a_match_and_another_one_stays_new(month):
    month("january", [AVERY, NEWCOMER])
    new = {2: ("PAYEE_NEW", None)}

    assert month("february", [AVERY, NEWCOMER, IMOGEN], "january") == {2: new[2], 3: ("PAYEE_NEW", None)}
    assert month("march", [AVERY, NEWCOMER, IMOGEN], "february") == new
    elsewhere = NEWCOMER | {"account_number": "00011111"}
    assert month("april", [AVERY, elsewhere], "march") == {2: ("ACCOUNT_CHANGED", "**8765")}
    assert month("may", [AVERY, elsewhere], "april") == {2: ("ACCOUNT_CHANGED", "**8765")}
    assert month("june", [AVERY, NEWCOMER], "may") == new, "carried on, it is not known for that"


@pytest.mark.nightly
def test_what_a_split_held_is_not_known_and_what_it_released_is(month, decide):
    month("january", [AVERY, IMOGEN, NEWCOMER])
    decide("january", {2: "hold"}, policy='no_match = "release"\nnot_possible = "release"\n')

    assert month("february", [AVERY, IMOGEN, NEWCOMER], "january") == {2: ("PAYEE_NEW", None)}


@pytest.mark.nightly
def test_what_was_known_stays_known_when_a_payment_is_held(month, decide):
    month("january", [AVERY])
    month("february", [AVERY], "january")
    decide("february", {1: "hold"})

    assert month("march", [NOT_AVERY], "february") == {1: ("ACCOUNT_CHANGED", "**2345")}


@pytest.mark.nightly
def test_decisions_about_another_file_in_the_same_folder_count_for_nothing(desk, run, month, decide):
    month("january", [NEWCOMER])
    decide("january", {1: "release"}, policy='not_possible = "review"\nno_match = "review"\n')
    other = NEWCOMER | {"name": "Ada Quill", "Employee No": "E9"}
    file = desk.payments([other], name="other.csv", header=HEADER)
    assert run(file, "--out", "january.precheck", "--fresh").status == 0

    assert month("february", [other], "january") == {1: ("PAYEE_NEW", None)}


def test_the_report_has_the_outcomes_of_each_bank_and_those_of_the_last_run(desk):
    row = {"amount": "1.00", "currency": "GBP"}
    banks = ("204511", "301122")
    rows = [
        row | {"name": f"Payee {number}", "sort_code": bank, "account_number": f"{number:08d}"}
        for bank in banks
        for number in range(1, 31)
    ]
    for name, payments in (("first", rows), ("second", rows[:-1])):
        words = () if name == "first" else ("--compare-with", "first.precheck")
        assert desk("run", desk.payments(payments, name=f"{name}.csv"), "--rehearse", *words).status == 0
    folder = desk.folder / "second.precheck"
    summary = json.loads((folder / "summary.json").read_text())
    assert [(bank["bank"], bank["answered_count"]) for bank in summary["banks"]] == [
        ("204511", 30),
        ("301122", 29),
    ]
    found = [row["check_outcome"] for row in desk.outcomes("second.precheck")][:30]
    assert summary["banks"][0]["match_count"] == found.count("match")
    page = (folder / "report.html").read_text()
    assert said("page.by_bank", "page") in page
    assert page.count("<small>last run ") == 2
    sheet = openpyxl.load_workbook(folder / "report.xlsx")["Banks"]
    assert [cell.value for cell in [*sheet.iter_rows()][-1]][:2] == ["301122", 29]


def test_payees_that_are_swapped_after_they_were_verified_are_not_believed(desk, sandbox, run, january):
    """A run that no longer knows the account would take a changed one for that of a new payee."""
    february = desk.payments([AVERY, IMOGEN], name="february.csv", header=HEADER)
    assert run(february, "--compare-with", january).status == 0
    kept = desk.folder / "february.precheck" / "payees.csv"
    forged = kept.read_bytes().splitlines(keepends=True)[0]
    march = desk.payments([AVERY | {"account_number": "00067890"}], name="march.csv", header=HEADER)
    words = ("run", march, *sandbox.using("sandbox"), "--compare-with", kept.parent)
    with swapped_after("open", kept, lambda: kept.write_bytes(forged)):
        refused = desk(*words)
    assert (refused.status, "payees.csv: changed since" in refused.err) == (65, True), refused.err
