"""What `precheck doctor` finds: everything that can be tried without asking about a payee."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
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
    if isinstance(server, VopStandard):
        return [
            _try(f"{name} certificate", partial(_certificate, server)),
            _try(f"{name} TLS", partial(anyio.run, greet, server)),
        ]
    findings = [
        _try(f"{name} secret", partial(_secret, server)),
        _try(f"{name} TLS", partial(anyio.run, greet, server)),
    ]
    if not any(finding.exit_code for finding in findings):
        findings.append(_try(f"{name} token", partial(_token, server)))
    return findings


def _try(what: str, trial: Callable[[], str]) -> Finding:
    try:
        return Finding(what, trial(), 0)
    except PrecheckError as error:
        return Finding(what, str(error), error.exit_code)


def _secret(server: Oauth) -> str:
    server.client_secret()
    return f"read from {server.client_secret_env or server.client_secret_file}"


def _token(server: Oauth) -> str:
    anyio.run(tokens_of(server).current)
    return f"granted to client {server.client_id}"


def _certificate(server: VopStandard) -> str:
    facts = inspect_certificate(server.client_certificate, now=datetime.now(UTC))
    if facts.problems:
        raise TlsError("; ".join(facts.problems))
    valid = f"{facts.organisation_identifier}, valid until {facts.not_after.date().isoformat()}"
    return "; ".join((valid, *facts.notices))
