"""`precheck ledger`: creating a shared ledger, looking at it, and changing its key."""

import os
from datetime import UTC, datetime
from types import SimpleNamespace
from uuid import uuid4

import anyio
import pytest
from click.testing import CliRunner
from postgres import LEDGER_KEY, OWNER, RUNNER
from refusals import said, says
from shared_ledgers import NOW, PROFILE, ask

from pipeline.cli.main import main
from pipeline.jobs.doctor import diagnose
from pipeline.wording import Moment, Sentence
from schemas.outcomes import ApiName

KEY = LEDGER_KEY.get_secret_value()


@pytest.fixture
def call(tmp_path, postgres):
    """`call(database, words, user=, key=)`: its exit status, and what it prints."""

    def run(database, *words, user=RUNNER, key=KEY, **variables):
        config = tmp_path / "precheck.toml"
        config.write_text(PROFILE.format(url=postgres.url(database, user)))
        command = ["ledger", *words, "--profile", "production", "--config", str(config)]
        done = CliRunner().invoke(main, command, env={"LEDGER_KEY": key, "COLUMNS": "400", **variables})
        return SimpleNamespace(status=done.exit_code, said=done.output, command=" ".join(command))

    return run


def test_an_empty_database_becomes_a_ledger_that_the_role_of_the_runs_may_use(call, postgres, ledger_desk):
    ledger_desk.database = postgres.empty_database()
    refused = call(ledger_desk.database, "check")
    assert refused.status == 78
    assert said("stores.database_without_ledger", database=f"'{ledger_desk.database}'") in refused.said

    made = call(ledger_desk.database, "init", "--as", OWNER)
    assert made.status == 0, made.said
    there = {"database": ledger_desk.database, "role": RUNNER}
    assert said("jobs.ledger_created_for", **there) in made.said
    again = call(ledger_desk.database, "init", "--as", OWNER)
    assert said("jobs.ledger_exists_for", **there) in again.said

    checked = call(ledger_desk.database, "check")
    assert checked.status == 0, checked.said
    for part in (
        said("inspection.ledger_at", database=ledger_desk.database, version=3),
        said("inspection.key_matches_profile"),
        "PostgreSQL 1",
        said("inspection.disk_safe"),
        said("inspection.commit_on", setting="on"),
        said("inspection.no_replica"),
        said("inspection.role_may_read_and_add", role=RUNNER),
        said("inspection.triggers_in_place"),
        said("inspection.runs_counted", run_count=0, unfinished_count=0),
    ):
        assert part in checked.said
    ledger_desk.begin(ledger_desk.store(), 3)
    counted = said("inspection.runs_counted", run_count=1, unfinished_count=1)
    assert counted in call(ledger_desk.database, "check").said


def test_who_may_not_create_it_is_refused_and_another_role_may_be_named(call, postgres):
    database = postgres.empty_database()
    refused = call(database, "init")
    assert refused.status == 78  # the role of the runs owns nothing
    there = {"role": RUNNER, "name": database}
    assert said("stores.role_may_not_create_tables", **there, owner_of_database=OWNER) in refused.said
    other = call(database, "init", "--as", OWNER, "--grant-to", "not_there")
    assert other.status == 78
    assert said("stores.no_such_role", grant_to="not_there") in other.said
    assert call(database, "init", user=OWNER).status == 0
    closed = call(database, "init")
    assert closed.status == 78
    assert said("stores.role_may_not_use_ledger", **there, owner=OWNER) in closed.said
    assert call(database, "init", "--grant-to", RUNNER, user=OWNER).status == 0
    assert call(database, "check").status == 0


def test_the_doctor_tries_the_shared_ledger_too(call, postgres, ledger_database, tmp_path, monkeypatch):
    monkeypatch.setenv("LEDGER_KEY", KEY)
    assert call(ledger_database, "check").status == 0
    for user, is_well in ((RUNNER, True), (OWNER, False), ("nobody_here", False)):
        config = tmp_path / "precheck.toml"
        config.write_text(PROFILE.format(url=postgres.url(ledger_database, user)))
        found = {str(each.what): each for each in diagnose("production", config, now=datetime.now(UTC))}
        assert (found["shared ledger"].exit_code == 0) is is_well
    says(found["shared ledger"].detail, "stores.no_user", name="nobody_here")


def test_what_would_lose_an_answer_is_found(call, postgres, ledger_database):
    as_owner = call(ledger_database, "check", user=OWNER)
    assert as_owner.status == 78
    powers = [Sentence("inspection.may_change_tables"), Sentence("inspection.may_delete")]
    assert said("inspection.role_too_powerful", role=OWNER, powers=powers) in as_owner.said

    with postgres.connect(ledger_database) as db:
        db.execute("ALTER TABLE precheck.answer DISABLE TRIGGER never_changes")
        db.execute(f"ALTER DATABASE {ledger_database} SET synchronous_commit = off")
    found = call(ledger_database, "check")
    assert found.status == 78
    trigger = Sentence("inspection.trigger_on_table", name="never_changes", table="answer")
    assert said("inspection.triggers_missing", names=[trigger]) in found.said
    assert said("inspection.commit_off", setting="off") in found.said


def test_a_replica_that_could_lack_answers_is_named(call, postgres, ledger_database):
    with postgres.replicated() as db:
        found = call(ledger_database, "check")
        assert found.status == 0
        assert said("inspection.replica_asynchronous", standby_count=1) in found.said
        try:
            db.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            db.execute("SELECT pg_reload_conf()")
            seen = [call(ledger_database, "check").said]
            while "1, synchronous" not in seen[-1] and len(seen) < 50:
                seen.append(call(ledger_database, "check").said)
        finally:
            db.execute("ALTER SYSTEM RESET synchronous_standby_names")
            db.execute("SELECT pg_reload_conf()")
    assert "1, synchronous" in seen[-1]


def test_a_run_commits_synchronously_where_the_server_would_not(ledger_desk, postgres):
    with postgres.connect(ledger_desk.database) as db:
        db.execute(f"ALTER DATABASE {ledger_desk.database} SET synchronous_commit = off")
    database = ledger_desk.store().database
    [setting] = database.run(lambda db: db.execute("SHOW synchronous_commit").fetchone())
    assert setting == "on"


def test_another_key_is_refused_and_a_new_one_takes_its_place(call, ledger_desk, tmp_path):
    store = ledger_desk.store()
    run = ledger_desk.begin(store, 2)
    shared = ledger_desk.shared(store, run)

    async def ask_one(shared):
        async with shared.writing():
            chunk = await shared.claim(ApiName.COP)
            await ask(shared, chunk.questions[0], name="Quillan Feathermoor")
            await shared.give_back()

    anyio.run(ask_one, shared)
    wrong = call(ledger_desk.database, "check", key="another key")
    assert wrong.status == 78
    assert said("stores.ledger_has_other_key") in wrong.said

    new = tmp_path / "new.key"
    new.touch(mode=0o600)
    new.write_text("the new key\n")
    assert call(ledger_desk.database, "rekey", "--as", OWNER).status == 2
    assert call(ledger_desk.database, "rekey", "--new-key-file", str(new)).status == 78  # not the owner
    changed = call(ledger_desk.database, "rekey", "--as", OWNER, "--new-key-file", str(new))
    assert changed.status == 0, changed.said
    assert said("jobs.ledger_rekeyed") in changed.said

    assert call(ledger_desk.database, "check").status == 78
    assert call(ledger_desk.database, "check", key="the new key").status == 0
    anyio.run(ask_one, shared)  # a run under way goes on
    after = ledger_desk.store(key=type(LEDGER_KEY)("the new key"))
    answers = [line.answer.matched_name for line in after.lines(run) if line.answer]
    assert answers == ["Quillan Feathermoor"] * 2


def test_after_a_backup_was_brought_back_what_is_in_doubt_is_counted(call, ledger_desk):
    none = said("inspection.no_request_recorded", request_count=0)
    assert none in call(ledger_desk.database, "check", "--restored").said
    store = ledger_desk.store()
    shared = ledger_desk.shared(store, ledger_desk.begin(store, 5))

    async def main():
        async with shared.writing():
            chunk = await shared.claim(ApiName.COP)
            await ask(shared, chunk.questions[0])
            for question in chunk.questions[1:4]:
                await shared.intend(question.key, attempt=1, request_id="id", time=NOW)
            await shared.fail(chunk.questions[3].key, attempt=1, code="HTTP_500", time=NOW)

    anyio.run(main)
    in_doubt = said("inspection.requests_in_doubt", latest=Moment(NOW), request_count=2)
    assert in_doubt in call(ledger_desk.database, "check", "--restored").said


def test_a_run_that_nobody_goes_on_with_is_closed_unless_a_process_asks_it(call, ledger_desk):
    store = ledger_desk.store()
    run = ledger_desk.begin(store, 3)
    shared = ledger_desk.shared(store, run)

    async def take_up():
        async with shared.writing():
            chunk = await shared.claim(ApiName.COP)
            await ask(shared, chunk.questions[0])

    anyio.run(take_up)
    words = ("close", str(run.id))
    at_work = call(ledger_desk.database, *words)
    assert at_work.status == 75
    assert said("stores.run_in_progress", run_id=str(run.id), pid=os.getpid(), host="host") in at_work.said
    anyio.run(shared.give_back)
    closed = call(ledger_desk.database, *words)
    assert closed.status == 0
    assert said("jobs.run_closed", run_id=str(run.id), answer_count=1, question_count=3) in closed.said
    assert said("jobs.run_already_closed", run_id=str(run.id)) in call(ledger_desk.database, *words).said
    assert store.find(run.id).finished_at is not None
    other = str(uuid4())
    unknown = call(ledger_desk.database, "close", other)
    assert unknown.status == 2
    assert said("stores.no_such_run", run_id=other) in unknown.said


def test_a_profile_without_a_shared_ledger_says_so(tmp_path):
    config = tmp_path / "precheck.toml"
    config.write_text(PROFILE.replace('ledger = "{url}"\n', ""))
    command = ["ledger", "check", "--profile", "production", "--config", str(config)]
    done = CliRunner().invoke(main, command, env={"LEDGER_KEY": "key"})
    assert done.exit_code == 78
    assert said("jobs.profile_without_shared_ledger", chosen="production") in " ".join(done.output.split())
