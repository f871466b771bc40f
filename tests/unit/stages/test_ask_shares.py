"""Places in flight: nobody holds them all who keeps us waiting."""

from pipeline.stages.ask.concurrency import SHARE_MIN, Bulkhead

HALF = 10


def busy(checks, now=0.0):
    """Twenty places, some of them held by a bank."""
    bulkhead = Bulkhead(2 * HALF, slow_s=2)
    for check in checks:
        bulkhead.take("A", check, now)
    return bulkhead


def test_a_bank_that_never_answered_gets_half_of_the_places():
    assert busy(range(HALF - 1)).has_place("A", 0.0)
    assert not busy(range(HALF)).has_place("A", 0.0)
    assert busy(range(HALF)).has_place("B", 0.0)


def test_an_answer_in_time_opens_every_place():
    bulkhead = busy(range(HALF))
    bulkhead.give_back("A", 0, 1.9)
    bulkhead.take("A", HALF, 1.9)
    assert bulkhead.has_place("A", 1.9)


def test_a_request_that_waits_too_long_closes_the_places_beyond_half():
    bulkhead = busy([0])
    bulkhead.give_back("A", 0, 1.0)
    for check in range(1, HALF + 1):
        bulkhead.take("A", check, 1.0)
    assert bulkhead.has_place("A", 2.9)
    assert not bulkhead.has_place("A", 3.0)


def test_a_late_answer_counts_for_nothing():
    bulkhead = busy(range(HALF))
    bulkhead.give_back("A", 0, 2.0)
    bulkhead.take("A", HALF, 2.0)
    assert not bulkhead.has_place("A", 2.0)


def test_few_places_are_everybodys():
    bulkhead = Bulkhead(SHARE_MIN, slow_s=2)
    for check in range(SHARE_MIN - 1):
        bulkhead.take("A", check, 0.0)
    assert bulkhead.has_place("A", 9.0)
