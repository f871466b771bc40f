"""`precheck status`: who is there and who is not, and what is left."""

import json
from types import SimpleNamespace

import anyio
import pytest
from click.testing import CliRunner
from postgres import LEDGER_KEY
from refusals import said
from shared_ledgers import PROFILE, ask

from pipeline.cli.main import main
from pipeline.wording import Sentence
from schemas.outcomes import ApiName


@pytest.fixture
def look(ledger_desk, tmp_path):
    """`look()`: the document, and what a person reads."""

    def status():
        config = tmp_path / "precheck.toml"
        config.write_text(PROFILE.format(url=ledger_desk.url()))
        command = ["status", "--profile", "production", "--config", str(config)]
        env = {"LEDGER_KEY": LEDGER_KEY.get_secret_value(), "COLUMNS": "400"}
        said, shown = (CliRunner().invoke(main, [*command, *more], env=env) for more in (["--json"], []))
        assert (said.exit_code, shown.exit_code) == (0, 0), shown.output
        return SimpleNamespace(**json.loads(said.output), shown=shown.output)

    return status


@pytest.mark.nightly
def test_who_died_is_told_from_who_holds_nothing_and_who_left_is_not_shown(ledger_desk, look, wait_until):
    stores = [ledger_desk.store() for _ in range(3)]
    run = ledger_desk.begin(stores[0], 25)
    asking, waiting = (ledger_desk.shared(store, run, lease_s=0.4) for store in stores[:2])

    async def take_up():
        await waiting.latest_round()
        async with asking.writing():
            chunk = await asking.claim(ApiName.COP)
            await ask(asking, chunk.questions[0])

    anyio.run(take_up)
    stores[2].close()
    with ledger_desk.postgres.connect(ledger_desk.database) as db:
        # Each shows within a part of its lease that it is there, also who holds nothing.
        db.execute("UPDATE precheck.holder SET seen_at = clock_timestamp() - interval '20 s'")
        db.execute(
            "INSERT INTO precheck.holder(holder, host, pid, tool_version, seen_at) VALUES"
            " (gen_random_uuid(), 'dead-host', 77, '0', clock_timestamp() - interval '40 s'),"
            " (gen_random_uuid(), 'long-dead', 78, '0', clock_timestamp() - interval '2 min')"
        )
    wait_until(lambda: all(holder["alive"] for holder in look().holders if holder["host"] == "host"))

    found = look()
    by_host = sorted((each["host"], each["alive"], each["chunk_count"]) for each in found.holders)
    assert by_host == [("dead-host", False, 0), ("host", True, 0), ("host", True, 1)]
    assert [(each["question_count"], each["left_count"]) for each in found.runs] == [(25, 24)]
    counted = {
        "questions": Sentence("status.questions", count=25),
        "answers": Sentence("status.answers", count=1),
        "requests": Sentence("counted.request", count=1),
        "state": Sentence("status.open", round=1),
    }
    assert said("status.run", left_count=24, **counted) in found.shown
    assert said("status.process", pid=77, host="dead-host") in found.shown
    assert any(said("status.process_gone", silent_s=count) in found.shown for count in range(40, 50))
    assert any(said("status.process_idle", silent_s=count) in found.shown for count in range(5))
    held = {"chunks": Sentence("status.chunks", count=1), "questions": Sentence("status.questions", count=10)}
    assert said("status.process_at_work", **held, lease_s=0) in found.shown


def test_what_a_dead_process_held_of_a_closed_run_is_shown_no_more(ledger_desk, look):
    store = ledger_desk.store()
    run = ledger_desk.begin(store, 5)
    shared = ledger_desk.shared(store, run)
    anyio.run(shared.claim, ApiName.COP)
    assert [each["chunk_count"] for each in look().holders] == [1]

    store.mark_finished(run)

    found = look()
    assert [each["chunk_count"] for each in found.holders] == [0]
    assert said("status.no_run") in found.shown
