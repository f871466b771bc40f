"""Which forenames may be one person's: the common nicknames and variants of a forename.

Most come from the package `nicknames`, a list of English forenames that is kept by hand; some that it
lacks, British and continental ones, are in `names`.
"""

from functools import cache, lru_cache

from nicknames import NickNamer

from pipeline.sandbox.names import FURTHER_VARIANTS


@lru_cache(maxsize=4096)  # the same few names are compared again and again
def are_variants(one: str, other: str) -> bool:
    """Whether two forenames, in small letters, are nicknames or variants of one.

    >>> are_variants("bob", "robert"), are_variants("bob", "rob"), are_variants("bob", "william")
    (True, True, False)
    """
    if any(one in group and other in group for group in FURTHER_VARIANTS):
        return True
    return not _full_forms(one).isdisjoint(_full_forms(other))


def _full_forms(forename: str) -> set[str]:
    """The forenames that it may be short for, and itself."""
    return {forename, *_listed().canonicals_of(forename)}


class _Listed(NickNamer):
    """The list, asked as names are compared: `L.R.` is `lr`."""

    def _normalize_name(self, name: str) -> str:
        return "".join(filter(str.isalnum, name.casefold()))


@cache
def _listed() -> NickNamer:
    return _Listed()
