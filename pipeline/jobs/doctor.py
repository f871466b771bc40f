"""What `precheck doctor` finds: everything that can be tried without asking about a payee."""

from collections.abc import Callable
from datetime import date, datetime
from functools import partial
from pathlib import Path

import anyio

from pipeline.config import ConfigurationFile, Profile, usual
from pipeline.config.profiles import choose, opened
from pipeline.connections import tokens_of, try_connection
from pipeline.errors import ConfigurationError, PrecheckError, TlsError
from pipeline.jobs.ledger import LedgerJob, inspect_ledger
from pipeline.rules.modulus_tables import VALID_MAX_DAYS, age_days, read_substitutions, read_weights
from pipeline.runs.evidence import Finding
from pipeline.sections.servers import MutualTls, Oauth, Server
from pipeline.transport.tls import inspect_certificate
from pipeline.wording import Sentence, SurfaceKind

Trial = Callable[[str, Callable[[], str]], Finding]
"""Tries something by its name; what it finds is the text that comes back, or why none does."""

_PARTICIPANT = "not tried: whether the scheme lists us shows in the first answer of a run, which asks alone"


def diagnose(
    profile_name: str | None, config: Path | None, *, now: datetime, kind: SurfaceKind = SurfaceKind.ANY
) -> list[Finding]:
    """Try a profile: the configuration, the secrets, the certificates, TLS and the token.

    Args:
        profile_name: None: the embedded sandbox.
        config: the configuration file; None: the usual one.
        now: the time.
        kind: of the surface, for what to do about a configuration that cannot be used.

    Returns:
        One finding per thing tried, in order. A mistake in one server does not hide another.
    """
    findings = []
    tried = partial(_try, kind)
    try:
        file = ConfigurationFile(config)
        chosen = choose(profile_name, file)
        where = "the embedded sandbox" if chosen.config is None else str(chosen.config)
        with opened(chosen) as profile:
            findings.append(Finding("configuration", f"{where}, profile {chosen.name}"))
            if profile_name is None and (untried := usual()) is not None:
                said = f"{untried} is there and was not tried; name one of its profiles with --profile"
                findings.append(Finding("not tried", said))
            if profile.ledger_key_env or profile.ledger_key_file:
                findings.append(tried("ledger key", partial(_ledger_key, profile)))
            if profile.ledger is not None:
                job = LedgerJob(chosen.name, file, lambda: now, lambda: 0.0)
                findings.append(tried("shared ledger", partial(_shared_ledger, job)))
            findings.extend(_try_modulus_tables(profile, now.date(), tried))
            for server in profile.servers:
                findings.extend(_try_server(server, now, tried))
    except PrecheckError as error:
        findings += [Finding("configuration", said, error.exit_code) for said in error.sentences(kind)]
    return findings


def _try_modulus_tables(profile: Profile, today: date, tried: Trial) -> list[Finding]:
    weights, substitutions, day = (
        profile.modulus_weights,
        profile.modulus_substitutions,
        profile.modulus_weights_date,
    )
    if weights is None or substitutions is None or day is None:
        return []

    def weights_read() -> str:
        ranges, _ = read_weights(weights)
        return f"{sum(len(found.checks) for found in ranges):,} rows, {_age(day, today)}"

    def substitutions_read() -> str:
        pairs, _ = read_substitutions(substitutions)
        return f"{len(pairs):,} rows, {_age(day, today)}"

    return [tried("modulus weights", weights_read), tried("modulus substitutions", substitutions_read)]


def _age(day: date, today: date) -> str:
    days = age_days(day, today)
    said = f"of {day}, {days:,} days old"
    if days > VALID_MAX_DAYS:
        said += "; older than a year, so failures only warn and nothing is rejected: get the latest tables"
    return said


def _try_server(server: Server, now: datetime, tried: Trial) -> list[Finding]:
    name, findings = server.name.value, []
    if isinstance(server, MutualTls):
        findings.append(tried(f"{name} certificate", partial(_certificate, server, now)))
    if isinstance(server, Oauth):
        findings.append(tried(f"{name} secret", partial(_secret, server)))
    findings.append(tried(f"{name} TLS", partial(anyio.run, try_connection, server, now)))
    if isinstance(server, MutualTls):
        findings.append(Finding(f"{name} participant", _PARTICIPANT))
    if isinstance(server, Oauth) and not any(finding.exit_code for finding in findings):
        findings.append(tried(f"{name} token", partial(_token, server)))
    return findings


def _try(kind: SurfaceKind, what: str, trial: Callable[[], str]) -> Finding:
    try:
        return Finding(what, trial())
    except PrecheckError as error:
        return Finding(what, error.sentence(kind), error.exit_code)


def _secret(server: Oauth) -> str:
    server.client_secret()
    return f"read from {server.client_secret_env or server.client_secret_file}"


def _ledger_key(profile: Profile) -> str:
    profile.ledger_key()
    return f"read from {profile.ledger_key_env or profile.ledger_key_file}"


def _shared_ledger(job: LedgerJob) -> str:
    """Where it is; ConfigurationError where `precheck ledger check` finds that it could lose an answer."""
    found = inspect_ledger(job, is_restored=False)
    if wrong := [f"{each.what}: {each.said}" for each in found if each.exit_code]:
        raise ConfigurationError(Sentence("jobs.ledger_unfit", problems=wrong))
    return found[0].said


def _token(server: Oauth) -> str:
    anyio.run(tokens_of(server).current)
    return f"granted to client {server.client_id}"


def _certificate(server: MutualTls, now: datetime) -> str:
    facts = inspect_certificate(server.client_certificate, now=now)
    if facts.problems:
        raise TlsError(Sentence("transport.certificate_problems", problems=facts.problems))
    valid = f"{facts.organisation_identifier}, valid until {facts.not_after.date().isoformat()}"
    return "; ".join((valid, *facts.notices))
