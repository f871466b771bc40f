"""The ready-made precheck.toml that points a client at a sandbox."""

import json
from collections.abc import Mapping
from pathlib import Path

from pipeline.files.private import write_private
from pipeline.sandbox.certificates import CertificateFiles
from pipeline.sandbox.settings import CLIENT_IDS, REQUESTING_BIC, SCOPES, TOKEN_PATH, SandboxSettings
from schemas.outcomes import Environment

CONFIGURATION = "precheck.toml"

_HEADER = """\
# The sandbox of payee-precheck writes this file each time it starts. All answers for these profiles are
# simulated, and all accounts, names and banks are invented: never pay anyone because of them.
"""

_RATE_PER_S = 200
_IN_FLIGHT_MAX = 64
_RATE_SHARE = 0.8  # of the server's rate: network delays make requests arrive unevenly

Section = dict[str, str | int | float]


def secret_path(folder: Path, role: Environment) -> Path:
    """The path of a role's client secret."""
    return folder / f"{role.value}.client_secret"


def write_configuration(
    files: CertificateFiles, settings: SandboxSettings, url: str, wrong_urls: Mapping[str, str]
) -> None:
    """Write precheck.toml for a sandbox at a URL, into its folder (OutputError: it cannot be written).

    Paths in it are relative. `wrong_urls` maps each TLS fault to the base URL of its port.
    """
    rate_max = settings.rate_per_s_max
    rate = _RATE_PER_S if rate_max is None else min(_RATE_PER_S, _RATE_SHARE * rate_max)
    sandbox, test, production = Environment.SANDBOX, Environment.TEST, Environment.PRODUCTION
    profiles: dict[str, dict[str, Section]] = {
        "sandbox": _both_gateways(sandbox, url, files),
        "rehearse": _both_gateways(sandbox, url, files),
        "sandbox-standard": {"vop": _standard(sandbox, url, files)},
        "test": {"cop": {**_gateway(test, url, files), "daily_cap": settings.daily_cap}},
        "production": _both_gateways(production, url, files),
        "production-standard": {"vop": _standard(production, url, files)},
    }
    for wrong, wrong_url in wrong_urls.items():
        profiles[f"tls-{wrong}"] = _both_gateways(sandbox, wrong_url, files)
    lines = [_HEADER]
    for profile, apis in profiles.items():
        key = f"profiles.{json.dumps(profile) if '.' in profile else profile}"
        lines += [f"[{key}]", 'default_account_type = "Personal"', ""]
        for api, section in apis.items():
            section |= {"rate_per_s": rate, "in_flight_max": _IN_FLIGHT_MAX}
            # JSON strings and numbers are valid TOML, too.
            values = [f"{key} = {json.dumps(value)}" for key, value in section.items()]
            lines += [f"[{key}.{api}]", *values, ""]
    write_private(files.folder / CONFIGURATION, "\n".join(lines).encode())


def _both_gateways(role: Environment, url: str, files: CertificateFiles) -> dict[str, Section]:
    gateway = _gateway(role, url, files)
    return {"cop": gateway, "vop": {"api": "gateway", **gateway}}


def _gateway(role: Environment, url: str, files: CertificateFiles) -> Section:
    return {
        "server": Environment.SANDBOX.value,  # answers are simulated in every role
        "base_url": f"{url}/{role.value}",
        "token_url": f"{url}{TOKEN_PATH}",
        "client_id": CLIENT_IDS[role],
        "client_secret_file": secret_path(files.folder, role).name,
        "scope": SCOPES[role],
        "ca_file": files.authority.name,
    }


def _standard(role: Environment, url: str, files: CertificateFiles) -> Section:
    return {
        "api": "standard",
        "server": Environment.SANDBOX.value,  # answers are simulated in every role
        "base_url": f"{url}/{role.value}",
        "client_certificate": files.client.name,
        "client_key": files.client_key.name,
        "client_key_password_file": files.client_passphrase.name,
        "requesting_bic": REQUESTING_BIC,
        "ca_file": files.authority.name,
    }
