"""fix and split of files that are edited, not written anew: what they need, what is refused, what is said."""

import csv
import gzip
import io
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from bank_files import THREE, Payee, bank_file
from paymentfiles.pain001 import UTF_16, Batch, Payment, document
from refusals import refused, said
from rich.console import Console
from standard_18 import File
from standard_18 import Payment as Record

from pipeline.errors import InputError, UsageError
from pipeline.jobs.fix import FixJob, fix_folder
from pipeline.jobs.split import SplitJob, split_folder
from pipeline.jobs.verify import VerifyJob, verify
from pipeline.reports.terminal import print_split
from pipeline.wording import Sentence
from schemas.review import Acceptance

NOW = datetime(2030, 1, 2, tzinfo=UTC)
BOTH = (Acceptance.CLOSE_MATCH, Acceptance.ACCOUNT_TYPE)
CLOSE = {"outcome": "close_match", "code": "MBAM", "action": "fix_name", "matched_name": "Ada Quillon"}
BANM = {"outcome": "no_match", "code": "BANM", "action": "fix_account_type"}
BAMM = {**CLOSE, "code": "BAMM", "action": "fix_name_and_account_type"}
PAYMENT = Payment(name="Ada Quilon", iban="DE89370400440532013000")
TWO = (Batch((PAYMENT, replace(PAYMENT, end_to_end_id="E2E-2", name="Bo Teasel"))),)
SEALED = document(TWO).replace(
    b"</Document>", b'<s:Signature xmlns:s="http://www.w3.org/2000/09/xmldsig#"/></Document>'
)
CUT = document(TWO, count="3")
ADA = Record(name="ADA QUILON")
MIXED = File(
    (ADA, replace(ADA, name="BO TEASEL"), Record(code="17", reference="DUES")), labels=False, contras=False
)


@pytest.fixture
def folder_of(tmp_path, finish_run, outcomes_of):
    """The name and the bytes of a file, and what became of its payments -> the folder of its run."""

    def build(name, data, *outcomes, where=tmp_path):
        where.mkdir(exist_ok=True)
        file = where / name
        file.write_bytes(data)
        return finish_run(file, outcomes_of(*outcomes))

    return build


def fixed(folder, accept=BOTH, **job):
    return fix_folder(FixJob(folder, accept=accept, reason="agreed", by="Mara", **job), now=NOW)


def split_of(folder, tmp_path, **job):
    config = tmp_path / "precheck.toml"
    config.write_text(
        '[profiles.main.cop]\nserver = "production"\nbase_url = "https://cop.example"\n'
        'token_url = "https://login.example/token"\nclient_id = "ID"\nclient_secret_env = "SECRET"\n'
        'scope = "s"\n'
    )
    return split_folder(SplitJob(folder, config=config, by="Mara", **job), now=NOW)


def obstacles_in(folder):
    with (folder / "corrections.csv").open(newline="", encoding="utf-8-sig") as file:
        return [row["why"].partition(". ")[2] for row in csv.DictReader(file)]


def bytes_in(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith(".lock")}


def test_the_input_is_found_beside_the_folder_and_is_never_copied_into_it(folder_of):
    folder = folder_of("pay.xml", document(TWO), CLOSE, {})
    before = {path.name for path in folder.iterdir()}
    assert fixed(folder).corrected_rows == [1]
    assert {path.name for path in folder.iterdir()} - before == {
        *("corrected.xml", "corrections.csv", "approvals.json")
    }
    changed = document(TWO).replace(b"Ada Quilon", b"Ada Quillon")
    assert (folder / "corrected.xml").read_bytes() == changed


def test_the_input_is_found_in_a_folder_beside_or_where_it_is_named(folder_of, tmp_path):
    folder = folder_of("pay.xml", document(TWO), CLOSE, {})
    other = tmp_path / "earlier.precheck"
    other.mkdir()
    (tmp_path / "pay.xml").rename(other / "pay.xml")
    (tmp_path / "pay.xml").write_bytes(document(TWO, message_id="ANOTHER"))
    assert fixed(folder).corrected_rows == [1]
    (other / "pay.xml").rename(tmp_path / "moved.xml")
    with refused(InputError, "runs.not_the_checked_file", "advice.name_input", path="pay.xml"):
        fixed(folder)
    assert fixed(folder, input_file=tmp_path / "moved.xml").corrected_rows == [1]
    (tmp_path / "pay.xml").unlink()
    with refused(UsageError, "runs.no_input_file", "advice.name_input", path="pay.xml"):
        fixed(folder)


def test_a_table_needs_no_input(folder_of, tmp_path):
    data = b"name,sort_code,account_number\nAda Quilon,112233,00000001\n"
    folder = folder_of("pay.csv", data, CLOSE)
    with refused(UsageError, "review.table_file_not_needed", source="pay.csv"):
        fixed(folder, input_file=tmp_path / "pay.csv")


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("pay.xml", SEALED, Sentence("pain001.is_signed")),
        ("pay.xml", document(TWO, UTF_16), Sentence("pain001.encoding_not_editable", encoding="UTF-16")),
        (
            "pay.xml",
            CUT,
            Sentence("formats.control_differs", stated="3", where="GrpHdr/NbOfTxs", found="2"),
        ),
        (
            "pay.txt",
            bank_file("santander", THREE[:2]),
            Sentence("layouts.cannot_be_changed", why=Sentence("layouts.hash_total_rule_unknown")),
        ),
    ],
    ids=["signed", "UTF-16", "totals", "unknown total"],
)
def test_a_file_that_must_not_be_changed_is_refused_and_its_corrections_say_why(
    folder_of, tmp_path, name, data, why
):
    folder = folder_of(name, data, CLOSE, {})
    listed = fixed(folder, accept=())
    assert (listed.row_count, listed.correctable_count, listed.corrected) == (1, 0, None)
    assert obstacles_in(folder)[0].startswith(str(why.having(file=Sentence("formats.the_file"))))
    before = bytes_in(folder)
    for change in (fixed, lambda folder: split_of(folder, tmp_path)):
        with refused(InputError, why.having(file=name)) as refusal:
            change(folder)
        [what] = refusal.value.messages
        assert (what.key == "review.copy_hides_mismatch") == (why.key == "formats.control_differs")
    assert bytes_in(folder) == before


def test_a_file_that_mixes_payments_with_others_is_corrected_and_not_split(folder_of, tmp_path):
    folder = folder_of("pay.bac", MIXED.data(), CLOSE, {})
    assert fixed(folder).corrected_rows == [1]
    assert (folder / "corrected.bac").read_bytes() == MIXED.data().replace(b"ADA QUILON ", b"ADA QUILLON")
    with refused(InputError, "formats.mixed_with_payments", "formats.direct_debit", file="pay.bac", line=3):
        split_of(folder, tmp_path)


def test_what_a_file_has_no_room_or_no_place_for_is_not_written(folder_of):
    names = ("A", "QUILLON AND MARROW", "A", "A", "A")
    records = [replace(ADA, name=name) for name in names]
    closes = [
        {**CLOSE, "matched_name": name}
        for name in ("Λ Quillon", "Quillon and Marrow Engineering", "Zoë Marrow & Sons (Leeds) Ltd")
    ]
    folder = folder_of("pay.bac", File(tuple(records)).data(), *closes, BANM, BAMM)
    done = fixed(folder)
    assert (done.correctable_count, done.corrected_rows, done.refused_rows) == (1, [3], [1, 2, 4, 5])
    no_place = said("review.format_has_no_place", format="Bacs Standard 18")
    assert obstacles_in(folder) == [
        said("bacs18.letters_not_of_bacs"),
        said("review.file_has_this_name"),
        "",
        no_place,
        "",
        no_place,
    ]
    right = [*records[:2], replace(ADA, name="ZOE MARROW & SONS"), *records[3:]]
    assert (folder / "corrected.bac").read_bytes() == File(tuple(right)).data()


@pytest.mark.parametrize(
    ("payment", "name", "obstacle"),
    [
        (replace(PAYMENT, name=None), "Ada", said("pain001.no_element_for_name")),
        (PAYMENT, "x" * 141, said("review.bank_name_breaks_rule")),
        (PAYMENT, "Ada\ufffe", said("pain001.new_name_not_in_xml")),
        (PAYMENT, "NOTPROVIDED", said("pain001.new_name_invalid")),
    ],
)
def test_a_name_that_a_pain001_cannot_hold_is_an_obstacle(folder_of, payment, name, obstacle):
    folder = folder_of("pay.xml", document((Batch((payment,)),)), {**CLOSE, "matched_name": name})
    assert fixed(folder).corrected is None
    assert obstacles_in(folder)[0].startswith(obstacle)


def test_a_split_that_leaves_a_single_payment_says_so(folder_of, tmp_path):
    done = split_of(folder_of("pay.xml", document(TWO), {}, CLOSE), tmp_path)
    assert [*map(str, done.notes)] == [
        said("review.single_payment", file=name) for name in ("release.xml", "hold.xml")
    ]
    console = Console(file=io.StringIO(), width=400)
    print_split(done, console)
    assert f"Note: {done.notes[0]}" in console.file.getvalue()
    alone = folder_of("one.xml", document((Batch((PAYMENT,)),)), {})
    assert split_of(alone, tmp_path).notes == []
    assert split_of(folder_of("pay.bac", File((ADA, ADA)).data(), {}, CLOSE), tmp_path).notes == []


def test_a_file_that_came_compressed_is_written_compressed(folder_of, tmp_path):
    folder = folder_of("pay.xml.gz", gzip.compress(document(TWO)), CLOSE, {})
    assert fixed(folder).corrected.path.endswith("corrected.xml.gz")
    changed = gzip.decompress((folder / "corrected.xml.gz").read_bytes())
    assert changed == document(TWO).replace(b"Ada Quilon", b"Ada Quillon")
    done = split_of(folder, tmp_path)
    assert (done.release.row_count, done.hold.row_count) == (1, 1)
    findings = verify(VerifyJob(folder, tmp_path / "pay.xml.gz", asks_again=False), now=NOW)
    assert not [
        found for found in findings if found.exit_code and str(found.what) in ("cells", "split", "input")
    ]


def test_an_encoding_that_was_said_is_the_one_of_the_written_file(tmp_path, finish_run, outcomes_of):
    payees = [Payee(name="Zoë Marrow"), Payee(name="Ada Quilon")]
    file = tmp_path / "pay.txt"
    file.write_bytes(bank_file("bankline", payees, encoding="cp1252"))
    folder = finish_run(file, outcomes_of({}, CLOSE), encoding="cp1252")
    done = fixed(folder)
    right = [payees[0], Payee(name="Ada Quillon")]
    assert (folder / "corrected.txt").read_bytes() == bank_file("bankline", right, encoding="cp1252")
    assert "--encoding cp1252" in done.next_step
