import time
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime
from typing import get_args

import pytest
from httpx import Response

from pipeline.errors import ConfigurationError, CredentialsError
from pipeline.transport.retry import (
    Accept,
    FailureKind,
    GiveUp,
    Held,
    NetworkFailure,
    Refuse,
    RenewToken,
    Retry,
    RetryState,
    TurnAway,
    decide,
    pause_s,
)
from pipeline.wording import Sentence

NOW = datetime(2030, 1, 1, tzinfo=UTC)
FIRST = RetryState(1, renewable=True)
LAST = RetryState(3, renewable=True)


def decision(status, attempt=FIRST, *, chance=0.5, **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return decide(Response(status, headers=named), attempt, chance=chance, now=NOW)


def test_a_200_is_accepted_for_reading():
    assert decision(200) == Accept()


@pytest.mark.parametrize("status", [400, 413, 415, 422])
def test_a_refused_question_is_never_asked_again(status):
    assert decision(status) == Refuse()
    assert decision(status, retry_after="1") == Refuse()


def test_a_refused_token_is_renewed_once_and_then_we_are_not_let_in():
    assert decision(401) == RenewToken()
    again = decision(401, RetryState(2, renewable=False))
    assert isinstance(again, TurnAway)
    assert isinstance(again.error, CredentialsError)
    assert "HTTP 401" in str(again.error)


def test_a_stale_token_on_the_last_attempt_is_renewed_as_it_says_nothing_of_the_question():
    assert decision(401, LAST) == RenewToken()


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (403, CredentialsError),
        (300, ConfigurationError),
        (301, ConfigurationError),
        (302, ConfigurationError),
        (307, ConfigurationError),
        (399, ConfigurationError),
        (404, ConfigurationError),
        (405, ConfigurationError),
    ],
)
def test_what_may_happen_to_every_row_tells_how_the_run_would_end(status, error):
    away = decision(status)
    assert isinstance(away, TurnAway)
    assert type(away.error) is error
    assert f"HTTP {status}" in str(away.error)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 501, 599])
def test_a_server_in_trouble_is_asked_again_until_the_attempts_are_used(status):
    assert isinstance(decision(status), Retry)
    assert isinstance(decision(status, RetryState(2, renewable=True)), Retry)
    assert decision(status, LAST) == GiveUp()


@pytest.mark.parametrize(
    "status", [402, 406, 409, 410, 418, 424, 426, 451, 499, 201, 204, 206, 299, 600, 999]
)
def test_a_status_that_nobody_explained_is_never_an_answer(status):
    assert isinstance(decision(status), TurnAway)


@pytest.mark.parametrize("kind", ["connect", "tls", "broken", "deadline"])
def test_a_lost_answer_is_asked_for_again(kind):
    assert decide(NetworkFailure(kind), FIRST, chance=0.5, now=NOW) == Retry(0.25)
    assert decide(NetworkFailure(kind), LAST, chance=0.5, now=NOW) == GiveUp()


def test_every_kind_of_failure_and_every_status_has_a_decision():
    decided = [decide(NetworkFailure(kind), FIRST, chance=0, now=NOW) for kind in get_args(FailureKind)]
    decided += [decision(status) for status in range(200, 1000)]
    assert all(
        isinstance(one, Accept | Held | Refuse | RenewToken | Retry | GiveUp | TurnAway) for one in decided
    )
    assert decided.count(Accept()) == 1


def test_the_wait_doubles_up_to_its_limit_and_is_drawn_from_all_of_it():
    waits = [
        decision(500, RetryState(number, renewable=False, number_max=10), chance=1).wait_s
        for number in range(1, 9)
    ]
    assert waits == [0.5, 1, 2, 4, 8, 16, 20, 20]
    assert decision(500, chance=0) == Retry(0)


@pytest.mark.parametrize("status", [408, 429, 503])
def test_no_request_leaves_inside_the_pause_that_the_server_asks_for(status):
    assert decision(status, chance=0, retry_after="7") == Retry(7)
    assert decision(status, chance=1, retry_after="7") == Retry(7.5)


@pytest.mark.parametrize(
    ("value", "pause"),
    [
        ("0", 0),
        ("120", 120),
        (" 120 ", 120),
        ("0000000120", 120),
        ("3601", 3600),
        ("9" * 5000, 3600),
        ("Tue, 01 Jan 2030 00:02:00 GMT", 120),
        ("Tue, 01 Jan 2030 01:02:00 +0100", 120),
        ("Tue, 01 Jan 2030 00:02:00 -0000", 120),
        ("Mon, 31 Dec 2029 00:00:00 GMT", 0),
        ("Mon Dec 31 00:00:00 2029", 0),
        ("Wed, 01 Jan 2031 00:00:00 GMT", 3600),
        ("-5", 0),
        ("1.5", 1.5),
        ("0.25", 0.25),
        ("2.", 2),
        ("5, 7", 7),
        ("5, soon", 5),
        ("90, Tue, 01 Jan 2030 00:02:00 GMT", 120),
        ("Tuesday, 01-Jan-30 00:02:00 GMT, 90", 120),
        ("Tue, 01 Jan 2030 00:01:00 GMT, Tue Jan  1 00:02:00 2030", 120),
        ("1e9", 0),
        ("Tue, 01 Jan 9999999999 00:00:00 GMT", 0),
        ("Tue, 01 Jan 99999 00:00:00 GMT", 0),
        ("\u0661\u0662", 0),
        ("soon", 0),
        ("Tue, 99 Jan 2030 00:00:00 GMT", 0),
        ("", 0),
        ("0000000000005", 5),
        ("0000000000000", 0),
    ],
)
def test_retry_after_is_read_in_every_form_in_which_it_is_sent(value, pause):
    assert pause_s({"retry-after": value}, now=NOW) == pause


def test_a_date_without_a_zone_is_universal_time_wherever_this_machine_stands(monkeypatch):
    with monkeypatch.context() as environment:
        environment.setenv("TZ", "Pacific/Kiritimati")
        time.tzset()
        pause = pause_s({"retry-after": "Tue, 01 Jan 2030 00:02:00 -0000"}, now=NOW)
    time.tzset()
    assert pause == 120


def test_without_retry_after_there_is_no_pause():
    assert pause_s({}, now=NOW) == 0


@pytest.mark.parametrize(
    "value",
    [
        Accept(),
        Held(),
        Refuse(),
        RenewToken(),
        Retry(1.0),
        GiveUp(),
        TurnAway(ConfigurationError(Sentence("jobs.part_unusable", problem="x"))),
        FIRST,
    ],
)
def test_a_decision_does_not_change_once_it_is_made(value):
    with pytest.raises((FrozenInstanceError, TypeError)):
        value.wait_s = 0.0
    assert not hasattr(value, "__dict__")


@pytest.mark.parametrize(
    ("values", "pause"),
    [
        ("5, 10", 10),
        ("5, Tue, 01 Jan 2030 00:02:00 GMT", 120),
        ("Tue, 1 Jan 2030 00:02:00 GMT, 5", 120),
        ("Sat, 29 Dec 2029 00:00:00 GMT, 5", 5),
        ("Mon, 10 Dec 2029 00:00:00 GMT, Tue, 30 Jan 2030 00:00:00 GMT", 3600),
    ],
)
def test_of_several_pauses_the_longest_counts_and_the_comma_of_a_date_is_none_between_them(values, pause):
    assert pause_s({"retry-after": values}, now=NOW) == pause


def test_an_attempt_has_a_kept_connection_unless_it_is_said_to_be_fresh():
    assert not RetryState(1, renewable=False).is_fresh


def test_a_failure_tells_its_cause_or_else_its_kind():
    cause = OSError(111, "refused")
    assert NetworkFailure("connect", cause).reason is cause
    assert NetworkFailure("deadline").reason == "deadline"
