"""`precheck purge` of a folder whose run was shared: the names leave the database too."""

from datetime import UTC, datetime, timedelta

import anyio
import pytest
from refusals import refused
from shared_ledgers import ask_all

from pipeline.errors import IncompleteError
from pipeline.jobs.purge import PurgeJob, purge
from pipeline.runs.folder import keep_document
from schemas.folder import STORE
from schemas.shared import SharedRunRecord

NOW = datetime(2031, 4, 1, tzinfo=UTC)
NAMES = "SELECT count(matched_name), count(*) FROM precheck.answer"


@pytest.fixture
def shared_folder(ledger_desk, tmp_path, finish_run, outcomes_of):
    """The folder of a finished run, and a run with ten names in a shared ledger that it belongs to."""
    store = ledger_desk.store()
    run = ledger_desk.begin(store, 10)
    anyio.run(lambda: ask_all(ledger_desk.shared(store, run), name="Quillan Feathermoor"))
    file = tmp_path / "payments.csv"
    file.write_text("name,sort_code,account_number\nAda Quillon,112233,12345678\n")
    folder = finish_run(file, outcomes_of({}))
    keep_document(folder / STORE, SharedRunRecord(ledger=ledger_desk.url(), run=run.id))
    return folder


def test_the_names_of_its_run_leave_the_database_and_the_answers_stay(shared_folder, ledger_desk):
    assert ledger_desk.rows(NAMES) == [(10, 10)]
    purge(shared_folder, PurgeJob(), now=NOW)

    assert ledger_desk.rows(NAMES) == [(0, 10)]
    assert ledger_desk.rows("SELECT name_count, answers_before FROM precheck.purge") == [
        (10, "2031-04-01T00:00:00.000Z")
    ]


def test_the_questions_that_were_left_to_workers_go_with_the_payments(shared_folder, ledger_desk, tmp_path):
    [[run_id]] = ledger_desk.rows("SELECT id FROM precheck.run")
    root = tmp_path / "work"
    questions = root / str(run_id)
    questions.mkdir(parents=True)
    (questions / "questions-00000.parquet").touch()
    (root / "not ours").mkdir()
    record = SharedRunRecord(ledger=ledger_desk.url(), run=run_id, work=str(root))
    keep_document(shared_folder / STORE, record)
    planned = purge(shared_folder, PurgeJob(with_payments=True, dry_run=True), now=NOW)
    purge(shared_folder, PurgeJob(with_files=True), now=NOW)
    assert str(questions) in planned.deleted
    assert questions.is_dir()

    done = purge(shared_folder, PurgeJob(with_payments=True), now=NOW)

    assert str(questions) in done.deleted
    assert [path.name for path in root.iterdir()] == ["not ours"]


def test_names_that_are_younger_stay(shared_folder, ledger_desk):
    purge(shared_folder, PurgeJob(older_than=timedelta(days=90)), now=NOW)
    assert ledger_desk.rows(NAMES) == [(10, 10)]


def test_the_names_of_another_run_stay(shared_folder, ledger_desk):
    store = ledger_desk.store()
    [[run_id]] = ledger_desk.rows("SELECT id FROM precheck.run")
    store.mark_finished(store.find(run_id))
    shared = ledger_desk.shared(store, ledger_desk.begin(store, 2))
    anyio.run(lambda: ask_all(shared, name="Ada Quillon"))
    purge(shared_folder, PurgeJob(), now=NOW)

    assert ledger_desk.rows(NAMES) == [(2, 12)]


def test_where_the_database_is_away_nothing_is_deleted(shared_folder, ledger_desk, proxy_to, postgres):
    proxy = proxy_to(postgres.port)
    [[run_id]] = ledger_desk.rows("SELECT id FROM precheck.run")
    record = SharedRunRecord(ledger=ledger_desk.url(port=proxy.port), run=run_id)
    keep_document(shared_folder / STORE, record)
    proxy.close_door()
    before = sorted(path.name for path in shared_folder.iterdir())
    with refused(IncompleteError, "stores.database_not_answering"):
        purge(shared_folder, PurgeJob(with_files=True), now=NOW)
    assert sorted(path.name for path in shared_folder.iterdir()) == before

    proxy.open_door()
    purge(shared_folder, PurgeJob(with_files=True), now=NOW)
    assert ledger_desk.rows(NAMES) == [(0, 10)]
