"""The configuration file: where it is looked for, and what is said of a mistake in it."""

import difflib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from platformdirs import user_config_path
from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, TomlConfigSettingsSource

from pipeline.errors import ConfigurationError
from pipeline.settings.profile import Profile
from pipeline.settings.servers import Cop, VopGateway, VopStandard
from pipeline.settings.values import Section

FILE_NAME = "precheck.toml"
BUILT_IN = ("sandbox", "sandbox-standard")
"""The profiles that need no configuration: CoP with the VoP Gateway, and VoP Standard."""


class Configuration(Section):
    """The whole file."""

    profiles: Annotated[dict[str, Profile], Field(min_length=1)]

    @field_validator("profiles")
    @classmethod
    def _know_their_servers(cls, profiles: dict[str, Profile]) -> dict[str, Profile]:
        for name, profile in profiles.items():
            if profile.servers:
                continue
            if name not in BUILT_IN:
                raise ValueError(
                    f"{name}: has neither a [cop] nor a [vop] section; add the API that you have"
                )
            if others := sorted(profile.model_fields_set - {"policy", "compare_with"}):
                raise ValueError(
                    f"{name}.{others[0]}: without servers of your own this profile is the embedded sandbox, "
                    "and only [policy] and compare_with can be said of it; remove it"
                )
        return profiles


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
    if mistake["type"] == "value_error" and where == "profiles":
        return f"profiles.{mistake['msg'].removeprefix('Value error, ')}"
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
