"""The configuration file: find it and read it; its sections [desk] and [notify]."""

import os
import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from platformdirs import user_config_path
from pydantic import (
    Field,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from pipeline.apis.registry import SECTIONS
from pipeline.config.inputs import InputSection
from pipeline.config.mistakes import mistakes
from pipeline.config.profile import Profile
from pipeline.errors import ConfigurationError, ConfigurationFileError, OutputError, WrongValueError
from pipeline.files.disk_errors import not_writable
from pipeline.files.private import opened, user_folder
from pipeline.formats.layouts import BankLayout
from pipeline.formats.registry import INPUT_NAMES
from pipeline.sections import FilePath, Section, VariableName, Words
from pipeline.wording import Sentence
from schemas.outcomes import ApiName
from schemas.summary import REHEARSAL

HeaderName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9-]*$")]


class DeskRoles(Section):
    """The users with each role, by their identities at the proxy."""

    uploader: list[Words] = Field(default_factory=list)
    reviewer: list[Words] = Field(default_factory=list)
    approver: list[Words] = Field(default_factory=list)
    auditor: list[Words] = Field(default_factory=list)


class DeskSection(Section):
    """The section `desk` of the configuration."""

    host: Words | None = None  # the host name of a team's desk for browsers, with a port if it is not 443
    proxy_user: Words | None = None  # the system user of the proxy; only this user may connect to the socket
    identity_header: HeaderName = "X-Forwarded-Email"  # carries the user's name from the proxy
    upload_mib_max: Annotated[int, Field(ge=1, le=1_000_000)] = 512  # maximum size of an upload
    person_mib_max: Annotated[int, Field(ge=1, le=1_000_000)] = 8192  # for one person's files at the desk
    idle_minutes_max: Annotated[int, Field(ge=1, le=1_000_000)] = 240  # a session without activity ends then
    session_hours_max: Annotated[int, Field(ge=1, le=1_000_000)] = 12  # how long a session lasts at most
    keep_days: Annotated[int, Field(ge=1, le=36_500)] | None = None
    """How long names and files are kept after the last check; None means until a user deletes them."""
    roles: DeskRoles = Field(default_factory=DeskRoles)


class NotifySection(Section):
    """A command or a webhook; the address of a webhook is a secret."""

    command: list[Words] = Field(
        default_factory=list,
        description="Program and arguments, without a shell. It reads the notification on standard input.",
    )
    webhook_env: VariableName | None = Field(
        default=None,
        description="Environment variable with the https address to which the notification is posted.",
    )
    webhook_file: FilePath | None = Field(default=None, description="Or a file with the address (mode 0600).")
    webhook_ca_file: FilePath | None = Field(
        default=None, description="Private certificate authority of the webhook; no other is trusted."
    )

    @model_validator(mode="after")
    def _is_one(self) -> "NotifySection":
        given = [bool(self.command), self.webhook_env is not None, self.webhook_file is not None]
        if sum(given) != 1:
            raise WrongValueError(Sentence("config.notify_needs_one_target"))
        return self


FILE_NAME = "precheck.toml"
EXAMPLE = files("pipeline.config").joinpath("example.toml").read_text("utf-8")
"""The commented configuration that `precheck init` writes."""
LAYOUT_NAME = "^[a-z0-9][a-z0-9-]{0,39}$"
IMPORTED = ApiName.BANK_REPORT.value
BUILT_IN = ("sandbox", "sandbox-standard", REHEARSAL, IMPORTED)
"""Profiles that need no configuration: CoP with the VoP Gateway, VoP Standard, a rehearsal, and a bank's
report, which needs no server.
"""


class Configuration(Section):
    """The whole configuration file."""

    layouts: dict[Annotated[str, Field(pattern=LAYOUT_NAME)], BankLayout] = Field(default_factory=dict)
    inputs: dict[Annotated[str, Field(pattern=LAYOUT_NAME)], InputSection] = Field(default_factory=dict)
    desk: DeskSection | None = None
    notify: NotifySection | None = None
    profiles: dict[str, Profile] = Field(default_factory=dict, validate_default=True)

    @field_validator("layouts")
    @classmethod
    def _have_names_of_their_own(cls, layouts: dict[str, BankLayout]) -> dict[str, BankLayout]:
        for name in layouts:
            if name in INPUT_NAMES:
                raise WrongValueError(Sentence("config.format_exists"), name)
        return layouts

    @field_validator("profiles")
    @classmethod
    def _are_there(cls, profiles: dict[str, Profile], info: ValidationInfo) -> dict[str, Profile]:
        """Accept a file without profiles if it has other sections."""
        others = [info.data.get(key, "a mistake") for key in ("layouts", "inputs", "desk", "notify")]
        if not profiles and not any(others):
            raise WrongValueError(Sentence("config.no_profiles"))
        return profiles

    @field_validator("profiles")
    @classmethod
    def _know_their_servers(cls, profiles: dict[str, Profile]) -> dict[str, Profile]:
        sections = [f"[{key}]" for key in SECTIONS]
        for name, profile in profiles.items():
            if profile.servers:
                continue
            if name not in BUILT_IN:
                raise WrongValueError(Sentence("config.no_section", sections=sections), name)
            if others := sorted(profile.model_fields_set - {"policy", "compare_with", "bank_rules"}):
                message = Sentence("config.key_not_of_sandbox_profile", sections=sections)
                raise WrongValueError(message, name, others[0])
        return profiles


def find(explicit: Path | None) -> Path:
    """Find the configuration: `explicit`, PRECHECK_CONFIG, here, or the user's (ConfigurationError: none)."""
    named = explicit or (Path(os.environ["PRECHECK_CONFIG"]) if os.environ.get("PRECHECK_CONFIG") else None)
    candidates = [named or Path(FILE_NAME)]
    if named is None:
        with suppress(ConfigurationError):  # a user without a home directory has no such folder
            candidates.append(user_folder(user_config_path) / FILE_NAME)
    for path in candidates:
        if path.is_file():
            return path
    raise ConfigurationError(
        Sentence("config.no_such_configuration", looked=[str(path) for path in candidates]),
        advice=(Sentence("advice.write_configuration"), Sentence("advice.name_configuration")),
    )


def usual() -> Path | None:
    """Return the configuration file used by default, or None."""
    try:
        return find(None)
    except ConfigurationError:
        return None


class ConfigurationFile:
    """A configuration file, read only once, so that edits while a command runs have no effect."""

    def __init__(self, explicit: Path | None = None) -> None:
        """Use the file that the user named, or look for the usual one when it is first needed."""
        self.explicit = explicit

    @classmethod
    def of(cls, config: "ConfigurationFile | Path | None") -> "ConfigurationFile":
        """Return the file as given, or one that is read now."""
        return config if isinstance(config, ConfigurationFile) else cls(config)

    @cached_property
    def path(self) -> Path:
        """The path of the file; same errors as `find`."""
        return find(self.explicit)

    @cached_property
    def is_there(self) -> bool:
        """True if the file exists, or if the user named one."""
        return self.explicit is not None or usual() is not None

    @cached_property
    def _text(self) -> str:
        path = self.path
        try:
            return path.read_text("utf-8-sig")
        except UnicodeDecodeError:
            raise ConfigurationError(
                Sentence("config.not_utf_8_text", path=path), advice=Sentence("config.save_as_utf_8")
            ) from None
        except OSError as error:
            raise ConfigurationError(
                Sentence("config.cannot_read", path=path, why=error),
                advice=Sentence("config.check_path_permissions"),
            ) from None

    @cached_property
    def _tables(self) -> dict[str, Any]:
        try:
            return tomllib.loads(self._text)
        except tomllib.TOMLDecodeError as error:
            position = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
            raise ConfigurationError(
                Sentence("config.not_valid_toml_at", path=self.path, line=position[1], column=position[2])
                if position is not None
                else Sentence("config.toml_ends_early", path=self.path),
                advice=Sentence("config.correct_it"),
            ) from None

    @cached_property
    def whole(self) -> Configuration:
        """The whole configuration; same errors as `profile`."""
        return self._understood(self._tables)

    def for_profile(self, name: str | None) -> tuple["ConfigurationFile", Sentence | None]:
        """Return this file; or None and its error, if the profile is built in and does not need it."""
        wanted = BUILT_IN[0] if name is None else name
        if wanted not in BUILT_IN or self.explicit is not None or not self.is_there:
            return self, None
        try:
            self.whole  # noqa: B018 (checks whether the file can be parsed)
        except ConfigurationError as error:
            with suppress(ConfigurationError):
                if wanted in self._tables.get("profiles", ()):
                    return self, None
            without = ConfigurationFile()
            without.is_there = False
            return without, Sentence("config.sandbox_runs_without_file", why=error.reason)
        return self, None

    @property
    def notify(self) -> NotifySection | None:
        """The section `[notify]`, even if other sections have mistakes; same errors as `profile`."""
        is_found = self.is_there and (self.explicit or self.path).is_file() and "notify" in self._tables
        return self._understood({"notify": self._tables["notify"]}).notify if is_found else None

    def _understood(self, tables: dict[str, Any]) -> Configuration:
        try:
            return Configuration.model_validate(tables, context={"folder": self.path.parent})
        except ValidationError as error:
            found = mistakes(error.errors(), Configuration)
            raise ConfigurationFileError(
                [Sentence("config.mistake", path=self.path, mistake=mistake) for mistake in found]
            ) from None

    def profile(self, name: str) -> Profile:
        """Return a profile (ConfigurationError: names key and remedy, quotes no possible secret)."""
        profiles = self.whole.profiles
        if name not in profiles:
            raise ConfigurationError(
                Sentence("config.no_such_profile", path=self.path, name=repr(name)),
                advice=Sentence("advice.choose_profile", choices=sorted(profiles) or BUILT_IN[:2]),
            )
        return profiles[name]

    @property
    def layouts(self) -> Mapping[str, BankLayout]:
        """The user's own layouts; same errors as `inputs`."""
        return self.whole.layouts if self._has("layouts") else {}

    @property
    def inputs(self) -> Mapping[str, InputSection]:
        """The sections `[inputs.NAME]` (ConfigurationError: unreadable, or there are some and a mistake)."""
        return self.whole.inputs if self._has("inputs") else {}

    def _has(self, section: str) -> bool:
        if not self.is_there:
            return False
        try:
            tables = self._tables
        except ConfigurationError as error:
            message = Sentence("config.layouts_unread", why=error.reason)
            raise ConfigurationError(message, advice=error.advice) from error
        return section in tables


def load(path: Path, profile_name: str) -> Profile:
    """Read one profile; same errors as `ConfigurationFile.profile`."""
    return ConfigurationFile(path).profile(profile_name)


def read(path: Path) -> Configuration:
    """Read the whole file; same errors as `load`."""
    return ConfigurationFile(path).whole


def write_example(path: Path, *, force: bool) -> None:
    """Write a commented configuration, readable by its owner only (OutputError: it cannot be written)."""
    try:
        with opened(path, os.O_TRUNC if force else os.O_EXCL) as file:
            file.write(EXAMPLE.encode())
    except FileExistsError:
        raise OutputError(
            Sentence("config.exists_already", path=path), advice=Sentence("advice.replace_file")
        ) from None
    except OSError as error:
        raise not_writable(path, error, otherwise=Sentence("advice.other_path")) from None
