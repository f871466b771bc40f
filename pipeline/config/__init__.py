"""The configuration: profiles with their servers, credentials and limits.

The configuration is a TOML file, described in docs/configuration.md. Unknown keys are errors, and only https
is allowed. The file names secrets but does not contain them; they are read when needed. Only `cli`, `jobs`
and `connections` read the configuration; stages get plain values.
"""

from pipeline.config.file import ConfigurationFile
from pipeline.config.profile import Profile

__all__ = ["ConfigurationFile", "Profile"]
