"""How many generated examples a property is tried with: the same in each run, others in a search."""

import os

from hypothesis import settings

EXAMPLES_MAX = 100
"""For a property that gives no other number."""
DAY_MAX = 20
"""A run of the tests repeats what has passed before, so few examples do; `make search` finds more."""
SEARCHED_TIMES = 10

IS_SEARCH = os.environ.get("PRECHECK_EXAMPLES") == "other"


def examples(count: int, *, by_day: int = DAY_MAX) -> settings:
    """At most `by_day` in a run of the tests; in a search, ten times `count` others."""
    return settings(max_examples=count * SEARCHED_TIMES if IS_SEARCH else min(count, by_day), deadline=None)
