"""The built-in layouts, from `known.toml`, in the same form as a user's (`model`)."""

import tomllib
from collections.abc import Mapping
from importlib.resources import files

from pydantic import TypeAdapter

from pipeline.formats.layouts.model import BankLayout
from pipeline.wording import Sentence

LAYOUTS: Mapping[str, BankLayout] = TypeAdapter(dict[str, BankLayout]).validate_python(
    tomllib.loads((files(__package__) / "known.toml").read_text("utf-8"))
)


def why_never_changed(layout: BankLayout) -> Sentence | str | None:
    """Return why no changed copy can be written; for a user's layout, in the configuration's words."""
    is_ours = layout.unknown_total and layout in LAYOUTS.values()
    return Sentence("layouts.hash_total") if is_ours else layout.unknown_total
