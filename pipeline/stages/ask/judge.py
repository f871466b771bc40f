"""What a reply is worth: an answer, a refusal, or nothing."""

from typing import NamedTuple

import httpx
import structlog

from pipeline.apis import Api, ContractBreachError, MisdirectedError, problem_code
from pipeline.apis.details import problem_detail, with_detail
from pipeline.errors import ProtocolError
from pipeline.frames import AnswerState, Check, OwnCode
from pipeline.stages.ask.clocks import refuses_our_time, wrong_clock
from pipeline.stages.ask.gate import Reply, code_of
from pipeline.stages.ask.values import World
from pipeline.transport import retry

MISDIRECTED_MAX = 3
"""Replies to somebody else's request that a run tolerates; the server mixes up its clients."""
BREACHES_IN_A_ROW_MAX = 20
"""Contract breaches without one good reply between them that a run tolerates."""
REFUSALS_IN_A_ROW_MAX = 20
"""Refused questions, with no other reply between them, that a run tolerates: our rules let nothing pass
that the reference says is refused, so that more of them speak of a wrong API or of a mistake of ours."""

TOLD_MAX = 20
"""Different details of problems that a run logs; a server may put a number of its own into each."""

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class Final(NamedTuple):
    """A reply that settles its question for good."""

    state: AnswerState
    code: str
    matched_name: str | None


class Useless(NamedTuple):
    """A reply that tells nothing about the payee, and what to do about it."""

    code: str
    decision: retry.Retry | retry.RenewToken | retry.GiveUp | retry.Stop
    misdirected: bool = False
    """Whether it belongs to another request, so that its connection has lost its place."""
    told_to_wait: bool = False
    """Whether it only asks for a pause."""


class Judge:
    """Judges the replies of one API, and knows when the server has broken the protocol too often."""

    def __init__(self, api: Api, world: World) -> None:
        self._api = api
        self._world = world
        self._misdirected_count = 0
        self._breaches_in_a_row = 0
        self._refusals_in_a_row = 0
        self._told: set[tuple[int, str, str]] = set()

    def judge(self, check: Check, reply: Reply, request_id: str, attempt: retry.Attempt) -> Final | Useless:
        """Decide what a reply is worth."""
        decision = retry.decide(reply, attempt, chance=self._world.chance(), now=self._world.now())
        if not isinstance(decision, retry.Refuse):
            self._refusals_in_a_row = 0
        match decision:
            case retry.Accept():
                assert isinstance(reply, httpx.Response)
                return self._read(check, reply, request_id, attempt)
            case retry.Refuse():
                assert isinstance(reply, httpx.Response)
                return self._refused(reply, self._tell(check, reply, request_id))
            case retry.Stop(error):
                assert isinstance(reply, httpx.Response)
                detail = self._tell(check, reply, request_id)
                return Useless(code_of(reply), retry.Stop(type(error)(with_detail(str(error), detail))))
            case _:
                if isinstance(reply, httpx.Response):
                    self._tell(check, reply, request_id)
                return Useless(code_of(reply), decision, told_to_wait=self._asks_for_a_pause(reply))

    def _tell(self, check: Check, response: httpx.Response, request_id: str) -> str:
        """Log what a server says of a problem, each thing once in a run, and return it."""
        code, detail = problem_code(response), problem_detail(response, check)
        said = (response.status_code, code, detail)
        if detail and said not in self._told and len(self._told) < TOLD_MAX:
            self._told.add(said)
            log.warning(
                "the server reports a problem",
                api=self._api.name.value, status=response.status_code, code=code, detail=detail,
                request_id=request_id,
            )  # fmt: skip
        return detail

    def _refused(self, response: httpx.Response, detail: str) -> Final | Useless:
        """A refusal of one question; the end for a server that refuses them all, or their time."""
        code = problem_code(response)
        if refuses_our_time(response):
            return Useless(code, retry.Stop(wrong_clock(self._api.name, response, self._world.now())))
        self._refusals_in_a_row += 1
        if self._refusals_in_a_row <= REFUSALS_IN_A_ROW_MAX:
            return Final(AnswerState.REFUSED, code, None)
        refused = f"{self._api.name}: the server refused {self._refusals_in_a_row} questions in a row"
        error = ProtocolError(
            with_detail(
                f"{refused}, the last time with HTTP {response.status_code} {code}; "
                "check base_url in the profile, or ask the provider; rows decided so far are kept",
                detail,
            )
        )
        return Useless(code, retry.Stop(error))

    def _asks_for_a_pause(self, reply: Reply) -> bool:
        if isinstance(reply, retry.NetworkFailure) or reply.status_code not in {429, 503}:
            return False
        return retry.pause_s(reply.headers, now=self._world.now()) > 0

    def _read(
        self, check: Check, response: httpx.Response, request_id: str, attempt: retry.Attempt
    ) -> Final | Useless:
        try:
            reading = self._api.read(response, check, request_id)
        except ContractBreachError as breach:
            log.warning("contract breach", api=self._api.name.value, request_id=request_id, rule=str(breach))
            misdirected = isinstance(breach, MisdirectedError)
            self._misdirected_count += misdirected
            self._breaches_in_a_row += 1
            return Useless(OwnCode.CONTRACT, self._after_breach(breach, attempt), misdirected)
        self._breaches_in_a_row = 0
        return Final(AnswerState.ANSWERED, reading.code, reading.matched_name)

    def _after_breach(
        self, breach: ContractBreachError, attempt: retry.Attempt
    ) -> retry.Retry | retry.GiveUp | retry.Stop:
        """One more try for one row; the end for a server that does nothing else."""
        if self._misdirected_count >= MISDIRECTED_MAX or self._breaches_in_a_row >= BREACHES_IN_A_ROW_MAX:
            return retry.Stop(
                ProtocolError(
                    f"{self._api.name}: the server broke the protocol repeatedly, the last time: {breach}; "
                    "ask the provider; rows answered so far are kept"
                )
            )
        return retry.Retry(0.0) if attempt.number == 1 else retry.GiveUp()
