"""The configuration file: what it may say, and that it never says a secret back."""

import os
import stat
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import get_args

import pytest
from refusals import refused, said, says

from pipeline.apis.cop import Cop
from pipeline.config import Profile
from pipeline.config import file as settings
from pipeline.config.file import EXAMPLE, load, read, write_example
from pipeline.config.mistakes import QUOTED
from pipeline.connections import account_of, proxy_to
from pipeline.errors import ConfigurationError, OutputError
from pipeline.files.private import user_folder
from pipeline.sections import TEST_SERVER_DAILY_CAP
from pipeline.stores.postgres.address import parsed
from pipeline.wording import Sentence
from schemas.cop import AccountType
from schemas.outcomes import ApiName, Asked
from schemas.prices import Price

SECRET = "hunter-2~hunter-2"
COP = {
    "server": '"production"',
    "base_url": '"https://cop.example"',
    "token_url": '"https://login.example/t/oauth2/v2.0/token"',
    "client_id": '"client"',
    "client_secret_env": '"PRECHECK_TEST_SECRET"',
    "scope": '"scope/.default"',
}
GATEWAY = {**COP, "api": '"gateway"'}
STANDARD = {
    "api": '"standard"',
    "server": '"production"',
    "base_url": '"https://vop.example"',
    "client_certificate": '"qwac.pem"',
    "client_key": '"qwac.key"',
    "requesting_bic": '"MARWGB2LXXX"',
}


@pytest.fixture
def file_of(tmp_path):
    """Sections of a profile, as TOML values by key -> a configuration file."""

    def write(profile=None, **sections):
        lines = ["[profiles.main]", *(f"{key} = {value}" for key, value in (profile or {}).items())]
        for name, section in sections.items():
            lines.append(f"[profiles.main.{name}]")
            lines += [f"{key} = {value}" for key, value in section.items() if value is not None]
        path = tmp_path / "precheck.toml"
        path.write_text("\n".join(lines), "utf-8")
        return path

    return write


@pytest.fixture
def refusal(file_of):
    """Why a configuration is refused."""

    def of(*profile, **sections):
        with pytest.raises(ConfigurationError) as error:
            read(file_of(*profile, **sections))
        return error.value

    return of


def at(where, what, **value):
    return Sentence("config.at_value" if value else "config.at", where=where, what=what, **value)


def test_example_is_a_configuration(tmp_path):
    path = tmp_path / "precheck.toml"
    write_example(path, force=False)
    profile = load(path, "production")
    assert [server.name for server in profile.servers] == [ApiName.COP, ApiName.VOP_GATEWAY]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_every_line_of_the_example_that_is_commented_out_is_a_configuration_too(tmp_path):
    lines = EXAMPLE.partition("# [profiles.standard.vop]")
    path = tmp_path / "precheck.toml"
    path.write_text(lines[1].removeprefix("# ") + lines[2].replace("\n# ", "\n"), "utf-8")
    assert load(path, "standard").servers[0].name is ApiName.VOP_STANDARD
    assert list(read(path).layouts) == ["northgate"]


def test_example_replaces_nothing_unless_told_to(tmp_path):
    path = tmp_path / "precheck.toml"
    path.write_text("mine", "utf-8")
    with refused(OutputError, "config.exists_already", "advice.replace_file"):
        write_example(path, force=False)
    assert path.read_text("utf-8") == "mine"
    write_example(path, force=True)
    assert path.read_text("utf-8") == EXAMPLE


def test_example_is_not_written_through_a_link(tmp_path):
    target = tmp_path / "target"
    (tmp_path / "precheck.toml").symlink_to(target)
    with pytest.raises(OutputError):
        write_example(tmp_path / "precheck.toml", force=True)
    assert not target.exists()


def test_defaults_are_those_of_the_documentation(file_of):
    profile = load(file_of(cop=COP), "main")
    assert profile.default_account_type is AccountType.PERSONAL
    assert (profile.gb_iban_to, profile.ask_by) == ("cop", "name")
    cop = profile.servers[0]
    assert (cop.rate_per_s, cop.in_flight_max, cop.token_method, cop.cap_window) == (20, 64, "GET", "utc_day")


@pytest.mark.parametrize(
    ("server", "daily_cap", "cap"),
    [
        ("test", None, TEST_SERVER_DAILY_CAP),
        ("test", "5", 5),
        ("production", None, None),
        ("production", "500", 500),
        ("sandbox", None, None),
    ],
)
def test_test_server_is_capped_even_where_the_file_is_silent(file_of, server, daily_cap, cap):
    path = file_of(cop={**COP, "server": f'"{server}"', "daily_cap": daily_cap})
    assert load(path, "main").servers[0].cap == cap


def test_relative_paths_are_relative_to_the_file(file_of, tmp_path):
    (server,) = load(file_of(vop=STANDARD), "main").servers
    assert server.client_key == tmp_path / "qwac.key"
    (server,) = load(file_of(vop={**STANDARD, "client_key": '"/keys/qwac.key"'}), "main").servers
    assert server.client_key == Path("/keys/qwac.key")


# What is refused


@pytest.mark.parametrize(
    ("key", "hint"),
    [("client_secret", "client_secret_env"), ("rate_s", "rate_per_s"), ("dayly_cap", "daily_cap")],
)
def test_unknown_key_is_an_error_with_a_hint_and_without_its_value(refusal, key, hint):
    error = refusal(cop={**COP, key: f'"{SECRET}"'})
    says(error, at(f"profiles.main.cop.{key}", Sentence("config.did_you_mean", near=hint)))
    assert SECRET not in str(error)


@pytest.mark.parametrize("key", COP)
def test_required_key_cannot_be_missing(refusal, key):
    error = refusal(cop={**COP, key: None})
    of_two = Sentence("config.give_exactly_one", keys=["client_secret_env", "client_secret_file"])
    says(error, of_two if key == "client_secret_env" else at(f"profiles.main.cop.{key}", "config.missing"))


@pytest.mark.parametrize(
    "url",
    [
        "http://cop.example",
        "HTTP://cop.example",
        "cop.example",
        "//cop.example",
        "ftp://cop.example",
        "https://",
        "https:///path",
        "https://user@cop.example",
        f"https://user:{SECRET}@cop.example",
        f"https://:{SECRET}@cop.example",
        f"https://{SECRET}\u2100@cop.example",
        "https://cop.example?a=b",
        "https://cop.example?",
        "https://cop.example#x",
        "https://cop.example:port",
        "https://cop.example:99999",
        "https://cop.example:0",
        "https://cop example",
        "https://cop.example/\\t",
        "https://[::1",
        "https://c\u043ep.example",
        "https://evil.example\\\\@cop.example",
        "",
    ],
)
@pytest.mark.parametrize("key", ["base_url", "token_url"])
def test_address_that_is_not_plain_https_is_refused_and_not_quoted(refusal, key, url):
    error = refusal(cop={**COP, key: f'"{url}"'})
    says(error, where=f"profiles.main.cop.{key}")
    assert SECRET not in str(error)


@pytest.mark.parametrize(
    "url", ["https://b\u00e4nk.example", "https://c\u043ep.example/v1", "https://cop.example/\u00fc"]
)
def test_an_address_in_other_letters_is_told_how_it_is_written(refusal, url):
    says(
        refusal(cop={**COP, "base_url": f'"{url}"'}), at("profiles.main.cop.base_url", "config.ascii_address")
    )


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://cop.example/", "https://cop.example"),
        ("https://cop.example:8443/gateway/", "https://cop.example:8443/gateway"),
        ("https://[::1]:8443", "https://[::1]:8443"),
        ("https://cop.example./", "https://cop.example"),
        ("https://cop.example.:8443/v1.0", "https://cop.example:8443/v1.0"),
        ("https://xn--kb-yja.example", "https://xn--kb-yja.example"),
    ],
)
def test_address_may_have_a_port_and_a_path_and_loses_its_last_slash(file_of, url, kept):
    assert load(file_of(cop={**COP, "base_url": f'"{url}"'}), "main").servers[0].base_url == kept


@pytest.mark.parametrize(
    "limit",
    [
        {"rate_per_s": "0"},
        {"rate_per_s": "-1"},
        {"rate_per_s": "inf"},
        {"rate_per_s": "nan"},
        {"in_flight_max": "0"},
        {"in_flight_max": "1.5"},
        {"daily_cap": "0"},
        {"daily_cap": "-5"},
        {"daily_cap": "1000000001"},
        {"attempts_max": "0"},
        {"attempts_max": "11"},
        {"response_margin_s": "0"},
        {"cap_window": '"day"'},
    ],
)
def test_limit_that_is_none_is_refused(refusal, limit):
    [(key, value)] = limit.items()
    says(refusal(cop={**COP, **limit}), where=f"profiles.main.cop.{key}", value=value)


@pytest.mark.parametrize(
    "changes",
    [{"client_secret_file": '"secret"'}, {"client_secret_env": None}],
)
def test_secret_is_named_exactly_once(refusal, changes):
    keys = ["client_secret_env", "client_secret_file"]
    says(refusal(cop={**COP, **changes}), "config.give_exactly_one", keys=keys)


def test_secret_in_the_place_of_a_variable_name_is_refused_and_not_quoted(refusal):
    error = refusal(cop={**COP, "client_secret_env": f'"{SECRET}"'})
    says(error, at("profiles.main.cop.client_secret_env", "config.must_be_variable_name"))
    assert SECRET not in str(error)


@pytest.mark.parametrize("api", [None, f'"{SECRET}"', '"Gateway"'])
def test_vop_section_says_which_of_the_two_forms_it_is(refusal, api):
    error = refusal(vop={**GATEWAY, "api": api})
    says(error, "config.api_must_be_one_of", forms=['"gateway"', '"standard"'])
    assert SECRET not in str(error)


@pytest.mark.parametrize("bic", ["MARWGB2L", "marwgb2lxxx", "MARW"])
def test_requesting_bic_has_eleven_characters(refusal, bic):
    says(refusal(vop={**STANDARD, "requesting_bic": f'"{bic}"'}), "config.must_be_bic", value=f'"{bic}"')


@pytest.mark.parametrize("start", ["D", "de37", "DE37 ", "37"])
def test_bic_table_has_starts_of_ibans(refusal, start):
    error = refusal(vop={**STANDARD, "bic_table": f'{{"{start}" = "QUILDEFFXXX"}}'})
    says(error, at(f"profiles.main.vop.bic_table.{start}", "config.must_be_start_of_iban"))


def test_profile_without_an_api_is_refused(refusal):
    says(refusal(), "config.no_section", sections=["[cop]", "[vop]"])


def test_simulated_and_real_answers_do_not_mix(refusal):
    says(refusal(cop=COP, vop={**GATEWAY, "server": '"sandbox"'}), "config.two_kinds_of_server")


@pytest.mark.parametrize(
    "content", [b"", b"x = 1", b"[profiles]", b"profiles = 1", b"[[", b"\xff\xfe", b'a = "']
)
def test_file_that_is_no_configuration_is_told_by_its_name(tmp_path, content):
    path = tmp_path / "precheck.toml"
    path.write_bytes(content)
    with refused(ConfigurationError, path="precheck.toml"):
        read(path)


def test_a_byte_order_mark_is_no_part_of_the_file(file_of):
    path = file_of(cop=COP)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert load(path, "main").servers


def test_a_user_without_a_home_is_told_so():
    def no_home(_name):
        raise RuntimeError

    with refused(ConfigurationError, "files.no_home_folder"):
        user_folder(no_home)


def test_unknown_profile_names_those_there_are(file_of):
    with refused(ConfigurationError, "config.no_such_profile", "advice.choose_profile", choices=["main"]):
        load(file_of(cop=COP), "other")


# Secrets


def secret_of(file_of, **changes):
    (server,) = load(file_of(cop={**COP, **changes}), "main").servers
    return server.client_secret()


@pytest.mark.parametrize("content", [SECRET, f"{SECRET}\n", f"{SECRET}\r\n", f"\ufeff{SECRET}\n"])
def test_secret_comes_from_a_file_without_its_line_end(file_of, tmp_path, content):
    path = tmp_path / "cop.secret"
    path.write_bytes(content.encode())
    path.chmod(0o600)
    secret = secret_of(file_of, client_secret_env=None, client_secret_file='"cop.secret"')
    assert secret.get_secret_value() == SECRET
    assert SECRET not in f"{secret} {secret!r}"


@pytest.mark.parametrize("mode", [0o604, 0o644, 0o660, 0o610])
def test_secret_that_others_can_read_is_refused_and_not_quoted(file_of, tmp_path, mode):
    path = tmp_path / "cop.secret"
    path.write_text(SECRET, "utf-8")
    path.chmod(mode)
    with refused(ConfigurationError, "sections.secret_open_to_others") as error:
        secret_of(file_of, client_secret_env=None, client_secret_file='"cop.secret"')
    assert SECRET not in str(error.value)


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff\xfeh\x00"])
def test_empty_or_unreadable_secret_is_refused(file_of, tmp_path, content):
    path = tmp_path / "cop.secret"
    path.write_bytes(content)
    path.chmod(0o600)
    with refused(
        ConfigurationError, {"sections.secret_empty", "sections.secret_not_utf_8"}, path="cop.secret"
    ):
        secret_of(file_of, client_secret_env=None, client_secret_file='"cop.secret"')


def test_missing_secret_is_a_configuration_error(file_of):
    with refused(ConfigurationError, "sections.secret_unreadable"):
        secret_of(file_of, client_secret_env=None, client_secret_file='"cop.secret"')


def test_secret_comes_from_the_environment_when_it_is_needed(file_of):
    assert "PRECHECK_TEST_SECRET" not in os.environ
    with refused(ConfigurationError, "sections.variable_not_set", variable="PRECHECK_TEST_SECRET"):
        secret_of(file_of)
    try:
        os.environ["PRECHECK_TEST_SECRET"] = ""
        with refused(ConfigurationError, "sections.variable_empty", variable="PRECHECK_TEST_SECRET"):
            secret_of(file_of)
        os.environ["PRECHECK_TEST_SECRET"] = f"{SECRET}\r\n"
        assert secret_of(file_of).get_secret_value() == SECRET
    finally:
        del os.environ["PRECHECK_TEST_SECRET"]


def test_key_without_a_password_has_none(file_of):
    (server,) = load(file_of(vop=STANDARD), "main").servers
    assert server.client_key_password() is None


def test_ledger_key_is_read_when_it_is_needed_and_absent_by_default(file_of, tmp_path):
    assert load(file_of(cop=COP), "main").ledger_key() is None
    path = tmp_path / "ledger.key"
    path.touch(mode=0o600)
    path.write_text(f"{SECRET}\n")
    key = load(file_of({"ledger_key_file": '"ledger.key"'}, cop=COP), "main").ledger_key()
    assert key is not None
    assert key.get_secret_value() == SECRET


def test_ledger_key_that_others_can_read_is_refused(file_of, tmp_path):
    path = tmp_path / "ledger.key"
    path.write_text(SECRET)
    path.chmod(0o644)
    profile = load(file_of({"ledger_key_file": '"ledger.key"'}, cop=COP), "main")
    with refused(ConfigurationError, "sections.secret_open_to_others") as caught:
        profile.ledger_key()
    assert SECRET not in str(caught.value)


def test_ledger_key_is_named_once(file_of):
    both = {"ledger_key_env": '"LEDGER_KEY"', "ledger_key_file": '"ledger.key"'}
    with refused(ConfigurationError, "config.give_one_not_both", keys=["ledger_key_env", "ledger_key_file"]):
        load(file_of(both, cop=COP), "main")


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (
            {"sign_with": '"key.pem"', "sign_with_password_env": '"A"', "sign_with_password_file": '"b"'},
            Sentence("config.give_one_not_both", keys=["sign_with_password_env", "sign_with_password_file"]),
        ),
        ({"sign_with_password_env": '"A"'}, "config.signing_password_without_key"),
    ],
)
def test_a_password_of_the_signing_key_is_named_once_and_with_its_key(file_of, said, sentence):
    with refused(ConfigurationError, sentence):
        load(file_of(said, cop=COP), "main")


def test_the_signing_key_is_beside_the_file_and_makes_no_other_run(file_of, tmp_path):
    before = load(file_of(cop=COP), "main")
    profile = load(file_of({"sign_with": '"key.pem"'}, cop=COP), "main")
    assert profile.sign_with == tmp_path / "key.pem"
    assert profile.sign_with_password() is None
    assert profile.fingerprint() == before.fingerprint()


def test_where_the_ledger_key_is_may_change_between_two_runs(file_of):
    before = load(file_of(cop=COP), "main").fingerprint()
    for place in ({"ledger_key_env": '"LEDGER_KEY"'}, {"ledger_key_file": '"ledger.key"'}):
        assert load(file_of(place, cop=COP), "main").fingerprint() == before


# The ledger that machines share

LEDGER = {"ledger": '"postgresql://precheck@db.example/precheck"', "ledger_key_env": '"LEDGER_KEY"'}


def test_a_shared_ledger_is_an_address_and_makes_no_other_run(file_of):
    assert load(file_of(cop=COP), "main").ledger is None
    before = load(file_of(cop=COP), "main").fingerprint()
    profile = load(file_of(LEDGER, cop=COP), "main")
    assert profile.fingerprint() == before
    address = parsed(profile.ledger)
    assert address.place == "db.example:5432"
    assert address.parameters() == {
        "host": "db.example",
        "port": 5432,
        "dbname": "precheck",
        "user": "precheck",
        "sslmode": "verify-full",
        "sslrootcert": "system",
    }


@pytest.mark.parametrize(
    ("url", "parameters"),
    [
        ("postgresql://db.example:6432/p", {"port": 6432, "sslmode": "verify-full"}),
        ("postgresql://u@db.example/p?sslrootcert=/ca.pem", {"sslrootcert": "/ca.pem", "user": "u"}),
        ("postgresql://a%40b@127.0.0.1/p", {"user": "a@b", "host": "127.0.0.1"}),
        ("postgresql://u@[::1]:5433/p?connect_timeout=9", {"host": "::1", "connect_timeout": "9"}),
        ("postgresql:///p?host=/run/postgresql", {"host": "/run/postgresql", "dbname": "p"}),
        ("postgres://localhost/p?sslmode=disable", {"sslmode": "disable"}),
    ],
)
def test_an_address_of_a_ledger_says_how_to_connect(file_of, url, parameters):
    profile = load(file_of(LEDGER | {"ledger": f'"{url}"'}, cop=COP), "main")
    address = parsed(profile.ledger)
    said = address.parameters()
    assert said.items() >= parameters.items()
    is_here = said["host"] in {"127.0.0.1", "::1", "/run/postgresql", "localhost"}
    assert is_here or said["sslmode"] == "verify-full"
    assert not is_here or said.get("sslmode") != "verify-full"


@pytest.mark.parametrize(
    ("url", "key"),
    [
        (f"postgresql://u:{SECRET}@db/p", "config.ledger_address_has_password"),
        (f"mysql://u:{SECRET}@db/p", "config.not_an_address"),
        (f"postgresql://u:{SECRET}@db:port/p", "config.not_an_address"),
        ("postgresql://u@db/p?sslmode=require", "config.ledger_sslmode_too_weak"),
        ("postgresql://u@10.0.0.7/p?sslmode=disable", "config.ledger_sslmode_too_weak"),
        (
            "postgresql://u@db/p?options=-cfsync%3Doff",
            Sentence("config.ledger_option_not_allowed", option="options"),
        ),
        ("postgresql://u@db/", "config.ledger_must_name_one_host"),
        ("postgresql:///p", "config.ledger_must_name_one_host"),
        ("postgresql://u@a,b/p", "config.ledger_must_name_one_host"),
        ("ledger.db", "config.not_an_address"),
    ],
)
def test_an_address_of_a_ledger_that_must_not_be_is_refused_and_not_repeated(refusal, url, key):
    said = refusal(LEDGER | {"ledger": f'"{url}"'}, cop=COP)
    says(said, at("profiles.main.ledger", key))
    assert SECRET not in str(said)


def test_a_shared_ledger_needs_a_key(refusal):
    says(refusal({"ledger": LEDGER["ledger"]}, cop=COP), "config.ledger_without_key")


# The modulus tables

TABLES = {
    "modulus_weights": '"valacdos.txt"',
    "modulus_substitutions": '"scsubtab.txt"',
    "modulus_weights_date": "2030-01-31",
}


def test_modulus_tables_lie_beside_the_file(file_of, tmp_path):
    profile = load(file_of(TABLES, cop=COP), "main")
    assert profile.modulus_weights == tmp_path / "valacdos.txt"
    assert profile.modulus_substitutions == tmp_path / "scsubtab.txt"
    assert profile.modulus_weights_date == date(2030, 1, 31)


def test_without_modulus_tables_there_is_nothing_to_read(file_of):
    assert load(file_of(cop=COP), "main").modulus_tables() is None


@pytest.mark.parametrize("key", TABLES)
def test_modulus_tables_and_their_date_go_together(refusal, key):
    without = {name: value for name, value in TABLES.items() if name != key}
    for keys in (without, {key: TABLES[key]}):
        says(refusal(keys, cop=COP), "config.modulus_tables_incomplete", keys=[*TABLES])


@pytest.mark.parametrize("day", ['"soon"', '"31.01.2030"', "true"])
def test_the_date_of_the_modulus_tables_is_a_date(refusal, day):
    error = refusal({**TABLES, "modulus_weights_date": day}, cop=COP)
    says(error, at("profiles.main.modulus_weights_date", "config.must_be_date", value=day))


def test_other_modulus_tables_cost_no_answer(file_of):
    before = load(file_of(cop=COP), "main").fingerprint()
    assert load(file_of(TABLES, cop=COP), "main").fingerprint() == before


# What calls cost


@pytest.mark.parametrize(
    ("text", "amount", "currency"),
    [
        ("0.15 GBP", "0.15", "GBP"),
        ("0 EUR", "0", "EUR"),
        ("0.000001 EUR", "0.000001", "EUR"),
        ("999999999.999999 JPY", "999999999.999999", "JPY"),
    ],
)
def test_a_price_is_an_exact_amount_in_a_currency(file_of, text, amount, currency):
    for sections in ({"cop": COP}, {"vop": GATEWAY}, {"vop": STANDARD}):
        assert load(file_of(**sections), "main").servers[0].price is None
        [(key, section)] = sections.items()
        priced = load(file_of(**{key: {**section, "price_per_call": f'"{text}"'}}), "main").servers[0].price
        assert priced == Price(amount=Decimal(amount), currency=currency)


@pytest.mark.parametrize(
    "value",
    [
        *('"0,15 GBP"', '"-1 GBP"', '"0.15"', '"0.15 gbp"', '"1e3 GBP"', '"NaN GBP"', '"Infinity GBP"'),
        *('"GBP 0.15"', '"0.15GBP"', '"0.1234567 GBP"', '"1234567890 GBP"', '".5 GBP"', '"1. GBP"'),
        *(
            '"007 GBP"',
            '"+1 GBP"',
            '"1_000 GBP"',
            '"\u0661 GBP"',
            '"0.15 GBP\\n"',
            '""',
            "0.15",
            "nan",
            "true",
        ),
    ],
)
def test_what_is_no_price_is_refused_with_what_to_write(refusal, value):
    error = refusal(cop={**COP, "price_per_call": value})
    says(
        error,
        Sentence("config.at_value", where="profiles.main.cop.price_per_call", what="config.must_be_price"),
    )


@pytest.mark.parametrize("code", ["GBX", "XXX", "ZZZ"])
def test_a_price_in_what_is_no_currency_is_refused(refusal, code):
    error = refusal(cop={**COP, "price_per_call": f'"15 {code}"'})
    says(error, "config.price_currency_unknown", currency=code, value=f'"15 {code}"')


def test_hosts_with_other_prices_have_one_account(file_of):
    (before,) = load(file_of(cop=COP), "main").servers
    for price in ("0.15 GBP", "0.20 EUR"):
        (server,) = load(file_of(cop={**COP, "price_per_call": f'"{price}"'}), "main").servers
        assert account_of(server) == account_of(before)


# The fingerprint


@pytest.mark.parametrize(
    "change",
    [
        {"rate_per_s": "5"},
        {"in_flight_max": "2"},
        {"daily_cap": "7"},
        {"attempts_max": "1"},
        {"token_method": '"POST"'},
        {"client_secret_env": '"OTHER"'},
        {"ca_file": '"ca.pem"'},
        {"price_per_call": '"0.15 GBP"'},
    ],
)
def test_limits_and_secrets_do_not_change_what_is_asked_of_whom(file_of, change):
    before = load(file_of(cop=COP), "main").fingerprint()
    assert load(file_of(cop={**COP, **change}), "main").fingerprint() == before


def test_the_policy_is_no_part_of_what_makes_two_runs_the_same(file_of):
    before = load(file_of(cop=COP), "main").fingerprint()
    with_policy = load(file_of({"policy": '{close_match = "review"}'}, cop=COP), "main")
    assert with_policy.policy == {"close_match": "review"}
    assert with_policy.fingerprint() == before


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        ('{clos_match = "release"}', Sentence("config.policy_did_you_mean", near="close_match")),
        ('{"Ada Quillon" = "hold"}', "config.policy_unknown_key"),
        (
            '{close_match = "pay"}',
            Sentence(
                "config.at_value",
                value='"pay"',
                what=Sentence("config.must_be_one_of", choices=['"release"', '"review"', '"hold"']),
            ),
        ),
        ('{rejected = "release"}', Sentence("config.outcome_can_only_be_held", outcome="rejected")),
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused(file_of, policy, sentence):
    with refused(ConfigurationError, sentence):
        load(file_of({"policy": policy}, cop=COP), "main")


def test_reach_that_is_said_to_be_any_is_that_of_a_profile_that_says_nothing(file_of):
    before = load(file_of(cop=COP), "main").fingerprint()
    said = load(file_of({"vop_countries": '"any"', "vop_names": '"any"'}, cop=COP), "main")
    assert said.fingerprint() == before


@pytest.mark.parametrize("countries", ['["DU"]', '["de"]', '["US"]', '"DE"', '[""]'])
def test_country_that_has_no_ibans_is_refused(file_of, countries):
    with refused(ConfigurationError, "config.at_value", where="profiles.main.vop_countries"):
        load(file_of({"vop_countries": countries}, cop=COP), "main")


@pytest.mark.parametrize(
    ("profile", "change"),
    [
        ({}, {"base_url": '"https://other.example"'}),
        ({}, {"server": '"test"'}),
        ({}, {"client_id": '"other"'}),
        ({"default_account_type": '"Business"'}, {}),
        ({"gb_iban_to": '"vop"'}, {}),
        ({"ask_by": '"identification"'}, {}),
        ({"vop_countries": '["DE"]'}, {}),
        ({"vop_names": '"latin"'}, {}),
    ],
)
def test_what_decides_the_questions_changes_the_fingerprint(file_of, profile, change):
    before = load(file_of(cop=COP), "main").fingerprint()
    assert load(file_of(profile, cop={**COP, **change}), "main").fingerprint() != before


@pytest.mark.parametrize(
    "change",
    [
        {"requesting_bic": '"THRNGB2LXXX"'},
        {"send_remittance": "true"},
        {"bic_table": '{"DE3" = "QUILDEFFXXX"}'},
    ],
)
def test_what_decides_a_standard_request_changes_the_fingerprint(file_of, change):
    before = load(file_of(vop=STANDARD), "main").fingerprint()
    assert load(file_of(vop={**STANDARD, **change}), "main").fingerprint() != before


def test_profile_tells_its_environment(file_of):
    for environment in get_args(Asked):
        path = file_of(cop={**COP, "server": f'"{environment}"'})
        assert load(path, "main").environment is environment


def test_configuration_named_on_the_command_line_must_exist(tmp_path):
    for nothing in (tmp_path / "missing.toml", tmp_path):
        with refused(ConfigurationError, "config.no_such_configuration", "advice.write_configuration"):
            settings.find(nothing)
    path = tmp_path / "mine.toml"
    path.touch()
    assert settings.find(path) == path


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", at("profiles", "config.no_profiles")),
        ("profiles = {}", at("profiles", "config.no_profiles")),
        ("[profiles.main.cop]\nserver = 'test'", at("profiles.main.cop.scope", "config.missing")),
        (
            "[profiles.main.cop]\nrate_per_s = 0.0",
            at("profiles.main.cop.rate_per_s", Sentence("config.must_be_at_least", ge="0.1"), value="0.0"),
        ),
        (
            "[profiles.main]\ngb_iban_to = 'both'",
            at(
                "profiles.main.gb_iban_to",
                Sentence("config.must_be_one_of", choices=['"cop"', '"vop"']),
                value='"both"',
            ),
        ),
        (
            "[profiles.main]\nvop_countries = ['DE', 'ZZ']",
            at("profiles.main.vop_countries", "config.country_without_ibans", value='["DE", "ZZ"]'),
        ),
        (
            "[profiles.main.cop]\nclient_secret_env = 'not a name'",
            at("profiles.main.cop.client_secret_env", "config.must_be_variable_name"),
        ),
        (
            "[profiles.main.cop]\nin_flight_max = 9999",
            at(
                "profiles.main.cop.in_flight_max", Sentence("config.must_be_at_most", le="4000"), value="9999"
            ),
        ),
        (
            "[profiles.main.cop]\nprobe_wait_s = 0.0",
            at("profiles.main.cop.probe_wait_s", Sentence("config.must_be_more_than", gt="0"), value="0.0"),
        ),
        ("[profiles.main.cop]\nscope = 7", at("profiles.main.cop.scope", "config.must_be_text")),
        (
            "[profiles.main.cop]\ndaily_cap = 'x'",
            at("profiles.main.cop.daily_cap", "config.must_be_whole_number", value='"x"'),
        ),
    ],
)
def test_a_mistake_is_told_in_words_that_say_what_to_do(tmp_path, text, sentence):
    path = tmp_path / "precheck.toml"
    path.write_text(text)
    with refused(ConfigurationError, sentence) as raised:
        load(path, "main")
    assert "Input should" not in str(raised.value)
    assert "Field required" not in str(raised.value)


@pytest.mark.parametrize("language", ["de", "fr"])
@pytest.mark.parametrize(
    "text",
    [
        *(
            "profiles = 1",
            "[profiles]\nmain = 1",
            "[profiles.main]",
            "x = 1",
            "[desk]\nidentity_header = 'a b'",
        ),
        *(
            "[desk]\nuploader_may_approve = true",
            "[desk]\nroles = { auditor = 'a' }",
            "[desk]\nkeep_days = 1.5",
            "[desk]\nkeep_days = 36501",
            "[desk]\nupload_mib_max = 9999999999",
        ),
        *("[profiles.main]\npolicy = { pay = 'hold' }", "[profiles.main]\nvop_countries = ['ZZ']"),
        *("[profiles.main.cop]\nrate_per_s = inf", "[profiles.main.cop]\nrate_per_s = 0.0"),
        *("[profiles.main.cop]\nca_file = 1", "[profiles.main]\ngb_iban_to = 'x'"),
        *("[profiles.main]\nmodulus_weights_date = 2030-01-01T10:00:00", "[profiles.main.vop]\napi = 'x'"),
        *("[layouts.csv]\nseparator = ';'", "[layouts.a]\nwidths = 1", "[layouts.a]\npayments = []"),
    ],
)
def test_a_mistake_has_words_of_its_own_in_each_language(tmp_path, text, language):
    path = tmp_path / "precheck.toml"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as refused:
        read(path)
    in_english, translated = refused.value.sentences(), refused.value.sentences(language=language)
    assert set(in_english).isdisjoint(translated)
    assert said("config.wrong_form") not in " ".join(in_english)


GATEWAY_TEXT = "\n".join(f"{key} = {value}" for key, value in {**COP, "api": '"gateway"'}.items())
STANDARD_TEXT = "\n".join(f"{key} = {value}" for key, value in STANDARD.items())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            f"[profiles.main.vop]\n{GATEWAY_TEXT}\nrate_per_sec = 5",
            at("profiles.main.vop.rate_per_sec", Sentence("config.did_you_mean", near="rate_per_s")),
        ),
        (
            f"[profiles.main.vop]\n{GATEWAY_TEXT.replace('base_url', 'base_urll')}",
            at("profiles.main.vop.base_urll", Sentence("config.did_you_mean", near="base_url")),
        ),
        (
            f"[profiles.main.vop]\n{STANDARD_TEXT}\nclient_id = 'x'",
            at("profiles.main.vop.client_id", "config.key_not_of_api"),
        ),
        (
            f"[profiles.main.vop]\n{STANDARD_TEXT}\n[profiles.main.vop.bic_table]\nde = 'x'",
            at("profiles.main.vop.bic_table.de", "config.must_be_start_of_iban"),
        ),
        (
            f"[profiles.main.vop]\n{STANDARD_TEXT}\ngb_iban_to = 'cop'",
            at("profiles.main.vop.gb_iban_to", "config.move_to_profile"),
        ),
        (
            f"[profiles.main]\nrate_per_s = 5\n[profiles.main.vop]\n{STANDARD_TEXT}",
            at("profiles.main.rate_per_s", Sentence("config.move_to_section", sections=["[cop]", "[vop]"])),
        ),
        (
            f"[profiles.main.policy]\nno_mach = 'hlod'\n[profiles.main.vop]\n{STANDARD_TEXT}",
            at("profiles.main.policy.no_mach", Sentence("config.policy_did_you_mean", near="no_match")),
        ),
        (f"colour = 1\n[profiles.main.vop]\n{STANDARD_TEXT}", at("colour", "config.unknown_key")),
        (
            f"[profile.other]\n[profiles.main.vop]\n{STANDARD_TEXT}",
            at("profile", Sentence("config.did_you_mean", near="profiles")),
        ),
        ("[profiles.main]\ncop = 'x'", at("profiles.main.cop", "config.must_be_section")),
        ("[profiles]\nmain = 'x'", at("profiles.main", "config.must_be_section")),
    ],
)
def test_a_mistake_is_told_once_and_where_it_is_in_the_file(tmp_path, text, said):
    path = tmp_path / "precheck.toml"
    path.write_text(text)
    with refused(ConfigurationError, said, path=path) as raised:
        load(path, "main")
    assert len(raised.value.messages) == 1


def test_two_mistakes_in_two_sections_are_both_told(tmp_path):
    path = tmp_path / "precheck.toml"
    texts = (GATEWAY_TEXT.replace('api = "gateway"', "rate_per_sec = 1"), f"{GATEWAY_TEXT}\nscop = 1")
    path.write_text("[profiles.main.cop]\n{}\n[profiles.main.vop]\n{}".format(*texts))
    with pytest.raises(ConfigurationError) as refused:
        load(path, "main")
    assert [said.count("unknown key") for said in refused.value.sentences()] == [1, 1]
    assert all(said.startswith(f"{path}: profiles.main.") for said in refused.value.sentences())


def test_no_value_is_repeated_that_could_be_a_secret(tmp_path):
    path = tmp_path / "precheck.toml"
    keys = sorted({*Cop.model_fields, *Profile.model_fields} - set(QUOTED) - {"cop", "vop", "policy"})
    wrong = "\n".join(f"{key} = [{SECRET!r}]" for key in (*keys, "client_secret", "password"))
    path.write_text(f"[profiles.main]\n{wrong}\n[profiles.main.cop]\n{wrong}\n[profiles.main.vop]\n{wrong}")
    with pytest.raises(ConfigurationError) as refused:
        load(path, "main")
    assert len(refused.value.sentences()) > len(keys)
    assert SECRET not in str(refused.value)


def test_what_is_compared_with_is_no_part_of_what_makes_two_runs_the_same(file_of, tmp_path):
    before = load(file_of(cop=COP), "main").fingerprint()
    compared = load(file_of({"compare_with": '"newest of runs/pay-*"'}, cop=COP), "main")
    assert compared.compare_with == str(tmp_path / "runs" / "pay-*")
    assert compared.fingerprint() == before


def test_the_folder_of_the_file_is_no_pattern(tmp_path):
    folder = tmp_path / "runs [2026]"
    folder.mkdir()
    path = folder / "precheck.toml"
    path.write_text('[profiles.sandbox]\ncompare_with = "newest of *.precheck"\n')
    pattern = Path(load(path, "sandbox").compare_with)
    (folder / "march.precheck").mkdir()
    assert [found.name for found in Path("/").glob(str(pattern.relative_to("/")))] == ["march.precheck"]


@pytest.mark.parametrize("said", ["latest of *", "newest of ", "pay-*", ""])
def test_a_comparison_that_is_no_newest_of_a_pattern_is_refused(refusal, said):
    error = refusal({"compare_with": f'"{said}"'}, cop=COP)
    says(error, at("profiles.main.compare_with", "config.must_be_newest_of_pattern", value=f'"{said}"'))


def server_of(file_of, **keys):
    quoted = {key: f'"{value}"' for key, value in keys.items()}
    return load(file_of(cop={**COP, **quoted}), "main").servers[0]


def test_no_proxy_is_used_unless_the_profile_says_so(file_of, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")

    assert proxy_to(server_of(file_of), "https://cop.example") is None


def test_the_proxy_of_the_environment_is_used_except_to_the_hosts_that_it_excludes(file_of, monkeypatch):
    server = server_of(file_of, proxy="environment")
    monkeypatch.setenv("HTTPS_PROXY", "http://us:hu%3Ash@proxy.example:3128/")
    monkeypatch.setenv("NO_PROXY", "login.example,localhost")

    found = proxy_to(server, "https://cop.example")

    assert found.name == "http://proxy.example:3128"
    assert found.credentials.get_secret_value() == "us:hu:sh"
    assert "hu" not in repr(found)
    assert proxy_to(server, "https://login.example/token") is None
    monkeypatch.delenv("HTTPS_PROXY")
    assert proxy_to(server, "https://cop.example") is None


def test_a_proxy_of_the_environment_that_is_none_is_refused_and_not_repeated(file_of, monkeypatch):
    monkeypatch.setenv("ALL_PROXY", f"socks5://us:{SECRET}@proxy.example")
    for name in ("HTTPS_PROXY", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)

    with refused(ConfigurationError, "sections.proxy_address_malformed") as error:
        proxy_to(server_of(file_of, proxy="environment"), "https://cop.example")

    assert SECRET not in str(error.value)


def test_a_proxy_by_its_address_has_credentials_of_its_own_and_an_own_authority(file_of, monkeypatch):
    monkeypatch.setenv("PROXY_LOGIN", f"us:{SECRET}")
    keys = {"proxy_url": "https://proxy.example", "proxy_credentials_env": "PROXY_LOGIN"}

    found = proxy_to(server_of(file_of, **keys), "https://cop.example")

    assert (found.name, found.credentials.get_secret_value()) == (
        "https://proxy.example:443",
        f"us:{SECRET}",
    )


def test_keys_of_a_proxy_that_do_not_go_together_are_refused(refusal):
    def of(**keys):
        return refusal(cop={**COP, **{key: f'"{value}"' for key, value in keys.items()}})

    both = of(proxy="environment", proxy_url="http://proxy.example")
    says(both, "config.give_one_not_both", keys=["proxy", "proxy_url"])
    says(of(proxy_ca_file="ca.pem"), "config.proxy_missing", key="proxy_ca_file")
    for wrong in (
        "socks5://proxy.example",
        "http://us:hush@proxy.example",
        "proxy.example:3128",
        "http://p/x",
    ):
        said = of(proxy_url=wrong)
        says(said, at("profiles.main.cop.proxy_url", "config.must_be_proxy_address"))
        assert "hush" not in str(said)


def test_a_proxy_is_no_part_of_what_is_asked(file_of):
    direct = load(file_of(cop=COP), "main").fingerprint()

    assert load(file_of(cop={**COP, "proxy_url": '"http://proxy.example"'}), "main").fingerprint() == direct


def test_the_private_key_of_a_certificate_is_in_a_file_or_in_the_environment(file_of, refusal, monkeypatch):
    monkeypatch.setenv("QWAC_KEY", SECRET)
    by_environment = {**STANDARD, "client_key": None, "client_key_env": '"QWAC_KEY"'}

    (server,) = load(file_of(vop=by_environment), "main").servers
    (by_file,) = load(file_of(vop=STANDARD), "main").servers

    name, key = server.private_key()
    assert (name, key.get_secret_value()) == ("QWAC_KEY", SECRET)
    assert by_file.private_key().name == "qwac.key"
    for keys in ({"client_key": None}, {"client_key_env": '"QWAC_KEY"'}):
        error = refusal(vop={**STANDARD, **keys})
        says(error, "config.give_exactly_one", keys=["client_key", "client_key_env"])
