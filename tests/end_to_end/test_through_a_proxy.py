"""A network whose only way out is a proxy: tinyproxy of Debian, which asks for a user and a password."""

import pytest
from proxies import TINYPROXY, port_of, tinyproxy
from refusals import said

pytestmark = pytest.mark.skipif(TINYPROXY is None, reason="no tinyproxy: make tools")


def test_everything_goes_through_the_proxy(desk, sandbox, network_payments):
    with tinyproxy(desk.folder, port_of(sandbox)) as (port, log):
        keys = {"proxy_url": f"http://127.0.0.1:{port}", "proxy_credentials_env": "LOGIN"}
        words = desk.using(**sandbox.both(**keys))
        run = desk("run", desk.payments(network_payments(20)), *words, LOGIN="us:hush")
        tunnels = log().count("CONNECT 127.0.0.1")
        doctor = desk("doctor", *words, LOGIN="us:hush")

    assert (run.status, doctor.status) == (0, 0)
    assert tunnels >= 3, "a trial, a token and the questions"
    assert log().count("CONNECT 127.0.0.1") == tunnels + 4
    assert said("doctor.tls_by_proxy", proxy=f"http://127.0.0.1:{port}") in doctor.out


def test_the_proxy_of_the_environment_is_used_where_the_profile_says_so(desk, sandbox, network_payments):
    with tinyproxy(desk.folder, port_of(sandbox)) as (port, log):
        words = desk.using(cop=sandbox.section(proxy="environment"))
        variables = {"HTTPS_PROXY": f"http://us:hush@127.0.0.1:{port}", "NO_PROXY": ""}
        run = desk("run", desk.payments(network_payments(3)), *words, **variables)

    assert run.status == 0
    assert "CONNECT 127.0.0.1" in log()


@pytest.mark.parametrize(
    ("login", "allowed", "status", "said"),
    [
        ("us:wrong", None, 77, "requires a user and password"),
        ("us:hush", 1, 78, "does not allow connections to 127.0.0.1"),
    ],
)
def test_a_refusal_of_the_proxy_names_it(desk, sandbox, network_payments, login, allowed, status, said):
    with tinyproxy(desk.folder, allowed or port_of(sandbox)) as (port, _):
        keys = {"proxy_url": f"http://127.0.0.1:{port}", "proxy_credentials_env": "LOGIN"}
        words = desk.using(cop=sandbox.section(**keys))
        run = desk("run", desk.payments(network_payments(3)), *words, LOGIN=login)
        doctor = desk("doctor", *words, LOGIN=login)

    assert (run.status, doctor.status) == (status, status)
    assert f"proxy http://127.0.0.1:{port}: " in run.err
    assert said in run.err
    assert said in doctor.out + doctor.err
    assert "hush" not in run.err + doctor.out + doctor.err


@pytest.mark.nightly
def test_a_proxy_that_goes_away_leaves_rows_for_a_later_run(desk, sandbox, network_payments):
    before, file = sandbox.call_count, desk.payments(network_payments(40))
    with tinyproxy(desk.folder, port_of(sandbox)) as (port, _):
        keys = {"proxy_url": f"http://127.0.0.1:{port}", "proxy_credentials_env": "LOGIN"}
        section = sandbox.section(rate_per_s=10, in_flight_max=2, probe_wait_s=0.1, **keys)
        process = desk.start("run", file, *desk.using(cop=section), LOGIN="us:hush")
        sandbox.wait_for_calls(8, since=before)
    with process:
        finished = process.end()

    assert finished.status == 75
    assert 0 < sum(not row["check_id"] for row in desk.outcomes()) < 40
    assert desk("run", file, *desk.using(cop=sandbox.section())).status == 0
    asked = [call["question"] for call in sandbox.questions(before)]
    assert len(set(asked)) == 40
    assert len(asked) <= 42, "at most what was in flight is asked again"
