"""Waits and faults, in real time but short."""

import asyncio
import time
from pathlib import Path

import pytest

from pipeline.sandbox.banks import Conduct
from pipeline.sandbox.network import Responder
from pipeline.sandbox.problems import ProblemError
from pipeline.sandbox.settings import SandboxSettings
from schemas.outcomes import ApiName


def responder(wait_max_s=0.05, **changes):
    settings = SandboxSettings(Path("sandbox"), cop_responder_wait_s=wait_max_s, **changes)
    return Responder(settings, ApiName.COP)


def test_a_silent_bank_is_a_504_that_names_the_seconds():
    started = time.monotonic()
    with pytest.raises(ProblemError) as caught:
        asyncio.run(responder().respond(Conduct.SILENT))
    assert time.monotonic() - started >= 0.05
    assert (caught.value.status, caught.value.code) == (504, "TIMEOUT_ERROR")
    assert "0.05 seconds" in caught.value.detail


def test_broken_tls_is_a_502():
    with pytest.raises(ProblemError) as caught:
        asyncio.run(responder().respond(Conduct.BROKEN_TLS))
    assert (caught.value.status, caught.value.code) == (502, "SSL_ERROR")


def test_a_slow_bank_answers_just_within_the_wait():
    started = time.monotonic()
    asyncio.run(responder(wait_max_s=0.1).respond(Conduct.SLOW))
    assert time.monotonic() - started >= 0.09


def test_a_failing_gateway_answers_when_asked_again():
    far_end = responder()
    statuses = []
    for _ in range(50):
        try:
            asyncio.run(far_end.respond(Conduct.FAILING))
            statuses.append(200)
        except ProblemError as problem:
            statuses.append(problem.status)
    assert set(statuses) == {200, 500}


def test_waits_without_a_spread_are_all_the_same():
    far_end = responder(wait_max_s=60.0, latency_s=0.05, latency_spread=0.0)
    for _ in range(5):
        started = time.monotonic()
        asyncio.run(far_end.respond(Conduct.STEADY))
        assert 0.049 <= time.monotonic() - started < 5


def test_latency_is_added_and_never_outlasts_the_gateway():
    started = time.monotonic()
    asyncio.run(responder(latency_s=100.0).respond(Conduct.STEADY))
    took = time.monotonic() - started
    assert took >= 0.045
    assert took < 5
