"""A profile: the APIs to ask, the routing of payments to them, and the release policy."""

import datetime as dt
import difflib
import hashlib
import json
import operator
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    PlainValidator,
    SecretStr,
    create_model,
    field_validator,
    model_validator,
)

from pipeline.apis.registry import APIS, SECTIONS
from pipeline.errors import WrongValueError
from pipeline.rules.identifiers import countries, iban_structures
from pipeline.rules.modulus_tables import ModulusTables, read_tables
from pipeline.rules.unasked import UNASKED
from pipeline.sections import FilePath, LedgerUrl, NewestOf, Section, Server, VariableName, secret_if_named
from pipeline.wording import Sentence
from schemas.cop import AccountType
from schemas.outcomes import Environment, Outcome, WarningCode
from schemas.review import Verdict

_MODULUS = ("modulus_weights", "modulus_substitutions", "modulus_weights_date")
_SIGNING = ("sign_with", "sign_with_password_env", "sign_with_password_file")
_NEVER_ANSWERED = (Outcome.REJECTED, Outcome.DEFERRED, Outcome.UNANSWERED)
_ANSWERS = {code for api in APIS.values() for _, code in api.meanings}
_POLICY_KEYS = (*Outcome, *sorted({*_ANSWERS, *UNASKED}), *WarningCode)


def _policy_key(key: str) -> str:
    if key in _POLICY_KEYS:
        return key
    near = difflib.get_close_matches(key, _POLICY_KEYS, n=1)
    if near:
        raise WrongValueError(Sentence("config.policy_did_you_mean", near=near[0]))
    raise WrongValueError(Sentence("config.policy_unknown_key"))


def _countries(value: object) -> Literal["any"] | list[str]:
    if value == "any":
        return "any"
    if not (isinstance(value, list) and all(isinstance(country, str) for country in value)):
        raise WrongValueError(Sentence("config.must_be_any_or_countries"))
    if any(country not in iban_structures() for country in value):
        raise WrongValueError(Sentence("config.country_without_ibans"))
    return value


def _country(code: str) -> str:
    if code not in countries():
        raise WrongValueError(Sentence("config.must_be_country_code"))
    return code


class Choices(Section):
    """The settings of a profile that belong to no single API: routing and retention."""

    default_account_type: AccountType = AccountType.PERSONAL
    default_country: Annotated[str, AfterValidator(_country)] | None = None
    """The country of accounts that are not IBANs, unless the user names another one."""
    bank_rules: Literal["sepa", "off"] = "sepa"  # whose rules a pain.001 is checked against, for warnings
    gb_iban_to: Literal["cop", "vop"] = "cop"
    ask_by: Literal["name", "identification"] = "name"
    vop_countries: Annotated[Literal["any"] | list[str], PlainValidator(_countries)] = "any"
    """The countries whose IBANs go to VoP. The program has no list of participants; the user knows them."""
    vop_names: Literal["any", "latin"] = "any"
    ledger: LedgerUrl | None = None
    """Address of the ledger that several machines share; by default, each run has its own in its folder."""
    ledger_key_env: VariableName | None = None
    ledger_key_file: FilePath | None = None
    sign_with: FilePath | None = None  # the private key that signs the manifests of runs
    sign_with_password_env: VariableName | None = None
    sign_with_password_file: FilePath | None = None
    compare_with: NewestOf | None = None  # a pattern of run folders; a run is compared with the newest match
    modulus_weights: FilePath | None = None
    modulus_substitutions: FilePath | None = None
    modulus_weights_date: dt.date | None = None
    policy: dict[Annotated[str, AfterValidator(_policy_key)], Verdict] = Field(default_factory=dict)
    """What `precheck split` does with a row, by its outcome, code or warnings."""

    @field_validator("policy")
    @classmethod
    def _releases_only_what_was_answered(cls, policy: dict[str, Verdict]) -> dict[str, Verdict]:
        if wrong := [key for key in _NEVER_ANSWERED if policy.get(key, Verdict.HOLD) is not Verdict.HOLD]:
            raise WrongValueError(Sentence("config.outcome_can_only_be_held", outcome=wrong[0]))
        if odd := [key for key in WarningCode if policy.get(key) is Verdict.RELEASE]:
            raise WrongValueError(Sentence("config.warning_releases_nothing", warning=odd[0]))
        return policy

    @model_validator(mode="after")
    def _names_one_ledger_key(self) -> Self:
        if self.ledger_key_env is not None and self.ledger_key_file is not None:
            raise WrongValueError(
                Sentence("config.give_one_not_both", keys=["ledger_key_env", "ledger_key_file"])
            )
        if self.ledger is not None and self.ledger_key_env is None and self.ledger_key_file is None:
            raise WrongValueError(Sentence("config.ledger_without_key"))
        return self

    @model_validator(mode="after")
    def _names_one_signing_key(self) -> Self:
        passwords = (self.sign_with_password_env, self.sign_with_password_file)
        if all(passwords):
            raise WrongValueError(Sentence("config.give_one_not_both", keys=_SIGNING[1:]))
        if any(passwords) and self.sign_with is None:
            raise WrongValueError(Sentence("config.signing_password_without_key"))
        return self

    @model_validator(mode="after")
    def _names_both_modulus_tables(self) -> Self:
        given = (self.modulus_weights, self.modulus_substitutions, self.modulus_weights_date)
        if any(given) and not all(given):
            raise WrongValueError(Sentence("config.modulus_tables_incomplete", keys=_MODULUS))
        return self

    def modulus_tables(self) -> ModulusTables | None:
        """Read the tables of the UK modulus check; None if not configured (ConfigurationError: invalid)."""
        if not (self.modulus_weights and self.modulus_substitutions and self.modulus_weights_date):
            return None
        return read_tables(self.modulus_weights, self.modulus_substitutions, self.modulus_weights_date)

    def ledger_key(self) -> SecretStr | None:
        """Read the key that encrypts names in ledgers, or None; same errors as `secret_if_named`."""
        return secret_if_named(self.ledger_key_env, self.ledger_key_file)

    def sign_with_password(self) -> SecretStr | None:
        """Read the password of the signing key, or None if it has none; same errors as `secret_if_named`."""
        return secret_if_named(self.sign_with_password_env, self.sign_with_password_file)


def _sections() -> Iterator[tuple[str, Any]]:
    """Yield a field for each key of a section, which accepts every form of that section."""
    for key, forms in SECTIONS.items():
        either: Any = reduce(operator.or_, forms.values())
        if len(forms) > 1:
            either = Annotated[either, Field(discriminator="api")]
        asked = next(api.asked for api in APIS.values() if api.key == key)
        about = f"The section of {next(iter(asked.values()))}."
        yield key, (either | None, Field(None, description=about))


if TYPE_CHECKING:
    _WithSections = Choices
else:
    _WithSections = create_model("_WithSections", __base__=Choices, **dict(_sections()))


class Profile(_WithSections):
    """One way to run: the APIs, with a section for each, and the routing of payments to them."""

    @model_validator(mode="after")
    def _asks_one_kind_of_server(self) -> Self:
        if len({section.server for section in self.servers}) > 1:
            raise WrongValueError(Sentence("config.two_kinds_of_server"))
        return self

    @property
    def servers(self) -> tuple[Server, ...]:
        """The sections of the profile's servers; empty if the embedded sandbox is used."""
        sections = (getattr(self, key) for key in SECTIONS)
        return tuple(section for section in sections if section is not None)

    @property
    def environment(self) -> Environment:
        """The kind of server that answers."""
        return self.servers[0].server

    def fingerprint(self) -> str:
        """SHA-256 of what decides the questions, without modulus tables: newer ones invalidate no answer."""
        limits = set(Server.model_fields) - {"server", "base_url"}
        secrets = {"client_secret_env", "client_secret_file", "client_key", "client_key_env", "token_method"}
        secrets |= {"client_key_password_env", "client_key_password_file", "client_certificate"}
        unsaid = dict.fromkeys(limits | secrets, True)
        secrets_of_ours = ("ledger", "ledger_key_env", "ledger_key_file", *_SIGNING)
        ours = dict.fromkeys((*secrets_of_ours, "policy", "compare_with", "bank_rules", *_MODULUS), True)
        sections: Mapping[str, Any] = dict.fromkeys(SECTIONS, unsaid)
        # Unset settings are left out, so that new keys in the program do not change a fingerprint.
        settings = self.model_dump(mode="json", exclude={**sections, **ours}, exclude_none=True)
        return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
