"""What a profile's sections become: routes, APIs, caps and channels with their limits."""

import asyncio
import ssl
import subprocess
import sys
import time
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from refusals import refused
from structlog.testing import capture_logs

from pipeline.apis import cop, vop
from pipeline.config.file import Configuration, load
from pipeline.config.profiles import sandbox
from pipeline.connections import (
    account_of,
    api_of,
    context_of,
    open_channels,
    proxy_to,
    quota_of,
    routes,
    shares_of_this_machine,
    try_connection,
)
from pipeline.errors import ConfigurationError, CredentialsError, IncompleteError
from pipeline.stores.leased_shares import LeaseTerms
from pipeline.stores.scopes import scope_of
from pipeline.stores.values import ServerAccount
from pipeline.transport.certificates import inspect_certificate
from pipeline.transport.rate_limiter import window_of
from pipeline.transport.tls import client_context
from schemas.cop import AccountType
from schemas.outcomes import ApiName

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
OAUTH = {
    "server": "production",
    "base_url": "https://pay.example:8443/v",
    "token_url": "https://login.example/token",
    "client_id": "me",
    "client_secret_env": "NO_SUCH_VARIABLE_HERE",
    "scope": "x/.default",
}
STANDARD = {
    "api": "standard",
    "server": "production",
    "base_url": "https://vop.example",
    "client_certificate": "me.pem",
    "client_key": "me.key",
    "requesting_bic": "TREZFRP0XXX",
}


def profile(**sections):
    content = {"profiles": {"mine": sections}}
    return Configuration.model_validate(content).profiles["mine"]


@pytest.fixture(autouse=True)
def _state(tmp_path, monkeypatch):
    """Quota and turns are kept per user: here in a home of the test's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


@pytest.fixture(scope="module")
def running():
    with sandbox() as config:
        yield config


def test_routes_lead_only_to_apis_that_the_profile_has():
    only_cop = routes(profile(cop=OAUTH))
    only_vop = routes(profile(vop={**OAUTH, "api": "gateway"}))

    assert only_cop.apis == (ApiName.COP,)
    assert only_vop.apis == (ApiName.VOP_GATEWAY,)


def test_routes_carry_the_choices_of_the_profile():
    table = {"DE10010010": "PBNKDEFFXXX"}
    chosen = routes(
        profile(
            default_account_type="Business",
            gb_iban_to="vop",
            ask_by="identification",
            vop={**STANDARD, "send_remittance": True, "bic_table": table},
        )
    )

    assert chosen.default_account_type is AccountType.BUSINESS
    assert (chosen.gb_iban_to, chosen.ask_by, chosen.send_remittance) == ("vop", "identification", True)
    assert chosen.bic_table == table
    assert (chosen.vop_countries, chosen.vop_names) == (None, "any")
    near = routes(profile(vop_countries=["DE", "FR"], vop_names="latin", vop=STANDARD))
    assert (near.vop_countries, near.vop_names) == (("DE", "FR"), "latin")


def test_each_section_has_its_api():
    both = profile(cop=OAUTH, vop={**OAUTH, "api": "gateway"})
    standard = profile(vop=STANDARD)

    assert api_of(both.cop) is cop.API
    assert api_of(both.vop) is vop.GATEWAY
    assert api_of(standard.vop).name is ApiName.VOP_STANDARD


@pytest.mark.parametrize(
    ("changes", "cap"),
    [({}, None), ({"server": "test"}, 50), ({"server": "test", "daily_cap": 20}, 20), ({"daily_cap": 7}, 7)],
)
def test_the_test_server_has_its_cap_of_fifty_even_where_the_file_is_silent(changes, cap):
    assert profile(cop={**OAUTH, **changes}).cop.cap == cap


def test_without_a_cap_nothing_is_counted():
    assert quota_of(profile(cop=OAUTH).cop, now=lambda: NOW) is None


def test_a_context_trusts_nobody_by_accident():
    context = context_of(profile(cop=OAUTH).cop)

    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


def test_channels_are_opened_for_the_apis_that_are_needed(running):
    async def names(*needed):
        async with open_channels(
            load(running, "sandbox"),
            needed,
            now=lambda: NOW,
            shares=shares_of_this_machine(LeaseTerms(lambda: NOW, time.monotonic, print)),
        ) as channels:
            return set(channels)

    assert anyio.run(names, ApiName.COP) == {ApiName.COP}
    assert anyio.run(names, ApiName.COP, ApiName.VOP_GATEWAY) == {ApiName.COP, ApiName.VOP_GATEWAY}
    assert anyio.run(names) == set()


@pytest.mark.parametrize(("days_left", "is_told"), [(29, True), (31, False)])
def test_a_run_says_that_its_client_certificate_ends_within_thirty_days(running, days_left, is_told):
    loaded = load(running, "sandbox-standard")
    [standard] = loaded.servers
    ends = inspect_certificate(standard.client_certificate, now=datetime.now(UTC)).not_after

    async def main():
        now = ends - timedelta(days=days_left)
        async with open_channels(loaded, [standard.name], now=lambda: now, shares=None):
            pass

    with capture_logs() as lines:
        anyio.run(main)
    said = [(line.get("ends"), line.get("vital")) for line in lines]  # vital: with --quiet, too
    assert said == ([(ends.date().isoformat(), True)] if is_told else [])


@pytest.mark.parametrize(
    "base_url",
    ["https://PAY.example:8443/another/path", "https://pay.example.:08443", "https://pay.example:8443/v/"],
)
def test_one_server_has_one_cap_however_its_address_is_spelled(base_url):
    two = [profile(cop={**OAUTH, "daily_cap": 2, **changes}).cop for changes in ({}, {"base_url": base_url})]
    assert len({account_of(server).scope for server in two}) == 1
    with quota_of(two[0], now=lambda: NOW) as first, quota_of(two[1], now=lambda: NOW) as second:
        assert [first.reserve(), second.reserve(), first.reserve(), second.reserve()] == [
            True,
            True,
            False,
            False,
        ]


def test_runs_that_spell_a_server_otherwise_share_its_limits():
    parts = []

    async def main():
        async with AsyncExitStack() as stack:
            for netloc in ("localhost:8443", "LOCALHOST:8443"):
                account = ServerAccount(scope_of(netloc, "me"), "cop", 40, 10, window_of(40), 10.0)
                shares = shares_of_this_machine(LeaseTerms(lambda: NOW, time.monotonic, print))
                leased = await stack.enter_async_context(shares.lease([account]))
                parts.append([])
                leased["cop"].follow(parts[-1].append, lambda: 0)
            await anyio.sleep(0.1)

    anyio.run(main)
    assert [part[-1][:2] for part in parts] == [(20, 5), (20, 5)]


def test_a_channel_waits_longer_than_the_responder_may_take(running):
    async def deadlines():
        async with open_channels(
            load(running, "sandbox"),
            set(ApiName),
            now=lambda: NOW,
            shares=shares_of_this_machine(LeaseTerms(lambda: NOW, time.monotonic, print)),
        ) as channels:
            return {name.value: channel.deadline_s for name, channel in channels.items()}

    # API reference, "Limits": 7 s for CoP and 5 s for VoP; and three more for the way.
    assert anyio.run(deadlines) == {"cop": 10.0, "vop_gateway": 8.0}


def test_a_secret_that_is_missing_is_found_before_anything_is_sent():
    async def main():
        async with open_channels(
            profile(cop=OAUTH),
            {ApiName.COP},
            now=lambda: NOW,
            shares=shares_of_this_machine(LeaseTerms(lambda: NOW, time.monotonic, print)),
        ):
            raise AssertionError("opened without a secret")

    with refused(ConfigurationError, "sections.variable_not_set", variable="NO_SUCH_VARIABLE_HERE"):
        anyio.run(main)


def test_mutual_tls_is_greeted_and_tells_version_and_suite(running):
    [standard] = load(running, "sandbox-standard").servers

    assert anyio.run(try_connection, standard, datetime.now(UTC)) == "TLSv1.3 TLS_AES_256_GCM_SHA384"


def test_the_key_of_a_client_certificate_may_be_in_the_environment(running, monkeypatch):
    [standard] = load(running, "sandbox-standard").servers
    monkeypatch.setenv("QWAC_KEY", f"{standard.client_key.read_text()}\n")
    by_environment = standard.model_copy(update={"client_key": None, "client_key_env": "QWAC_KEY"})

    assert anyio.run(try_connection, by_environment, datetime.now(UTC)).startswith("TLSv1.3")


def test_a_proxy_is_trusted_by_its_own_authority_alone(running):
    folder, url = Path(running).parent, "https://proxy.example"
    [standard] = load(running, "sandbox-standard").servers
    behind = standard.model_copy(update={"proxy_url": url, "proxy_ca_file": folder / "qwac_ca.pem"})

    trusted = [proxy_to(one, standard.base_url) for one in (standard, behind)]

    assert trusted[0] is None
    expected = client_context(ca_file=folder / "qwac_ca.pem").get_ca_certs()
    assert trusted[1].context.get_ca_certs() == expected != context_of(standard).get_ca_certs()


def test_a_server_that_is_not_there_is_an_outage_and_not_a_mistake(running):
    [standard] = load(running, "sandbox-standard").servers
    nowhere = standard.model_copy(update={"base_url": "https://127.0.0.1:9"})

    with refused(IncompleteError, "transport.no_connection", server="127.0.0.1:9"):
        anyio.run(try_connection, nowhere, datetime.now(UTC))


@pytest.mark.parametrize(
    ("name", "secured", "error"),
    [
        ("sandbox-standard", False, IncompleteError),
        ("sandbox", True, IncompleteError),
        ("sandbox-standard", True, CredentialsError),  # which of the two certificates, it does not say
    ],
)
def test_a_server_that_closes_in_or_after_the_handshake_is_tried_three_times(running, name, secured, error):
    loaded, context, came = load(running, name), None, []
    server = loaded.servers[0]
    if secured:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(Path(running).parent / "server_ec.pem")

    async def close(_reader, writer):
        came.append(time.monotonic())
        writer.transport.abort() if context is None else writer.close()

    async def main():
        async with await asyncio.start_server(close, "127.0.0.1", ssl=context) as listening:
            port = listening.sockets[0].getsockname()[1]
            there = {"base_url": f"https://127.0.0.1:{port}", "probe_wait_s": 0.9}
            sections = {"cop": None, "vop": None} | {
                "vop" if name == "sandbox-standard" else "cop": server.model_copy(update=there)
            }
            async with open_channels(
                loaded.model_copy(update=sections),
                [server.name],
                now=lambda: datetime.now(UTC),
                shares=None,
            ) as channels:
                return channels[server.name].unreachable

    assert isinstance(anyio.run(main), error)
    assert len(came) == 3
    assert came[1] - came[0] >= 0.03
    assert came[2] - came[1] >= 0.09


def test_a_proxy_of_the_environment_that_is_not_used_is_named_where_there_is_no_connection(
    running, monkeypatch
):
    [standard] = load(running, "sandbox-standard").servers
    nowhere = standard.model_copy(update={"base_url": "https://127.0.0.1:9"})
    monkeypatch.setenv("HTTPS_PROXY", "socks5://user:word@proxy.example")

    with refused(IncompleteError, "transport.proxy_unused") as caught:
        anyio.run(try_connection, nowhere, datetime.now(UTC))
    assert "word" not in str(caught.value)


@pytest.mark.parametrize(("hard", "count"), [(60, 10), (25, 1), (4096, 64)])
def test_requests_in_flight_are_as_many_as_files_may_be_open(hard, count):
    said = (
        f"import resource as r; r.setrlimit(r.RLIMIT_NOFILE, (20, {hard}));"
        "from pipeline.transport.pool import connections_allowed;"
        "print(connections_allowed(64), r.getrlimit(r.RLIMIT_NOFILE)[0])"
    )
    done = subprocess.run([sys.executable, "-c", said], check=True, capture_output=True, text=True)
    assert done.stdout.split() == [str(count), str(min(hard, 168))]


def test_relative_paths_of_the_configuration_are_relative_to_it(running):
    [standard] = load(running, "sandbox-standard").servers

    assert standard.client_certificate == Path(running).parent / "client.pem"


def test_a_run_that_sends_nothing_starts_without_the_http_libraries():
    """They are a quarter of the start, and a run that is refused has one second (fault table A6)."""
    imported = "import sys, pipeline.cli.monitoring, pipeline.jobs.check"
    said = f"{imported}; print({{'aiohttp', 'httpx'}} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
