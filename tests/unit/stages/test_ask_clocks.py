"""Our clock and the server's, with both times as arguments."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from httpx import Response
from refusals import says
from structlog.testing import capture_logs

from pipeline.stages.ask.clock_skew import (
    ClockComparison,
    ahead_of_ours_s,
    refuses_our_time,
    server_time,
    wrong_clock,
    wrong_day,
)
from pipeline.wording import Sentence
from schemas.outcomes import ApiName
from schemas.strict import timestamp

SENT = datetime(2030, 1, 1, 12, tzinfo=UTC)
RECEIVED = SENT + timedelta(seconds=7)


def stamped(stamp):
    return Response(200, headers={"x-response-timestamp": stamp}, content=b"")


@pytest.mark.parametrize(
    ("stamp", "ahead_s"),
    [
        ("2030-01-01T12:00:00.000Z", 0),
        ("2030-01-01T12:00:07.000Z", 0),
        ("2030-01-01T12:10:07.000Z", 600),
        ("2030-01-01T11:50:00.000Z", -600),
        ("2030-01-01T13:00:03.000+01:00", 0),
        ("2030-01-01T12:10:07.000", 0),
        ("yesterday", 0),
        ("", 0),
    ],
)
def test_the_time_on_the_way_is_no_difference_of_clocks(stamp, ahead_s):
    assert ahead_of_ours_s(server_time(stamped(stamp)), SENT, RECEIVED) == ahead_s


def said(*stamps):
    clocks = ClockComparison()
    with capture_logs() as lines:
        for stamp in stamps:
            clocks.compare(ApiName.COP, stamped(stamp), sent=SENT, received=RECEIVED)
    return [line["event"] for line in lines]


def test_a_wrong_clock_is_told_once_with_its_side_and_what_to_do():
    [line] = said("2030-01-01T12:10:07.000Z", "2030-01-01T12:10:07.000Z")
    assert line == str(Sentence("stages.clock_behind", skew_s=600, advice=Sentence("stages.set_clock")))
    [line] = said("2030-01-01T11:50:00.000Z")
    assert line == str(Sentence("stages.clock_ahead", skew_s=600, advice=Sentence("stages.set_clock")))


@pytest.mark.parametrize(
    "stamp", ["0001-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z", "2029-12-30T12:00:00Z", "x"]
)
def test_a_single_stamp_that_cannot_be_is_logged_once_and_says_nothing_about_our_clock(stamp):
    assert said(stamp, NEAR, stamp) == ["a time stamp of the server is not believed"]


def test_three_that_agree_say_it():
    assert "172793 s behind" in said(DAYS_AHEAD, DAYS_AHEAD, DAYS_AHEAD)[1]


@pytest.mark.parametrize(("difference_s", "is_told"), [(30.0, False), (30.001, True)])
def test_half_a_minute_is_let_pass(difference_s, is_told):
    stamp = timestamp(RECEIVED + timedelta(seconds=difference_s))
    assert bool(said(stamp)) == is_told


@pytest.mark.parametrize(
    ("status", "problem", "is_about_time"),
    [
        (400, {"code": "TIMESTAMP_INVALID"}, True),
        (400, {"code": "FORMAT_ERROR", "detail": "header X-Request-Timestamp: too old"}, True),
        (400, {"code": "FORMAT_ERROR", "title": "timestamp_invalid"}, True),
        (400, {"code": "FORMAT_ERROR", "detail": "party.name: 'Timestamp Services' is not known"}, False),
        (400, {"code": "FORMAT_ERROR"}, False),
        (422, {"code": "TIMESTAMP_INVALID"}, False),
        (400, [], False),
    ],
)
def test_a_refusal_of_the_time_is_told_from_a_refusal_of_the_row(status, problem, is_about_time):
    assert (
        refuses_our_time(Response(status, headers={}, content=json.dumps(problem).encode())) == is_about_time
    )


def test_a_server_without_a_stamp_still_gives_a_whole_sentence():
    sentence = wrong_clock(ApiName.COP, Response(400, headers={}, content=b""), SENT)
    no_time, now = "stages.server_states_no_time", "2030-01-01T12:00:00.000Z"
    says(sentence, Sentence("stages.timestamp_refused", timestamp=now, server_clock=no_time))


DAYS_AHEAD = "2030-01-03T12:00:00.000Z"
NEAR = "2030-01-01T12:00:03.000Z"


@pytest.mark.parametrize(
    ("stamps", "ahead_s"),
    [
        ([DAYS_AHEAD] * 3, 2 * 86_400 - 7),
        (
            ["2030-01-03T12:00:00.000Z", "2030-01-03T12:00:30.000Z", "2030-01-03T12:01:00.000Z"],
            2 * 86_400 + 53,
        ),
        (["2029-12-30T12:00:00.000Z"] * 3, -2 * 86_400),
        ([NEAR] * 3, 0),
        ([DAYS_AHEAD] * 2, None),
        ([DAYS_AHEAD, NEAR, DAYS_AHEAD, DAYS_AHEAD], None),
        ([DAYS_AHEAD, DAYS_AHEAD, "2030-01-03T12:01:01.000Z"], None),
        (["yesterday"] * 3, None),
        ([""] * 3, None),
        (["0001-01-01T00:00:00.000+14:00"] * 3, None),
        (["9999-12-31T23:59:59.000-14:00"] * 3, None),
    ],
)
def test_only_three_replies_in_a_row_that_agree_say_the_time(stamps, ahead_s):
    clocks = ClockComparison()
    for stamp in stamps:
        clocks.compare(ApiName.COP, stamped(stamp), sent=SENT, received=RECEIVED)
    assert clocks.agreed_ahead_s(ApiName.COP) == ahead_s
    assert clocks.agreed_ahead_s(ApiName.VOP_GATEWAY) is None


def test_a_clock_on_another_day_is_reported_with_both_times():
    error = wrong_day(ApiName.COP, RECEIVED, RECEIVED + timedelta(days=2))
    says(error, timestamp="2030-01-01T12:00:07.000Z", timestamp_2="2030-01-03T12:00:07.000Z")
