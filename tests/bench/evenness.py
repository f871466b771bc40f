"""How even the machine's speed was while the figures were taken: the same work, timed between them."""

import time

from table import Figure, spread

STEPS = 3_000_000
TIMES = 5


def samples():
    """Seconds that one loop took, several times."""
    return [_once() for _ in range(TIMES)]


def figure(seconds):
    return Figure(
        "this machine's own evenness: one loop of Python, timed between the figures above",
        spread([1000 * some for some in seconds], "ms"),
        "",
    )


def _once():
    before = time.process_time()
    total = 0
    for number in range(STEPS):
        total += number & 7
    return time.process_time() - before
