"""The configuration: profiles with their servers, credentials and limits.

A TOML file, described in docs/configuration.md. It names secrets, which are read when needed. Only `cli`,
`jobs` and `connections` read it; stages get plain values.
"""

from pipeline.config.file import ConfigurationFile
from pipeline.config.profile import Profile

__all__ = ["ConfigurationFile", "Profile"]
