"""What a server says of a problem stands in the story of the row, without what was asked."""

import json
import re

import pytest
from aiohttp import web
from refusals import said

pytestmark = pytest.mark.usefixtures("in_this_process")

UK = {"account_type": "Personal", "sort_code": "00-11-22", "amount": "1.00", "currency": "GBP"}
REFUSED = UK | {"name": "Avery Thornwood", "account_number": "00012345"}
FAILED = UK | {"name": "Quillan Canaryname", "account_number": "87654321"}
MATCH = UK | {"name": "Basil Underhill", "account_number": "11223344"}
SAYS = {
    b"00012345": (400, "FORMAT_ERROR", "no field 'x' for 00-11-22 00012345 of Thornwood, Avery\x07"),
    b"87654321": (500, "SERVER_ERROR", "try later: CANARYNAME at 44445555"),
}


async def gateway(request):
    """Refuses one account, fails for another, and has a match for all others."""
    body = await request.read()
    echo = {"X-FAPI-Interaction-ID": request.headers.get("X-FAPI-Interaction-ID", "")}
    for account, (status, code, detail) in SAYS.items():
        if account in body:
            return web.json_response({"code": code, "detail": detail}, status=status, headers=echo)
    answer = {"data": {"verificationReport": {"matched": True}}}
    return web.json_response(answer, headers=echo)


@pytest.fixture
def run(desk, sandbox, misbehaving):
    """`run(line_of_the_profile)`: the folder of a run against that gateway, and its configuration."""

    def run_it(line="", **environment):
        configuration = desk.configuration(mine={"cop": sandbox.section("production", "cop", base_url=url)})
        configuration.write_text(f"[profiles.mine]\n{line}\n{configuration.read_text()}")
        file = desk.payments([REFUSED, FAILED, MATCH])
        profile = ("--config", configuration, "--profile", "mine")
        done = desk("run", file, *profile, "--quiet", **environment)
        assert done.status == 75, done.err
        return desk.folder / "payments.precheck", configuration

    with misbehaving(gateway) as url:
        yield run_it


def story(desk, row, **environment):
    done = desk("show", "payments.precheck", "--row", row, "--json", **environment)
    assert done.status == 0, done.err
    return json.loads(done.out)


def details(desk, row, **environment):
    return [attempt["detail"] for attempt in story(desk, row, **environment)["attempts"]]


@pytest.mark.nightly
def test_show_says_the_words_of_the_server_without_what_was_asked(desk, run):
    folder, _ = run()

    [refused] = details(desk, 1)
    assert refused == "no field 'x' for *** of ***, ***\\x07"
    failed = details(desk, 2)
    assert len(failed) > 1
    assert set(failed) == {"try later: *** at ***"}
    assert details(desk, 3) == [None]

    shown = desk("show", folder, "--row", 1).out
    assert said("story.server_says", detail=refused) in " ".join(shown.split())
    ledger = (folder / "ledger.db").read_bytes()
    assert b"no field" in ledger
    for canary in (b"Thornwood", b"CANARYNAME", b"00012345", b"44445555"):
        assert canary not in ledger
    assert desk("verify", folder).status == 0


def test_under_a_key_the_words_are_shown_where_the_configuration_has_it(desk, run):
    key = {"LEDGER_KEY": "invented-ledger-key"}
    folder, configuration = run('ledger_key_env = "LEDGER_KEY"', **key)
    assert b"no field" not in (folder / "ledger.db").read_bytes()

    [attempt] = story(desk, 1)["attempts"]
    assert (attempt["detail"], attempt["has_hidden_detail"]) == (None, True)
    assert "is encrypted" in desk("show", folder, "--row", 1).out
    with_key = {**key, "PRECHECK_CONFIG": str(configuration)}
    [detail] = details(desk, 1, **with_key)
    assert detail.startswith("no field")


def test_a_purge_takes_them_along(desk, run):
    folder, _ = run()
    purged = desk("purge", folder)
    details_purged = rf"{said('cli.returned_names', count=0)} and \d+{said('cli.problem_details')} purged"
    assert re.search(details_purged, purged.err), purged.err
    assert b"no field" not in (folder / "ledger.db").read_bytes()
    assert details(desk, 1) == [None]
    assert desk("verify", folder).status == 0
