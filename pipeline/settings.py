"""Profiles: which servers to ask, with which credentials, under which limits.

The configuration is a TOML file, described in docs/configuration.md. Unknown keys are errors, only
https is spoken, and a secret is never in the file: it is named there, and read when it is needed.
Only `cli` and `run` read settings; stages get plain values.
"""

import difflib
import hashlib
import json
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from platformdirs import user_config_path
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, TomlConfigSettingsSource

from pipeline.apis import MATCH_CODE
from pipeline.disks import refused
from pipeline.errors import ConfigurationError, OutputError
from schemas.cop import AccountType, ReasonCode
from schemas.outcomes import ApiName, Environment, Outcome
from schemas.review import Verdict
from schemas.vop import Bic11, IdMatch, NameMatch

FILE_NAME = "precheck.toml"
TEST_SERVER_DAILY_CAP = 50
"""The soft limit of the CoP test server (API reference, "Limits")."""


_NOT_IN_AN_ADDRESS = re.compile(r"[^!-~]|[@?#\\]")


def _below_folder(path: Path, info: ValidationInfo) -> Path:
    """A relative path in the file is relative to the file."""
    return Path((info.context or {}).get("folder", ".")) / path.expanduser()


def _https(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_reachable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        # Its own message would quote the address, and a password that should not be in it.
        raise ValueError("is not an address; write https://HOST or https://HOST:PORT") from None
    if parts.scheme != "https":
        raise ValueError("must start with https://")
    if not is_reachable or _NOT_IN_AN_ADDRESS.search(url):
        raise ValueError("must be a plain address: no user name, no password, no '?', no '#', no space")
    return url.rstrip("/")


FilePath = Annotated[Path, AfterValidator(_below_folder)]
HttpsUrl = Annotated[str, AfterValidator(_https)]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
"""Of an environment variable; a secret that was put in its place by mistake seldom looks like one."""
Words = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]


class Section(BaseModel):
    """A part of the file: immutable, and nothing in it goes unread."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Server(Section):
    """One API's server, and the limits that this client keeps whatever the server allows."""

    server: Environment
    base_url: HttpsUrl
    ca_file: FilePath | None = None
    rate_per_s: Annotated[float, Field(ge=0.1, le=5000, strict=True)] = 20
    in_flight_max: Annotated[int, Field(ge=1, le=4000, strict=True)] = 64
    daily_cap: Annotated[int, Field(ge=1, strict=True)] | None = None
    cap_window: Literal["utc_day", "rolling_24h"] = "utc_day"
    attempts_max: Annotated[int, Field(ge=1, le=10, strict=True)] = 3
    probe_wait_s: Annotated[float, Field(gt=0, le=3600, strict=True)] = 30.0
    """How long a server, or a bank behind it, that only fails is left alone before it is tried again."""
    response_margin_s: Annotated[float, Field(gt=0, le=60, strict=True)] = 3.0
    """Added to the responder's wait (7 s CoP, 5 s VoP): together the deadline of one attempt."""

    @property
    def cap(self) -> int | None:
        """The daily cap in force: the test server has one even where the file is silent."""
        if self.daily_cap is None and self.server is Environment.TEST:
            return TEST_SERVER_DAILY_CAP
        return self.daily_cap


class Oauth(Server):
    """A server that wants a bearer token from the client credentials grant."""

    token_url: HttpsUrl
    token_method: Literal["GET", "POST"] = "GET"  # noqa: S105 (a method, not a secret)
    client_id: Words
    client_secret_env: VariableName | None = None
    client_secret_file: FilePath | None = None
    scope: Words

    @model_validator(mode="after")
    def _names_one_secret(self) -> Self:
        if (self.client_secret_env is None) == (self.client_secret_file is None):
            raise ValueError("give exactly one of client_secret_env and client_secret_file")
        return self

    def client_secret(self) -> SecretStr:
        """Read the client secret from where the file says it is.

        Raises:
            ConfigurationError: it is not there, or others could read it.
        """
        return _secret(self.client_secret_env, self.client_secret_file)

    @property
    def client(self) -> str:
        """Who the server takes us for."""
        return self.client_id


class Cop(Oauth):
    """The CoP Gateway."""

    api: Literal["gateway"] = "gateway"

    @property
    def name(self) -> ApiName:
        """The API behind this section."""
        return ApiName.COP


class VopGateway(Oauth):
    """The VoP Gateway."""

    api: Literal["gateway"]

    @property
    def name(self) -> ApiName:
        """The API behind this section."""
        return ApiName.VOP_GATEWAY


class VopStandard(Server):
    """The VoP Standard API: mutual TLS instead of a token, and both banks named in each request."""

    api: Literal["standard"]
    client_certificate: FilePath
    client_key: FilePath
    client_key_password_env: VariableName | None = None
    client_key_password_file: FilePath | None = None
    requesting_bic: Bic11
    bic_table: dict[Annotated[str, StringConstraints(pattern=r"^[A-Z]{2}[A-Z0-9]{1,30}$")], Bic11] = {}
    """Start of an IBAN without its check digits, such as DE10010010 -> BIC11 of the responder."""
    send_remittance: bool = False

    def client_key_password(self) -> SecretStr | None:
        """Read the password of the client key, or None where the key has none.

        Raises:
            ConfigurationError: it is not where the file says, or others could read it.
        """
        if self.client_key_password_env is None and self.client_key_password_file is None:
            return None
        return _secret(self.client_key_password_env, self.client_key_password_file)

    @property
    def client(self) -> str:
        """Who the server takes us for."""
        return self.requesting_bic

    @property
    def name(self) -> ApiName:
        """The API behind this section."""
        return ApiName.VOP_STANDARD


_NEVER_ANSWERED = (Outcome.REJECTED, Outcome.DEFERRED, Outcome.UNANSWERED)
_POLICY_KEYS = (*Outcome, *sorted({MATCH_CODE, *ReasonCode, *NameMatch, *IdMatch}))


def _outcome_or_code(key: str) -> str:
    if key in _POLICY_KEYS:
        return key
    near = difflib.get_close_matches(key, _POLICY_KEYS, n=1)
    raise ValueError(f"no such outcome or code; {f'did you mean {near[0]}?' if near else 'remove it'}")


class Profile(Section):
    """One way to run: the APIs to ask, and how payments are routed to them."""

    default_account_type: AccountType = AccountType.PERSONAL
    gb_iban_to: Literal["cop", "vop"] = "cop"
    ask_by: Literal["name", "identification"] = "name"
    ledger_key_env: VariableName | None = None
    ledger_key_file: FilePath | None = None
    policy: dict[Annotated[str, AfterValidator(_outcome_or_code)], Verdict] = {}
    """What `precheck split` does with a row, by its outcome or code."""
    cop: Cop | None = None
    vop: Annotated[VopGateway | VopStandard, Field(discriminator="api")] | None = None

    @field_validator("policy")
    @classmethod
    def _releases_only_what_was_answered(cls, policy: dict[str, Verdict]) -> dict[str, Verdict]:
        if wrong := [key for key in _NEVER_ANSWERED if policy.get(key, Verdict.HOLD) is not Verdict.HOLD]:
            raise ValueError(f'{wrong[0]} rows have no answer of a bank and can only be held; write "hold"')
        return policy

    @model_validator(mode="after")
    def _asks_one_kind_of_server(self) -> Self:
        if not self.servers:
            raise ValueError("has neither a [cop] nor a [vop] section; add the API that you have")
        if len({section.server for section in self.servers}) > 1:
            raise ValueError(
                "asks servers of two kinds; simulated and real answers must not mix in one file: "
                "make two profiles"
            )
        return self

    @model_validator(mode="after")
    def _names_one_ledger_key(self) -> Self:
        if self.ledger_key_env is not None and self.ledger_key_file is not None:
            raise ValueError("give one of ledger_key_env and ledger_key_file, not both")
        return self

    def ledger_key(self) -> SecretStr | None:
        """Read what the names in ledgers are encrypted with, or None where they lie in clear.

        Raises:
            ConfigurationError: it is not where the file says, or others could read it.
        """
        if self.ledger_key_env is None and self.ledger_key_file is None:
            return None
        return _secret(self.ledger_key_env, self.ledger_key_file)

    @property
    def servers(self) -> tuple[Cop | VopGateway | VopStandard, ...]:
        """The sections that the profile has."""
        return tuple(section for section in (self.cop, self.vop) if section is not None)

    @property
    def environment(self) -> Environment:
        """Which kind of server answers."""
        return self.servers[0].server

    def fingerprint(self) -> str:
        """SHA-256, in hex, of all that decides what is asked of whom; limits and secrets do not."""
        limits = set(Server.model_fields) - {"server", "base_url"}
        secrets = {"client_secret_env", "client_secret_file", "client_key", "token_method"}
        secrets |= {"client_key_password_env", "client_key_password_file", "client_certificate"}
        unsaid = dict.fromkeys(limits | secrets, True)
        ours = dict.fromkeys(("ledger_key_env", "ledger_key_file", "policy"), True)
        said = self.model_dump(mode="json", exclude={"cop": unsaid, "vop": unsaid, **ours})
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


class Configuration(Section):
    """The whole file."""

    profiles: Annotated[dict[str, Profile], Field(min_length=1)]


def find(explicit: Path | None) -> Path:
    """Tell which configuration file is meant.

    Args:
        explicit: what `--config` says; without it PRECHECK_CONFIG, the working directory and the
            user's configuration folder are looked at, in this order.

    Raises:
        ConfigurationError: there is no such file.
    """
    named = explicit or (Path(os.environ["PRECHECK_CONFIG"]) if os.environ.get("PRECHECK_CONFIG") else None)
    candidates = [named] if named else [Path(FILE_NAME), user_config_path("payee-precheck") / FILE_NAME]
    for path in candidates:
        if path.is_file():
            return path
    looked = " or ".join(str(path) for path in candidates)
    raise ConfigurationError(
        f"{looked}: no such configuration file; write one with `precheck init`, or name one with --config"
    )


def usual() -> Path | None:
    """The configuration file that is found without `--config`, or None where there is none."""
    try:
        return find(None)
    except ConfigurationError:
        return None


def defines(profile_name: str) -> bool:
    """Whether there is a usual configuration file and it has this profile."""
    path = usual()
    return path is not None and profile_name in read(path).profiles


def load(path: Path, profile_name: str) -> Profile:
    """Read one profile.

    Raises:
        ConfigurationError: the file cannot be read, has a mistake, or lacks the profile; the
            message names the key and what to do, and never quotes a value.
    """
    profiles = read(path).profiles
    if profile_name not in profiles:
        raise ConfigurationError(
            f"{path}: no profile {profile_name!r}; pick one of {', '.join(sorted(profiles))} with --profile"
        )
    return profiles[profile_name]


def read(path: Path) -> Configuration:
    """Read the whole file; raises as `load` does."""
    try:
        content = TomlConfigSettingsSource(BaseSettings, toml_file=path)()
        return Configuration.model_validate(content, context={"folder": path.parent})
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path}: not TOML: {error}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path}: not UTF-8 text; save it as UTF-8") from None
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from None
    except ValidationError as error:
        mistakes = "; ".join(_sentence(mistake) for mistake in error.errors(include_input=False))
        raise ConfigurationError(f"{path}: {mistakes}") from None


_KEYS = {name for section in (Profile, Cop, VopGateway, VopStandard) for name in section.model_fields}


_SAID = {
    "missing": "is missing; add it",
    "greater_than_equal": "must be {ge:g} or more",
    "greater_than": "must be more than {gt:g}",
    "less_than_equal": "must be {le:g} or less",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "string_type": "must be text; put it in quotes",
    "string_too_short": "is empty; fill it in",
    "string_pattern_mismatch": "does not look as it should; see docs/configuration.md",
    "float_type": "must be a number, without quotes",
    "int_type": "must be a whole number, without quotes",
}
"""What is wrong and what to do, by the kind of mistake that pydantic tells."""


def _sentence(mistake: Mapping[str, Any]) -> str:
    where = ".".join(str(part) for part in mistake["loc"] if part != "[key]")
    if where == "profiles":
        return "no profile in it; `precheck init` writes an example"
    if mistake["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(mistake["loc"][-1]), _KEYS, n=1)
        hint = f"; did you mean {near[0]}?" if near else "; remove it"
        return f"{where}: unknown key{hint}"
    if mistake["type"] in {"union_tag_invalid", "union_tag_not_found"}:
        return f'{where}: api must be "gateway" or "standard"'
    if (said := _SAID.get(mistake["type"])) is not None:
        return f"{where}: {said.format_map(mistake.get('ctx', {}))}"
    said = mistake["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    return f"{where}: {said}"


def _secret(variable: str | None, path: Path | None) -> SecretStr:
    if variable is not None:
        value = os.environ.get(variable, "")
        if not value:
            raise ConfigurationError(f"the environment variable {variable} is empty; put the secret in it")
        return SecretStr(value)
    assert path is not None
    try:
        mode = path.stat().st_mode
        value = path.read_text("utf-8-sig").rstrip("\r\n")
    except OSError as error:
        raise ConfigurationError(f"{path}: the secret cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path}: the secret is not UTF-8 text; write it again") from None
    if mode & 0o077:
        raise ConfigurationError(f"{path}: others can read this secret; run `chmod 600 {path}`")
    if not value:
        raise ConfigurationError(f"{path}: the secret is empty; put it in the first line")
    return SecretStr(value)


EXAMPLE = """\
# payee-precheck: which servers to ask, with which credentials, under which limits.
# Every key is explained in docs/configuration.md. Secrets do not belong in this file: name the
# environment variable or the file (mode 0600) that holds them. Then try: precheck doctor --profile NAME

[profiles.production]
default_account_type = "Personal"       # for UK rows that do not say: Personal or Business
# gb_iban_to = "cop"                    # GB IBANs: "cop" by the account in them, or "vop"
# ask_by = "name"                       # where a row has a name and an identification
# ledger_key_env = "LEDGER_KEY"         # encrypts returned names in ledger.db; or ledger_key_file

# What `precheck split` does with rows of an outcome or code: release, review (a person decides) or hold.
# Without this table matches are released and all else is held.
# [profiles.production.policy]
# close_match = "review"
# NOAP = "review"

# UK Confirmation of Payee. Remove the section if you do not use it.
[profiles.production.cop]
server = "production"                   # sandbox, test or production; test carries the cap of 50 a day
base_url = "https://cop.example"
token_url = "https://login.example/TENANT/oauth2/v2.0/token"
# token_method = "GET"                  # as the API documents it; POST where your provider wants that
client_id = "CLIENT_ID"
client_secret_env = "COP_CLIENT_SECRET" # or client_secret_file = "cop.secret"
scope = "SCOPE_ID/.default"
# ca_file = "ca.pem"                    # a private certificate authority
rate_per_s = 20                         # requests in any second, at most
in_flight_max = 64                      # requests at the same time, at most
# daily_cap = 50                        # requests a day, at most; all your processes together
# cap_window = "utc_day"                # or "rolling_24h", safe whatever day the server counts by

# European Verification of Payee through a gateway. The other form of this section is below.
[profiles.production.vop]
api = "gateway"
server = "production"
base_url = "https://vop.example"
token_url = "https://login.example/TENANT/oauth2/v2.0/token"
client_id = "CLIENT_ID"
client_secret_env = "VOP_CLIENT_SECRET"
scope = "SCOPE_ID/.default"
rate_per_s = 20
in_flight_max = 64

# Verification of Payee by the standard API: mutual TLS with your QWAC instead of a token.
# [profiles.standard.vop]
# api = "standard"
# server = "production"
# base_url = "https://vop-standard.example"
# client_certificate = "qwac.pem"
# client_key = "qwac.key"               # mode 0600
# client_key_password_env = "QWAC_PASSWORD"
# requesting_bic = "ABCDGB2LXXX"        # your own payment service provider
# [profiles.standard.vop.bic_table]     # banks that the built-in directory does not know
# DE10010010 = "PBNKDEFFXXX"
"""


def write_example(path: Path, *, force: bool) -> None:
    """Write a commented configuration, readable by its owner only.

    Raises:
        OutputError: there is a file already, or none can be written.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | (os.O_TRUNC if force else os.O_EXCL)
    try:
        with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(EXAMPLE)
    except FileExistsError:
        raise OutputError(f"{path}: exists already; --force replaces it") from None
    except OSError as error:
        raise refused(path, error, otherwise="choose another path") from None
