"""What is said of the mistakes in a configuration file: each once, where it is, and what to do."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel

from pipeline.settings.profile import Profile
from pipeline.settings.servers import Cop, VopGateway, VopStandard

_SECTIONS: Mapping[str, type[BaseModel]] = {"cop": Cop, "gateway": VopGateway, "standard": VopStandard}
"""The sections that name a server; those of `vop` by what `api` says."""
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
    "date_from_datetime_parsing": "must be a date such as 2026-01-31",
    "date_type": "must be a date such as 2026-01-31",
    "int_type": "must be a whole number, without quotes",
    "dict_type": "must be a section of its own; see docs/configuration.md",
    "model_type": "must be a section of its own; see docs/configuration.md",
}
"""What is wrong and what to do, by the kind of mistake that pydantic tells."""

Mistake = Mapping[str, Any]
"""As pydantic tells it: `loc`, `type`, `msg`, `ctx`."""
Place = tuple[str, ...]


def mistakes(found: Iterable[Mistake], whole: type[BaseModel]) -> list[str]:
    """A sentence for each place with a mistake.

    A key that is misspelt is not missing as well, and a value under a wrong key need not be looked at.

    Args:
        found: what pydantic tells of the file.
        whole: the model of the whole file.
    """
    listed = list(found)
    meant = {
        (*_place(mistake)[:-1], near)
        for mistake in listed
        if mistake["type"] == "extra_forbidden" and (near := _near(mistake, whole)) is not None
    }
    said: dict[Place, str] = {}
    for mistake in listed:
        place = _place(mistake)
        if mistake["type"] != "missing" or place not in meant:
            said.setdefault(place, _sentence(mistake, ".".join(place), whole))
    return list(said.values())


def _place(mistake: Mistake) -> Place:
    """Where a mistake is, as the keys are written in the file: without the form of VoP that pydantic adds."""
    parts = [str(part) for part in mistake["loc"] if part != "[key]"]
    is_below_vop = parts[0] == "profiles" and parts[2:3] == ["vop"] and len(parts) > 3
    return (*parts[:3], *parts[4:]) if is_below_vop else tuple(parts)


def _section(mistake: Mistake, whole: type[BaseModel]) -> type[BaseModel]:
    """The section that has a key too many."""
    match [str(part) for part in mistake["loc"]]:
        case ["profiles", _, _]:
            return Profile
        case ["profiles", _, "cop", _]:
            return Cop
        case ["profiles", _, "vop", form, _]:
            return _SECTIONS[form]
        case _:
            return whole


def _near(mistake: Mistake, whole: type[BaseModel]) -> str | None:
    """The key of the same section that was meant, as far as one can tell; None for one of another section."""
    key = str(mistake["loc"][-1])
    if _is_of_a_server(key) or key in Profile.model_fields:
        return None
    near = difflib.get_close_matches(key, _section(mistake, whole).model_fields, n=1)
    return near[0] if near else None


def _sentence(mistake: Mistake, where: str, whole: type[BaseModel]) -> str:
    if mistake["type"] == "value_error" and where == "profiles":
        return f"profiles.{mistake['msg'].removeprefix('Value error, ')}"
    if where == "profiles":
        return "no profile in it; `precheck init` writes an example"
    if mistake["type"] == "extra_forbidden":
        return f"{where}: {_unknown(mistake, whole)}"
    if mistake["type"] in {"union_tag_invalid", "union_tag_not_found"}:
        return f'{where}: api must be "gateway" or "standard"'
    if (said := _SAID.get(mistake["type"])) is not None:
        return f"{where}: {said.format_map(mistake.get('ctx', {}))}"
    said = mistake["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    return f"{where}: {said}"


def _unknown(mistake: Mistake, whole: type[BaseModel]) -> str:
    """What is said of a key that the section does not have."""
    key, section = str(mistake["loc"][-1]), _section(mistake, whole)
    if (near := _near(mistake, whole)) is not None:
        return f"unknown key; did you mean {near}?"
    if section is Profile and _is_of_a_server(key):
        return "no key of a profile; move it into [cop] or [vop]"
    if section in _SECTIONS.values() and key in Profile.model_fields:
        return "no key of a server; move it up into the profile"
    if section in _SECTIONS.values() and _is_of_a_server(key):
        return "no key of this API; remove it"
    return "unknown key; remove it"


def _is_of_a_server(key: str) -> bool:
    return any(key in section.model_fields for section in _SECTIONS.values())
