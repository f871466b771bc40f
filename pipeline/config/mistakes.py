"""The messages for mistakes in a configuration file: each once, with its place, its value and what to do."""

import datetime as dt
import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from pipeline.apis.registry import APIS, SECTIONS
from pipeline.config.profile import Profile
from pipeline.formats.layouts.model import BankLayout, OtherLine, PaymentLine, SummaryLine

_OF_SERVERS: tuple[type[BaseModel], ...] = tuple(declared.section for declared in APIS.values())
"""The sections that name a server."""
_SENTENCES = {
    "missing": "is missing; add it",
    "greater_than_equal": "must be {ge:g} or more",
    "greater_than": "must be more than {gt:g}",
    "less_than_equal": "must be {le:g} or less",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "string_type": "must be text; put it in quotes",
    "too_short": "is empty; fill it in",
    "string_too_short": "is empty; fill it in",
    "float_type": "must be a number, without quotes",
    "date_from_datetime_parsing": "must be a date such as 2026-01-31",
    "date_type": "must be a date such as 2026-01-31",
    "tuple_type": "must be a list, or sections in double brackets; see docs/configuration.md",
    "int_type": "must be a whole number, without quotes",
    "int_parsing": "must be a whole number",
    "dict_type": "must be a section of its own; see docs/configuration.md",
    "model_type": "must be a section of its own; see docs/configuration.md",
}
"""What is wrong and what to do, by pydantic's type of the mistake."""
_VARIABLE = "must be the name of an environment variable, never the secret itself: letters, digits and _"
_PATTERNS = {
    **dict.fromkeys(("client_secret_env", "client_key_password_env", "ledger_key_env"), _VARIABLE),
    "sign_with_password_env": _VARIABLE,
    "currency": "must be three capital letters, such as GBP",
    "requesting_bic": "must be a BIC of 11 characters, such as MARWGB2LXXX",
}
"""What must be written for a key whose value has a form of its own."""
_BANK = "must be the start of an IBAN without its check digits, such as DE1"
_BANK_BIC = "must be the bank's BIC of 11 characters, such as MARWGB2LXXX"
QUOTED = (
    *("default_account_type", "gb_iban_to", "ask_by", "vop_countries", "vop_names", "compare_with"),
    *("modulus_weights_date", "server", "token_method", "rate_per_s", "in_flight_max", "daily_cap"),
    *("cap_window", "attempts_max", "probe_wait_s", "response_margin_s", "requesting_bic", "send_remittance"),
    "price_per_call",
)
"""The keys whose wrong value is repeated; any other could hold a secret that was put in the wrong place."""
_QUOTED_LENGTH_MAX = 60

Mistake = Mapping[str, Any]
"""As pydantic reports it: `loc`, `type`, `msg`, `ctx`, `input`."""
Place = tuple[str, ...]


def mistakes(found: Iterable[Mistake], whole: type[BaseModel]) -> list[str]:
    """A sentence for each place with a mistake.

    A key that is misspelt is not missing as well, and a value under a wrong key need not be looked at.

    Args:
        found: what pydantic reports about the file.
        whole: the model of the whole file.
    """
    listed = _without_consequences(list(found))
    meant = {
        (*_place(mistake)[:-1], near)
        for mistake in listed
        if mistake["type"] == "extra_forbidden" and (near := _near(mistake, whole)) is not None
    }
    sentences: dict[Place, str] = {}
    for mistake in listed:
        place = _place(mistake)
        if mistake["type"] != "missing" or place not in meant:
            sentences.setdefault(place, _sentence(mistake, ".".join(place), whole))
    return list(sentences.values())


def _without_consequences(listed: list[Mistake]) -> list[Mistake]:
    """Without lists that are called too short because of what is wrong in them."""
    places = [tuple(mistake["loc"]) for mistake in listed]
    return [
        mistake
        for mistake, place in zip(listed, places, strict=True)
        if mistake["type"] != "too_short"
        or not any(other != place and other[: len(place)] == place for other in places)
    ]


def _place(mistake: Mistake) -> Place:
    """Where a mistake is, as the keys are written in the file: pydantic adds the form of a section.

    Sections in double brackets are counted from 1.
    """
    counted = (part + 1 if isinstance(part, int) else part for part in mistake["loc"])
    parts = [str(part) for part in counted if part != "[key]"]
    has_form = parts[0] == "profiles" and len(parts) > 3 and len(SECTIONS.get(parts[2], {})) > 1
    return (*parts[:3], *parts[4:]) if has_form else tuple(parts)


def _section(mistake: Mistake, whole: type[BaseModel]) -> type[BaseModel]:
    """The section that has a key too many."""
    match [str(part) for part in mistake["loc"]]:
        case ["profiles", _, _]:
            return Profile
        case ["profiles", _, key, _] if key in SECTIONS:
            [section] = SECTIONS[key].values()
            return section
        case ["profiles", _, key, form, _] if key in SECTIONS:
            return SECTIONS[key][form]
        case ["layouts", _, *keys, _]:
            return _section_of_a_layout(keys)
        case _:
            return whole


def _section_of_a_layout(keys: Sequence[str]) -> type[BaseModel]:
    """The section of a layout that is reached by these keys and numbers."""
    sections: Mapping[tuple[str, ...], type[BaseModel]] = {
        (): BankLayout,
        ("header",): SummaryLine,
        ("batch",): SummaryLine,
        ("trailer",): SummaryLine,
        ("others",): OtherLine,
        ("payments",): PaymentLine,
    }
    return sections[tuple(key for key in keys if not key.isdecimal())]


def _near(mistake: Mistake, whole: type[BaseModel]) -> str | None:
    """The key of the same section that was probably meant; None for one of another section."""
    key = str(mistake["loc"][-1])
    if _is_of_a_server(key) or key in Profile.model_fields:
        return None
    near = difflib.get_close_matches(key, _section(mistake, whole).model_fields, n=1)
    return near[0] if near else None


def _sentence(mistake: Mistake, where: str, whole: type[BaseModel]) -> str:
    if where in {"profiles", "layouts"} and mistake["type"] == "value_error":
        return f"{where}.{_message(mistake)}"
    if where == "profiles":
        return "it has no profile; `precheck init` writes one"
    return f"{where}{_value(mistake)}: {_what_to_write(mistake, whole)}"


def _what_to_write(mistake: Mistake, whole: type[BaseModel]) -> str:
    if mistake["type"] == "extra_forbidden":
        return _unknown(mistake, whole)
    if mistake["type"] in {"union_tag_invalid", "union_tag_not_found"}:
        forms = SECTIONS[str(mistake["loc"][2])]
        return "api must be " + " or ".join(f'"{form}"' for form in forms)
    if mistake["type"] == "string_pattern_mismatch":
        return _pattern(mistake)
    if (sentence := _SENTENCES.get(mistake["type"])) is not None:
        return sentence.format_map({key: _in_toml(value) for key, value in mistake.get("ctx", {}).items()})
    return _message(mistake)


def _message(mistake: Mistake) -> str:
    text: str = mistake["msg"]
    return text.removeprefix("Value error, ").replace("Input should be", "must be")


def _in_toml(value: object) -> object:
    """Words in the quotes that the file has them in."""
    return value.replace("'", '"') if isinstance(value, str) else value


def _pattern(mistake: Mistake) -> str:
    if "bic_table" in mistake["loc"]:
        return _BANK if mistake["loc"][-1] == "[key]" else _BANK_BIC
    if mistake["loc"][0] == "layouts" and mistake["loc"][-1] == "[key]":
        return "must be a name of small letters, digits and hyphens"
    return _PATTERNS.get(str(mistake["loc"][-1]), "has another form; see docs/configuration.md")


def _value(mistake: Mistake) -> str:
    """The value that is wrong, as the file has it; empty for one that is long or could be a secret."""
    place, value = mistake["loc"], mistake["input"]
    is_quoted = place[-1] in QUOTED or place[2:3] == ("policy",)
    if not is_quoted or place[-1] == "[key]" or mistake["type"] == "extra_forbidden":
        return ""
    if isinstance(value, dt.date | dt.time):
        return f" = {value.isoformat()}"
    if isinstance(value, float):
        return f" = {value!r}"  # also inf and nan, which JSON does not know
    try:
        written = json.dumps(value, ensure_ascii=False)
    except TypeError:  # a section, with dates in it
        return ""
    return "" if isinstance(value, dict) or len(written) > _QUOTED_LENGTH_MAX else f" = {written}"


def _unknown(mistake: Mistake, whole: type[BaseModel]) -> str:
    """The message for a key that the section does not have."""
    key, section = str(mistake["loc"][-1]), _section(mistake, whole)
    if (near := _near(mistake, whole)) is not None:
        return f"unknown key; did you mean {near}?"
    if section is Profile and _is_of_a_server(key):
        return f"not a key of a profile; move it into {' or '.join(f'[{key}]' for key in SECTIONS)}"
    if section in _OF_SERVERS and key in Profile.model_fields:
        return "not a key of a server; move it up into the profile"
    if section in _OF_SERVERS and _is_of_a_server(key):
        return "not a key of this API; remove it"
    return "unknown key; remove it"


def _is_of_a_server(key: str) -> bool:
    return any(key in section.model_fields for section in _OF_SERVERS)
