"""The work folder: whole or not there, for its owner only, and gone when the run has finished."""

import os
from uuid import UUID

import pytest
from refusals import refused

from pipeline.desk.folders import DeskHome
from pipeline.errors import InputError, OutputError
from pipeline.runs.work_folder import (
    questions_file,
    read_questions,
    remove_work,
    require_private,
    work_of,
    works_in,
    write_work,
)
from schemas.outcomes import ApiName, Environment
from schemas.shared import WorkRecord

RUN = UUID(int=7)


@pytest.fixture
def record():
    return WorkRecord(
        ledger="postgresql://precheck@db/precheck",
        run=RUN,
        input_sha256="1f" * 32,
        profile_sha256="2e" * 32,
        environment=Environment.SANDBOX,
        tool_version="1",
        part_count=2,
        apis=[ApiName.COP],
    )


@pytest.fixture
def parts(check_of, checks_of):
    return [
        checks_of(check_of(check=1, name="Ada Quillon"), check_of(check=2, account="99887755667788")),
        checks_of(check_of(check=3, api=ApiName.VOP_GATEWAY, account="DE35370400440084210077")),
    ]


def test_a_worker_reads_the_questions_that_a_run_wrote(tmp_path, record, parts):
    write_work(tmp_path, record, parts)

    assert list(works_in(tmp_path)) == [record]
    for number, part in enumerate(parts):
        read = read_questions(work_of(tmp_path, RUN), number)
        assert read.equals(part)
        assert read.schema == part.schema


def test_everything_in_it_is_for_its_owner_only(tmp_path, record, parts):
    before = os.umask(0)
    try:
        folder = write_work(tmp_path / "new", record, parts)
    finally:
        os.umask(before)

    modes = {path.stat().st_mode & 0o777 for path in (folder, folder.parent)}
    assert modes == {0o700}
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_what_is_being_written_is_not_there_yet_and_what_is_there_is_not_written_again(
    tmp_path, record, parts
):
    folder = write_work(tmp_path, record, parts)
    before = questions_file(folder, 0).stat().st_ino
    write_work(tmp_path, record, parts)
    assert questions_file(folder, 0).stat().st_ino == before

    (folder / "work.json").unlink()

    assert list(works_in(tmp_path)) == []


def test_nothing_is_left_of_a_run_that_has_finished_and_other_runs_are_not_touched(tmp_path, record, parts):
    other = record.model_copy(update={"run": UUID(int=8)})
    for each in (record, other):
        write_work(tmp_path, each, parts)

    assert remove_work(tmp_path, RUN)
    assert not remove_work(tmp_path, RUN)

    assert list(works_in(tmp_path)) == [other]
    assert [path.name for path in tmp_path.iterdir()] == [str(other.run)]


def test_a_link_in_the_place_of_a_run_is_not_followed(tmp_path, record):
    (tmp_path / "work").mkdir()
    kept = tmp_path / "elsewhere"
    kept.mkdir()
    (kept / "file").write_text("kept")
    work_of(tmp_path / "work", RUN).symlink_to(kept)

    assert not remove_work(tmp_path / "work", RUN)
    assert (kept / "file").exists()


def test_a_folder_that_is_not_there_and_questions_that_are_cut_short_are_refused(tmp_path, record, parts):
    with refused(OutputError, "runs.work_folder_unreadable", "advice.name_work_folder"):
        list(works_in(tmp_path / "missing"))
    folder = write_work(tmp_path, record, parts)
    path = questions_file(folder, 1)
    path.write_bytes(path.read_bytes()[:-40])

    with refused(InputError, "runs.questions_unreadable", path="questions-00001.parquet"):
        read_questions(folder, 1)


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a folder away")
@pytest.mark.parametrize("opens", [require_private, lambda folder: DeskHome(folder).make()])
def test_a_folder_or_link_that_another_user_made_in_a_shared_one_is_refused(tmp_path, opens):
    tmp_path.chmod(0o1777)
    (folder := tmp_path / "theirs").mkdir(mode=0o700)
    (link := tmp_path / "link").symlink_to(tmp_path / "ours")
    (tmp_path / "ours").mkdir(mode=0o700)
    for path in (folder, link):
        os.chown(path, 4711, 4711, follow_symlinks=False)
        with refused(OutputError, "files.folder_made_by_another_user"):
            opens(path)
    assert not [*folder.iterdir(), *(tmp_path / "ours").iterdir()]
