"""No payment of a file, of its corrections, or of what it held is released twice, by command."""

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier
from uuid import uuid4

import pytest
from refusals import refused, said

from pipeline.errors import InputError
from pipeline.jobs.fix import FixJob, fix_folder
from pipeline.jobs.purge import PurgeJob, purge
from pipeline.jobs.show import story
from pipeline.jobs.split import SplitJob, split_folder
from pipeline.jobs.verify import VerifyJob, verify
from pipeline.runs.families import made_of, released_before, splitting
from pipeline.runs.manifest import identity_of, read_manifest, unrecorded
from schemas.data_set import DataSetRecord
from schemas.folder import FAMILY, MANIFEST
from schemas.review import Acceptance

NOW = datetime(2030, 1, 2, tzinfo=UTC)
CLOSE = {"outcome": "close_match", "code": "MBAM", "action": "fix_name", "matched_name": "Ada Quillon"}
NO_MATCH = {"outcome": "no_match", "code": "ANNM", "action": "ask_payee"}
MATCH = {}
HEADER = "payment_id,name,account_type,sort_code,account_number,amount,currency"
LINES = (
    "1,Ada Quilon,Personal,112233,00000001,10.00,GBP",
    "2,Bram Oakes,Personal,112233,00000002,20.05,GBP",
    "3,Cora Lint,Personal,112233,00000003,0.10,GBP",
)
CONFIG = """
[profiles.main.policy]
[profiles.main.cop]
server = "production"
base_url = "https://cop.example"
token_url = "https://login.example/token"
client_id = "ID"
client_secret_env = "SECRET"
scope = "s"
"""


@pytest.fixture
def tmp_path(tmp_path):
    """A folder whose neighbours are not those of other tests: equal bytes there are the same payments."""
    (folder := tmp_path / "work").mkdir()
    return folder


@pytest.fixture
def run_of(tmp_path, finish_run, outcomes_of):
    """A payment file and the outcomes of its rows -> the folder of its run."""
    (tmp_path / "precheck.toml").write_text(CONFIG)

    def build(file, *outcomes):
        if not isinstance(file, Path):
            file, lines = tmp_path / file, LINES[: len(outcomes)]
            file.write_text("\n".join((HEADER, *lines, "")))
        return finish_run(file, outcomes_of(*outcomes), reported=False, related=True)

    return build


@pytest.fixture
def split(tmp_path):
    def made(folder, **job):
        return split_folder(SplitJob(folder, config=tmp_path / "precheck.toml", by="Mara", **job), now=NOW)

    return made


def corrected(folder):
    return Path(fix_folder(FixJob(folder, accept=list(Acceptance), by="Mara"), now=NOW).corrected.path)


def taken_to(path, made):
    """A file that was made, as a person copies it for the next check."""
    path.parent.mkdir(exist_ok=True)
    return Path(shutil.copy(made, path))


def test_of_a_corrected_file_only_what_its_parent_did_not_release_is_released(run_of, split, tmp_path):
    parent = run_of("pay.csv", CLOSE, MATCH, NO_MATCH)
    first = split(parent)
    child = run_of(taken_to(tmp_path / "next.csv", corrected(parent)), MATCH, MATCH, NO_MATCH)

    second = split(child)

    assert read_manifest(child).input.made_of.folder == "../pay.precheck"
    assert read_manifest(child).splits[-1].held_rows == [2, 3]
    assert (child / "release.csv").read_text().splitlines()[1:] == [LINES[0].replace("Quilon", "Quillon")]
    [why] = [held.why for held in second.held if "before" in held.why]
    before = f"release.csv of pay.csv, SHA-256 {first.release.sha256}"
    assert why == said("review.held_released_before", of=before)
    told = story(child, 2, now=NOW)
    assert (told.made_of.file, told.made_of.first_row, told.made_of.is_corrected) == ("pay.csv", 2, True)
    assert told.released_before.endswith(first.release.sha256)
    assert story(child, 1, now=NOW).released_before is None


def test_a_parent_does_not_release_what_its_correction_released(run_of, split, tmp_path):
    parent = run_of("pay.csv", CLOSE, MATCH)
    child = run_of(taken_to(tmp_path / "next.csv", corrected(parent)), MATCH, MATCH)
    split(child)

    assert split(parent).release is None


def test_held_payments_know_their_rows_in_the_first_file(run_of, split, tmp_path):
    parent = run_of("pay.csv", MATCH, NO_MATCH, CLOSE)
    split(parent)
    held = run_of(taken_to(tmp_path / "held.csv", parent / "hold.csv"), NO_MATCH, MATCH)
    split(held)
    again = run_of(taken_to(tmp_path / "again.csv", held / "hold.csv"), MATCH)

    assert read_manifest(again).input.made_of.rows == [(2, 2)]
    assert story(again, 1, now=NOW).made_of.first_row == 2
    assert split(again).release.row_count == 1
    assert sorted(released_before(parent)) == [2, 3]


def test_a_release_file_that_is_checked_again_is_not_released_again(run_of, split, tmp_path):
    parent = run_of("pay.csv", MATCH, NO_MATCH, MATCH)
    split(parent)
    again = run_of(taken_to(tmp_path / "again.csv", parent / "release.csv"), MATCH, MATCH)

    assert read_manifest(again).input.made_of.rows == [(1, 1), (3, 3)]
    assert split(again).release is None
    assert split(again, release_again=True).release.row_count == 2
    assert split(parent).release is None


def test_a_run_finds_what_was_checked_of_it_in_the_folder_of_another_day(run_of, split, tmp_path):
    (tmp_path / "monday").mkdir()
    parent = run_of("monday/pay.csv", CLOSE, MATCH)
    split(run_of(taken_to(tmp_path / "tuesday" / "pay.csv", corrected(parent)), MATCH, MATCH))

    assert sorted(released_before(parent)) == [1, 2]


def test_what_lies_in_the_folder_of_a_run_is_registered_there(run_of, tmp_path):
    parent = run_of("pay.csv", CLOSE, MATCH)
    file = corrected(parent)
    out = tmp_path / "a" / "b" / "c" / "next.precheck"

    found = made_of(file, identity_of(file)[0], out)

    assert found.folder == "../../../../pay.precheck"
    assert (parent / FAMILY).read_text() == "../a/b/c/next.precheck\n"
    assert unrecorded(parent, read_manifest(parent)) == set()


def test_the_same_file_in_another_folder_is_the_same_payments_and_is_released_again_only_when_asked(
    run_of, split, tmp_path
):
    split(run_of("pay.csv", MATCH, MATCH))
    other = run_of("same.csv", MATCH, MATCH)

    assert split(other).release is None
    assert split(other, release_again=True).release.row_count == 2
    assert read_manifest(other).splits[-1].again_rows == [1, 2]
    again = said("evidence.released_again", count=2, rows="1, 2")
    assert any(again in str(each.detail) for each in verify(VerifyJob(other), now=NOW))


def test_of_two_that_are_split_at_once_one_releases_a_payment(run_of, split, tmp_path):
    first = run_of("pay.csv", MATCH, MATCH, MATCH)
    second = run_of(taken_to(tmp_path / "again.csv", tmp_path / "pay.csv"), MATCH, MATCH, MATCH)
    at_once = Barrier(2)

    def made(folder):
        at_once.wait()
        return split(folder)

    with ThreadPoolExecutor() as both:
        counts = [each.release and each.release.row_count for each in both.map(made, (first, second))]

    assert sorted(counts, key=str) == [3, None]
    assert not unrecorded(first, read_manifest(first))


def test_a_split_waits_for_another_one_of_its_family_alone(run_of, split, tmp_path):
    folder, other = run_of("pay.csv", MATCH), run_of("other.csv", MATCH, MATCH)
    again = run_of(taken_to(tmp_path / "again.csv", tmp_path / "pay.csv"), MATCH)
    with ThreadPoolExecutor() as both:
        with splitting(folder):
            waiting = both.submit(split, again)
            assert split(other).release.row_count == 2
            with pytest.raises(TimeoutError):
                waiting.result(timeout=0.3)
        assert waiting.result(timeout=60).release.row_count == 1


def test_no_correction_is_made_of_what_was_released(run_of, split, tmp_path):
    first = run_of("pay.csv", MATCH, NO_MATCH)
    split(first)
    again = run_of("same.csv", CLOSE, MATCH)

    done = fix_folder(FixJob(again, accept=list(Acceptance), by="Mara"), now=NOW)

    assert done.corrected is None
    before = said("review.released_before_in", file="release.csv of pay.csv")
    assert before.removesuffix(".") in (again / "corrections.csv").read_text()


def test_a_release_that_replaces_another_says_so(run_of, split):
    folder = run_of("pay.csv", MATCH, MATCH, MATCH)
    split(folder)
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["splits"][0]["release"]["sha256"] = "0" * 64
    path.write_text(json.dumps(manifest))

    [note] = split(folder).notes

    assert said("review.release_overlaps", count=3, hash="0" * 64) in str(note)


def test_what_was_released_by_replaced_answers_is_not_released_again(run_of, split):
    folder = run_of("pay.csv", MATCH, MATCH)
    split(folder)
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps(manifest | {"splits": [], "replaced_splits": manifest["splits"]}))

    assert split(folder).release is None


def test_a_row_that_a_data_set_got_after_a_release_was_not_in_it(run_of, split):
    folder = run_of("pay.csv", MATCH, MATCH, MATCH)
    split(folder)
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    [earlier] = manifest["splits"]
    earlier["release"]["row_count"] = 2
    path.write_text(json.dumps(manifest | {"splits": [], "replaced_splits": [earlier]}))
    assert sorted(released_before(folder)) == [1, 2]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", [MANIFEST, FAMILY])
def test_a_pipe_in_a_folder_nearby_keeps_nobody_waiting(tmp_path, run_of, name):
    folder = run_of("payroll.csv", MATCH)
    strange = tmp_path / "strange"
    strange.mkdir()
    os.mkfifo((folder if name == FAMILY else strange) / name)
    assert made_of(tmp_path / "payroll.csv", "0" * 64, tmp_path / "other") is None
    assert released_before(folder) == {}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["summary.json", "outcomes.csv", "reasons.jsonl", "attention.csv"])
def test_a_pipe_in_the_place_of_a_file_of_the_run_is_no_such_file(run_of, split, name):
    folder = run_of("payroll.csv", MATCH)
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    assert any(finding.exit_code for finding in verify(VerifyJob(folder), now=NOW)) or name == "reasons.jsonl"


@pytest.mark.parametrize("make", [Path.touch, Path.mkdir, os.mkfifo, str])
def test_a_release_file_that_is_gone_or_no_file_is_a_finding(run_of, split, make):
    folder = run_of("payroll.csv", MATCH)
    split(folder)
    (folder / "release.csv").unlink()
    make(folder / "release.csv")
    assert {finding.exit_code for finding in verify(VerifyJob(folder), now=NOW)} == {0, 65}


def test_a_purge_deletes_no_folder_that_only_a_planted_record_calls_its_own(tmp_path, run_of):
    folder, other = run_of("payroll.csv", MATCH), tmp_path / str(uuid4())
    other.mkdir()
    (other / "precious").touch()
    planted = DataSetRecord(input_sha256="0" * 64, parts=[], work=str(other))
    (folder / "data_set.json").write_text(planted.model_dump_json())
    done = purge(folder, PurgeJob(with_payments=True, by="Noor", reason="kept long enough"), now=NOW)
    assert str(other) in done.left
    assert (other / "precious").exists()


class Tampered(SplitJob):
    """A split during which somebody else edits the manifest."""

    def released_before(self):
        manifest = self.folder / MANIFEST
        said = json.loads(manifest.read_text())
        said["profile"]["name"] = "other"
        manifest.write_text(json.dumps(said))
        return super().released_before()


def test_a_manifest_that_somebody_changes_during_a_split_is_not_taken_over(tmp_path, run_of):
    folder = run_of("payroll.csv", MATCH, NO_MATCH)
    with refused(InputError, "runs.changed_meanwhile"):
        split_folder(Tampered(folder, config=tmp_path / "precheck.toml", by="Mara"), now=NOW)
    assert read_manifest(folder).splits == []
