"""The layouts that this program knows, as `known.toml` has them: read like a user's own (`model`)."""

import tomllib
from collections.abc import Mapping
from importlib.resources import files

from pydantic import TypeAdapter

from pipeline.formats.layouts.model import BankLayout

LAYOUTS: Mapping[str, BankLayout] = TypeAdapter(dict[str, BankLayout]).validate_python(
    tomllib.loads((files(__package__) / "known.toml").read_text("utf-8"))
)
