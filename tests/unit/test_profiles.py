"""Which profile a job means, and that the embedded sandbox comes and goes with the block."""

import os
import ssl
import subprocess
import sys
import tomllib
from urllib.parse import urlsplit

import pytest
from refusals import refused, says

from pipeline.config import file as settings
from pipeline.config import profiles
from pipeline.config.profiles import choose, choose_again, opened, sandbox, to_plan_with
from pipeline.errors import ConfigurationError, UsageError
from pipeline.sections import Oauth
from pipeline.wording import Sentence, SurfaceKind
from schemas.outcomes import ApiName, Environment

MINE = """
[profiles.{name}.cop]
server = "{server}"
base_url = "https://cop.example"
token_url = "https://login.example/token"
client_id = "me"
client_secret_env = "ANYTHING"
scope = "x/.default"
"""


@pytest.fixture
def configuration(tmp_path):
    def write(name="mine", server="production"):
        path = tmp_path / "given.toml"
        path.write_text(MINE.format(name=name, server=server))
        return path

    return write


def test_without_a_name_it_is_the_embedded_sandbox():
    chosen = choose(None, None)

    assert (chosen.name, chosen.config, chosen.environment) == ("sandbox", None, Environment.SANDBOX)


def test_a_configured_profile_brings_its_file_and_its_kind_of_server(configuration):
    path = configuration()

    chosen = choose("mine", path)

    assert (chosen.config, chosen.environment) == (path, Environment.PRODUCTION)
    assert chosen.fingerprint == settings.load(path, "mine").fingerprint()


def test_a_built_in_name_means_the_file_that_was_given(configuration):
    path = configuration("sandbox", "test")

    chosen = choose("sandbox", path)

    assert (chosen.config, chosen.environment) == (path, Environment.TEST)


def test_a_given_file_without_the_profile_is_refused_and_never_replaced_by_the_sandbox(configuration):
    with refused(UsageError, "config.no_profile_chosen", "advice.choose_profile"):
        choose(None, configuration())
    with refused(ConfigurationError, "config.no_such_profile", name="'sandbox'"):
        choose("sandbox", configuration())


def test_an_empty_name_as_of_an_unset_variable_is_refused_and_never_the_sandbox(configuration):
    for config in (None, configuration()):
        with pytest.raises((ConfigurationError, UsageError)):
            choose("", config)


def test_a_mistyped_name_where_no_file_is_names_what_needs_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    with pytest.raises(ConfigurationError) as refused:
        choose("sandbx", None)
    reason, first = refused.value.reason, refused.value.advice[0]
    assert reason.values["looked"] == ["precheck.toml", str(tmp_path / "none/payee-precheck/precheck.toml")]
    assert (first.key, first.values["choices"]) == ("advice.choose_profile", ("sandbox", "sandbox-standard"))


@pytest.mark.parametrize("name", ["sandbox", "sandbox-standard"])
def test_a_policy_can_be_given_to_the_embedded_sandbox_which_stays_embedded(tmp_path, name):
    path = tmp_path / "precheck.toml"
    path.write_text(f'[profiles.{name}.policy]\nclose_match = "review"\nPAYMENT_REPEATED = "hold"\n')
    chosen = choose(name, path)
    assert (chosen.config, chosen.environment) == (None, Environment.SANDBOX)
    assert chosen.fingerprint == choose(name, None).fingerprint
    assert chosen.settings.policy == {"close_match": "review", "PAYMENT_REPEATED": "hold"}


def test_an_earlier_run_to_compare_with_can_be_named_for_the_embedded_sandbox(tmp_path):
    path = tmp_path / "precheck.toml"
    path.write_text('[profiles.sandbox]\ncompare_with = "newest of pay-*.precheck"\n')
    chosen = choose("sandbox", path)
    assert chosen.settings.compare_with == str(tmp_path / "pay-*.precheck")
    assert (chosen.config, chosen.fingerprint) == (None, choose("sandbox", None).fingerprint)


@pytest.mark.parametrize(
    ("name", "said", "at", "what"),
    [
        ("sandbox", "gb_iban_to = 'vop'", "sandbox.gb_iban_to", "config.key_not_of_sandbox_profile"),
        ("sandbox", "ledger_key_env = 'KEY'", "sandbox.ledger_key_env", "config.key_not_of_sandbox_profile"),
        ("mine", "policy = {match = 'hold'}", "mine", "config.no_section"),
    ],
)
def test_nothing_of_servers_can_be_said_of_a_profile_without_them(tmp_path, name, said, at, what):
    path = tmp_path / "precheck.toml"
    path.write_text(f"[profiles.{name}]\n{said}\n")
    with refused(ConfigurationError, what, where=f"profiles.{at}", sections=["[cop]", "[vop]"]):
        choose(name, path)


def test_the_two_embedded_profiles_are_told_apart():
    assert choose("sandbox", None).fingerprint != choose("sandbox-standard", None).fingerprint
    assert choose("sandbox", None).fingerprint == choose(None, None).fingerprint


@pytest.mark.parametrize(
    ("name", "apis"),
    [
        ("sandbox", [ApiName.COP, ApiName.VOP_GATEWAY]),
        ("sandbox-standard", [ApiName.VOP_STANDARD]),
    ],
)
def test_an_embedded_profile_has_its_apis_on_loopback(name, apis):
    with opened(choose(name, None)) as profile:
        assert [server.name for server in profile.servers] == apis
        assert {urlsplit(server.base_url).hostname for server in profile.servers} == {"127.0.0.1"}
        assert profile.environment is Environment.SANDBOX
        for server in profile.servers:
            if isinstance(server, Oauth):
                assert server.client_secret().get_secret_value()


def test_opening_a_configured_profile_starts_nothing(configuration):
    with opened(choose("mine", configuration())) as profile:
        assert [server.base_url for server in profile.servers] == ["https://cop.example"]


def test_the_sandbox_serves_while_the_block_lasts_and_leaves_nothing_behind():
    with sandbox() as config:
        section = tomllib.loads(config.read_text())["profiles"]["sandbox"]["cop"]
        address = (urlsplit(section["base_url"]).hostname, urlsplit(section["base_url"]).port)
        assert ssl.get_server_certificate(address).startswith("-----BEGIN CERTIFICATE-----")

    assert not config.parent.exists()
    with pytest.raises(ConnectionRefusedError):
        ssl.get_server_certificate(address)


def test_the_sandbox_ends_with_its_parent_even_if_that_is_killed(tmp_path):
    """The parent gets no chance to clean up; the child notices by itself, and leaves nothing behind."""
    program = (
        "import os, tomllib\n"
        "from urllib.parse import urlsplit\n"
        "from pipeline.config.profiles import sandbox\n"
        "with sandbox() as config:\n"
        "    section = tomllib.loads(config.read_text())['profiles']['sandbox']['cop']\n"
        "    print(urlsplit(section['base_url']).port, flush=True); os.kill(os.getpid(), 9)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    ) as parent:
        # The child inherits standard error: its end of file comes when both have ended.
        out, _ = parent.communicate(timeout=30)

    with pytest.raises(ConnectionRefusedError):
        ssl.get_server_certificate(("127.0.0.1", int(out)))
    assert list(tmp_path.glob("precheck-sandbox-*")) == []


def test_every_built_in_profile_is_in_the_sandboxes_configuration():
    with sandbox() as config:
        assert set(profiles.BUILT_IN) - {profiles.IMPORTED} <= set(settings.read(config).profiles)


@pytest.mark.parametrize("text", ["[profiles.x\n", "[profiles.mine]\ncolour = 1\n", "[layouts.x]\n"])
@pytest.mark.parametrize("name", [None, "sandbox", "sandbox-standard"])
def test_a_mistake_in_the_usual_file_stops_no_profile_that_is_built_in(tmp_path, monkeypatch, text, name):
    (tmp_path / "precheck.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    file, unused = settings.ConfigurationFile().for_profile(name)
    assert (file.is_there, dict(file.layouts), choose(name, file).config) == (False, {}, None)
    says(unused, "config.sandbox_runs_without_file")


@pytest.mark.parametrize(
    ("text", "name"),
    [("[profiles.sandbox]\ncolour = 1\n", "sandbox"), ("[profiles.mine]\ncolour = 1\n", "mine")],
)
def test_a_mistake_stops_the_profile_that_has_it_or_is_the_users_own(tmp_path, monkeypatch, text, name):
    (tmp_path / "precheck.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    file, unused = settings.ConfigurationFile().for_profile(name)
    assert unused is None
    with refused(ConfigurationError, "config.unknown_key", where=f"profiles.{name}.colour"):
        choose(name, file)


def test_a_plan_takes_the_embedded_sandbox_for_what_it_is_once_it_runs():
    chosen = choose("sandbox", None)
    planned = to_plan_with(chosen)
    with opened(chosen) as served:
        told = ("name", "server", "rate_per_s", "in_flight_max", "cap", "price")
        assert [[getattr(server, field) for field in told] for server in planned.servers] == [
            [getattr(server, field) for field in told] for server in served.servers
        ]
        assert (planned.environment, planned.default_account_type) == (
            served.environment,
            served.default_account_type,
        )


def test_a_command_after_a_run_is_told_to_name_the_configuration_of_that_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "other.toml").write_text('[profiles.sandbox.policy]\nclose_match = "hold"\n')
    for config in (None, tmp_path / "other.toml"):
        named = Sentence("advice.name_configuration_with_profile", profile="'ours'")
        with refused(ConfigurationError, named) as raised:
            choose_again("ours", config)
        assert "--profile" not in raised.value.sentence(SurfaceKind.COMMAND)
