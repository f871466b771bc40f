"""A file as banks take it, from its first check to the files to release and to hold, by the real command."""

import json
import re
import shlex
from dataclasses import dataclass, replace

import pytest
from bank_files import Payee, bank_file
from lxml import etree
from paymentfiles import pain001
from standard_18 import File
from standard_18 import Payment as Record

pytestmark = pytest.mark.usefixtures("in_this_process")

ACCEPT = ("--accept", "close_match", "--reason", "agreed", "--by", "Mara Ellery", "--allow-simulated")
KNOWN = (
    ("Avery Thornwood", "001122", "00012345"),
    ("Farraday Imogen", "200415", "31926819"),
    ("Rowan Blackmere", "001122", "00012345"),
    ("Averi Thornwood", "001122", "00012345"),
)
"""Dummy accounts of the sandbox: a match, a close match, no match, and a close match."""
IN_CAPITALS = (
    ("NICHOLAS UNDERHAY", "073944", "03804733"),
    ("WESTERDALE ZARA", "040260", "90845073"),
    ("ROWAN BLACKMERE", "040260", "90845073"),
    ("NICOLAS UNDERHAY", "073944", "03804733"),
)
"""The same, among accounts of its network, which take capitals for small letters, as banks do."""
CORRECTED = {2: "ZARA WESTERDALE", 4: "NICHOLAS UNDERHAY"}
HELD = 3
AMOUNTS = ("10.05", "200.10", "7.00", "3000.00")


def by_night(*values):
    """Files whose formats are held by day in tests of the formats."""
    return [pytest.param(value, marks=pytest.mark.nightly) for value in values]


DIALECTS = ("ISO .12", *by_night("German .003.03", "enveloped", "CDATA"))
LAYOUTS = ("lloyds", *by_night("rbs-autopay", "bank-of-scotland"))
OF_BACS = ("rbs-autopay",)
"""Of these, those that take the characters of Bacs alone."""
RECORDS = {
    "labels": File(()),
    "no labels": File((), labels=False),
    "several days": File(()),
}


@dataclass
class Road:
    """What the commands left, one after the other."""

    corrected: bytes
    release: bytes
    hold: bytes
    fixed: dict
    split: dict
    outcomes: list
    shown: dict


@pytest.fixture
def road_of(desk, sandbox):
    """A payment file -> what is left once it is run, fixed, run again, split and verified."""

    def travel(name, data, profile):
        using = sandbox.using(profile)
        stem, _, suffix = name.partition(".")
        file = desk.file(name, data)
        for words in (("columns",), ("plan", *using), ("run", *using, "--quiet")):
            assert desk(words[0], file, *words[1:]).status == 0
        folder = f"{stem}.precheck"
        shown = desk("show", folder, "--row", 2, "--json")
        assert shown.status == 0
        done = desk("fix", folder, "--input", file, *ACCEPT, "--json")
        assert done.status == 0, done.err
        fixed = json.loads(done.out)
        # The command that was printed, against the sandbox of the test.
        words = shlex.split(fixed["next_step"])
        assert desk(*words[1:], *using, "--quiet").status == 0
        again = words[-1]
        outcomes = [row["check_outcome"] for row in desk.outcomes(again)]
        done = desk("split", again, *using[:2], "--allow-simulated", "--by", "Mara Ellery", "--json")
        assert done.status == 0, done.err
        split = json.loads(done.out)
        assert desk("report", again).status == 0
        verified = desk("verify", again, "--input", fixed["corrected"]["path"], "--json")
        assert verified.status == 0, verified.err
        assert "every cell" in verified.out
        assert file.read_bytes() == data
        at = desk.folder
        release, hold = at / again / f"release.simulated.{suffix}", at / again / f"hold.simulated.{suffix}"
        corrected = (at / folder / f"corrected.simulated.{suffix}").read_bytes()
        assert not list(at.glob("*/*.part"))
        return Road(
            corrected, release.read_bytes(), hold.read_bytes(), fixed, split, outcomes, json.loads(shown.out)
        )

    return travel


def payments_of(dialect):
    """Batches of payments to the sandbox's accounts, in a dialect of pain.001."""
    scheme = pain001.Payment(currency="GBP", end_to_end_id="UK")
    pounds = [
        replace(
            scheme,
            name=name,
            sort_code=code,
            account=account,
            amount=amount,
            end_to_end_id=f"UK-{row}",
            instruction_id=f"I-{row}",
            comment=f" for {name} ",
        )
        for row, ((name, code, account), amount) in enumerate(zip(KNOWN, AMOUNTS, strict=True), start=1)
    ]
    euros = pain001.Payment(
        end_to_end_id="EU-1",
        name="Solene Montferand",
        iban="FR7630003012340000482100733",
        bic="BNPAFRPPXXX",
        amount="0.10",
        comment=" the only one abroad ",
    )
    strange = replace(euros, end_to_end_id="EU-2", name="Étienne Sauvageot", comment=" nobody knows him ")
    return (
        pain001.Batch(tuple(pounds), id="POUNDS"),
        pain001.Batch((euros,), id="EUROS", comment=" abroad "),
        pain001.Batch((strange,), id="STRANGE"),
    )


def plain(data):
    """A document as another parser has it, in the one form that XML has for it; and its comments."""
    tree = etree.fromstring(data, etree.XMLParser(remove_blank_text=True, remove_pis=True))
    comments = [each.text for each in tree.iter(etree.Comment)]
    etree.strip_tags(tree, etree.Comment)
    return etree.tostring(tree, method="c14n"), comments


def with_names(batches, names):
    """The batches with new names, by the ids of their payments."""
    return tuple(
        replace(
            batch,
            payments=tuple(
                replace(each, name=names.get(each.end_to_end_id, each.name)) for each in batch.payments
            ),
        )
        for batch in batches
    )


def part_of(batches, ids, role):
    """The batches with these payments alone; their ids say what the file is for."""
    parts = [
        replace(
            batch,
            id=batch.id + role,
            payments=tuple(each for each in batch.payments if each.end_to_end_id in ids),
        )
        for batch in batches
    ]
    return tuple(part for part in parts if part.payments)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_pain001_is_corrected_and_split_and_a_second_parser_finds_nothing_else_changed(road_of, dialect):
    style = pain001.DIALECTS[dialect]
    batches = payments_of(style)
    road = road_of("payments.xml", pain001.document(batches, style), "sandbox")
    assert road.fixed["corrected_rows"] == [2, 4, 5]
    assert road.outcomes == ["match", "match", "no_match", "match", "match", "no_match"]
    right = with_names(
        batches, {"UK-2": "Imogen Farraday", "UK-4": "Avery Thornwood", "EU-1": "Solène Montferrand"}
    )
    assert plain(road.corrected) == plain(pain001.document(right, style))
    released = part_of(right, {"UK-1", "UK-2", "UK-4", "EU-1"}, "-R")
    held = part_of(right, {"UK-3", "EU-2"}, "-H")
    assert plain(road.release) == plain(pain001.document(released, style, message_id="MESSAGE-1-R"))
    assert plain(road.hold) == plain(pain001.document(held, style, message_id="MESSAGE-1-H"))
    assert (road.split["release"]["row_count"], road.split["hold"]["row_count"]) == (4, 2)
    assert road.split["notes"] == []
    assert road.shown["batch"] == batches[0].id


@pytest.mark.parametrize("kind", ["several days", *by_night("labels", "no labels")])
def test_a_standard_18_file_is_corrected_and_split_as_its_software_would_have_written_it(road_of, kind):
    records = [
        Record(
            code,
            account,
            int(amount.replace(".", "")),
            name,
            day=f" 2633{row % 2}" if kind == "several days" else "",
        )
        for row, ((name, code, account), amount) in enumerate(zip(IN_CAPITALS, AMOUNTS, strict=True), start=1)
    ]
    file = RECORDS[kind]
    road = road_of("payments.bac", file.of(*records).data(), "production")
    right = [replace(each, name=CORRECTED.get(row, each.name)) for row, each in enumerate(records, start=1)]
    assert road.fixed["corrected_rows"] == [*CORRECTED]
    assert road.corrected == file.of(*right).data()
    assert road.release == file.of(*right[: HELD - 1], *right[HELD:]).data()
    assert road.hold == file.of(right[HELD - 1]).data()
    assert road.outcomes == ["match", "match", "no_match", "match"]


@pytest.mark.nightly
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_file_in_a_bank_layout_is_corrected_and_split_as_the_bank_has_it(road_of, layout):
    payees = [
        Payee(name, code, account, amount, f"INVOICE {row}")
        for row, ((name, code, account), amount) in enumerate(zip(IN_CAPITALS, AMOUNTS, strict=True), start=1)
    ]
    names = CORRECTED if layout in OF_BACS else {row: name.title() for row, name in CORRECTED.items()}
    right = [replace(each, name=names.get(row, each.name)) for row, each in enumerate(payees, start=1)]
    road = road_of("payments.txt", bank_file(layout, payees), "production")

    def unnumbered(data):
        return re.sub(rb"E2E[0-9]", b"", data)

    assert road.corrected == bank_file(layout, right)
    released = [*right[: HELD - 1], *right[HELD:]]
    assert unnumbered(road.release) == unnumbered(bank_file(layout, released))
    assert unnumbered(road.hold) == unnumbered(bank_file(layout, [right[HELD - 1]]))
    assert road.outcomes == ["match", "match", "no_match", "match"]


def test_a_refused_payment_of_an_xml_file_leaves_room_for_its_sentence(desk):
    payment = pain001.Payment(iban="DE89370400440532013001")
    file = desk.file("pay.xml", pain001.document((pain001.Batch((payment,)),)))

    planned = desk.here("plan", file)

    [line] = [line for line in planned.out.splitlines() if "IBAN_CHECK_DIGITS" in line]
    assert line.startswith("  1 "), planned.out
    assert "(PmtInf[1]/CdtTrfTxInf[1])" in planned.out
