"""The tests of `precheck doctor`: everything that can be tested without checking a payee."""

from collections.abc import Callable
from datetime import date, datetime
from functools import partial
from pathlib import Path

import anyio

from pipeline.config import ConfigurationFile, Profile
from pipeline.config.file import usual
from pipeline.config.profiles import choose, opened
from pipeline.connections import leases_path, proxy_to, tokens_of, try_connection
from pipeline.errors import ConfigurationError, PrecheckError, TlsError
from pipeline.jobs.ledger import LedgerJob, inspect_ledger
from pipeline.rules.modulus_tables import VALID_MAX_DAYS, age_days, read_substitutions, read_weights
from pipeline.runs.evidence import Finding
from pipeline.sections import MutualTls, Oauth, Server
from pipeline.transport.certificates import inspect_certificate
from pipeline.wording import Sentence


def diagnose(profile_name: str | None, config: Path | None, *, now: datetime) -> list[Finding]:
    """Test configuration, secrets, certificates, and each server's TLS and token; one finding per test."""
    findings = []
    try:
        file = ConfigurationFile(config)
        chosen = choose(profile_name, file)
        where = (
            Sentence("doctor.sandbox", profile=chosen.name)
            if chosen.config is None
            else Sentence("doctor.profile", path=chosen.config, profile=chosen.name)
        )
        with opened(chosen) as profile:
            findings.append(Finding(Sentence("doctor.configuration"), where))
            if profile_name is None and (untried := usual()) is not None:
                unverified = Sentence("doctor.configuration_not_tried", path=untried)
                findings.append(Finding(Sentence("doctor.not_tried"), unverified, is_tried=False))
            if profile.ledger_key_env or profile.ledger_key_file:
                source = profile.ledger_key_env or profile.ledger_key_file
                read_key = partial(_secret, profile.ledger_key, source)
                findings.append(_try(Sentence("doctor.ledger_key"), read_key))
            if profile.ledger is not None:
                job = LedgerJob(chosen.name, file, lambda: now, lambda: 0.0)
                findings.append(_try(Sentence("doctor.shared_ledger"), partial(_shared_ledger, job)))
            findings.extend(_try_modulus_tables(profile, now.date()))
            for server in profile.servers:
                findings.extend(_try_server(server, now))
            if chosen.profile is not None:
                leases_path()  # runs need this folder to count their limits
    except PrecheckError as error:
        what = Sentence("doctor.configuration")
        findings += [Finding(what, detail, error.exit_code) for detail in error.messages]
    return findings


def _try_modulus_tables(profile: Profile, today: date) -> list[Finding]:
    weights, substitutions = profile.modulus_weights, profile.modulus_substitutions
    day = profile.modulus_weights_date
    if weights is None or substitutions is None or day is None:
        return []

    def weights_read() -> Sentence:
        ranges, _ = read_weights(weights)
        return _table(sum(len(found.checks) for found in ranges), day, today)

    def substitutions_read() -> Sentence:
        pairs, _ = read_substitutions(substitutions)
        return _table(len(pairs), day, today)

    return [
        _try(Sentence("doctor.modulus_weights"), weights_read),
        _try(Sentence("doctor.modulus_substitutions"), substitutions_read),
    ]


def _table(row_count: int, day: date, today: date) -> Sentence:
    days = age_days(day, today)
    key = "doctor.old_tables" if days > VALID_MAX_DAYS else "doctor.tables"
    return Sentence(key, row_count=row_count, day=day, age_days=days)


def _try_server(server: Server, now: datetime) -> list[Finding]:
    name, findings = server.name.value, []
    if isinstance(server, MutualTls):
        findings.append(_try(Sentence("doctor.certificate", server=name), partial(_certificate, server, now)))
    if isinstance(server, Oauth):
        source = server.client_secret_env or server.client_secret_file
        read_secret = partial(_secret, server.client_secret, source)
        findings.append(_try(Sentence("doctor.secret", server=name), read_secret))
    findings.append(_try(Sentence("doctor.tls", server=name), partial(_tls, server, now)))
    if isinstance(server, Oauth) and not any(finding.exit_code for finding in findings):
        findings.append(_try(Sentence("doctor.token", server=name), partial(_token, server)))
    untried = "doctor.listing_not_tried" if isinstance(server, MutualTls) else "doctor.answers_not_tried"
    findings.append(Finding(Sentence("doctor.answers", server=name), Sentence(untried), is_tried=False))
    return findings


def _try(what: Sentence, trial: Callable[[], Sentence]) -> Finding:
    try:
        return Finding(what, trial())
    except PrecheckError as error:
        return Finding(what, error.messages[0], error.exit_code)


def _secret(read: Callable[[], object], source: str | Path | None) -> Sentence:
    read()
    return Sentence("doctor.read_from", source=source)


def _tls(server: Server, now: datetime) -> Sentence:
    version = anyio.run(try_connection, server, now)
    if (proxy := proxy_to(server, server.base_url)) is not None:
        return Sentence("doctor.tls_by_proxy", version=version, proxy=proxy.name)
    return Sentence("doctor.tls_in_use", version=version)


def _shared_ledger(job: LedgerJob) -> Sentence:
    """Return the ledger's address (ConfigurationError: the ledger is at risk of losing answers)."""
    found = inspect_ledger(job, is_restored=False)
    wrong = [Sentence("jobs.finding", what=each.what, detail=each.detail) for each in found if each.exit_code]
    if wrong:
        raise ConfigurationError(Sentence("jobs.ledger_unfit", problems=wrong))
    return found[0].detail


def _token(server: Oauth) -> Sentence:
    anyio.run(tokens_of(server).current)
    return Sentence("doctor.token_granted", client=server.client_id)


def _certificate(server: MutualTls, now: datetime) -> Sentence:
    facts = inspect_certificate(server.client_certificate, now=now)
    if facts.problems:
        raise TlsError(Sentence("transport.certificate_problems", problems=facts.problems))
    return Sentence(
        "doctor.expires_soon" if facts.expires_soon else "doctor.valid_until",
        number=facts.organisation_identifier,
        day=facts.not_after.date(),
        path=server.client_certificate,
    )
