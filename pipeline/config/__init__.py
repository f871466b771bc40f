"""Profiles: which servers to ask, with which credentials, under which limits.

The configuration is a TOML file, described in docs/configuration.md. Unknown keys are errors, only
https is spoken, and a secret is never in the file: it is named there, and read when it is needed.
Only `cli`, `jobs` and `connections` read it; stages get plain values.
"""

from pipeline.config.file import (
    BUILT_IN,
    EXAMPLE,
    IMPORTED,
    Configuration,
    ConfigurationFile,
    find,
    load,
    read,
    usual,
    write_example,
)
from pipeline.config.profile import Profile

__all__ = [
    "BUILT_IN",
    "EXAMPLE",
    "IMPORTED",
    "Configuration",
    "ConfigurationFile",
    "Profile",
    "find",
    "load",
    "read",
    "usual",
    "write_example",
]
