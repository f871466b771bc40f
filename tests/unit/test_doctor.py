"""What the doctor finds, against a real sandbox and in files with one mistake each."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from pipeline.config.profiles import sandbox
from pipeline.jobs.doctor import diagnose
from pipeline.wording import SurfaceKind, words


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
        "vop_gateway secret",
        "vop_gateway TLS",
        "vop_gateway token",
    ]
    assert not any(finding.exit_code for finding in findings)
    assert "embedded sandbox" in str(findings[0].said)


def test_a_certificate_tells_whose_it_is_and_until_when(healthy):
    certificate = diagnose("sandbox-standard", healthy, now=datetime.now(UTC))[1]

    assert (str(certificate.what), certificate.exit_code) == ("vop_standard certificate", 0)
    assert re.search(r"PSDFR-ACPR-99999, valid until \d{4}-\d\d-\d\d", str(certificate.said))
    assert datetime.now(UTC).date().isoformat() < str(certificate.said).split("valid until ")[1][:10]


def test_a_mistake_of_one_server_does_not_hide_the_other(changed):
    config = changed(
        r"(?s)(profiles\.sandbox\.cop\].*?)base_url = \"[^\"]+\"", r'\1base_url = "https://127.0.0.1:9"'
    )

    assert told(diagnose("sandbox", config, now=datetime.now(UTC))) == {
        "configuration": 0,
        "cop secret": 0,
        "cop TLS": 75,
        "vop_gateway secret": 0,
        "vop_gateway TLS": 0,
        "vop_gateway token": 0,
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
    assert "precheck init" in words(finding.said, SurfaceKind.COMMAND)


def test_who_lists_us_is_not_tried_as_that_would_take_a_payee(healthy):
    participant = diagnose("sandbox-standard", healthy, now=datetime.now(UTC))[-1]

    assert (str(participant.what), participant.exit_code) == ("vop_standard participant", 0)
    assert participant.said.key == "doctor.listing_not_tried"


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
    ("age", "said"),
    [(0, "0 days old"), (365, "365 days old"), (366, "366 days old; older than a year"), (-1, "0 days old")],
)
def test_modulus_tables_are_told_by_their_rows_and_age(changed, healthy, age, said):
    day = datetime.now(UTC).date() - timedelta(days=age)
    config = with_tables(changed, healthy, weights=f"100000 100009 MOD11{' 1' * 14}\n" * 2, day=day)

    weights, substitutions = diagnose("sandbox", config, now=datetime.now(UTC))[1:3]

    assert (str(weights.what), weights.exit_code) == ("modulus weights", 0)
    assert (str(substitutions.what), substitutions.exit_code) == ("modulus substitutions", 0)
    for finding in (weights, substitutions):
        assert str(finding.said).startswith(f"2 rows, of {day}, ")
        assert said in str(finding.said)
        assert ("older than a year" in str(finding.said)) == (age > 365)


def test_modulus_tables_of_a_day_to_come_are_wrong(changed, healthy):
    day = datetime.now(UTC).date() + timedelta(days=9)
    config = with_tables(changed, healthy, weights=f"100000 100009 MOD11{' 1' * 14}\n", day=day)

    for finding in diagnose("sandbox", config, now=datetime.now(UTC))[1:3]:
        assert finding.exit_code == 78
        assert str(finding.said) == (
            f"modulus_weights_date: {day} is in the future; give the date from which the tables are valid, "
            "or use the tables that are valid today"
        )


def test_a_damaged_modulus_table_does_not_hide_the_other(changed, healthy):
    config = with_tables(changed, healthy, weights="100000 100009\n", day="2020-01-01")

    findings = diagnose("sandbox", config, now=datetime.now(UTC))

    assert told(findings)["modulus weights"] == 78
    assert "weights line 1: not 17 fields" in str(findings[1].said)
    assert told(findings)["modulus substitutions"] == 0
    assert told(findings)["cop TLS"] == 0
