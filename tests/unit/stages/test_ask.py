"""ask, with a sender that says what a test wants; the ledger, the quota and the pace are the real ones."""

import json
import resource
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count, pairwise
from uuid import UUID

import anyio
import polars as pl
import pytest
from httpx import Response
from refusals import refused
from senders import MATCHED, FakeSender, always, checks, good, problem
from structlog.testing import capture_logs
from virtual_time import VIRTUAL

from pipeline.apis import cop, vop
from pipeline.errors import ConfigurationError, CredentialsError, DiskError, ProtocolError
from pipeline.frames import ANSWERS, slim
from pipeline.stages.ask import ask
from pipeline.stages.ask.admission import ABOUT_WHAT_IT_SAYS_MAX, ALIKE_MAX, TURNED_AWAY_IN_A_ROW_MAX
from pipeline.stages.ask.concurrency import ConcurrencyLimit
from pipeline.stages.ask.gate import PAUSE_FIRST_S, PAUSES_MAX, RETRIES_FREE
from pipeline.stages.ask.judge import BREACHES_MIN, REFUSALS_IN_A_ROW_LATER_MAX, REFUSALS_IN_A_ROW_MAX
from pipeline.stages.ask.remaining import answers_so_far, count_given_up, remaining_questions, within_limit
from pipeline.stages.ask.values import ApiChannel, AskingContext, AskingTally
from pipeline.stages.ask.worker import PAUSES_OF_ONE_MAX
from pipeline.stores.leased_shares import WholeShare
from pipeline.stores.local_source import LocalSource
from pipeline.stores.sqlite.ledger import SqliteLedger
from pipeline.stores.sqlite.quota import QuotaInThreads, SqliteQuota
from pipeline.stores.values import RunIdentity, ServerAccount
from pipeline.transport.breaker import OUTAGES_MAX, RESPONDER, SERVER
from pipeline.transport.rate_limiter import Pace
from pipeline.transport.retry import FRESH_CONNECTION, NetworkFailure
from pipeline.wording import Sentence
from schemas.outcomes import ApiName, Outcome
from schemas.strict import timestamp

APIS = {api.name: api for api in (cop.API, vop.GATEWAY, vop.standard("TREZFRP0XXX"))}
START = datetime(2030, 1, 1, 12, tzinfo=UTC)
TEST_MAX_S = 600


@dataclass
class Asking:
    """A run of ask that has ended."""

    answers: pl.DataFrame
    tally: AskingTally
    given_up_count: int
    so_far: pl.DataFrame
    """As it would be told of the same moment, had the run ended by an error."""

    def states(self):
        return dict(Counter(self.answers.select("state", "code").iter_rows()))


@pytest.fixture
def asking(tmp_path):
    """`asking(checks, sender)`: open the ledger, ask, close the ledger."""
    ids = (str(UUID(int=number, version=4)) for number in count(1))
    runs = count()

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
        retry_unanswered=False,
        share=None,
    ):
        tally = AskingTally()
        began = START + timedelta(minutes=next(runs))

        async def main():
            world = AskingContext(
                now or (lambda: began),
                VIRTUAL.monotonic,
                lambda: 0.0,
                lambda: next(ids),
                stop or anyio.Event(),
                tally,
            )
            senders = sender if isinstance(sender, dict) else {ApiName.COP: sender}
            quotas = quota if isinstance(quota, dict) else dict.fromkeys(senders, quota)
            channels = {
                name: ApiChannel(
                    APIS[name],
                    one,
                    share or WholeShare(ServerAccount("s", name, rate_per_s, in_flight_max, 1.0, 5.0)),
                    Pace(rate_per_s, clock=VIRTUAL.monotonic),
                    ConcurrencyLimit(in_flight_max, rate_per_s, VIRTUAL.monotonic),
                    None if quotas.get(name) is None else QuotaInThreads(quotas[name]),
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
                left = await remaining_questions(questions, ledger, tally, retry_unanswered=retry_unanswered)
                todo, deferred = within_limit(left.todo, questions.height if limit is None else limit, tally)
                source = LocalSource(todo, ledger.question_key)
                asked = await ask(source, channels, ledger, world, has_answered=left.has_answered)
                return slim(left.answers, deferred, asked)

        identity = RunIdentity("input", "profile", "sandbox", "1")
        with SqliteLedger.open(
            tmp_path / "run" / "ledger.db", identity, now="2030-01-01T12:00:00.000Z"
        ) as ledger:
            try:
                answers = VIRTUAL.run(main)
            finally:
                ended = (began + timedelta(seconds=30)).isoformat()
                open_count = questions.height - ledger.counts.answer_count
                ledger.finish(
                    ended,
                    question_count=questions.height,
                    unanswered_count=max(open_count, 0),
                    outcome_sha256="f",
                )
            counted, ended_here = (
                VIRTUAL.run(count_given_up, questions, ledger),
                VIRTUAL.run(answers_so_far, questions, ledger),
            )
            return Asking(answers, tally, counted, ended_here)

    return run


@pytest.fixture
def capped(tmp_path):
    with_quota = []

    def quota(cap):
        made = SqliteQuota(tmp_path / "quota.db", scope="s", cap=cap, window="utc_day", clock=lambda: START)
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
        (NetworkFailure("connect"), 3, ("unanswered", "NETWORK")),
        (NetworkFailure("broken"), 3, ("unanswered", "NETWORK")),
        (NetworkFailure("deadline"), 3, ("unanswered", "DEADLINE")),
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


def test_a_server_that_takes_no_token_is_told_of_five_payees(asking):
    sender = FakeSender(always(problem(401, "CLIENT_INVALID")), has_tokens=True)

    with pytest.raises(CredentialsError):
        asking(checks(100), sender, in_flight_max=4)

    assert len({said.name for said in sender.said}) in {ALIKE_MAX, ALIKE_MAX + 1}, "one for the token"
    assert len(sender.said) <= ALIKE_MAX + 2
    assert sender.in_flight_most == 1


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (problem(401, "CLIENT_INVALID"), CredentialsError),
        (problem(403, "FORBIDDEN"), CredentialsError),
        (problem(404, "NOWHERE"), ConfigurationError),
        (problem(405), ConfigurationError),
        (Response(307, headers={"location": "https://elsewhere.example"}, content=b""), ConfigurationError),
    ],
)
def test_a_server_that_lets_nobody_in_is_told_of_five_payees_one_at_a_time(asking, reply, error):
    sender = FakeSender(always(reply))

    with pytest.raises(error, match=str(reply.status_code)):
        asking(checks(100), sender, in_flight_max=8)

    assert len(sender.said) == ALIKE_MAX == 5
    assert sender.in_flight_most == 1


@pytest.mark.parametrize("how_many", [1, 4])
def test_a_server_that_lets_in_none_of_a_few_questions_ends_the_run(asking, how_many):
    sender = FakeSender(always(problem(403)))

    with pytest.raises(CredentialsError):
        asking(checks(how_many), sender)

    assert len(sender.said) == how_many


def test_questions_that_no_token_helps_hold_up_no_other(asking):
    async def reply(said):
        return problem(401) if int(said.name.split()[1]) % 20 == 0 else good(said.request)

    done = asking(checks(200), FakeSender(reply, has_tokens=True))

    assert done.states() == {("unanswered", "HTTP_401"): 10, ("answered", "MTCH"): 190}


def test_a_gateway_that_refuses_one_token_in_twenty_by_chance_answers_every_row(asking):
    numbers = count(1)

    async def reply(said):
        return problem(401) if next(numbers) % 20 == 0 else good(said.request)

    sender = FakeSender(reply, has_tokens=True)

    done = asking(checks(200), sender, in_flight_max=4)

    assert done.states() == {("answered", "MTCH"): 200}
    assert len(sender.said) == 210
    assert sender.renewed_count == 1


@pytest.mark.parametrize("status", [401, 403, 404, 405, 301, 302, 307, 308])
def test_one_question_that_is_turned_away_holds_up_no_other(asking, status):
    async def reply(said):
        return problem(status, "FILTERED") if said.name == "Payee 1" else good(said.request)

    sender = FakeSender(reply)

    done = asking(checks(60), sender)

    assert done.states() == {("unanswered", f"HTTP_{status}"): 1, ("answered", "MTCH"): 59}
    assert len(sender.said) == 60
    assert sender.in_flight_most == 4


def test_four_that_are_turned_away_are_not_all_and_five_that_differ_neither(asking):
    async def reply(said):
        number = int(said.name.split()[1])
        return problem(403 if number % 3 else 404) if number <= 7 else good(said.request)

    done = asking(checks(40), FakeSender(reply))

    assert done.states() == {
        ("unanswered", "HTTP_403"): 5, ("unanswered", "HTTP_404"): 2, ("answered", "MTCH"): 33
    }  # fmt: skip


def test_a_server_that_turns_everybody_away_now_so_now_so_is_left_alone_too(asking):
    async def reply(said):
        return problem(403 if int(said.name.split()[1]) % 2 else 404)

    sender = FakeSender(reply)

    with pytest.raises((CredentialsError, ConfigurationError)):
        asking(checks(100), sender)

    assert len(sender.said) == TURNED_AWAY_IN_A_ROW_MAX == 20


def test_what_is_turned_away_is_asked_last_and_given_up_after_three_runs_unless_somebody_wants_it(asking):
    async def reply(said):
        return problem(403) if said.name in {"Payee 1", "Payee 2"} else good(said.request)

    senders = [FakeSender(reply) for _ in range(5)]
    first = asking(checks(20), senders[0], limit=10)
    second = asking(checks(20), senders[1])
    third = asking(checks(20), senders[2])
    fourth = asking(checks(20), senders[3])
    fifth = asking(checks(20), senders[4], retry_unanswered=True)

    assert [done.given_up_count for done in (first, second, third, fourth, fifth)] == [0, 0, 2, 2, 2]
    assert [said.name for said in senders[1].said][-2:] == ["Payee 1", "Payee 2"]
    assert [len(sender.said) for sender in senders] == [10, 12, 2, 0, 2]
    assert fourth.states() == {("unanswered", "HTTP_403"): 2, ("answered", "MTCH"): 18}
    last = asking(checks(20), FakeSender(always(None)), retry_unanswered=True)
    assert last.states() == {("answered", "MTCH"): 20}


def test_questions_that_no_server_answered_are_never_given_up_for_our_credentials(asking):
    for _ in range(4):
        sender = FakeSender(always(problem(403)))
        with pytest.raises(CredentialsError):
            asking(checks(7), sender)
        assert len(sender.said) == 5

    assert asking(checks(7), FakeSender(always(None))).states() == {("answered", "MTCH"): 7}


def test_one_in_twenty_that_is_always_turned_away_is_given_up_in_three_runs(asking):
    async def reply(said):
        return problem(404) if int(said.name.split()[1]) % 20 == 0 else good(said.request)

    sent = []
    for _ in range(3):
        sender = FakeSender(reply)
        done = asking(checks(400), sender, in_flight_max=16)
        sent.append(len(sender.said))

    assert sent == [400, 20, 20]
    assert done.given_up_count == 20
    assert done.states() == {("unanswered", "HTTP_404"): 20, ("answered", "MTCH"): 380}


def test_credentials_that_are_revoked_in_the_middle_cost_few_requests_and_the_rest_is_left(asking):
    numbers = count(1)

    async def reply(said):
        return good(said.request) if next(numbers) <= 50 else problem(403)

    sender = FakeSender(reply)
    done = asking(checks(1000), sender, in_flight_max=8)

    assert len(sender.said) <= 50 + TURNED_AWAY_IN_A_ROW_MAX + 8 + ALIKE_MAX
    states = done.states()
    assert states["answered", "MTCH"] == 50
    assert states["deferred", "TURNED_AWAY"] == 1000 - len(sender.said)
    assert "403" in str(done.tally.closed["cop"])
    again = FakeSender(always(problem(403)))
    left = asking(checks(1000), again, in_flight_max=8)
    assert len(again.said) == ALIKE_MAX, "the first goes alone in every run"
    assert not {said.name for said in again.said} & {said.name for said in sender.said}
    assert left.given_up_count == 0


@pytest.mark.parametrize("how_many", [1, 30])
def test_an_api_that_lets_nobody_in_does_not_keep_another_from_answering(asking, how_many):
    senders = {
        ApiName.COP: FakeSender(always(None)),
        ApiName.VOP_GATEWAY: FakeSender(always(problem(403))),
    }
    questions = pl.concat([ibans(how_many, "vop_gateway"), checks(200, first=how_many + 1)])

    with pytest.raises(CredentialsError):
        asking(questions, senders)

    assert len(senders[ApiName.COP].said) == 200
    assert len(senders[ApiName.VOP_GATEWAY].said) == min(how_many, ALIKE_MAX)


def test_an_api_that_breaks_the_protocol_does_not_keep_another_from_answering(asking):
    async def nothing(said):
        return good(said.request, {"matched": True})

    senders = {ApiName.COP: FakeSender(always(None)), ApiName.VOP_GATEWAY: FakeSender(nothing)}
    questions = pl.concat([ibans(100, "vop_gateway"), checks(200, first=101)])

    with refused(ProtocolError, "stages.server_broke_protocol", api="vop_gateway"):
        asking(questions, senders)

    assert len(senders[ApiName.COP].said) == 200
    assert len(senders[ApiName.VOP_GATEWAY].said) < 2 * BREACHES_MIN


def test_answers_before_the_end_of_a_run_are_kept(asking):
    async def reply(said):
        return good(said.request) if said.name in {"Payee 1", "Payee 2"} else problem(403, "FORBIDDEN")

    done = asking(checks(10), FakeSender(reply), in_flight_max=1)
    assert done.states() == {
        ("answered", "MTCH"): 2, ("unanswered", "HTTP_403"): 8
    }  # fmt: skip
    sender = FakeSender(always(None))

    asking(checks(10), sender)

    assert {said.name for said in sender.said} == {f"Payee {n}" for n in range(3, 11)}


# What a server says of a problem


def detailed(status, detail):
    reply = problem(status)
    content = json.dumps({"code": "FORBIDDEN", "status": status, "detail": detail}).encode()
    return Response(status, headers=reply.headers, content=content)


def test_the_sentence_that_ends_a_run_says_what_the_server_says_and_names_nobody(asking):
    sender = FakeSender(always(detailed(403, "Payee 1 at 00112200000001: rule 7 of the firewall")))

    with refused(
        CredentialsError, "transport.server_says", detail="*** at ***: rule 7 of the firewall"
    ) as caught:
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


# Refusals that are not the API's own

NGINX_CERTIFICATE = (
    b"<html>\r\n<head><title>400 No required SSL certificate was sent</title></head>\r\n<body>\r\n<center>"
    b"<h1>400 Bad Request</h1></center>\r\n<center>No required SSL certificate was sent</center>\r\n</html>"
)
NGINX_HEADERS = NGINX_CERTIFICATE.replace(
    b"No required SSL certificate was sent", b"Request Header Or Cookie Too Large"
)
WAF = b"<html><title>Request Rejected</title>Your support ID is 1234567890</html>"
OWN = b'{"code":"FORMAT_ERROR","status":400,"detail":"the name is not valid"}'


def page(status, content, content_type="text/html"):
    return Response(status, headers={"content-type": content_type}, content=content)


FOREIGN = [
    page(400, WAF),
    page(400, b""),
    page(400, OWN, "text/plain"),
    page(400, b'{"code":"FORMAT_ERROR"}', "application/json"),
    page(400, b'{"code":"FORMAT_ERROR","status":"400"}', "application/json"),
    page(400, b'{"code":"FORMAT_ERROR","status":422}', "application/json"),
    page(422, OWN, "application/json"),
    page(413, WAF),
    page(415, b'{"message":"no"}', "application/json"),
    page(400, b'{"status":400,"status":400}', "application/problem+json"),
]


@pytest.mark.parametrize("reply", FOREIGN)
def test_a_refusal_in_another_form_than_the_apis_rejects_no_row(asking, reply):
    async def respond(said):
        return reply if said.name == "Payee 7" else good(said.request)

    sender = FakeSender(respond)

    done = asking(checks(60), sender)

    assert done.states() == {("unanswered", f"HTTP_{reply.status_code}"): 1, ("answered", "MTCH"): 59}
    assert len(sender.said) == 60


@pytest.mark.parametrize(
    ("reply", "error", "key"),
    [
        (page(400, NGINX_CERTIFICATE), CredentialsError, "transport.http_certificate_refused"),
        (
            page(400, b"<center>The SSL certificate error</center>"),
            CredentialsError,
            "transport.http_certificate_refused",
        ),
        (page(495, b""), CredentialsError, "transport.http_certificate_refused"),
        (page(496, b""), CredentialsError, "transport.http_certificate_refused"),
        (page(407, b""), CredentialsError, "transport.proxy_wants_credentials"),
        (page(400, NGINX_HEADERS), ProtocolError, "transport.headers_too_large"),
        (page(431, b""), ProtocolError, "transport.headers_too_large"),
        (page(400, WAF), ProtocolError, "transport.means_intermediary_refused"),
        (page(406, b""), ProtocolError, "transport.means_no_json"),
        (page(421, b""), ProtocolError, "transport.means_another_host"),
        (page(451, b""), ProtocolError, "transport.means_blocked"),
        (page(418, b""), ProtocolError, "transport.means_intermediary_refused"),
        (page(204, b""), ProtocolError, "transport.means_intermediary_refused"),
        (page(410, b""), ConfigurationError, "transport.no_api_at_address"),
    ],
)
def test_whatever_turns_everything_away_is_recognised_within_five_requests(asking, reply, error, key):
    sender = FakeSender(always(reply))

    with refused(error, key, status=reply.status_code):
        asking(checks(150), sender, in_flight_max=8)

    assert len(sender.said) == ALIKE_MAX
    assert asking(checks(150), FakeSender(always(None))).states() == {("answered", "MTCH"): 150}


@pytest.mark.parametrize("in_a_row", [30, 99])
def test_rows_of_one_kind_that_a_filter_dislikes_hold_up_no_other(asking, in_a_row):
    async def reply(said):
        return page(400, WAF) if 50 < int(said.name.split()[1]) <= 50 + in_a_row else good(said.request)

    done = asking(checks(200), FakeSender(reply))

    assert done.states() == {("unanswered", "HTTP_400"): in_a_row, ("answered", "MTCH"): 200 - in_a_row}


def test_a_filter_that_begins_to_dislike_everything_ends_the_asking_after_a_hundred(asking):
    async def reply(said):
        return good(said.request) if int(said.name.split()[1]) <= 50 else page(400, WAF)

    sender = FakeSender(reply)

    done = asking(checks(400), sender)

    assert ABOUT_WHAT_IT_SAYS_MAX <= len(sender.said) - 50 <= ABOUT_WHAT_IT_SAYS_MAX + 4
    assert done.states()["deferred", "TURNED_AWAY"] > 200
    assert "firewall" in str(done.tally.closed[ApiName.COP])


def test_a_row_that_always_meets_client_invalid_is_never_rejected(asking):
    async def reply(said):
        return problem(400, "CLIENT_INVALID") if said.name == "Payee 7" else good(said.request)

    for _ in range(2):
        assert asking(checks(40), FakeSender(reply)).states() == {
            ("unanswered", "CLIENT_INVALID"): 1, ("answered", "MTCH"): 39
        }  # fmt: skip
    assert asking(checks(40), FakeSender(reply)).given_up_count == 1


def test_a_server_to_which_every_client_is_invalid_ends_the_run(asking):
    sender = FakeSender(always(problem(400, "CLIENT_INVALID")))

    with refused(CredentialsError, "transport.client_invalid", status=400):
        asking(checks(40), sender)

    assert len(sender.said) == ALIKE_MAX


class TestRefusalsOfOthers:
    OTHER = str(UUID(int=0, version=4))

    def refusal(self, request_id=None):
        headers = {"content-type": "application/json"}
        headers |= {} if request_id is None else {"x-fapi-interaction-id": request_id}
        return Response(400, headers=headers, content=OWN)

    def test_a_refusal_with_the_id_of_another_request_is_asked_again_on_another_connection(self, asking):
        sender = FakeSender(always(self.refusal(self.OTHER), None))

        assert asking(checks(10), sender).states() == {("answered", "MTCH"): 10}
        assert sender.dropped_count == 10

    def test_one_row_that_always_gets_one_is_unanswered(self, asking):
        async def reply(said):
            return self.refusal(self.OTHER) if said.name == "Payee 3" else good(said.request)

        sender = FakeSender(reply)
        assert asking(checks(40), sender).states() == {
            ("unanswered", "CONTRACT"): 1,
            ("answered", "MTCH"): 39,
        }
        assert len(sender.said) == 41

    def test_a_server_that_sends_nothing_else_is_soon_left_alone(self, asking):
        sender = FakeSender(always(self.refusal(self.OTHER)))

        with refused(ProtocolError, "stages.refusals_misdirected"):
            asking(checks(400), sender, in_flight_max=32)

        assert len(sender.said) == TURNED_AWAY_IN_A_ROW_MAX

    def test_one_without_an_id_counts_only_on_a_connection_of_its_own(self, asking):
        async def reply(said):
            return good(said.request) if int(said.name.split()[1]) % 3 else self.refusal()

        sender = FakeSender(reply)
        assert asking(checks(60), sender).states() == {
            ("refused", "FORMAT_ERROR"): 20,
            ("answered", "MTCH"): 40,
        }
        assert len(sender.said) == 80

    def test_one_without_an_id_that_came_for_another_request_rejects_nothing(self, asking):
        async def reply(said):
            return good(said.request) if said.request.extensions[FRESH_CONNECTION] else self.refusal()

        assert asking(checks(30), FakeSender(reply)).states() == {("answered", "MTCH"): 30}

    def test_the_id_twice_in_the_header_is_one_echo(self, asking):
        async def reply(said):
            request_id = said.request.headers["x-fapi-interaction-id"]
            return self.refusal(f"{request_id}, {request_id}")

        assert asking(checks(1), FakeSender(reply)).states() == {("refused", "FORMAT_ERROR"): 1}


# A server that breaks the protocol


def misdirected(request):
    answer = good(request)
    answer.headers["x-fapi-interaction-id"] = str(UUID(int=0, version=4))
    return answer


def test_a_server_that_only_misdirects_its_answers_ends_the_run(asking):
    async def reply(said):
        return misdirected(said.request)

    sender = FakeSender(reply)

    with refused(ProtocolError, "stages.server_broke_protocol", "apis.other_correlation_id"):
        asking(checks(50), sender, in_flight_max=1)

    assert len(sender.said) == sender.dropped_count == BREACHES_MIN


def test_one_in_twenty_answers_that_is_misdirected_ends_nothing_however_many_there_are(asking):
    numbers = count(1)

    async def reply(said):
        return misdirected(said.request) if next(numbers) % 20 == 0 else good(said.request)

    sender = FakeSender(reply)

    done = asking(checks(2000), sender, in_flight_max=16)

    assert done.states() == {("answered", "MTCH"): 2000}
    assert sender.dropped_count >= 100


def test_a_question_whose_reply_is_always_broken_is_given_up_after_three_runs(asking):
    async def reply(said):
        return Response(200, headers={}, content=b"?") if said.name == "Payee 3" else good(said.request)

    senders = [FakeSender(reply) for _ in range(4)]
    runs = [asking(checks(30), sender) for sender in senders]

    assert [len(sender.said) for sender in senders] == [31, 2, 2, 0]
    assert [done.given_up_count for done in runs] == [0, 0, 1, 1]
    assert runs[-1].states() == {("unanswered", "CONTRACT"): 1, ("answered", "MTCH"): 29}


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

    with refused(ProtocolError, "stages.server_broke_protocol", "apis.not_json"):
        asking(checks(100), sender, in_flight_max=1)

    assert len(sender.said) == BREACHES_MIN == 20


def test_breaches_with_good_answers_between_them_end_nothing(asking):
    async def reply(said):
        is_odd = int(said.name.split()[1]) % 2
        return Response(200, headers={}, content=b"?") if is_odd else good(said.request)

    done = asking(checks(60), FakeSender(reply), in_flight_max=1)

    assert done.states() == {("unanswered", "CONTRACT"): 30, ("answered", "MTCH"): 30}


def test_a_server_that_refuses_everything_ends_the_run_and_its_last_row_is_asked_again(asking):
    refusing = FakeSender(always(problem(400, "FORMAT_ERROR")))

    with refused(ProtocolError, "stages.refuses_all", count=21):
        asking(checks(100), refusing, in_flight_max=1)

    assert len(refusing.said) == REFUSALS_IN_A_ROW_MAX + 1 == 21
    sender = FakeSender(always(None))
    done = asking(checks(100), sender)
    assert done.states() == {("refused", "FORMAT_ERROR"): 20, ("answered", "MTCH"): 80}
    assert "Payee 21" in {said.name for said in sender.said}


def test_rows_of_one_kind_that_are_refused_side_by_side_hold_up_no_other(asking):
    async def reply(said):
        is_odd = 20 <= int(said.name.split()[1]) < 20 + REFUSALS_IN_A_ROW_LATER_MAX
        return problem(400, "FORMAT_ERROR") if is_odd else good(said.request)

    done = asking(checks(300), FakeSender(reply), in_flight_max=1)

    assert done.states() == {("refused", "FORMAT_ERROR"): 100, ("answered", "MTCH"): 200}


def test_a_server_that_begins_to_refuse_everything_ends_the_run(asking):
    async def reply(said):
        return good(said.request) if int(said.name.split()[1]) <= 10 else problem(400, "FORMAT_ERROR")

    sender = FakeSender(reply)

    with refused(ProtocolError, "stages.refuses_all", count=101):
        asking(checks(300), sender, in_flight_max=1)

    assert len(sender.said) == 10 + REFUSALS_IN_A_ROW_LATER_MAX + 1


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
        asking(checks(50), sender, in_flight_max=4)

    assert len(sender.said) == ALIKE_MAX
    assert "2030-01-01T12:00:00.000Z" in str(ended.value)
    assert "2030-01-01T12:10:00.000Z" in str(ended.value)
    assert asking(checks(50), FakeSender(always(None))).states() == {("answered", "MTCH"): 50}


def test_a_refusal_that_only_quotes_a_name_like_a_stamp_holds_up_no_other(asking):
    quoting = Response(
        400, headers={}, content=b'{"code":"FORMAT_ERROR","detail":"name: X-Request-Timestamp Ltd"}'
    )

    async def reply(said):
        return quoting if said.name == "Payee 1" else good(said.request)

    done = asking(checks(20), FakeSender(reply))

    assert done.states() == {("unanswered", "CLOCK"): 1, ("answered", "MTCH"): 19}


# A server that knows its clients by their certificate


def ibans(how_many, api="vop_standard"):
    numbers = [f"DE{n:02d}370400440084210077" for n in range(1, how_many + 1)]
    return checks(how_many, api=api).with_columns(
        account=pl.Series(numbers), responder_bic=pl.lit("COBADEFFXXX")
    )


def test_a_server_that_does_not_know_us_is_named_our_certificate(asking):
    sender = FakeSender(always(problem(401, "CLIENT_INVALID")))

    with refused(CredentialsError, "stages.client_certificate_refused", requester="PSDFR-ACPR-99999"):
        asking(ibans(30), {ApiName.VOP_STANDARD: sender}, in_flight_max=8)

    assert len(sender.said) == ALIKE_MAX
    assert sender.in_flight_most == 1


@pytest.mark.parametrize("api", ["cop", "vop_gateway", "vop_standard"])
def test_the_first_question_goes_alone_and_the_others_follow_its_answer(asking, api):
    async def reply(said):
        if len(sender.said) == 1:
            await anyio.sleep(0.1)
            assert sender.in_flight_count == 1, "others did not wait"
        return good(said.request, MATCHED if api == "cop" else {"partyNameMatch": "NMTC"})

    sender = FakeSender(reply)
    questions = checks(30) if api == "cop" else ibans(30, api)

    done = asking(questions, {ApiName(api): sender}, in_flight_max=8)

    assert done.answers.height == len(sender.said) == 30
    assert sender.in_flight_most == 8
    assert b"{}" not in {said.request.read() for said in sender.said}


def test_a_question_that_waits_for_long_does_not_keep_the_others_waiting(asking):
    release = anyio.Event()

    async def reply(said):
        if said.name == "Payee 1":
            await release.wait()  # for ever, if it kept all others waiting
        release.set()
        return good(said.request)

    done = asking(checks(9), FakeSender(reply))

    assert done.states() == {("answered", "MTCH"): 9}


# Pauses that the server asks for


def test_nothing_is_sent_while_the_server_asks_for_a_pause(asking):
    begun = []  # the moment of the first request

    def now():  # 0.4 s before the moment that the server names
        return START + timedelta(seconds=0.6 + (VIRTUAL.monotonic() - begun[0] if begun else 0.0))

    busy = problem(429, "TOO_MANY", **{"retry-after": "Tue, 01 Jan 2030 12:00:01 GMT"})

    async def reply(said):
        begun.append(said.time)
        return busy if said.name == "Payee 2" and said.nth == 1 else good(said.request)

    sender = FakeSender(reply)

    done = asking(checks(12), sender, in_flight_max=2, now=now)

    assert done.states() == {("answered", "MTCH"): 12}
    early = [said.name for said in sender.said if said.time - begun[0] < 0.4]
    assert set(early) <= {"Payee 1", "Payee 2", "Payee 3"}, "those that were under way"
    assert len(early) >= 2


class HeardShare(WholeShare):
    """A share that has heard of these pauses."""

    def __init__(self, account):
        super().__init__(account)
        self.pauses = []

    def pause(self, wait_s):
        self.pauses.append(wait_s)


@pytest.mark.parametrize(
    ("status", "header", "pauses"),
    [(429, "0.0", [0.5]), (429, "1", [1.0]), (503, "1", [1.0]), (503, "0", []), (429, "120", [60.0])],
)
def test_the_processes_of_an_account_hear_of_a_pause_and_of_the_first_minute_of_a_longer_one(
    asking, status, header, pauses
):
    share = HeardShare(ServerAccount("s", "cop", 5000, 4, 1.0, 5.0))

    async def reply(said):
        turned_down = said.name == "Payee 2" and said.nth == 1
        return problem(status, "BUSY", **{"retry-after": header}) if turned_down else good(said.request)

    asking(checks(4), FakeSender(reply), in_flight_max=1, share=share)

    assert share.pauses == pauses


def test_the_processes_of_an_account_hear_of_a_pause_that_stands_for_a_daily_cap(asking, capped):
    share = HeardShare(ServerAccount("s", "cop", 5000, 4, 1.0, 5.0))
    sender = FakeSender(always(problem(429, "TOO_MANY", **{"retry-after": "7200"})))

    done = asking(checks(4), sender, in_flight_max=1, share=share, quota=capped(50))

    assert done.states() == {("deferred", "DAILY_CAP"): 4}
    assert share.pauses == [60.0]


def test_a_request_that_waits_for_its_slot_waits_for_a_pause_as_well(asking):
    started = VIRTUAL.monotonic()

    def now():
        return START + timedelta(seconds=0.6 + VIRTUAL.monotonic() - started)

    async def reply(said):
        is_first = said.name == "Payee 1" and said.nth == 1
        busy = problem(429, "TOO_MANY", **{"retry-after": "Tue, 01 Jan 2030 12:00:02 GMT"})
        return busy if is_first else good(said.request)

    sender = FakeSender(reply)

    asking(checks(4), sender, in_flight_max=4, rate_per_s=4, now=now)

    # Two leave before the answer is there; the others wait for their slots, a quarter of a second each.
    assert {said.name for said in sender.said if said.time - started < 1.4} <= {"Payee 1", "Payee 2"}


def test_what_has_no_connection_yet_when_the_server_asks_for_a_pause_does_not_leave(asking, capped):
    asked = []

    async def reply(said):
        if said.name != "Payee 2" or said.nth > 1:
            return good(said.request)
        asked.append(VIRTUAL.monotonic())
        return problem(429, "TOO_MANY", **{"retry-after": "1"})

    # Payee 2 is refused while the others, let go together with it, still shake hands.
    sender = FakeSender(reply, connects_s=lambda name: 0.0 if name in {"Payee 1", "Payee 2"} else 0.2)

    quota = capped(50)
    done = asking(checks(9), sender, in_flight_max=4, quota=quota)

    assert done.states() == {("answered", "MTCH"): 9}
    first, refused, *later = sender.said
    assert {first.name, refused.name} == {"Payee 1", "Payee 2"}
    assert min(said.time for said in later) - asked[0] >= 0.9
    assert done.tally.requests == {"cop": len(sender.said)}, "what did not leave is no request"
    assert len(sender.said) < quota.used() <= len(sender.said) + 4, "its unit of the cap is not given back"
    assert quota.used() == done.answers["attempts"].sum()


@pytest.mark.parametrize(("rate_per_s", "in_flight_max"), [(5000, 1), (0.1, 4)])
def test_a_pause_longer_than_a_minute_is_left_to_a_later_run(asking, rate_per_s, in_flight_max):
    sender = FakeSender(always(problem(503, **{"retry-after": "120"})))
    started = VIRTUAL.monotonic()

    done = asking(checks(20), sender, rate_per_s=rate_per_s, in_flight_max=in_flight_max)

    assert VIRTUAL.monotonic() - started < 5, "nobody waits for a slot that is of no use any more"
    assert len(sender.said) == 1
    assert done.states() == {("deferred", "SERVER_PAUSE"): 20}
    assert done.tally.closed["cop"] == Sentence("stages.long_pause", api="cop", pause_s=120.0)


def test_a_pause_on_the_last_attempt_of_a_row_holds_for_the_other_rows(asking):
    sender = FakeSender(always(problem(503, **{"retry-after": "120"})))

    asking(checks(20), sender, in_flight_max=1, attempts_max=1)

    assert len(sender.said) == 1


@pytest.mark.parametrize("rate_per_s", [5000, 50])
def test_a_server_that_only_asks_for_pauses_is_left_alone_after_a_few(asking, rate_per_s):
    sender, started = FakeSender(always(problem(429, "TOO_MANY"))), VIRTUAL.monotonic()
    share = HeardShare(ServerAccount("s", "cop", rate_per_s, 64, 1.0, 5.0))

    done = asking(checks(122), sender, in_flight_max=64, rate_per_s=rate_per_s, share=share)

    pauses = [PAUSE_FIRST_S * 2**number for number in range(PAUSES_MAX + 1)]
    ended_in_s = VIRTUAL.monotonic() - started - sum(pauses[:-1])
    assert 0 <= ended_in_s < 1, "nobody waits for a turn that is of no use any more"
    assert share.pauses == pauses, "others keep the last one, too"

    assert len(sender.said) == PAUSES_MAX + 1
    assert sender.in_flight_most == 1
    assert done.states() == {("deferred", "SERVER_PAUSE"): 122}
    assert done.tally.pauses == {"cop": PAUSES_MAX}
    left_alone = Sentence("stages.only_pauses", api="cop", pause_count=5, pause_s=15.5)
    assert done.tally.closed["cop"] == left_alone


def test_after_a_pause_one_request_tries_and_then_more_and_more_leave(asking):
    begun = []

    async def reply(said):
        begun.append((VIRTUAL.monotonic(), sender.in_flight_count))
        await anyio.sleep(0.01)
        return problem(429, "TOO_MANY") if 20 < len(begun) <= 28 and said.nth == 1 else good(said.request)

    sender = FakeSender(reply)

    done = asking(checks(400), sender, in_flight_max=8)

    assert done.states() == {("answered", "MTCH"): 400}
    gaps = [later - sooner for (sooner, _), (later, _) in pairwise(begun)]
    # The first long gap after the replies that asked for it: a busy machine has gaps of its own later.
    at = next((at for at, gap in enumerate(gaps, start=1) if at > 20 and gap >= 0.4), None)
    assert at is not None, "nothing is sent in the pause"
    assert begun[at][1] == 1, "one tries"
    after = [in_flight for _, in_flight in begun[at + 1 : at + 15]]
    assert max(after) <= 5, "half of eight, and a little more with each answer"
    assert max(in_flight for _, in_flight in begun[-100:]) == 8, "until all may be in flight again"
    assert done.tally.pauses == {"cop": 1}
    assert not done.tally.slowed
    assert done.tally.slowest["cop"] <= 4


@pytest.mark.parametrize("share", [2, 3])
def test_replies_that_ask_for_a_pause_are_charged_to_the_budget_of_the_run(asking, share):
    numbers = count(1)

    async def reply(said):
        return problem(429, "TOO_MANY") if next(numbers) % share == 0 else good(said.request)

    sender = FakeSender(reply)

    done = asking(checks(300), sender, in_flight_max=4)

    assert len(sender.said) <= 300 * 1.1 + RETRIES_FREE + 4 + 1
    assert {state for state, _ in done.states()} <= {"answered", "unanswered"}


def test_a_row_that_is_always_told_to_wait_is_left_after_a_few_pauses_and_spends_no_others_retries(asking):
    async def reply(said):
        if said.name == "Payee 9":
            return problem(429, "TOO_MANY")
        return problem(500) if said.nth == 1 and int(said.name.split()[1]) % 20 == 0 else good(said.request)

    sender = FakeSender(reply)

    done = asking(checks(900), sender, in_flight_max=4)

    assert done.states() == {("answered", "MTCH"): 899, ("unanswered", "TOO_MANY"): 1}
    assert sum(said.name == "Payee 9" for said in sender.said) == PAUSES_OF_ONE_MAX
    assert len(sender.said) == 899 + 45 + PAUSES_OF_ONE_MAX


def test_a_reply_that_asks_for_a_pause_is_no_sign_of_a_server_that_is_well_nor_of_one_that_fails(asking):
    numbers = count(1)

    async def reply(said):
        number = next(numbers)
        if number == SERVER.failures_max + 2:  # the first that tries an outage is told to wait
            return problem(429, "TOO_MANY")
        return good(said.request) if number == 1 or number > SERVER.failures_max + 3 else problem(503)

    done = asking(spread(30), FakeSender(reply), probe_wait_s=0.01)

    assert done.states() == {("answered", "MTCH"): 30}


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


def test_a_clock_that_three_replies_call_wrong_ends_the_asking_of_the_other_api_too(asking, capped):
    async def reply(said):
        response = good(said.request)
        response.headers["x-response-timestamp"] = timestamp(START + timedelta(days=3))
        return response

    async def other(said):
        return good(said.request, {"partyNameMatch": "MTCH"})

    senders = {ApiName.COP: FakeSender(reply), ApiName.VOP_GATEWAY: FakeSender(other)}
    questions = pl.concat([ibans(40, "vop_gateway"), checks(40, first=41)])

    with refused(ConfigurationError, "stages.clock_on_other_day"):
        asking(questions, senders, quota={ApiName.COP: capped(50)}, rate_per_s=1)

    assert len(senders[ApiName.COP].said) == 3
    assert len(senders[ApiName.VOP_GATEWAY].said) <= 4


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


def test_a_limit_of_any_size_is_a_limit(asking):
    done = asking(checks(3), FakeSender(always(None)), limit=10**30)

    assert [state for state, _ in done.states()] == ["answered"]


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


def test_what_is_known_in_the_middle_of_a_run_is_told_of_every_question(asking):
    stop = anyio.Event()

    async def reply(said):
        if said.name == "Payee 5":
            stop.set()
        return problem(403) if said.name == "Payee 4" else good(said.request)

    done = asking(checks(9), FakeSender(reply), in_flight_max=1, stop=stop)

    told = Counter(done.so_far.select("state", "code").iter_rows())
    assert done.so_far.schema == ANSWERS
    assert told == {
        ("answered", "MTCH"): 4,
        ("unanswered", "HTTP_403"): 1,
        ("deferred", "RUN_ENDED"): 4,
    }
    sent = done.so_far.sort("check")["attempts"].to_list()
    assert sent == [1, 1, 1, 1, 1, 0, 0, 0, 0]


def test_stop_does_not_wait_for_a_pause_or_a_retry(asking):
    stop = anyio.Event()

    async def reply(_said):
        stop.set()
        return problem(503, **{"retry-after": "50"})

    started = VIRTUAL.monotonic()
    done = asking(checks(3), FakeSender(reply), in_flight_max=1, stop=stop)

    assert VIRTUAL.monotonic() - started < 5
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
        with refused(DiskError, "files.not_writable_make_room", path="ledger.db"):
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


@pytest.mark.parametrize("bad", [problem(500), NetworkFailure("broken")])
def test_a_probe_of_a_silent_bank_that_meets_another_failure_is_sent_again(asking, bad):
    replies = iter([problem(504, "TIMEOUT_ERROR")] * RESPONDER.failures_max + [bad])

    async def reply(said):
        return next(replies, None) or good(said.request)

    done = asking(checks(20), FakeSender(reply), probe_wait_s=0.02)

    assert done.answers.height == 20
    assert done.states()["answered", "MTCH"] >= 15


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

    slow = checks(20)  # sort code 000000, and first in the file but for the one that opens the door
    others = checks(others_count, first=21).with_columns(
        account=pl.format("1{}", pl.col("account").str.slice(1))
    )

    done = asking(pl.concat([others.head(1), slow, others.slice(1)]), FakeSender(reply), in_flight_max=18)

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
    first = checks(1, first=101).with_columns(account=pl.lit("10000000000101"))

    done = asking(pl.concat([first, checks(100)]), sender, probe_wait_s=0.05)

    assert done.states() == {("answered", "MTCH"): 101}


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

    started = VIRTUAL.monotonic()
    asking(checks(100), FakeSender(reply), stop=stop)
    assert VIRTUAL.monotonic() - started < 5.0
