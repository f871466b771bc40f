"""Judge whether a reply is an answer, a refusal or useless."""

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import httpx
import structlog

from pipeline.apis import ContractBreachError, Echo, MisdirectedError
from pipeline.apis.problem_codes import problem_code
from pipeline.apis.problem_details import echo_for, own_problem, problem_detail
from pipeline.errors import CredentialsError, PrecheckError, ProtocolError
from pipeline.frames import AnswerState, Check, OwnCode
from pipeline.stages.ask.admission import Admission
from pipeline.stages.ask.clock_skew import refuses_our_time, wrong_clock
from pipeline.stages.ask.gate import Reply, asks_for_a_pause, code_of
from pipeline.stages.ask.values import ApiChannel, AskingContext
from pipeline.transport import retry
from pipeline.transport.masking import with_detail
from pipeline.transport.turned_away import client_invalid, turned_away
from pipeline.wording import Sentence
from schemas.problem import ProblemCode

BREACHES_MIN, BREACHES_SHARE, BREACHES_WINDOW = 20, 0.75, 100
"""Broken replies that end a run: at least this number, and this share of the latest replies."""
REFUSALS_IN_A_ROW_MAX = 20
"""Refused questions in a row that a run tolerates from a server that never answered: our rules pass only what
the reference accepts, so more of them indicate a wrong API or a bug of ours.
"""
REFUSALS_IN_A_ROW_LATER_MAX = 100  # if it has answered: similar rows, as one bank's, may be adjacent

DETAILS_LOGGED_MAX = 20  # number of distinct problem details that a run logs; a server may number each

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class FinalReply(NamedTuple):
    """A reply that settles its question for good."""

    state: AnswerState
    code: str
    matched_name: str | None
    detail: str = ""  # the server's description of the problem, if it refused the question


@dataclass(frozen=True, slots=True)
class EndRun:
    """End the run with this error, because every row would get the same reply."""

    error: PrecheckError


class UselessReply(NamedTuple):
    """A reply without information about the payee, and how to proceed."""

    code: str
    decision: retry.Retry | retry.RenewToken | retry.GiveUp | retry.TurnAway | retry.Held | EndRun
    misdirected: bool = False  # true if it belongs to another request, so that its connection is out of step
    needs_fresh: bool = False  # True if its own connection must show whose reply it was
    told_to_wait: bool = False  # true if it only requests a pause
    detail: str = ""  # the server's description of the problem


class ReplyJudge:
    """Judges the replies of one API and notices when the server breaks the protocol too often."""

    def __init__(self, channel: ApiChannel, world: AskingContext, admission: Admission) -> None:
        self._api = channel.api
        self._requester = channel.requester
        self._world = world
        self._admission = admission
        self._breaches: deque[bool] = deque(maxlen=BREACHES_WINDOW)  # latest replies: true if broken
        self._refusals_in_a_row = 0
        self._logged: set[tuple[int, str, str]] = set()

    def judge(
        self, check: Check, reply: Reply, request_id: str, attempt: retry.RetryState
    ) -> FinalReply | UselessReply:
        """Judge if a reply is an answer, a refusal or useless, or ends the run."""
        decision = retry.decide(reply, attempt, chance=self._world.chance(), now=self._world.now())
        if not isinstance(decision, retry.Refuse):
            self._refusals_in_a_row = 0
        match decision:
            case retry.Accept():
                assert isinstance(reply, httpx.Response)
                return self._read(check, reply, request_id, attempt)
            case retry.Refuse():
                assert isinstance(reply, httpx.Response)
                return self._refused(check, reply, request_id, attempt)
            case retry.TurnAway(error):
                assert isinstance(reply, httpx.Response)
                detail = self._log_detail(check, reply, request_id)
                return _turned_away(reply, self._not_let_in(reply) or error, detail)
            case _:
                detail = ""
                if isinstance(reply, httpx.Response):
                    detail = self._log_detail(check, reply, request_id)
                if isinstance(decision, retry.RenewToken):
                    return UselessReply("HTTP_401", decision, detail=detail)
                is_busy = asks_for_a_pause(reply, self._world.now())
                return UselessReply(code_of(reply), decision, told_to_wait=is_busy, detail=detail)

    def _log_detail(self, check: Check, response: httpx.Response, request_id: str) -> str:
        """Log the server's description of a problem, each text once per run, and return it."""
        code, detail = problem_code(response), problem_detail(response, check)
        entry = (response.status_code, code, detail)
        if detail and entry not in self._logged and len(self._logged) < DETAILS_LOGGED_MAX:
            self._logged.add(entry)
            log.warning(
                "the server reports a problem",
                api=self._api.name.value, status=response.status_code, code=code, detail=detail,
                request_id=request_id,
            )  # fmt: skip
        return detail

    def not_renewed(self, refused: CredentialsError) -> UselessReply:
        """Judge a 401 for a token that was just renewed; another token would not be better."""
        return UselessReply("HTTP_401", retry.TurnAway(refused))

    def _not_let_in(self, response: httpx.Response) -> CredentialsError | None:
        """Return the error if the server identifies us by our certificate and refuses access."""
        api, status, requester = self._api.name, response.status_code, self._requester
        if requester is None or status not in {401, 403}:
            return None
        return CredentialsError(
            Sentence("stages.client_certificate_refused", api=api, status_code=status, requester=requester)
        )

    def _refused(
        self, check: Check, response: httpx.Response, request_id: str, attempt: retry.RetryState
    ) -> FinalReply | UselessReply:
        """Judge a status that refuses one question, if the reply is the API's and belongs to this request."""
        detail = self._log_detail(check, response, request_id)
        if refuses_our_time(response):
            wrong = wrong_clock(self._api.name, response, self._world.now())
            return UselessReply(OwnCode.CLOCK, retry.TurnAway(wrong), detail=detail)
        problem = own_problem(response)
        if problem is None:
            return _turned_away(response, turned_away(response), detail)
        match echo_for(response, self._api.request(check, request_id, ""), request_id):
            case Echo.OTHER:
                return self._refused_another(attempt)
            case _ if problem.code == ProblemCode.CLIENT_INVALID:
                away = retry.TurnAway(with_detail(client_invalid(response.status_code), detail))
                return UselessReply(ProblemCode.CLIENT_INVALID, away, detail=detail)
            case Echo.MISSING if not attempt.is_fresh:
                is_last = attempt.number >= attempt.number_max
                again = retry.GiveUp() if is_last else retry.Retry(0.0)
                return UselessReply(OwnCode.CONTRACT, again, needs_fresh=True, detail=detail)
            case _:
                return self._refused_for_good(response, detail)

    def _refused_another(self, attempt: retry.RetryState) -> UselessReply:
        """Judge a refusal of another request: ask again once, then ignore it as evidence."""
        error = ProtocolError(Sentence("stages.refusals_misdirected", api=self._api.name))
        is_over = attempt.number > 1 or self._admission.doubted(OwnCode.CONTRACT, error)
        decision = retry.TurnAway(error) if is_over else retry.Retry(0.0)
        return UselessReply(OwnCode.CONTRACT, decision, misdirected=True)

    def _refused_for_good(self, response: httpx.Response, detail: str) -> FinalReply | UselessReply:
        """Judge a refusal of one question; a server that refuses all of them ends the run."""
        code = problem_code(response)
        self._refusals_in_a_row += 1
        count, status = self._refusals_in_a_row, response.status_code
        if count <= (REFUSALS_IN_A_ROW_LATER_MAX if self._admission.has_answered else REFUSALS_IN_A_ROW_MAX):
            return FinalReply(AnswerState.REFUSED, code, None, detail)
        message = Sentence("stages.refuses_all", api=self._api.name, count=count, status=status, code=code)
        return UselessReply(code, EndRun(with_detail(ProtocolError(message), detail)), detail=detail)

    def _read(
        self, check: Check, response: httpx.Response, request_id: str, attempt: retry.RetryState
    ) -> FinalReply | UselessReply:
        try:
            reading = self._api.read(response, check, request_id)
        except ContractBreachError as breach:
            api, rule = self._api.name.value, breach.rule.recorded()
            log.warning("contract breach", api=api, request_id=request_id, rule=rule)
            self._breaches.append(True)
            decision = self._after_breach(breach, attempt)
            return UselessReply(OwnCode.CONTRACT, decision, misdirected=isinstance(breach, MisdirectedError))
        self._breaches.append(False)
        return FinalReply(AnswerState.ANSWERED, reading.code, reading.matched_name)

    def _after_breach(
        self, breach: ContractBreachError, attempt: retry.RetryState
    ) -> retry.Retry | retry.GiveUp | EndRun:
        """Retry once after a broken reply; a server that sends hardly anything else ends the run."""
        api, count, of_count = self._api.name, sum(self._breaches), len(self._breaches)
        if count < BREACHES_MIN or count < BREACHES_SHARE * of_count:
            return retry.Retry(0.0) if attempt.number == 1 else retry.GiveUp()
        message = Sentence(
            "stages.server_broke_protocol", api=api, count=count, breaches_count=of_count, breach=breach.rule
        )
        return EndRun(ProtocolError(message))


def _turned_away(response: httpx.Response, error: PrecheckError, detail: str) -> UselessReply:
    away = retry.TurnAway(with_detail(error, detail))
    return UselessReply(f"HTTP_{response.status_code}", away, detail=detail)
