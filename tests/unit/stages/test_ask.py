"""ask, with a sender that says what a test wants; the ledger, the quota and the pace are the real ones."""

import json
import resource
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from uuid import UUID

import anyio
import polars as pl
import pytest
from httpx import Request, Response
from structlog.testing import capture_logs

from pipeline.apis import cop, vop
from pipeline.errors import ConfigurationError, CredentialsError, DiskError, ProtocolError
from pipeline.frames import ANSWERS, CHECKS
from pipeline.ledger import Ledger, RunIdentity
from pipeline.quota import Quota
from pipeline.stages.ask import Channel, Tally, World, ask
from pipeline.stages.ask.gate import RETRIES_FREE
from pipeline.stages.ask.judge import BREACHES_IN_A_ROW_MAX, REFUSALS_IN_A_ROW_MAX
from pipeline.transport.breaker import OUTAGES_MAX, RESPONDER, SERVER
from pipeline.transport.pace import Pace
from pipeline.transport.retry import NetworkFailure
from pipeline.transport.tokens import Token
from schemas.outcomes import ApiName, Outcome

APIS = {api.name: api for api in (cop.API, vop.GATEWAY, vop.standard("TREZFRP0XXX"))}
MATCHED = {"data": {"verificationReport": {"matched": True}}}
START = datetime(2030, 1, 1, 12, tzinfo=UTC)
TEST_MAX_S = 20


def good(request: Request, body=None) -> Response:
    echo = {name.lower(): value for name, value in request.headers.items() if "id" in name.lower()}
    return Response(
        200,
        headers={"content-type": "application/json", **echo},
        content=json.dumps(body or MATCHED).encode(),
    )


def problem(status: int, code: str = "SERVER_ERROR", **headers: str) -> Response:
    return Response(status, headers=headers, content=json.dumps({"code": code, "status": status}).encode())


@dataclass
class Said:
    """One request, as the sender saw it."""

    request: Request
    nth: int
    """Which request for its question, from 1."""
    token: Token | None
    time: float = field(default_factory=time.monotonic)

    @property
    def name(self):
        document = json.loads(self.request.read())
        return document["data"]["name"] if "data" in document else document["party"]["name"]


class FakeSender:
    """Answers by a function of what was said; a NetworkFailure that it returns is raised."""

    def __init__(self, reply: Callable[[Said], Awaitable[Response]], *, has_tokens: bool = False) -> None:
        self._reply = reply
        self._token = Token("first", 1) if has_tokens else None
        self.said: list[Said] = []
        self.renewed_count = 0
        self.dropped_count = 0
        self.in_flight_count = self.in_flight_most = 0

    async def token(self):
        return self._token

    async def renew(self, rejected):
        if rejected == self._token:
            self.renewed_count += 1
            self._token = Token(f"renewed {self.renewed_count}", rejected.generation + 1)
        return self._token

    async def send(self, request, *, deadline_s, token=None):  # noqa: ARG002 (Sender's own signature)
        nth = 1 + sum(earlier.request.read() == request.read() for earlier in self.said)
        said = Said(request, nth, token)
        self.said.append(said)
        self.in_flight_count += 1
        self.in_flight_most = max(self.in_flight_most, self.in_flight_count)
        try:
            await anyio.lowlevel.checkpoint()
            reply = await self._reply(said)
        finally:
            self.in_flight_count -= 1
        if isinstance(reply, NetworkFailure):
            raise reply
        return reply

    async def drop_connections(self):
        self.dropped_count += 1


def always(*replies):
    """The nth request for a question gets the nth reply, and then the last one again; None is a good one."""

    async def reply(said):
        chosen = replies[min(said.nth, len(replies)) - 1]
        return good(said.request) if chosen is None else chosen

    return reply


def checks(how_many: int, first: int = 1, api: str = "cop") -> pl.DataFrame:
    numbers = range(first, first + how_many)
    rows = [
        {"check": n, "api": api, "account": f"{n:014d}", "name": f"Payee {n}", "account_type": "Personal"}
        for n in numbers
    ]
    return pl.DataFrame(rows, schema=CHECKS)


@dataclass
class Asking:
    """A run of ask that has ended."""

    answers: pl.DataFrame
    tally: Tally

    def states(self):
        return dict(Counter(self.answers.select("state", "code").iter_rows()))


@pytest.fixture
def asking(tmp_path):
    """`asking(checks, sender)`: open the ledger, ask, close the ledger."""
    ids = (str(UUID(int=number, version=4)) for number in count(1))

    def run(
        questions,
        sender,
        *,
        limit=None,
        quota=None,
        in_flight_max=4,
        attempts_max=3,
        rate_per_s=5000,
        stop=None,
        now=None,
        probe_wait_s=30.0,
        slow_s=2.0,
    ):
        tally = Tally()

        async def main():
            world = World(
                now or (lambda: START),
                time.monotonic,
                lambda: 0.0,
                lambda: next(ids),
                stop or anyio.Event(),
                tally,
            )
            senders = sender if isinstance(sender, dict) else {ApiName.COP: sender}
            channels = {
                name: Channel(
                    APIS[name],
                    one,
                    Pace(rate_per_s),
                    quota,
                    in_flight_max,
                    attempts_max,
                    deadline_s=5,
                    server_patience=replace(SERVER, probe_wait_s=probe_wait_s),
                    responder_patience=replace(RESPONDER, probe_wait_s=probe_wait_s),
                    slow_s=slow_s,
                    requester="PSDFR-ACPR-99999",
                )
                for name, one in senders.items()
            }
            with anyio.fail_after(TEST_MAX_S):
                return await ask(questions, channels, ledger, world, limit=limit)

        identity = RunIdentity("input", "profile", "sandbox", "1")
        with Ledger.open(tmp_path / "run" / "ledger.db", identity, now="2030-01-01T12:00:00.000Z") as ledger:
            return Asking(anyio.run(main), tally)

    return run


@pytest.fixture
def capped(tmp_path):
    with_quota = []

    def quota(cap):
        made = Quota(tmp_path / "quota.db", scope="s", cap=cap, window="utc_day", clock=lambda: START)
        with_quota.append(made)
        return made

    yield quota
    for made in with_quota:
        made.close()


# One answer per check


def test_every_check_has_exactly_one_answer(asking):
    sender = FakeSender(always(None))

    done = asking(checks(50), sender)

    assert done.answers.schema == ANSWERS
    assert sorted(done.answers["check"]) == list(range(1, 51))
    assert done.states() == {("answered", "MTCH"): 50}
    assert len(sender.said) == len({said.name for said in sender.said}) == 50
    assert (done.tally.done_count, done.tally.check_count) == (50, 50)


def test_watcher_is_told_what_became_of_the_questions_of_this_run_and_of_no_other(asking):
    asking(checks(3), FakeSender(always(None)))

    done = asking(checks(10), FakeSender(always(problem(400))), limit=4)

    assert done.tally.outcomes == {Outcome.REJECTED: 4}
    assert (done.tally.settled_count, done.tally.done_count, done.tally.check_count) == (6, 10, 10)


def test_every_request_has_a_correlation_id_of_its_own_and_the_answer_tells_it(asking):
    sender = FakeSender(always(problem(500), None))

    done = asking(checks(3), sender)

    sent = [said.request.headers["x-fapi-interaction-id"] for said in sender.said]
    assert len(set(sent)) == 6
    accepted = {said.request.headers["x-fapi-interaction-id"] for said in sender.said if said.nth == 2}
    assert set(done.answers["request_id"]) == accepted


def test_in_flight_never_exceeds_its_limit_and_reaches_it(asking):
    async def reply(said):
        await anyio.sleep(0.005)
        return good(said.request)

    sender = FakeSender(reply)

    asking(checks(40), sender, in_flight_max=7)

    assert sender.in_flight_most == 7


def test_two_apis_are_asked_at_the_same_time(asking):
    both = anyio.Event()
    seen = set()

    def meets(api, body):
        async def reply(said):
            seen.add(api)
            if len(seen) == 2:
                both.set()
            await both.wait()
            return good(said.request, body)

        return FakeSender(reply)

    senders = {
        ApiName.COP: meets("cop", MATCHED),
        ApiName.VOP_GATEWAY: meets("vop", {"partyNameMatch": "NMTC"}),
    }
    ibans = checks(2, first=3, api="vop_gateway").with_columns(account=pl.lit("DE35370400440084210077"))

    done = asking(pl.concat([checks(2), ibans]), senders, in_flight_max=1)

    assert done.states() == {("answered", "MTCH"): 2, ("answered", "NMTC"): 2}


def test_a_close_match_brings_its_name(asking):
    async def reply(said):
        report = {"matched": False, "reasonCode": "MBAM", "name": "Held Name"}
        return good(said.request, {"data": {"verificationReport": report}})

    [answer] = asking(checks(1), FakeSender(reply)).answers.iter_rows(named=True)

    assert (answer["code"], answer["matched_name"]) == ("MBAM", "Held Name")
    assert answer["time"] == "2030-01-01T12:00:00.000Z"


# What was answered is not asked again


def test_known_answers_are_not_asked_again(asking):
    first = asking(checks(5), FakeSender(always(None)))
    sender = FakeSender(always(None))

    second = asking(checks(8), sender)

    assert {said.name for said in sender.said} == {"Payee 6", "Payee 7", "Payee 8"}
    assert second.tally.answered_before == {"cop": 5}
    assert second.tally.requests == {"cop": 3}
    assert second.answers.sort("check").head(5).equals(first.answers.sort("check"))


def test_a_known_answer_belongs_to_the_question_and_not_to_its_number(asking):
    asking(checks(2), FakeSender(always(None)))
    sender = FakeSender(always(None))
    renumbered = checks(3).with_columns(check=pl.Series([3, 2, 1], dtype=pl.UInt32))

    asking(renumbered, sender)

    assert [said.name for said in sender.said] == ["Payee 3"]


def test_attempts_go_on_counting_in_a_later_run(asking):
    asking(checks(1), FakeSender(always(problem(500))), attempts_max=2)

    [answer] = asking(checks(1), FakeSender(always(None))).answers.iter_rows(named=True)

    assert (answer["state"], answer["attempts"]) == ("answered", 3)


def test_a_refused_question_stays_refused(asking):
    asking(checks(1), FakeSender(always(problem(400, "FORMAT_ERROR"))))
    sender = FakeSender(always(None))

    done = asking(checks(1), sender)

    assert not sender.said
    assert done.states() == {("refused", "FORMAT_ERROR"): 1}


# What a reply means for the next step


@pytest.mark.parametrize(
    ("reply", "sent_count", "state"),
    [
        (problem(400, "FORMAT_ERROR"), 1, ("refused", "FORMAT_ERROR")),
        (problem(500), 3, ("unanswered", "SERVER_ERROR")),
        (problem(502, "SSL_ERROR"), 3, ("unanswered", "SSL_ERROR")),
        (problem(504, "TIMEOUT_ERROR"), 3, ("unanswered", "TIMEOUT_ERROR")),
        (Response(503, headers={}, content=b"<html>"), 3, ("unanswered", "HTTP_503")),
        (Response(418, headers={}, content=b""), 1, ("unanswered", "HTTP_418")),
        (NetworkFailure("connect"), 3, ("unanswered", "NETWORK")),
        (NetworkFailure("broken"), 3, ("unanswered", "NETWORK")),
        (NetworkFailure("deadline"), 3, ("unanswered", "DEADLINE")),
        (NetworkFailure("oversized"), 1, ("unanswered", "CONTRACT")),
        (
            Response(200, headers={"content-type": "application/json"}, content=b"{}"),
            2,
            ("unanswered", "CONTRACT"),
        ),
    ],
)
def test_what_never_gets_better_is_given_up_after_so_many_requests(asking, reply, sent_count, state):
    sender = FakeSender(always(reply))

    done = asking(checks(1), sender)

    assert len(sender.said) == sent_count
    assert done.states() == {state: 1}
    assert done.answers["attempts"].to_list() == [sent_count]


@pytest.mark.parametrize(
    "reply",
    [problem(500), problem(504), NetworkFailure("broken"), Response(200, headers={}, content=b"<form>")],
)
def test_what_gets_better_is_answered(asking, reply):
    done = asking(checks(4), FakeSender(always(reply, None)))

    assert done.states() == {("answered", "MTCH"): 4}
    assert set(done.answers["attempts"]) == {2}


def test_attempts_max_is_the_limit_of_one_run(asking):
    sender = FakeSender(always(problem(500)))

    asking(checks(2), sender, attempts_max=5)

    assert len(sender.said) == 10


# Tokens


def test_a_refused_token_is_renewed_once_for_all_and_every_row_is_answered(asking):
    async def reply(said):
        await anyio.sleep(0.002)
        return problem(401, "CLIENT_INVALID") if said.token.value == "first" else good(said.request)

    sender = FakeSender(reply, has_tokens=True)

    done = asking(checks(30), sender, in_flight_max=10)

    assert sender.renewed_count == 1
    assert done.states() == {("answered", "MTCH"): 30}
    assert len(sender.said) <= 40


def test_a_second_401_ends_the_run_and_no_new_row_is_taken_up(asking):
    sender = FakeSender(always(problem(401, "CLIENT_INVALID")), has_tokens=True)

    with pytest.raises(CredentialsError):
        asking(checks(100), sender, in_flight_max=4)

    assert len({said.name for said in sender.said}) <= 4
    assert len(sender.said) <= 8


def test_a_401_under_mutual_tls_ends_the_run_at_once(asking):
    sender = FakeSender(always(problem(401, "CLIENT_INVALID")))

    with pytest.raises(CredentialsError):
        asking(checks(100), sender, in_flight_max=2)

    assert len(sender.said) <= 2


def test_one_refusal_of_the_client_stops_the_other_workers_too(asking):
    async def reply(said):
        return problem(403, "FORBIDDEN") if said.name == "Payee 3" else good(said.request)

    sender = FakeSender(reply)

    with pytest.raises(CredentialsError):
        asking(checks(100), sender, in_flight_max=3)

    assert len(sender.said) < 10


def test_answers_before_the_end_of_a_run_are_kept(asking):
    async def reply(said):
        return good(said.request) if said.name in {"Payee 1", "Payee 2"} else problem(403, "FORBIDDEN")

    with pytest.raises(CredentialsError):
        asking(checks(10), FakeSender(reply), in_flight_max=1)
    sender = FakeSender(always(None))

    asking(checks(10), sender)

    assert {said.name for said in sender.said} == {f"Payee {n}" for n in range(3, 11)}


# What a server says of a problem


def detailed(status, detail):
    return Response(status, content=json.dumps({"code": "FORBIDDEN", "detail": detail}).encode())


def test_the_sentence_that_ends_a_run_says_what_the_server_says_and_names_nobody(asking):
    sender = FakeSender(always(detailed(403, "Payee 1 at 00112200000001: rule 7 of the firewall")))

    with pytest.raises(CredentialsError, match="rule 7 of the firewall") as caught:
        asking(checks(1), sender)

    assert "Payee" not in str(caught.value)
    assert "00000001" not in str(caught.value)


def test_what_a_server_says_of_a_problem_is_logged_once(asking):
    sender = FakeSender(always(detailed(400, "accountType: not known\x1b[2J")))

    with capture_logs() as lines:
        asking(checks(5), sender)

    [line] = [line for line in lines if line["event"] == "the server reports a problem"]
    assert (line["status"], line["code"]) == (400, "FORBIDDEN")
    assert line["detail"] == "accountType: not known\\x1b[2J"


# A server that breaks the protocol


def misdirected(request):
    answer = good(request)
    answer.headers["x-fapi-interaction-id"] = str(UUID(int=0, version=4))
    return answer


def test_the_third_misdirected_answer_ends_the_run(asking):
    async def reply(said):
        return misdirected(said.request)

    sender = FakeSender(reply)

    with pytest.raises(ProtocolError, match="correlation id"):
        asking(checks(50), sender, in_flight_max=1)

    assert len(sender.said) == sender.dropped_count == 3


def test_one_misdirected_answer_costs_its_connection_and_one_more_request(asking):
    async def reply(said):
        is_first = said.name == "Payee 1" and said.nth == 1
        return misdirected(said.request) if is_first else good(said.request)

    sender = FakeSender(reply)

    done = asking(checks(5), sender)

    assert sender.dropped_count == 1
    assert len(sender.said) == 6
    assert done.states() == {("answered", "MTCH"): 5}


def test_twenty_breaches_in_a_row_end_the_run(asking):
    sender = FakeSender(always(Response(200, headers={"content-type": "text/html"}, content=b"<form>")))

    with pytest.raises(ProtocolError, match="application/json"):
        asking(checks(100), sender, in_flight_max=1)

    assert len(sender.said) == BREACHES_IN_A_ROW_MAX == 20


def test_breaches_with_good_answers_between_them_end_nothing(asking):
    async def reply(said):
        is_odd = int(said.name.split()[1]) % 2
        return Response(200, headers={}, content=b"?") if is_odd else good(said.request)

    done = asking(checks(60), FakeSender(reply), in_flight_max=1)

    assert done.states() == {("unanswered", "CONTRACT"): 30, ("answered", "MTCH"): 30}


def test_a_server_that_refuses_everything_ends_the_run_and_its_last_row_is_asked_again(asking):
    refusing = FakeSender(always(problem(400, "FORMAT_ERROR")))

    with pytest.raises(ProtocolError, match="21 questions in a row"):
        asking(checks(100), refusing, in_flight_max=1)

    assert len(refusing.said) == REFUSALS_IN_A_ROW_MAX + 1 == 21
    sender = FakeSender(always(None))
    done = asking(checks(100), sender)
    assert done.states() == {("refused", "FORMAT_ERROR"): 20, ("answered", "MTCH"): 80}
    assert "Payee 21" in {said.name for said in sender.said}


@pytest.mark.parametrize("between", [None, problem(500), NetworkFailure("broken")])
def test_refusals_with_another_reply_between_them_end_nothing(asking, between):
    async def reply(said):
        number = int(said.name.split()[1])
        if number % (REFUSALS_IN_A_ROW_MAX + 1):
            return problem(400, "FORMAT_ERROR")
        return good(said.request) if between is None or said.nth > 1 else between

    done = asking(checks(63), FakeSender(reply), in_flight_max=1)

    assert done.states() == {("refused", "FORMAT_ERROR"): 60, ("answered", "MTCH"): 3}


def test_a_refused_clock_ends_the_run_tells_both_times_and_refuses_no_row(asking):
    stamped = problem(400, "TIMESTAMP_INVALID", **{"x-response-timestamp": "2030-01-01T12:10:00.000Z"})
    sender = FakeSender(always(stamped))

    with pytest.raises(ConfigurationError) as ended:
        asking(checks(50), sender, in_flight_max=1)

    assert len(sender.said) == 1
    assert "2030-01-01T12:00:00.000Z" in str(ended.value)
    assert "2030-01-01T12:10:00.000Z" in str(ended.value)
    assert asking(checks(50), FakeSender(always(None))).states() == {("answered", "MTCH"): 50}


# A server that knows its clients by their certificate


def ibans(how_many, api="vop_standard"):
    numbers = [f"DE{n:02d}370400440084210077" for n in range(1, how_many + 1)]
    return checks(how_many, api=api).with_columns(
        account=pl.Series(numbers), responder_bic=pl.lit("COBADEFFXXX")
    )


def knowing(said):
    """What a server says to whom it knows."""
    is_empty = said.request.read() == b"{}"
    return problem(400, "FORMAT_ERROR") if is_empty else good(said.request, {"partyNameMatch": "NMTC"})


def test_a_server_that_does_not_know_us_is_told_of_no_payee(asking):
    sender = FakeSender(always(problem(401, "CLIENT_INVALID")))

    with pytest.raises(CredentialsError, match="PSDFR-ACPR-99999"):
        asking(ibans(30), {ApiName.VOP_STANDARD: sender}, in_flight_max=8)

    assert [said.request.read() for said in sender.said] == [b"{}"]


@pytest.mark.parametrize(
    "odd", [None, problem(500), Response(200, headers={}, content=b"{}"), NetworkFailure("broken")]
)
def test_whatever_else_a_server_says_to_an_introduction_the_rows_go_on(asking, odd):
    async def reply(said):
        return odd if odd is not None and said.request.read() == b"{}" else knowing(said)

    sender = FakeSender(reply)

    done = asking(ibans(30), {ApiName.VOP_STANDARD: sender}, in_flight_max=8)

    assert done.states() == {("answered", "NMTC"): 30}
    assert sender.said[0].request.read() == b"{}"
    assert sum(said.request.read() == b"{}" for said in sender.said) == 1
    assert done.tally.requests == {"vop_standard": 30}


def test_an_introduction_takes_a_unit_of_the_day_but_never_its_last(asking, capped):
    async def reply(said):
        return knowing(said)

    quota, sender = capped(3), FakeSender(reply)
    first = asking(ibans(5), {ApiName.VOP_STANDARD: sender}, quota=quota, in_flight_max=1)
    assert [said.request.read() == b"{}" for said in sender.said] == [True, False, False]
    assert quota.used() == 3
    assert first.states() == {("answered", "NMTC"): 2, ("deferred", "DAILY_CAP"): 3}

    only, sender = capped(4), FakeSender(reply)
    asking(ibans(5), {ApiName.VOP_STANDARD: sender}, quota=only, in_flight_max=1)

    assert [said.request.read() == b"{}" for said in sender.said] == [False]


def test_a_server_is_not_bothered_where_nothing_is_left_to_ask_or_a_token_told_it(asking):
    async def reply(said):
        return knowing(said)

    asking(ibans(3), {ApiName.VOP_STANDARD: FakeSender(reply)})
    again, none, gateway = FakeSender(reply), FakeSender(reply), FakeSender(reply)

    asking(ibans(3), {ApiName.VOP_STANDARD: again})
    asking(ibans(9), {ApiName.VOP_STANDARD: none}, limit=0)
    asking(ibans(3, api="vop_gateway"), {ApiName.VOP_GATEWAY: gateway})

    assert not again.said
    assert not none.said
    assert b"{}" not in {said.request.read() for said in gateway.said}


# Pauses that the server asks for


def test_nothing_is_sent_while_the_server_asks_for_a_pause(asking):
    started = time.monotonic()

    def now():  # 0.4 s before the moment that the server names
        return START + timedelta(seconds=0.6 + time.monotonic() - started)

    busy = problem(429, "TOO_MANY", **{"retry-after": "Tue, 01 Jan 2030 12:00:01 GMT"})

    async def reply(said):
        return busy if said.name == "Payee 2" and said.nth == 1 else good(said.request)

    sender = FakeSender(reply)

    done = asking(checks(12), sender, in_flight_max=2, now=now)

    assert done.states() == {("answered", "MTCH"): 12}
    early = [said.name for said in sender.said if said.time - started < 0.4]
    assert set(early) <= {"Payee 1", "Payee 2", "Payee 3"}, "those that were under way"
    assert len(early) >= 2


def test_a_request_that_waits_for_its_slot_waits_for_a_pause_as_well(asking):
    started = time.monotonic()

    def now():
        return START + timedelta(seconds=0.6 + time.monotonic() - started)

    async def reply(said):
        is_first = said.name == "Payee 1" and said.nth == 1
        busy = problem(429, "TOO_MANY", **{"retry-after": "Tue, 01 Jan 2030 12:00:02 GMT"})
        return busy if is_first else good(said.request)

    sender = FakeSender(reply)

    asking(checks(4), sender, in_flight_max=4, rate_per_s=4, now=now)

    # Two leave before the answer is there; the others wait for their slots, a quarter of a second each.
    assert {said.name for said in sender.said if said.time - started < 1.4} <= {"Payee 1", "Payee 2"}


def test_a_pause_longer_than_a_minute_is_left_to_a_later_run(asking):
    sender = FakeSender(always(problem(503, **{"retry-after": "120"})))

    done = asking(checks(20), sender, in_flight_max=1)

    assert len(sender.said) == 1
    assert done.states() == {("deferred", "SERVER_PAUSE"): 20}


def test_a_pause_on_the_last_attempt_of_a_row_holds_for_the_other_rows(asking):
    sender = FakeSender(always(problem(503, **{"retry-after": "120"})))

    asking(checks(20), sender, in_flight_max=1, attempts_max=1)

    assert len(sender.said) == 1


# Limits


def test_the_daily_cap_is_one_unit_per_request_and_the_rest_is_deferred(asking, capped):
    sender = FakeSender(always(problem(500), None))
    quota = capped(7)

    done = asking(checks(10), sender, quota=quota, in_flight_max=1)

    assert len(sender.said) == quota.used() == 7
    assert done.answers.height == 10
    assert done.states() == {("answered", "MTCH"): 3, ("deferred", "DAILY_CAP"): 7}


def test_known_answers_cost_no_unit(asking, capped):
    quota = capped(5)
    asking(checks(4), FakeSender(always(None)), quota=quota)

    done = asking(checks(5), FakeSender(always(None)), quota=quota)

    assert done.states() == {("answered", "MTCH"): 5}
    assert quota.used() == 5


def test_a_server_whose_day_is_over_closes_the_cap_for_every_later_run(asking, capped):
    quota = capped(50)
    sender = FakeSender(always(problem(429, "TOO_MANY", **{"retry-after": "43200"})))

    done = asking(checks(5), sender, quota=quota, in_flight_max=1)

    assert len(sender.said) == 1
    assert done.states() == {("deferred", "DAILY_CAP"): 5}
    assert not quota.reserve()


def test_limit_counts_questions_not_requests_and_not_known_answers(asking):
    asking(checks(3), FakeSender(always(None)))
    sender = FakeSender(always(problem(500), None))

    done = asking(checks(10), sender, limit=4, in_flight_max=1)

    assert len(sender.said) == 8
    assert done.states() == {("answered", "MTCH"): 7, ("deferred", "LIMIT"): 3}


@pytest.mark.parametrize("first", ["cop", "vop_gateway"])
def test_limit_and_order_do_not_matter_to_what_is_known_of_two_apis(asking, first):
    """A question is known by its own API, whichever API comes last in the file."""

    async def matched(said):
        body = MATCHED if "data" in json.loads(said.request.read()) else {"partyNameMatch": "MTCH"}
        return good(said.request, body)

    sender = FakeSender(matched)
    senders = {ApiName.COP: sender, ApiName.VOP_GATEWAY: sender}
    second = {"cop": "vop_gateway", "vop_gateway": "cop"}[first]
    iban = pl.concat_str(pl.lit("GB00"), "account")
    account = pl.when(pl.col("api") == "cop").then("account").otherwise(iban)
    halves = [
        half.with_columns(account.alias("account"))
        for half in (checks(3, api=first), checks(3, first=4, api=second))
    ]
    asking(pl.concat(halves), senders, limit=3, in_flight_max=1)

    done = asking(pl.concat(reversed(halves)), senders, limit=3, in_flight_max=1)

    assert done.states() == {("answered", "MTCH"): 6}
    assert len(sender.said) == len({said.name for said in sender.said}) == 6


def test_limit_zero_asks_nothing(asking):
    sender = FakeSender(always(None))

    done = asking(checks(3), sender, limit=0)

    assert not sender.said
    assert done.states() == {("deferred", "LIMIT"): 3}


def test_checks_are_taken_up_in_their_order(asking):
    sender = FakeSender(always(None))

    asking(checks(9).reverse(), sender, in_flight_max=1)

    assert [said.name for said in sender.said] == [f"Payee {n}" for n in range(9, 0, -1)]


# Ends


def test_stop_awaits_what_is_in_flight_and_takes_up_nothing_new(asking):
    stop = anyio.Event()

    async def reply(said):
        if said.name == "Payee 5":
            stop.set()
        if stop.is_set():
            await anyio.sleep(0.05)
        return good(said.request)

    sender = FakeSender(reply)
    done = asking(checks(100), sender, in_flight_max=3, stop=stop)
    stopped_after = len(sender.said)
    assert 5 <= stopped_after <= 5 + 2
    assert done.answers.height == stopped_after, "every request that left has its answer"
    sender = FakeSender(always(None))

    asking(checks(100), sender)

    assert len(sender.said) == 100 - stopped_after


def test_a_stop_costs_no_unit_of_the_cap_without_a_request(asking, capped):
    stop = anyio.Event()
    quota = capped(50)

    async def reply(said):
        stop.set()
        return good(said.request)

    sender = FakeSender(reply)

    asking(checks(20), sender, quota=quota, in_flight_max=8, rate_per_s=1, stop=stop)

    assert quota.used() == len(sender.said) == 1


def test_stop_does_not_wait_for_a_pause_or_a_retry(asking):
    stop = anyio.Event()

    async def reply(_said):
        stop.set()
        return problem(503, **{"retry-after": "50"})

    started = time.monotonic()
    done = asking(checks(3), FakeSender(reply), in_flight_max=1, stop=stop)

    assert time.monotonic() - started < 5
    assert done.answers.height == 0


@contextmanager
def full_disk():
    """No file grows beyond 4 KiB: the kernel refuses the write in the same place as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_an_answer_that_did_not_reach_the_disk_ends_the_run_and_does_not_count(asking):
    with full_disk() as fill:

        async def reply(said):
            if said.name == "Payee 3":
                fill()
            return good(said.request)

        sender = FakeSender(reply)
        with pytest.raises(DiskError, match="run the same command again"):
            asking(checks(9), sender, in_flight_max=1)
    assert [said.name for said in sender.said] == ["Payee 1", "Payee 2", "Payee 3"]
    sender = FakeSender(always(None))

    done = asking(checks(9), sender)

    assert {said.name for said in sender.said} == {f"Payee {n}" for n in range(3, 10)}
    assert done.answers.filter(pl.col("check") == 3)["attempts"].to_list() == [2]


def test_no_request_leaves_whose_intent_is_not_on_disk(asking):
    with full_disk() as fill:

        class FillingSender(FakeSender):
            async def token(self):
                fill()

        sender = FillingSender(always(None))
        with pytest.raises(DiskError):
            asking(checks(5), sender)

    assert not sender.said


# Outages: of the whole server, and of one bank behind it


def down_from(first, last, bad):
    """Requests number `first` to `last`, counted from 1, get the bad reply; all others a good one."""
    numbers = count(1)

    async def reply(said):
        return bad if first <= next(numbers) <= last else good(said.request)

    return reply


def spread(how_many):
    """Questions of which no two are for one bank, so that only the server as a whole can be down."""
    return checks(how_many).with_columns(account=pl.format("{}00000000", (100_000 + pl.col("check"))))


@pytest.mark.parametrize("bad", [problem(500), problem(503), NetworkFailure("connect")])
def test_total_outage_costs_hardly_a_request_and_ends_unanswered(asking, bad):
    sender = FakeSender(always(bad))

    done = asking(checks(500), sender, in_flight_max=16, probe_wait_s=0.02)

    assert len(sender.said) <= SERVER.failures_max + 16 + SERVER.probes_max
    assert {state for state, _ in done.states()} == {"unanswered"}
    assert done.answers.height == 500


@pytest.mark.parametrize("in_flight_max", [1, 4, 16])
@pytest.mark.parametrize("bad", [problem(500), problem(504, "TIMEOUT_ERROR"), NetworkFailure("broken")])
def test_server_that_recovers_within_the_run_answers_every_row(asking, bad, in_flight_max):
    until_last_probe = SERVER.failures_max + SERVER.probes_max - 1
    sender = FakeSender(down_from(30, 30 + until_last_probe - 1, bad))

    done = asking(spread(100), sender, in_flight_max=in_flight_max, probe_wait_s=0.01)

    assert done.states() == {("answered", "MTCH"): 100}
    assert len(sender.said) == 100 + until_last_probe


@pytest.mark.parametrize("row_count", [7, 12, 30])
def test_a_file_that_is_all_in_flight_when_the_outage_begins_is_answered_as_well(asking, row_count):
    sender = FakeSender(down_from(1, SERVER.failures_max + 2, problem(503)))

    done = asking(spread(row_count), sender, in_flight_max=30, probe_wait_s=0.01)

    assert done.states() == {("answered", "MTCH"): row_count}


def test_an_outage_is_charged_to_no_row_even_where_rows_have_one_attempt(asking):
    sender = FakeSender(down_from(30, 30 + SERVER.failures_max + 2, problem(503)))

    done = asking(spread(100), sender, attempts_max=1, probe_wait_s=0.01)

    assert done.states() == {("answered", "MTCH"): 100}


def test_a_row_that_always_fails_ends_after_its_attempts_among_rows_that_do_not(asking):
    async def reply(said):
        return problem(500) if said.name == "Payee 3" else good(said.request)

    sender = FakeSender(reply)

    done = asking(checks(60), sender, in_flight_max=1)

    assert done.states() == {("unanswered", "SERVER_ERROR"): 1, ("answered", "MTCH"): 59}
    assert done.answers.filter(pl.col("check") == 3)["attempts"].to_list() == [3]


def test_a_server_that_comes_and_goes_for_ever_does_not_keep_a_run_for_ever(asking):
    cycle = SERVER.failures_max + 1
    numbers = count(1)

    async def reply(said):
        return problem(500) if next(numbers) % cycle else good(said.request)

    sender = FakeSender(reply)

    done = asking(spread(300), sender, probe_wait_s=0.001)

    assert done.answers.height == 300
    # Each row once, a tenth of them again, those that are free, and what outages are forgiven.
    assert len(sender.said) <= 300 * 1.1 + RETRIES_FREE + 4 + OUTAGES_MAX * (cycle + SERVER.probes_max)


def test_silent_bank_holds_up_nobody_else_and_costs_few_requests(asking):
    async def reply(said):
        account = json.loads(said.request.read())["data"]["identification"]
        return problem(504, "TIMEOUT_ERROR") if account.startswith("000000") else good(said.request)

    silent = checks(200)  # sort code 000000
    others = checks(200, first=201).with_columns(account=pl.format("1{}", pl.col("account").str.slice(1)))
    sender = FakeSender(reply)

    done = asking(pl.concat([silent, others]), sender, probe_wait_s=0.02)

    assert done.states() == {("unanswered", "TIMEOUT_ERROR"): 200, ("answered", "MTCH"): 200}
    assert len(sender.said) <= 200 + 4 * RESPONDER.failures_max


def test_bank_that_lets_us_wait_leaves_half_of_the_places_to_others(asking):
    others_count = 30
    all_others_answered = anyio.Event()
    answered = []

    async def reply(said):
        account = json.loads(said.request.read())["data"]["identification"]
        if account.startswith("000000"):
            await all_others_answered.wait()  # for ever, if it could hold every place
        else:
            answered.append(account)
            if len(answered) == others_count:
                all_others_answered.set()
        return good(said.request)

    slow = checks(20)  # sort code 000000, and first in the file
    others = checks(others_count, first=21).with_columns(
        account=pl.format("1{}", pl.col("account").str.slice(1))
    )

    done = asking(pl.concat([slow, others]), FakeSender(reply), in_flight_max=18)

    assert done.states() == {("answered", "MTCH"): 50}


def test_bank_that_answers_in_time_may_hold_every_place(asking):
    release = anyio.Event()
    sender = None

    async def reply(said):
        if said.name != "Payee 1":  # whose answer is in time
            if sender.in_flight_count == 18:
                release.set()
            await release.wait()  # for ever, if so many cannot be in flight
        return good(said.request)

    sender = FakeSender(reply)

    done = asking(checks(40), sender, in_flight_max=18)

    assert done.states() == {("answered", "MTCH"): 40}


def test_under_a_daily_cap_nobody_goes_before_the_first(asking, capped):
    sender = FakeSender(always(None))

    asking(checks(20), sender, in_flight_max=18, quota=capped(12))

    assert {said.name for said in sender.said} == {f"Payee {number}" for number in range(1, 13)}


def test_bank_that_comes_back_within_the_run_answers_its_postponed_questions(asking):
    seen = count(1)

    async def reply(said):
        account = json.loads(said.request.read())["data"]["identification"]
        if account.startswith("000000") and next(seen) <= RESPONDER.failures_max + 4:
            return problem(504, "TIMEOUT_ERROR")
        return good(said.request)

    sender = FakeSender(reply)

    done = asking(checks(100), sender, probe_wait_s=0.05)

    assert done.states() == {("answered", "MTCH"): 100}


def test_server_that_fails_often_gets_a_tenth_more_requests_and_not_three_times_as_many(asking):
    numbers = count(1)

    async def reply(said):
        return problem(500) if next(numbers) % 2 else good(said.request)

    sender = FakeSender(reply)

    done = asking(checks(1000), sender, attempts_max=10)

    assert len(sender.said) <= 1000 * 1.1 + 20 + 4 + 1
    assert done.answers.height == 1000


def test_stop_during_an_outage_ends_the_wait_for_the_server(asking):
    stop = anyio.Event()
    numbers = count(1)

    async def reply(_said):
        if next(numbers) == SERVER.failures_max:
            stop.set()
        return problem(500)

    started = time.monotonic()
    asking(checks(100), FakeSender(reply), stop=stop)
    assert time.monotonic() - started < 5.0
