"""Find the profile of a job; built-in profiles use the embedded sandbox.

The sandbox is a child process that serves simulated answers during a run. It writes its own configuration
into a private folder, and the run reads it like any other.
"""

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from pipeline.apis.registry import SECTIONS
from pipeline.config import ConfigurationFile, Profile
from pipeline.config.file import BUILT_IN, IMPORTED, load
from pipeline.errors import ConfigurationError, UsageError
from pipeline.files import child_process as children
from pipeline.files.signatures import Signer
from pipeline.formats.registry import FormatChoice
from pipeline.rules.modulus import Modulus
from pipeline.rules.modulus_tables import VALID_MAX_DAYS, age_days
from pipeline.sections import secret_if_named
from pipeline.wording import Sentence
from schemas.cop import AccountType
from schemas.outcomes import Environment
from schemas.review import Verdict
from schemas.summary import REHEARSAL

STOP_MAX_S = 5.0
SIGN_PASSWORD = "PRECHECK_SIGN_PASSWORD"  # noqa: S105 (the name of a variable)
"""The environment variable with the password of a key named on the command line."""


class Chosen(NamedTuple):
    """A profile that was chosen but not opened yet."""

    name: str
    profile: Profile | None  # the profile as it was when chosen; None for the embedded sandbox
    config: Path | None  # the configuration file; None for the embedded sandbox
    fingerprint: str
    environment: Environment
    settings: Profile  # the same or, for the embedded sandbox, the settings that belong to no API
    signer: Signer | None = None  # the key that signs the manifest of the run
    account_type: AccountType | None = None  # the account type to assume, instead of the profile's

    def assuming(self, account_type: AccountType | None) -> "Chosen":
        """Return this choice with another assumed account type, which changes the questions."""
        if account_type is None:
            return self
        fingerprint = sha256(f"{self.fingerprint} {account_type}".encode()).hexdigest()
        return self._replace(account_type=account_type, fingerprint=fingerprint)

    def assumed(self, profile: Profile) -> Profile:
        """Apply this choice's assumed account type to a profile."""
        change = {} if self.account_type is None else {"default_account_type": self.account_type}
        return profile.model_copy(update=change)


def choose_again(name: str, config: ConfigurationFile | Path | None) -> Chosen:
    """Return the profile of an earlier run by its name; same errors as `choose`, with its own advice."""
    file = ConfigurationFile.of(config)
    try:
        return choose(name, file)
    except ConfigurationError as error:
        if file.is_there and name in file.whole.profiles:
            raise
        advice = Sentence("advice.name_configuration_with_profile", profile=repr(name))
        raise ConfigurationError(error.reason, advice=advice) from None


def choose(name: str | None, config: ConfigurationFile | Path | None) -> Chosen:
    """Find the profile with a name, or else the embedded sandbox (ConfigurationError: no such profile).

    Built-in names need no configuration file, unless the user names one (UsageError: a file without a name of
    a profile) or the usual file defines them. With nothing but a policy there, a built-in profile stays built
    in.
    """
    wanted = BUILT_IN[0] if name is None else name
    file = ConfigurationFile.of(config)
    if file.explicit is not None:
        profiles = file.whole.profiles
        if wanted in BUILT_IN and (
            not profiles or (wanted in (REHEARSAL, IMPORTED) and wanted not in profiles)
        ):
            return _built_in(wanted)  # the file is named for its layouts, or `--rehearse` is given
        if name is None:
            raise UsageError(
                Sentence("config.no_profile_chosen", explicit=file.explicit),
                advice=Sentence("advice.choose_profile", choices=sorted(profiles)),
            )
    elif wanted in BUILT_IN and (name is None or not file.is_there or wanted not in file.whole.profiles):
        return _built_in(wanted)
    try:
        profile = file.profile(wanted)
    except ConfigurationError as error:
        if file.is_there:
            raise
        pick = Sentence("advice.choose_profile", choices=BUILT_IN[:2])
        raise ConfigurationError(error.reason, advice=(pick, *error.advice)) from None
    if not profile.servers:
        return _built_in(wanted)._replace(settings=profile)
    return Chosen(wanted, profile, file.path, profile.fingerprint(), profile.environment, profile)


def built_in_fingerprint(name: str) -> str:
    """Return the fingerprint of a built-in profile."""
    return sha256(f"embedded {name}".encode()).hexdigest()


def _built_in(name: str) -> Chosen:
    environment = Environment.BANK if name == IMPORTED else Environment.SANDBOX
    return Chosen(name, None, None, built_in_fingerprint(name), environment, Profile())


def of_bank(chosen: Chosen) -> Chosen:
    """Return a profile whose answers come from a bank's report, even if it has servers."""
    fingerprint = built_in_fingerprint(IMPORTED)
    return chosen._replace(fingerprint=fingerprint, environment=Environment.BANK)


def without_servers(chosen: Chosen) -> Profile:
    """Return the profile for judging a bank's report."""
    return chosen.settings.model_copy(update=dict.fromkeys(SECTIONS))


def format_choice_of(name: str | None, config: ConfigurationFile | Path | None) -> FormatChoice:
    """Return a file's format, if chosen, and the configuration's layouts; same errors as `file.layouts`."""
    file = ConfigurationFile.of(config)
    return FormatChoice(name, file.layouts)


def signed_with(chosen: Chosen, key: Path | None) -> Chosen:
    """Add the key that signs manifests: `key`, or else the profile's (ConfigurationError: unusable)."""
    profile = chosen.settings
    if key is not None:
        variable = SIGN_PASSWORD if os.environ.get(SIGN_PASSWORD) else None
        signer = Signer.read(key, secret_if_named(variable, None), password_from=SIGN_PASSWORD)
    elif profile.sign_with is not None:
        where = "sign_with_password_env or sign_with_password_file"
        signer = Signer.read(profile.sign_with, profile.sign_with_password(), password_from=where)
    else:
        return chosen
    return chosen._replace(signer=signer)


def modulus_of(chosen: Chosen, *, today: date) -> Modulus | None:
    """Return the modulus tables for UK accounts, if any; same errors as `Profile.modulus_tables`."""
    if (tables := chosen.settings.modulus_tables()) is None:
        return None
    return Modulus(tables, is_old=age_days(tables.valid_from, today) > VALID_MAX_DAYS)


_GATEWAY = {
    "server": Environment.SANDBOX,
    "base_url": "https://localhost",
    "token_url": "https://localhost",
    "client_id": "none",
    "client_secret_env": "NONE",
    "scope": "none",
    "rate_per_s": 200,
    "in_flight_max": 64,
}
_EMBEDDED = {"default_account_type": "Personal", "cop": _GATEWAY, "vop": {"api": "gateway", **_GATEWAY}}
"""The limits of the embedded sandbox, whose address is known only when it has started."""


def to_plan_with(chosen: Chosen) -> Profile:
    """Return the profile to plan with. A plan sends nothing, so the embedded sandbox is not started."""
    _refuse_imported(chosen)
    return chosen.assumed(Profile.model_validate(_EMBEDDED) if chosen.profile is None else chosen.profile)


def _refuse_imported(chosen: Chosen) -> None:
    if chosen.environment is Environment.BANK:
        raise UsageError(
            Sentence("config.profile_sends_no_requests", profile=chosen.name),
            advice=Sentence("advice.import_report"),
        )


@contextmanager
def opened(chosen: Chosen) -> Iterator[Profile]:
    """Open the chosen profile; an embedded sandbox runs during the block."""
    _refuse_imported(chosen)
    if chosen.profile is not None:
        yield chosen.assumed(chosen.profile)
        return
    with sandbox("--rehearse" if chosen.name == REHEARSAL else None) as config:
        yield chosen.assumed(load(config, chosen.name))


@contextmanager
def sandbox(option: str | None = None) -> Iterator[Path]:
    """Serve a sandbox on a free loopback port, with an option; yield the path of its configuration.

    The child stops when the block ends or this process dies: it watches its standard input, which only this
    process holds open (ConfigurationError: it did not start).
    """
    with tempfile.TemporaryDirectory(prefix="precheck-sandbox-", ignore_cleanup_errors=True) as folder:
        command = [
            *children.INTERPRETER,
            "-m",
            "payee_precheck",
            "sandbox",
            "--folder",
            folder,
            "--while-stdin-is-open",
            *filter(None, [option]),
        ]
        # A session of its own: Ctrl-C must not reach it while requests in flight wait for answers.
        child = subprocess.Popen(  # noqa: S603 (our own interpreter and module)
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=children.environment(),
            text=True,
            start_new_session=True,
        )
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            if not child.stdout.readline().startswith("https://"):
                raise ConfigurationError(Sentence("config.embedded_sandbox_not_started"))
            yield Path(folder) / "precheck.toml"
        finally:
            child.stdin.close()
            try:
                child.wait(STOP_MAX_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            child.stdout.close()


def policy_today(profile: str, file: ConfigurationFile) -> Mapping[str, Verdict] | None:
    """Return a profile's policy in the configuration now; None if the profile is not there."""
    try:
        return choose(profile, file).settings.policy
    except ConfigurationError:
        return None
