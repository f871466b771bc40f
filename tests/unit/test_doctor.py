"""What the doctor finds, against a real sandbox and in files with one mistake each."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from refusals import said, says
from tables import for_each

from pipeline.config.profiles import sandbox
from pipeline.jobs.doctor import diagnose
from pipeline.wording import Sentence, SurfaceKind, words

NOW = datetime.now(UTC)


@pytest.fixture(scope="module")
def healthy():
    with sandbox() as config:
        yield config


@pytest.fixture
def changed(healthy):
    """`changed(pattern, replacement)`: the sandbox's configuration with one thing wrong, in its folder."""
    made = []

    def write(pattern, replacement):
        text, count = re.subn(pattern, replacement, healthy.read_text())
        assert count, "the pattern is not in the configuration"
        path = healthy.with_name(f"changed-{len(made)}.toml")
        path.write_text(text)
        made.append(path)
        return path

    yield write
    for path in made:
        path.unlink()


def told(findings):
    return {str(finding.what): finding.exit_code for finding in findings}


def test_all_is_well_with_the_embedded_sandbox():
    findings = diagnose(None, None, now=datetime.now(UTC))

    assert [str(finding.what) for finding in findings] == [
        "configuration",
        "cop secret",
        "cop TLS",
        "cop token",
        "cop answers",
        "vop_gateway secret",
        "vop_gateway TLS",
        "vop_gateway token",
        "vop_gateway answers",
    ]
    assert not any(finding.exit_code for finding in findings)
    assert "embedded sandbox" in str(findings[0].detail)


def test_a_certificate_tells_whose_it_is_and_until_when(healthy):
    certificate = diagnose("sandbox-standard", healthy, now=datetime.now(UTC))[1]

    assert (str(certificate.what), certificate.exit_code) == ("vop_standard certificate", 0)
    says(certificate.detail, "doctor.valid_until", number="PSDFR-ACPR-99999")
    assert datetime.now(UTC).date() < certificate.detail.values["day"]


def test_a_mistake_of_one_server_does_not_hide_the_other(changed):
    config = changed(
        r"(?s)(profiles\.sandbox\.cop\].*?)base_url = \"[^\"]+\"", r'\1base_url = "https://127.0.0.1:9"'
    )

    assert told(diagnose("sandbox", config, now=datetime.now(UTC))) == {
        "configuration": 0,
        "cop secret": 0,
        "cop TLS": 75,
        "cop answers": 0,
        "vop_gateway secret": 0,
        "vop_gateway TLS": 0,
        "vop_gateway token": 0,
        "vop_gateway answers": 0,
    }


def test_a_missing_secret_does_not_hide_that_tls_is_well(changed):
    config = changed(r"client_secret_file = \"sandbox\.client_secret\"", 'client_secret_file = "gone"')

    findings = diagnose("sandbox", config, now=datetime.now(UTC))

    assert told(findings)["cop secret"] == 78
    assert told(findings)["cop TLS"] == 0
    assert "cop token" not in told(findings)


def test_a_refused_client_is_told(changed):
    config = changed(r"scope = \"api://payee-verification-sandbox", 'scope = "api://another')

    findings = diagnose("sandbox", config, now=datetime.now(UTC))

    assert told(findings)["cop token"] == 77


def test_a_certificate_that_cannot_be_read_does_not_hide_what_tls_says(changed):
    config = changed('client_certificate = "client.pem"', 'client_certificate = "ca.pem"')

    findings = told(diagnose("sandbox-standard", config, now=datetime.now(UTC)))

    assert findings["vop_standard certificate"] == 78
    assert findings["vop_standard TLS"] == 78


def test_no_configuration_is_one_finding_and_not_an_exception(tmp_path):
    [finding] = diagnose("mine", tmp_path / "nowhere.toml", now=datetime.now(UTC))

    assert (str(finding.what), finding.exit_code) == ("configuration", 78)
    assert "precheck init" in words(finding.detail, SurfaceKind.COMMAND)


def test_who_lists_us_is_not_tried_as_that_would_take_a_payee(healthy):
    answers = diagnose("sandbox-standard", healthy, now=datetime.now(UTC))[-1]

    assert (str(answers.what), answers.exit_code, answers.is_tried) == ("vop_standard answers", 0, False)
    assert answers.detail.key == "doctor.listing_not_tried"


BASE, TOKEN, AUTHORITY = (rf'{key} = "[^"]+"' for key in ("base_url", "token_url", "ca_file"))
NOWHERE = "https://nowhere.invalid/x"
AWAY = 'proxy_url = "http://127.0.0.1:9"'
PROXY = 'proxy = "environment"'


@for_each(
    ("pattern", "replacement", "what", "status", "why"),
    [
        (TOKEN, f'token_url = "{NOWHERE}"', "token", 75,
         Sentence("transport.token_no_answer", kind=re.compile("^[A-Z]"))),
        (TOKEN, rf"\g<0>\n{AWAY}", "TLS", 75, Sentence("transport.proxy_unreachable", address="proxy_url")),
        (BASE, rf"\g<0>\n{PROXY}", "TLS", 75, Sentence("transport.proxy_unreachable", address="HTTPS_PROXY")),
        (BASE, f'base_url = "{NOWHERE}"', "TLS", 75, Sentence("transport.proxy_unused")),
        (AUTHORITY, 'ca_file = "gone.pem"', "TLS", 78,
         Sentence("transport.tls_file_unreadable", what="ca_file", path="gone.pem")),
        (AUTHORITY, "", "TLS", 78, Sentence("transport.name_issuing_authority", authority="ca_file")),
        (TOKEN, rf'\g<0>\n{AWAY}\nproxy_credentials_env = "NONE"', "TLS", 78,
         Sentence("sections.variable_not_set", variable="NONE")),
    ],
)  # fmt: skip
def test_what_is_in_the_way_is_named_with_what_to_change(
    changed, monkeypatch, pattern, replacement, what, status, why
):
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "")
    findings = {str(one.what): one for one in diagnose("sandbox", changed(pattern, replacement), now=NOW)}

    found = findings[f"cop {what}"]
    assert found.exit_code == status
    says(found.detail, why)


@for_each(
    ("days", "key"),
    [(800, "transport.certificate_expired_on"), (-800, "transport.certificate_not_yet_valid")],
)
def test_a_wrong_clock_is_named_where_a_certificate_seems_wrong(healthy, days, key):
    findings = diagnose("sandbox-standard", healthy, now=NOW + timedelta(days=days))

    assert [one.exit_code for one in findings] == [0, 78, 78, 0]
    says(findings[1].detail, key)


def test_a_certificate_that_ends_soon_is_well_and_named(healthy):
    found = diagnose("sandbox-standard", healthy, now=NOW + timedelta(days=350))[1]

    assert found.exit_code == 0
    says(found.detail, "doctor.expires_soon", number="PSDFR-ACPR-99999")


def test_an_identity_provider_is_quoted_and_one_that_says_later_is_not_blamed_on_the_network(desk, serve):
    faults = ("--fault", "token-401:for=2", "--fault", "token-later:after=2,for=3")
    with serve(desk.folder / "server", *faults) as server:
        done = desk("doctor", *server.using("sandbox"), COLUMNS="1000")
    refused, later = re.findall("^PROBLEM (.*)$", done.out, re.MULTILINE)

    assert done.status == 77
    assert re.search("cop token: .*check client_id.*invalid_client: AADSTS7000215", refused)
    no_token = re.escape(said("transport.no_token_now", status=400))
    assert re.search(f"vop_gateway token: .*{no_token}; it says: .*AADSTS90033", later)
    assert "token_url" not in later


def test_a_server_that_wants_a_certificate_from_one_that_has_none_names_none_of_the_profile(serve, tmp_path):
    words = ("--client-certificate-required", "--fault", "html-400")
    with serve(tmp_path / "server", *words) as server:
        findings = {str(one.what): one for one in diagnose("sandbox", server.config, now=NOW)}

    assert findings["cop TLS"].exit_code == 77
    required = "transport.requires_client_certificate"
    says(findings["cop TLS"].detail, "transport.client_certificate_refused", refusal=required)


def test_a_ledger_key_that_is_missing_is_found(changed):
    config = changed(r"\[profiles\.sandbox\]", r'\g<0>\nledger_key_file = "gone"')
    assert told(diagnose("sandbox", config, now=datetime.now(UTC)))["ledger key"] == 78


def with_tables(changed, healthy, *, weights, day):
    (healthy.parent / "weights").write_text(weights)
    (healthy.parent / "substitutions").write_text("100000 100001\n100002 100003\n")
    keys = (
        f'modulus_weights = "weights"\nmodulus_substitutions = "substitutions"\nmodulus_weights_date = {day}'
    )
    return changed(r"\[profiles\.sandbox\]", rf"\g<0>\n{keys}")


@pytest.mark.parametrize(
    ("age", "key"),
    [(0, "doctor.tables"), (365, "doctor.tables"), (366, "doctor.old_tables"), (-1, "doctor.tables")],
)
def test_modulus_tables_are_told_by_their_rows_and_age(changed, healthy, age, key):
    day = datetime.now(UTC).date() - timedelta(days=age)
    config = with_tables(changed, healthy, weights=f"100000 100009 MOD11{' 1' * 14}\n" * 2, day=day)

    weights, substitutions = diagnose("sandbox", config, now=datetime.now(UTC))[1:3]

    assert (str(weights.what), weights.exit_code) == ("modulus weights", 0)
    assert (str(substitutions.what), substitutions.exit_code) == ("modulus substitutions", 0)
    for finding in (weights, substitutions):
        assert finding.detail == Sentence(key, row_count=2, day=day, age_days=max(age, 0))


def test_modulus_tables_of_a_day_to_come_are_wrong(changed, healthy):
    day = datetime.now(UTC).date() + timedelta(days=9)
    config = with_tables(changed, healthy, weights=f"100000 100009 MOD11{' 1' * 14}\n", day=day)

    for finding in diagnose("sandbox", config, now=datetime.now(UTC))[1:3]:
        assert finding.exit_code == 78
        assert str(finding.detail) == said("rules.modulus_date_in_future", valid_from=day)


def test_a_damaged_modulus_table_does_not_hide_the_other(changed, healthy):
    config = with_tables(changed, healthy, weights="100000 100009\n", day="2020-01-01")

    findings = diagnose("sandbox", config, now=datetime.now(UTC))

    assert told(findings)["modulus weights"] == 78
    says(findings[1].detail, "rules.field_count_wrong", where=re.compile("weights line 1$"), fields_count=2)
    assert told(findings)["modulus substitutions"] == 0
    assert told(findings)["cop TLS"] == 0
