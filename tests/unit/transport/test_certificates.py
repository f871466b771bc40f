from datetime import timedelta

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID
from refusals import refused, says

from pipeline.errors import TlsError
from pipeline.transport.certificates import inspect_certificate

NUMBER = "PSDFR-ACPR-99999"


@pytest.fixture
def issue(loopback):
    return loopback.authority.issue


def facts_of(pair, *, days_left=60):
    """What is seen of a certificate that ends in so many days; a negative number is in the past."""
    end = inspect_certificate(pair.certificate, now=_sometime(pair)).not_after
    return inspect_certificate(pair.certificate, now=end - timedelta(days=days_left))


def _sometime(pair):
    from cryptography import x509

    return x509.load_pem_x509_certificate(pair.certificate.read_bytes()).not_valid_before_utc


def test_a_good_certificate_has_no_problem(issue):
    facts = facts_of(issue("qwac", number=NUMBER))
    assert facts.problems == ()
    assert not facts.expires_soon
    assert facts.organisation_identifier == NUMBER
    assert "CN=qwac" in facts.subject


def test_an_expired_certificate_is_a_problem(issue):
    (problem,) = facts_of(issue("qwac", number=NUMBER), days_left=-1).problems
    says(problem, "transport.certificate_expired_on")


def test_a_certificate_of_the_future_is_a_problem(issue):
    (problem,) = facts_of(issue("qwac", number=NUMBER), days_left=2000).problems
    says(problem, "transport.certificate_not_yet_valid")


@pytest.mark.parametrize(("days_left", "noticed"), [(31, False), (29, True), (0, True), (-1, False)])
def test_the_coming_end_is_noticed_a_month_before(issue, days_left, noticed):
    assert facts_of(issue("qwac", number=NUMBER), days_left=days_left).expires_soon is noticed


def test_a_certificate_for_servers_only_is_a_problem(issue):
    facts = facts_of(issue("server-only", number=NUMBER, usages=(ExtendedKeyUsageOID.SERVER_AUTH,)))
    says(facts.problems[0], "transport.certificate_not_for_clients")


def test_a_certificate_without_the_extension_may_be_used_for_everything(issue):
    assert facts_of(issue("unrestricted", number=NUMBER, usages=())).problems == ()


@pytest.mark.parametrize("number", [None, "VATFR-123456789", "PSDFR-99999", "psdfr-ACPR-1"])
def test_a_certificate_without_an_authorisation_number_is_a_problem(issue, number):
    (problem,) = facts_of(issue("no-number", number=number)).problems
    says(problem, {"transport.certificate_without_number", "transport.certificate_number_malformed"})


def test_every_problem_names_the_file(issue):
    pair = issue("wrong", usages=(ExtendedKeyUsageOID.SERVER_AUTH,))
    problems = facts_of(pair, days_left=-1).problems
    assert len(problems) == 3
    for problem in problems:
        says(problem, path=pair.certificate)


def test_a_file_that_cannot_be_used_is_named(issue, tmp_path):
    pair = issue("qwac")
    for path in (tmp_path / "absent.pem", pair.key):
        with refused(TlsError, path=path.name):
            inspect_certificate(path, now=_sometime(pair))
