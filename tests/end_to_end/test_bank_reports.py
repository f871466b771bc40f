"""A bank's report on a payment file, from `precheck import` to the release file; nothing is asked."""

import csv
import gzip
import html
import json
from dataclasses import replace
from hashlib import sha256

import pytest
from lxml import etree
from paymentfiles.pain001 import Batch, Payment, document
from paymentfiles.pain002 import DIALECTS, Said, SaidOfBatch, report, zipped
from refusals import said

pytestmark = pytest.mark.usefixtures("in_this_process")

IBANS = ("DE89370400440532013000", "NL91ABNA0417164300", "FR1420041010050500013M02606", "BE68539007547034")
NAMES = ("Ada Quillon", "Imogen Faraday", "Averi Thornwood", "Bo Kestrel")
PAYMENTS = tuple(
    Payment(end_to_end_id=f"E-{at}", name=name, iban=iban, amount=f"{at + 1}.00")
    for at, (name, iban) in enumerate(zip(NAMES, IBANS, strict=True))
)
SAID = tuple(
    Said(f"E-{at}", status, names, account=IBANS[at], amount=f"{at + 1}.00", name=NAMES[at])
    for at, (status, names) in enumerate(
        (("RCVC", ()), ("RVMC", ("Imogen Farra", "day")), ("RVNM", ()), ("RVNA", ()))
    )
)
DECIDED = ["match", "close_match", "no_match", "not_possible"]
OF_ALL = report((SaidOfBatch(SAID),), notes=("RVNM: the name differs.",))


@pytest.fixture
def file(desk):
    return desk.file("pay.xml", document((Batch(PAYMENTS),)))


def outcomes(desk, folder="pay.precheck"):
    with (desk.folder / folder / "outcomes.csv").open() as file:
        return list(csv.DictReader(file))


def names_in(desk, name):
    root = etree.fromstring((desk.folder / "pay.precheck" / name).read_bytes())
    return [element.findtext("{*}Nm") for element in root.iter("{*}Cdtr")]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_report_is_imported_reviewed_corrected_and_split(desk, file, dialect):
    handed_in = desk.file("vop.xml", report((SaidOfBatch(SAID),), DIALECTS[dialect]))

    imported = desk("import", file, "--report", handed_in, "--by", "Ann")

    assert imported.status == 0, imported.err
    assert said("terminal.results_from_bank_reports", count=1) in imported.out
    rows = outcomes(desk)
    assert [row["check_outcome"] for row in rows] == DECIDED
    assert {(row["check_api"], row["check_environment"], row["check_id"]) for row in rows} == {
        ("bank_report", "bank", "VOP-1")
    }
    assert rows[1]["check_matched_name"] == "Imogen Farraday"
    assert said("story.bank_reported") in desk("show", "pay.precheck", "--row", "2").out
    fixed = desk("fix", "pay.precheck", "--accept", "close_match", "--reason", "both hers", "--by", "Ben")
    assert fixed.status == 0, fixed.err
    assert "precheck import pay.precheck/corrected.xml --report REPORT" in fixed.out
    assert said("review.hand_in_corrected") in fixed.out
    assert names_in(desk, "corrected.xml")[1] == "Imogen Farraday"
    assert desk("split", "pay.precheck", "--by", "Cy").status == 0
    assert (names_in(desk, "release.xml"), len(names_in(desk, "hold.xml"))) == (["Ada Quillon"], 3)
    verified = desk("verify", "pay.precheck")
    assert verified.status == 0, verified.out
    assert said("evidence.reports_agree", row_count=4) in verified.out
    assert said("evidence.reports_provided", names="Ann") in verified.out
    assert desk("report", "pay.precheck").status == 0


PENDING = tuple(replace(one, status="PDNG", names=()) for one in SAID)
OF_A_BANK = {
    **{name: (report((SaidOfBatch(SAID),), dialect),) for name, dialect in DIALECTS.items()},
    "ZIP of several": (
        zipped(report((SaidOfBatch(SAID[:2]),)), report((SaidOfBatch(SAID[2:]),), report_id="V-2")),
    ),
    "pending, then final": (report((SaidOfBatch(PENDING),)), OF_ALL),
    "group only": (report((), status="RCVC", count="4"),),
    "pending": (report((SaidOfBatch(PENDING),)),),
}
"""The reports of one file, given one after the other."""


def test_the_four_steps_ask_nothing_whatever_the_bank_writes(desk, sandbox, file):
    using, before = sandbox.using("sandbox"), sandbox.call_count
    for number, (name, reports) in enumerate(OF_A_BANK.items()):
        folder, undecided = f"{number}.precheck", name == "pending"
        for handed_in in reports:
            last = desk("import", file, "--report", desk.file("vop", handed_in), "--out", folder, *using)
        assert last.status == (75 if undecided else 0), (name, last.err)
        assert desk("show", folder, "--row", "1").status == 0, name
        accepted = desk("fix", folder, "--accept", "close_match", "--reason", "hers", "--by", "Ben")
        assert accepted.status == (0 if name not in ("group only", "pending") else accepted.status), name
        split = desk("split", folder, "--by", "Cy")
        assert split.status == (75 if undecided else 0), (name, split.err)
        if undecided:
            assert said("jobs.import_final_report_or_hold") in split.err
            assert desk("split", folder, "--by", "Cy", "--hold-undecided").status == 0
    assert sandbox.call_count == before


def test_a_time_without_a_zone_is_shown_as_the_bank_wrote_it(desk, file):
    local = report((SaidOfBatch(SAID),), created="2026-11-27T09:30:00")
    assert desk("import", file, "--report", desk.file("vop.xml", local)).status == 0

    shown = desk("show", "pay.precheck", "--row", "1").out

    assert "2026-11-27 09:30:00" in shown
    assert "09:30:00 UTC" not in shown


def test_reports_in_a_zip_and_one_after_the_other_come_to_the_same(desk, file):
    first, second = (
        report((SaidOfBatch(some),), report_id=id_) for some, id_ in ((SAID[:2], "V-1"), (SAID[2:], "V-2"))
    )
    together = desk.file("vpz.zip", zipped(first, second))
    assert desk("import", file, "--report", together, "--out", "zip").status == 0

    begun = desk("import", file, "--report", desk.file("a.xml", first))
    ended = desk("import", file, "--report", desk.file("b.xml", second))

    assert (begun.status, ended.status) == (75, 0)
    assert said("jobs.import_batches_unnamed", batches="BATCH-1") in begun.out
    assert outcomes(desk) == outcomes(desk, "zip")
    manifest = json.loads((desk.folder / "pay.precheck" / "manifest.json").read_text())
    assert [one["name"] for one in manifest["bank_reports"]] == ["bank_report-1.xml", "bank_report-2.xml"]
    assert desk("verify", "pay.precheck").status == 0


def test_reports_on_the_parts_of_a_data_set_come_to_what_each_file_alone_does(desk):
    of_parts = {}
    for number, some in enumerate((PAYMENTS[:2], PAYMENTS[2:3], PAYMENTS[3:]), start=1):
        desk.file(f"alone-{number}.xml", document((Batch(some),), message_id=f"M-{number}"))
        (desk.folder / "set").mkdir(exist_ok=True)
        desk.file(f"set/part-{number}.xml", (desk.folder / f"alone-{number}.xml").read_bytes())
        mine = tuple(one for one in SAID if one.end_to_end_id in {payment.end_to_end_id for payment in some})
        of_parts[number] = report((SaidOfBatch(mine),), message_id=f"M-{number}", report_id=f"V-{number}")
    first = desk.file("first.zip", zipped(of_parts[3], of_parts[1], report((), message_id="OTHER")))
    second = desk.file("second.xml", of_parts[2])
    of_set = ("import", "set", "--work", "work", "--by", "Ann")

    imported = desk(*of_set, "--report", first, "--json")

    assert imported.status == 75, imported.err
    summary = json.loads(imported.out)
    assert (summary["complete"], summary["calls"]) == (False, [])
    assert [part["undecided_count"] for part in summary["parts"]] == [0, 1, 0]
    assert said("jobs.import_batches_unnamed", "", count=1) + "part-2.xml " in summary["next_step"]
    assert said("executors.reports_on_others", count=1) in imported.err
    assert desk(*of_set, "--report", first).status == 75  # known: nothing is changed
    assert desk(*of_set, "--report", second).status == 0
    for number, of_part in of_parts.items():
        reports = ("--report", desk.file(f"vop-{number}.xml", of_part))
        assert desk("import", f"alone-{number}.xml", *reports).status == 0
        alone = (desk.folder / f"alone-{number}.precheck/outcomes.csv").read_bytes()
        assert (desk.folder / f"set.precheck/outcomes/part-{number}.csv").read_bytes() == alone
    assert not (desk.folder / "work").exists() or not list((desk.folder / "work").iterdir())
    verified = desk("verify", "set.precheck", "--input", "set")
    assert verified.status == 0, verified.out
    assert said("evidence.reports_agree", row_count=4) in verified.out
    assert desk("fix", "set.precheck", "--accept", "close_match", "--reason", "hers", "--by", "B").status == 0
    assert desk("split", "set.precheck", "--by", "Cy").status == 0
    assert desk("verify", "set.precheck", "--input", "set").status == 0
    against = report((SaidOfBatch((replace(SAID[0], status="RVNM"),)),), message_id="M-1", report_id="V-4")
    assert desk(*of_set, "--report", desk.file("against.xml", against)).status == 75
    shown = json.loads(desk("show", "set.precheck", "--row", "1", "--json").out)
    assert shown["outcome"]["check_code"] == "REPORT_DIFFERS"


def test_what_cannot_be_imported_for_a_data_set_is_refused(desk, sandbox, using):
    (desk.folder / "set").mkdir()
    for name in ("a.xml", "b.xml"):
        desk.file(f"set/{name}", document((Batch(PAYMENTS),)))
    of_all = ("--report", desk.file("vop.xml", OF_ALL), "--work", "work")
    assert said("jobs.import_message_id_repeated", own="MESSAGE-1") in desk("import", "set", *of_all).err
    (desk.folder / "set/b.xml").unlink()
    assert desk("run", "set", "--work", "work", *sandbox.using("sandbox")).status == 0
    assert "simulated answers" in desk("import", "set", *of_all).err
    for name in ("b.xml", "c.xml"):
        desk.file(f"set/{name}", document((Batch(PAYMENTS),)))
    assert desk("run", "set", "--out", "real", "--work", "work", *using).status == 0
    assert (
        said("jobs.import_message_id_repeated", own="MESSAGE-1")
        in desk("import", "set", *of_all, "--out", "real").err
    )
    desk.file("set/c.xml", document((Batch(PAYMENTS),), message_id="M-2"))
    assert said("jobs.import_other_file") in desk("import", "set", *of_all, "--out", "real").err
    (desk.folder / "tables").mkdir()
    desk.file("tables/a.csv", "name,iban\nAda,DE89370400440532013000\n")
    assert said("jobs.import_needs_pain001", file="tables") in desk("import", "tables", *of_all).err


def test_the_same_report_again_changes_nothing(desk, file):
    handed_in = desk.file("vop.xml", OF_ALL)
    assert desk("import", file, "--report", handed_in, "--report", handed_in).status == 0
    before = (desk.folder / "pay.precheck" / "manifest.json").read_bytes()

    again = desk("import", file, "--report", handed_in)

    assert again.status == 0
    assert said("jobs.import_nothing_new") in again.err
    assert (desk.folder / "pay.precheck" / "manifest.json").read_bytes() == before


def test_a_copy_or_an_outcome_that_was_changed_is_found(desk, file):
    assert desk("import", file, "--report", desk.file("vop.xml", OF_ALL)).status == 0
    written = desk.folder / "pay.precheck" / "outcomes.csv"
    written.write_text(
        written.read_text().replace("no_match,NMTC", "match,MTCH").replace("ask_payee", "pay", 1)
    )

    verified = desk("verify", "pay.precheck")

    assert verified.status == 65
    assert said("evidence.reports_differ") + "row 3" in " ".join(verified.out.split())
    copy = desk.folder / "pay.precheck" / "bank_report-1.xml"
    copy.write_bytes(copy.read_bytes().replace(b"RVNM", b"RCVC"))
    assert desk("import", file, "--report", desk.file("more.xml", OF_ALL + b"\n")).status == 65


def test_the_summary_has_the_remarks_of_the_bank_and_who_gave_the_report(desk, file):
    imported = desk("import", file, "--report", desk.file("vop.xml", OF_ALL), "--by", "Ann", "--json")

    [used] = json.loads(imported.out)["bank_reports"]
    assert (used["given_as"], used["provided_by"], used["message_ids"]) == ("vop.xml", "Ann", ["VOP-1"])
    assert used["remarks"] == ["RVNM: the name differs."]


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (report((SaidOfBatch(SAID),), message_id="OTHER"), "is a report on the message OTHER"),
        (
            report((SaidOfBatch((replace(SAID[0], status="ACCP"),)),), status="ACCP"),
            "reports the status of payments",
        ),
        (document((Batch(PAYMENTS),)), "is XML but not a pain.002 report"),
        (OF_ALL[: len(OF_ALL) // 2], "before its end"),
        (b"<!DOCTYPE x><x/>", "DOCTYPE"),
        (b"", "empty"),
    ],
)
def test_what_is_no_report_on_the_file_is_refused_and_leaves_nothing(desk, file, said, sentence):
    refused = desk("import", file, "--report", desk.file("vop.xml", said))

    assert refused.status == 65
    assert sentence in refused.err
    assert not (desk.folder / "pay.precheck").exists()


def test_a_bomb_or_a_zip_with_other_things_in_it_is_refused(desk, file):
    bomb = OF_ALL.replace(b"</Document>", b"<!--" + b" " * 40_000_000 + b"--></Document>")
    entity = OF_ALL.replace(b"?>", b'?><!DOCTYPE d [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>', 1)
    for name, each, sentence in (
        ("bomb.zip", zipped(bomb), "unpacks"),
        ("bomb.gz", gzip.compress(bomb), "unpacks"),
        ("several.zip", zipped(OF_ALL, entity), "in document 2 of the ZIP"),
        ("nested.zip", zipped(OF_ALL, zipped(OF_ALL)), "holds several files"),
        ("empty.zip", zipped(), "is not XML"),
        ("many.zip", zipped(*[b"<a/>"] * 1_001), "must hold 1 to 1,000 files"),
    ):
        refused = desk("import", file, "--report", desk.file(name, each))
        assert refused.status == 65, name
        assert sentence in refused.err, name
    assert not (desk.folder / "pay.precheck").exists()


def test_names_that_the_bank_returned_can_be_deleted_with_the_copies(desk, file):
    assert desk("import", file, "--report", desk.file("vop.gz", gzip.compress(OF_ALL))).status == 0
    assert (desk.folder / "pay.precheck" / "bank_report-1.xml.gz").exists()

    purged = desk("purge", "pay.precheck", "--outcomes", "--reason", "kept long enough")

    assert purged.status == 0, purged.err
    assert not list((desk.folder / "pay.precheck").glob("bank_report-*"))
    assert b"Farraday" not in b"".join(path.read_bytes() for path in (desk.folder / "pay.precheck").iterdir())


def test_other_payment_files_have_no_ids_that_a_report_could_name(desk):
    csv_file = desk.file("pay.csv", "name,iban\nAda Quillon,DE89370400440532013000\n")

    refused = desk("import", csv_file, "--report", desk.file("vop.xml", OF_ALL))

    assert refused.status == 65
    assert said("jobs.import_needs_pain001") in refused.err


def test_a_simulated_report_is_none_of_a_bank(desk, sandbox, file):
    assert desk("run", file, *sandbox.using("sandbox"), "--pain002", "--out", "asked").status == 0

    refused = desk("import", file, "--report", desk.folder / "asked" / "pain002.simulated.xml")

    assert refused.status == 65
    [sentence] = refused.sentences
    assert said("executors.simulated_report", where="pain002.simulated.xml") in sentence
    assert not (desk.folder / "pay.precheck").exists()


def test_neither_a_run_nor_another_file_takes_the_place_of_what_a_bank_reported(desk, sandbox, file):
    assert desk("import", file, "--report", desk.file("vop.xml", OF_ALL)).status == 0
    before = (desk.folder / "pay.precheck" / "outcomes.csv").read_bytes()
    other = desk.file("other.xml", document((Batch(PAYMENTS[:1]),), message_id="OTHER"))
    on_other = desk.file("on_other.xml", report((SaidOfBatch(SAID[:1]),), message_id="OTHER"))

    simulated = desk("run", file, *sandbox.using("sandbox"), "--out", "pay.precheck")
    fresh = desk("run", file, *sandbox.using("sandbox"), "--out", "pay.precheck", "--fresh")
    another = desk("import", other, "--report", on_other, "--out", "pay.precheck")

    assert [ended.status for ended in (simulated, fresh, another)] == [2, 2, 2]
    assert (desk.folder / "pay.precheck" / "outcomes.csv").read_bytes() == before


def test_the_profile_of_a_report_asks_nobody(desk, file):
    refused = desk("run", file, "--profile", "bank_report")

    assert refused.status == 2
    assert said("advice.import_report") in refused.err


def test_what_a_bank_may_refuse_is_said_before_and_after_unless_the_profile_says_off(desk, file):
    address = "<PstlAdr><AdrLine>Mill Lane 4</AdrLine></PstlAdr></Cdtr>"
    file.write_bytes(file.read_bytes().replace(b"</Cdtr>", address.encode(), 1))
    off = desk.file("off.toml", '[profiles.sandbox]\nbank_rules = "off"\n')

    assert "ADDRESS_UNSTRUCTURED" in desk("plan", file).out
    assert "ADDRESS_UNSTRUCTURED" in desk("run", file).out
    assert "ADDRESS_UNSTRUCTURED" in (desk.folder / "pay.precheck" / "report.html").read_text()
    given = json.loads((desk.folder / "pay.precheck" / "summary.json").read_text())["input"]["bank_warnings"]
    [warning] = (each for each in given if each["code"] == "ADDRESS_UNSTRUCTURED")
    assert (warning["since"], warning["place_count"]) == ("2026-11-15", 4)
    assert "ADDRESS_UNSTRUCTURED" not in desk("plan", file, "--config", off, "--profile", "sandbox").out


STATUS = {"match": "RCVC", "close_match": "RVMC", "no_match": "RVNM", "not_possible": "RVNA"}
CHECKED = ["no_match", "no_match", "not_possible", "not_possible"]
"""What the sandbox answers about these payments."""


@pytest.fixture
def using(desk, sandbox):
    """The words of a profile whose answers are real ones."""
    return desk.using(vop=sandbox.section("production", "vop", server="production"))


def said_of(*outcomes):
    """A report that says these outcomes of the payments."""
    each = (
        replace(one, status=STATUS[outcome], names=()) for one, outcome in zip(SAID, outcomes, strict=True)
    )
    return report((SaidOfBatch(tuple(each)),))


DIFFERS = said_of("no_match", "match", "not_possible", "no_match")


COUNTS = ("agreed_count", "differing_count", "only_bank_count", "only_check_count")


def read_summary(desk, folder):
    return json.loads((desk.folder / folder / "summary.json").read_text())


def counts_in(desk):
    summary = read_summary(desk, "pay.precheck")
    return [*summary["bank_comparison"].values()], [
        (code["code"], code["every_row"]) for code in summary["warning_codes"]
    ]


def test_a_checked_file_is_compared_with_what_the_bank_reports_afterwards(desk, sandbox, file, using):
    assert desk("run", file, *using).status == 0
    before, calls = outcomes(desk), sandbox.call_count
    assert [row["check_outcome"] for row in before] == CHECKED
    handed_in = desk.file("vop.xml", DIFFERS)

    compared = desk("import", file, "--report", handed_in, "--by", "Ann")

    assert compared.status == 0, compared.err
    assert said("changes.compared_with_bank", count=1, agreed_count=2, differing_count=2) in " ".join(
        compared.out.split()
    )
    assert compared.out.index(" 4.00 EUR") < compared.out.index(" 2.00 EUR")  # first by money
    assert (outcomes(desk), sandbox.call_count) == (before, calls)
    assert counts_in(desk) == ([2, 2, 0, 0], [("BANK_DIFFERS", [2, 4])])
    page = (desk.folder / "pay.precheck" / "report.html").read_text()
    assert said("page.bank_differs", "page") in html.unescape(page)
    story = " ".join(desk("show", "pay.precheck", "--row", "2").out.split())
    assert said("rule.bank_differs_from", then="no_match", now="match") in story
    verified = desk("verify", "pay.precheck")
    assert verified.status == 0, verified.out
    assert said("evidence.comparison_agrees") in verified.out
    assert "provided by Ann" in verified.out
    again = desk("import", file, "--report", handed_in)
    assert said("jobs.import_nothing_new") in again.err
    assert desk("report", "pay.precheck").status == 0
    assert desk("verify", "pay.precheck").status == 0


def test_our_own_report_agrees_with_the_check_that_it_is_of(desk, file, using):
    assert desk("run", file, *using, "--pain002").status == 0
    assert desk("import", file, "--report", desk.folder / "pay.precheck" / "pain002.xml").status == 0

    assert counts_in(desk) == ([4, 0, 0, 0], [])


def test_a_comparison_that_was_changed_is_found(desk, file, using):
    assert desk("run", file, *using).status == 0
    assert desk("import", file, "--report", desk.file("vop.xml", DIFFERS)).status == 0
    folder = desk.folder / "pay.precheck"
    changes, manifest = folder / "changes.jsonl", folder / "manifest.json"
    lines, old = changes.read_text().splitlines(keepends=True), sha256(changes.read_bytes()).hexdigest()
    changes.write_text(lines[0])
    new = sha256(changes.read_bytes()).hexdigest()
    recorded = json.loads(manifest.read_text())
    for one in recorded["files"]:
        if one["sha256"] == old:
            one |= {"sha256": new, "byte_count": changes.stat().st_size}
    manifest.write_text(json.dumps(recorded))

    verified = desk("verify", "pay.precheck")

    assert verified.status == 65
    assert said("evidence.comparison_differs") in verified.out


def test_a_comparison_stands_when_the_check_goes_on_and_grows_with_each_report(desk, file, using):
    assert desk("run", file, *using, "--limit", "2").status == 75
    pending = replace(SAID[3], status="PDNG", names=())
    first = report((SaidOfBatch((replace(SAID[1], status="RCVC", names=()), pending)),))
    assert desk("import", file, "--report", desk.file("one.xml", first)).status == 75
    assert counts_in(desk) == ([0, 1, 0, 1], [("BANK_DIFFERS", [2])])

    assert desk("run", file, *using).status == 0

    assert counts_in(desk) == ([0, 1, 0, 3], [("BANK_DIFFERS", [2])])
    final = report((SaidOfBatch((replace(SAID[3], status="RVNM", names=()),)),), report_id="V-2")
    assert desk("import", file, "--report", desk.file("two.xml", final)).status == 0
    assert counts_in(desk) == ([0, 2, 0, 2], [("BANK_DIFFERS", [2, 4])])
    assert desk("verify", "pay.precheck").status == 0


def test_a_second_report_that_contradicts_the_first_takes_no_difference_away(desk, file, using):
    assert desk("run", file, *using).status == 0
    assert desk("import", file, "--report", desk.file("one.xml", DIFFERS)).status == 0
    other = said_of(*CHECKED).replace(b"VOP-1", b"VOP-2")
    other = other.replace(IBANS[2].encode(), IBANS[3].encode())
    assert desk("import", file, "--report", desk.file("two.xml", other)).status == 0

    assert counts_in(desk) == ([1, 3, 0, 0], [("BANK_DIFFERS", [2, 3, 4])])
    assert said("rule.bank_differs_from", then="not_possible", now="unanswered") in " ".join(
        desk("show", "pay.precheck", "--row", "3").out.split()
    )
    assert desk("verify", "pay.precheck").status == 0


def test_what_was_released_before_the_bank_said_otherwise_is_told(desk, sandbox, file):
    section = sandbox.section("production", "vop", server="production")
    config = desk.configuration(mine={"vop": section, "policy": {"no_match": "release"}})
    using = ("--config", config, "--profile", "mine")
    assert desk("run", file, *using).status == 0
    assert desk("split", "pay.precheck", "--config", config, "--by", "Cy").status == 0
    assert names_in(desk, "release.xml") == [*NAMES[:2]]

    compared = desk("import", file, "--report", desk.file("vop.xml", DIFFERS))

    assert compared.status == 0
    assert said("jobs.differing_released", count=1) in compared.err
    verified = desk("verify", "pay.precheck", "--input", file)
    assert verified.status == 0, verified.out
    assert desk("split", "pay.precheck", "--config", config, "--by", "Cy").status == 0
    assert names_in(desk, "release.xml") == [NAMES[0]], "what the bank disputes waits for a person"


def said_of_two_parts(desk):
    """Write a data set of two parts, and each part as a file of its own; yield a report on each part."""
    outcomes = ("no_match", "match", "not_possible", "no_match")
    said = [
        replace(one, status=STATUS[outcome], names=()) for one, outcome in zip(SAID, outcomes, strict=True)
    ]
    (desk.folder / "set").mkdir()
    for number, half in enumerate((slice(2), slice(2, 4)), start=1):
        part = document((Batch(PAYMENTS[half]),), message_id=f"M-{number}")
        desk.file(f"alone-{number}.xml", part)
        desk.file(f"set/part-{number}.xml", part)
        yield report((SaidOfBatch(tuple(said[half])),), message_id=f"M-{number}", report_id=f"V-{number}")


def test_a_checked_data_set_is_compared_part_by_part_as_each_file_alone_is(desk, sandbox):
    """One part cannot be used at first and one payment is left, so that a later run compares again."""
    section = sandbox.section("production", "vop", server="production")
    pays = {"no_match": "release", "not_possible": "release"}
    config = desk.configuration(mine={"vop": section, "policy": pays})
    using = ("--config", config, "--profile", "mine")
    of_set = ("set", "--work", "work", "--out", "whole")
    handed_in = said_of_two_parts(desk)
    reports = ("--report", desk.file("both.zip", zipped(*handed_in, report((), message_id="OTHER"))))
    desk.file("set/part-3.xml", "<Document/>")
    assert desk("run", *of_set, *using, "--limit", "3").status == 65

    compared = desk("import", *of_set, *reports, "--by", "Ann")

    assert compared.status == 75, compared.err
    assert compared.err.count(said("executors.reports_on_others", count=1)) == 1
    summary = read_summary(desk, "whole")
    assert summary["bank_comparison"] == dict(zip(COUNTS, (1, 2, 1, 0), strict=True))
    assert [(code["code"], code["row_count"]) for code in summary["warning_codes"]] == [("BANK_DIFFERS", 2)]
    assert desk("verify", "whole").status == 0
    assert said("jobs.import_nothing_new") in desk("import", *of_set, *reports).err

    (desk.folder / "set" / "part-3.xml").unlink()
    assert desk("run", *of_set, *using).status == 0

    alone = []
    for number in (1, 2):
        name = f"alone-{number}.xml"
        assert desk("run", name, *using).status == 0
        assert desk("import", name, *reports, "--by", "Ann").status == 0
        alone.append(read_summary(desk, f"alone-{number}.precheck"))
    whole = read_summary(desk, "whole")
    for count in COUNTS:
        assert whole["bank_comparison"][count] == sum(one["bank_comparison"][count] for one in alone)
    for count in ("warning_count", "warned_match_count"):
        assert whole[count] == sum(one[count] for one in alone)
    assert [(code["code"], code["row_count"]) for code in whole["warning_codes"]] == [("BANK_DIFFERS", 2)]
    assert said("rule.bank_differs_from", then="no_match", now="match") in " ".join(
        desk("show", "whole", "--row", "2").out.split()
    )
    verified = desk("verify", "whole", "--input", "set")
    assert verified.status == 0, verified.out
    assert said("evidence.comparison_agrees") in verified.out
    assert desk("report", "whole").status == 0
    page = html.unescape((desk.folder / "whole" / "report.html").read_text())
    assert said("page.bank_differs", "page") in page
    final = replace(SAID[0], status="RVNM", names=())
    later = report((SaidOfBatch((final,)),), message_id="M-1", report_id="V-9")
    assert desk("import", *of_set, "--report", desk.file("later.xml", later)).status == 0
    assert read_summary(desk, "whole")["bank_comparison"]["differing_count"] == 2
    changes = desk.folder / "whole" / "changes.jsonl"
    assert [json.loads(line)["row"] for line in changes.read_text().splitlines()] == [2, 4]
    assert desk("verify", "whole").status == 0
    assert desk("split", "whole", "--config", config, "--by", "Cy").status == 0
    held = (desk.folder / "whole" / "hold_reasons.csv").read_text("utf-8-sig").splitlines()
    assert [row["row"] for row in csv.DictReader(held)] == ["2", "4"], "what the bank disputes"
    assert desk("verify", "whole", "--input", "set").status == 0
