"""With how many generated examples a property is tried: the same in each run, others in a search."""

import os

from hypothesis import settings

EXAMPLES_MAX = 100
"""Of a property that says nothing else. A run repeats what has passed before; `make search` finds more."""
SEARCHED_TIMES = 10

IS_SEARCH = os.environ.get("PRECHECK_EXAMPLES") == "other"


def examples(count: int) -> settings:
    """So many in a run of the tests, the same in each; ten times as many others in a search."""
    return settings(max_examples=count * (SEARCHED_TIMES if IS_SEARCH else 1), deadline=None)
