"""Jobs on the folder of a run that a command does elsewhere: a purge with files, and whose key proves it."""

from datetime import UTC, datetime

import pytest
from refusals import refused

from pipeline.errors import UsageError
from pipeline.jobs.purge import PurgeJob, purge
from pipeline.jobs.verify import VerifyJob, verify

NOW = datetime(2030, 1, 3, tzinfo=UTC)
CLOSE = {"outcome": "close_match", "code": "MBAM", "action": "fix_name", "matched_name": "Ada Quillon"}


@pytest.fixture
def folder(tmp_path, finish_run, outcomes_of):
    file = tmp_path / "pay.csv"
    file.write_text("name,sort_code,account_number\nAda Quilon,112233,00000001\n")
    return finish_run(file, outcomes_of(CLOSE))


def test_a_purge_with_files_leaves_no_name_also_not_in_what_a_killed_process_had_begun(folder):
    for name in ("outcomes.csv", "report.html"):
        (folder / f"{name}.part").write_text("Ada Quillon")
    purge(folder, PurgeJob(with_files=True, by="Mara", reason="policy"), now=NOW)
    left = {path.name for path in folder.iterdir() if path.is_file()}
    assert left <= {"ledger.db", "manifest.json", "summary.json", ".lock"}


def test_half_a_file_of_a_killed_process_goes_with_any_purge(folder):
    (folder / "report.html.part").write_text("Ada Quillon")
    purge(folder, PurgeJob(by="Mara", reason="policy"), now=NOW)
    assert not (folder / "report.html.part").exists()
    assert (folder / "outcomes.csv").exists()


@pytest.mark.parametrize("place", ["the folder", "a link to the folder", "a link to the key"])
def test_a_key_that_lies_in_the_folder_does_not_prove_it(folder, tmp_path, place):
    (folder / "key.pem").write_text("a key")
    (tmp_path / "linked").symlink_to(folder)
    (tmp_path / "key.pem").symlink_to(folder / "key.pem")
    places = {
        "the folder": folder,
        "a link to the folder": tmp_path / "linked",
        "a link to the key": tmp_path,
    }
    with refused(UsageError, "jobs.signer_key_inside_folder"):
        verify(VerifyJob(folder, signed_by=places[place] / "key.pem"), now=NOW)
