"""What `precheck doctor` finds: everything that can be tried without asking about a payee."""

from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import anyio

from pipeline.channels import AnyServer, greet, tokens_of
from pipeline.errors import PrecheckError, TlsError
from pipeline.profiles import choose, opened
from pipeline.settings import Oauth, VopStandard
from pipeline.transport.tls import inspect_certificate


class Finding(NamedTuple):
    """One thing that was tried."""

    what: str
    said: str
    """What was found, or what is wrong and what to do."""
    exit_code: int
    """0 where it is well."""


def diagnose(profile_name: str | None, config: Path | None) -> list[Finding]:
    """Try a profile: the configuration, the secrets, the certificates, TLS and the token.

    Returns:
        One finding per thing tried, in order. A mistake in one server does not hide another.
    """
    findings = []
    try:
        chosen = choose(profile_name, config)
        where = "the embedded sandbox" if chosen.config is None else str(chosen.config)
        with opened(chosen) as profile:
            findings.append(Finding("configuration", f"{where}, profile {chosen.name}", 0))
            for server in profile.servers:
                findings.extend(_try_server(server))
    except PrecheckError as error:
        findings.append(Finding("configuration", str(error), error.exit_code))
    return findings


def _try_server(server: AnyServer) -> list[Finding]:
    name = server.name.value
    findings = []
    try:
        if isinstance(server, VopStandard):
            findings.append(_try_certificate(server))
        findings.append(Finding(f"{name} TLS", anyio.run(greet, server), 0))
        if isinstance(server, Oauth):
            anyio.run(tokens_of(server).current)
            findings.append(Finding(f"{name} token", f"granted to client {server.client_id}", 0))
    except PrecheckError as error:
        findings.append(Finding(f"{name} server", str(error), error.exit_code))
    return findings


def _try_certificate(server: VopStandard) -> Finding:
    what = f"{server.name.value} certificate"
    facts = inspect_certificate(server.client_certificate, now=datetime.now(UTC))
    if facts.problems:
        return Finding(what, "; ".join(facts.problems), TlsError.exit_code)
    valid = f"{facts.organisation_identifier}, valid until {facts.not_after.date().isoformat()}"
    return Finding(what, "; ".join((valid, *facts.notices)), 0)
