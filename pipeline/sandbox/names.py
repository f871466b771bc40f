"""Names for simulated account holders, and variants of forenames.

Most variants come from the package `nicknames`, a hand-made list of English forenames; this module adds
British and continental ones.
"""

import tomllib
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

from nicknames import NickNamer
from pydantic import TypeAdapter


@dataclass(frozen=True, slots=True)
class NamePool:
    """The names of account holders in one network."""

    forenames: tuple[str, ...]
    surnames: tuple[str, ...]
    company_forms: tuple[str, ...]


_FILE = tomllib.loads((files(__package__) / "names.toml").read_text("utf-8"))
UK, EUROPE = (TypeAdapter(NamePool).validate_python(_FILE[network]) for network in ("uk", "europe"))
COMPANY_WORDS, TRADES = tuple(_FILE["company_words"]), tuple(_FILE["trades"])
TITLES, SURNAME_PARTICLES = frozenset(_FILE["titles"]), frozenset(_FILE["surname_particles"])
FURTHER_VARIANTS = [frozenset(group.split()) for group in _FILE["variants"]]


@lru_cache(maxsize=4096)  # the same few names are compared again and again
def are_variants(one: str, other: str) -> bool:
    """True if two forenames, in lower case, are nicknames or variants of each other.

    >>> are_variants("bob", "robert"), are_variants("bob", "rob"), are_variants("bob", "william")
    (True, True, False)
    """
    if any(one in group and other in group for group in FURTHER_VARIANTS):
        return True
    full_forms = ({forename, *_listed().canonicals_of(forename)} for forename in (one, other))
    return not set.isdisjoint(*full_forms)


class _Listed(NickNamer):
    """The package's list, loaded when first used; `L.R.` is read as `lr`."""

    def _normalize_name(self, name: str) -> str:
        return "".join(filter(str.isalnum, name.casefold()))


_listed = cache(_Listed)
