"""Explain mistakes in a configuration file: each once, with its place, value and remedy."""

import datetime as dt
import difflib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel

from pipeline.apis.registry import APIS, SECTIONS
from pipeline.config.inputs import InputSection
from pipeline.config.profile import Profile
from pipeline.errors import WrongValueError
from pipeline.formats.layouts.model import BankLayout, OtherLine, PaymentLine, SummaryLine
from pipeline.wording import Sentence

_OF_SERVERS: tuple[type[BaseModel], ...] = tuple(declared.section for declared in APIS.values())
"""The sections that describe a server."""
_KEYS: Mapping[str, str] = {
    "missing": "config.missing",
    "greater_than_equal": "config.must_be_at_least",
    "greater_than": "config.must_be_more_than",
    "less_than_equal": "config.must_be_at_most",
    "string_type": "config.must_be_text",
    "path_type": "config.must_be_text",
    "too_short": "config.empty",
    "string_too_short": "config.empty",
    "too_long": "config.too_many_entries",
    "float_type": "config.must_be_number",
    "finite_number": "config.must_be_finite_number",
    **dict.fromkeys(("bool_type", "bool_parsing"), "config.must_be_true_or_false"),
    **dict.fromkeys(
        ("date_from_datetime_parsing", "date_from_datetime_inexact", "date_type"), "config.must_be_date"
    ),
    **dict.fromkeys(("tuple_type", "list_type"), "config.must_be_list"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "config.must_be_whole_number"),
    **dict.fromkeys(("dict_type", "model_type"), "config.must_be_section"),
}
"""pydantic's type of a mistake -> the sentence about what is wrong and what to do."""
_PATTERNS: Mapping[str, str] = {
    **dict.fromkeys(
        ("client_secret_env", "client_key_password_env", "ledger_key_env"), "config.must_be_variable_name"
    ),
    "sign_with_password_env": "config.must_be_variable_name",
    "currency": "config.must_be_currency_code",
    "requesting_bic": "config.must_be_bic",
    "identity_header": "config.must_be_http_header_name",
}
"""The pattern of a value -> the sentence that describes it."""
QUOTED = (
    *("default_account_type", "default_country", "bank_rules", "gb_iban_to", "ask_by", "vop_countries"),
    *("vop_names", "compare_with"),
    *("modulus_weights_date", "server", "token_method", "rate_per_s", "in_flight_max", "daily_cap"),
    *("cap_window", "attempts_max", "probe_wait_s", "response_margin_s", "requesting_bic", "send_remittance"),
    "price_per_call",
)
"""Keys whose wrong values are quoted; any other value could be a misplaced secret."""
_QUOTED_LENGTH_MAX = 60
_LIMITS = ("ge", "gt", "le", "max_length")  # pydantic's names for limits that a sentence states

Mistake = Mapping[str, Any]  # a mistake as pydantic reports it: `loc`, `type`, `msg`, `ctx`, `input`
Place = tuple[str, ...]


def mistakes(found: Iterable[Mistake], whole: type[BaseModel]) -> list[Sentence]:
    """Return a sentence for each mistake found by pydantic, without reporting misspelt keys twice."""
    listed = _without_consequences(list(found))
    meant = {
        (*_place(mistake)[:-1], near)
        for mistake in listed
        if mistake["type"] == "extra_forbidden" and (near := _near(mistake, whole)) is not None
    }
    sentences: dict[Place, Sentence] = {}
    for mistake in listed:
        place = _place(mistake)
        if mistake["type"] != "missing" or place not in meant:
            sentences.setdefault(place, _sentence(mistake, place, whole))
    return list(sentences.values())


def _without_consequences(listed: list[Mistake]) -> list[Mistake]:
    """Drop mistakes about lists that are too short only because elements are wrong."""
    paths = [tuple(mistake["loc"]) for mistake in listed]
    return [
        mistake
        for mistake, path in zip(listed, paths, strict=True)
        if mistake["type"] != "too_short"
        or not any(other != path and other[: len(path)] == path for other in paths)
    ]


def _place(mistake: Mistake) -> Place:
    """Return a mistake's path in the keys of the file; double-bracket sections are numbered from 1."""
    counted = (part + 1 if isinstance(part, int) else part for part in mistake["loc"])
    parts = [str(part) for part in counted if part != "[key]"]
    has_form = parts[0] == "profiles" and len(parts) > 3 and len(SECTIONS.get(parts[2], {})) > 1
    return (*parts[:3], *parts[4:]) if has_form else tuple(parts)


def _section(mistake: Mistake, whole: type[BaseModel]) -> type[BaseModel]:
    match [str(part) for part in mistake["loc"]]:
        case ["profiles", _, _]:
            return Profile
        case ["profiles", _, key, _] if key in SECTIONS:
            [section] = SECTIONS[key].values()
            return section
        case ["profiles", _, key, form, _] if key in SECTIONS:
            return SECTIONS[key][form]
        case ["inputs", _, _]:
            return InputSection
        case ["layouts", _, *keys, _]:
            return _OF_LAYOUTS[tuple(key for key in keys if not key.isdecimal())]
        case _:
            return whole


_OF_LAYOUTS: Mapping[tuple[str, ...], type[BaseModel]] = {
    (): BankLayout,
    **dict.fromkeys([("header",), ("batch",), ("trailer",)], SummaryLine),
    ("others",): OtherLine,
    ("payments",): PaymentLine,
}
"""Keys of a layout, without numbers -> its section."""


def _near(mistake: Mistake, whole: type[BaseModel]) -> str | None:
    """Return the key of the same section that the user probably meant; None if none is similar."""
    key = str(mistake["loc"][-1])
    if _is_of_a_server(key) or key in Profile.model_fields:
        return None
    near = difflib.get_close_matches(key, _section(mistake, whole).model_fields, n=1)
    return near[0] if near else None


def _sentence(mistake: Mistake, place: Place, whole: type[BaseModel]) -> Sentence:
    wrong = mistake.get("ctx", {}).get("error")
    below = wrong.below if isinstance(wrong, WrongValueError) else ()
    where = ".".join((*place, *below))
    what = wrong.message if isinstance(wrong, WrongValueError) else _what_to_write(mistake, whole)
    if (value := _value(mistake)) is None:
        return Sentence("config.at", where=where, what=what)
    return Sentence("config.at_value", where=where, value=value, what=what)


def _what_to_write(mistake: Mistake, whole: type[BaseModel]) -> Sentence:
    match mistake["type"]:
        case "extra_forbidden":
            return _unknown(mistake, whole)
        case "union_tag_invalid" | "union_tag_not_found":
            forms = SECTIONS[str(mistake["loc"][2])]
            return Sentence("config.api_must_be_one_of", forms=[f'"{form}"' for form in forms])
        case "literal_error" | "enum":
            choices = re.findall(r"'([^']*)'", mistake["ctx"]["expected"])
            return Sentence("config.must_be_one_of", choices=[f'"{choice}"' for choice in choices])
        case "string_pattern_mismatch":
            return Sentence(_pattern(mistake))
        case kind:
            limits = {name: f"{value:g}" for name, value in mistake.get("ctx", {}).items() if name in _LIMITS}
            return Sentence(_KEYS.get(kind, "config.wrong_form"), **limits)


def _pattern(mistake: Mistake) -> str:
    if "bic_table" in mistake["loc"]:
        return "config.must_be_start_of_iban" if mistake["loc"][-1] == "[key]" else "config.must_be_bank_bic"
    if mistake["loc"][0] in ("layouts", "inputs") and mistake["loc"][-1] == "[key]":
        return "config.must_be_lower_case_name"
    return _PATTERNS.get(str(mistake["loc"][-1]), "config.wrong_form")


def _value(mistake: Mistake) -> str | None:
    """Return the wrong value, as in the file; None if it is long or could be a secret."""
    place, value = mistake["loc"], mistake["input"]
    is_quoted = place[-1] in QUOTED or place[2:3] == ("policy",)
    if not is_quoted or place[-1] == "[key]" or mistake["type"] == "extra_forbidden":
        return None
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, float):
        return repr(value)  # inf and nan, too, which JSON lacks
    try:
        written = json.dumps(value, ensure_ascii=False)
    except TypeError:  # a section with dates in it
        return None
    return None if isinstance(value, dict) or len(written) > _QUOTED_LENGTH_MAX else written


def _unknown(mistake: Mistake, whole: type[BaseModel]) -> Sentence:
    key, section = str(mistake["loc"][-1]), _section(mistake, whole)
    if (near := _near(mistake, whole)) is not None:
        return Sentence("config.did_you_mean", near=near)
    if section is Profile and _is_of_a_server(key):
        return Sentence("config.move_to_section", sections=[f"[{key}]" for key in SECTIONS])
    if section in _OF_SERVERS and key in Profile.model_fields:
        return Sentence("config.move_to_profile")
    if section in _OF_SERVERS and _is_of_a_server(key):
        return Sentence("config.key_not_of_api")
    return Sentence("config.unknown_key")


def _is_of_a_server(key: str) -> bool:
    return any(key in section.model_fields for section in _OF_SERVERS)
