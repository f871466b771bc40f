"""Delays and failures of the simulated responders, as a gateway's caller sees them."""

import asyncio
import math
import random

from pipeline.sandbox.banks import Conduct
from pipeline.sandbox.problems import ProblemError
from schemas.problem import ProblemCode

_JUST_WITHIN = 0.9  # of the responder wait


class Responder:
    """The responders of one API: their delays and failures."""

    def __init__(self, *, wait_max_s: float, latency_s: float, latency_spread: float, seed: int) -> None:
        """Describe the responders of one API, for which the gateway waits `wait_max_s` before it answers 504.

        Every answer is delayed by a log-normal wait: `latency_s` is its median (0: none), `latency_spread`
        the standard deviation of its logarithm (0: always the median).
        """
        self._wait_max_s = wait_max_s
        self._latency_s = latency_s
        self._latency_spread = latency_spread
        self._chance = random.Random(seed)  # noqa: S311 (waits are no secret)

    async def respond(self, conduct: Conduct) -> None:
        """Wait as long as the responder takes, and fail as it does: 500, 502 or 504, by the reference."""
        match conduct:
            case Conduct.STEADY:
                await self._wait()
            case Conduct.SLOW:
                await asyncio.sleep(self._wait_max_s * _JUST_WITHIN)
            case Conduct.FAILING:
                await self._wait()
                self._fail_sometimes()
            case Conduct.SILENT:
                await asyncio.sleep(self._wait_max_s)
                raise ProblemError(
                    504,
                    ProblemCode.TIMEOUT_ERROR,
                    f"no response from the responder within {self._wait_max_s:g} seconds",
                )
            case Conduct.BROKEN_TLS:
                raise ProblemError(502, ProblemCode.SSL_ERROR, "the TLS handshake with the responder failed")

    async def _wait(self) -> None:
        if self._latency_s > 0:
            drawn_s = self._chance.lognormvariate(math.log(self._latency_s), self._latency_spread)
            await asyncio.sleep(min(drawn_s, self._wait_max_s * _JUST_WITHIN))

    def _fail_sometimes(self) -> None:
        # Passing failures: a client that retries gets an answer in the end.
        if self._chance.random() < 0.3:
            raise ProblemError(
                500, ProblemCode.SERVER_ERROR, "a technical problem in the gateway prevented execution"
            )
