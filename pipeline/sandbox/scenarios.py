"""Scenarios: guided tests of a client, with the rules that each must exercise.

A scenario consists of sandbox settings and a payment file. Any client that checks each row of the file once,
with the scenario's profile, can take it.
"""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pipeline.files.private import write_private
from pipeline.sandbox.accounts import IBAN_ACCOUNTS, UK_ACCOUNTS
from pipeline.sandbox.faults.selection import parse
from pipeline.sandbox.settings import SandboxSettings
from pipeline.sandbox.verdict.rules import WRONG_PORTS

HEADER = (
    "payment_id", "name", "account_type", "sort_code", "account_number", "iban", "secondary_reference",
    "amount", "currency",
)  # fmt: skip

_SCENARIO_DAILY_CAP = 8
_SCENARIO_RATE_PER_S = 5
_SPACING = 8  # every eighth question meets a fault, as on a server that mostly works

_ONCE = (
    "500", "duplicate-keys", "502", "no-content-type", "reset-before-headers", "wrong-echo", "503-seconds",
    "matched-with-reason-code", "504", "html-page", "truncated-body", "unknown-code",
    "closed-without-answer", "empty-body", "429-seconds", "missing-echo", "set-cookie", "not-json",
    "504-after-wait", "no-verdict", "redirect-307", "redirect-302",
)  # fmt: skip
"""Faults that each affect one question, at its first attempt only."""
_ALWAYS = ("400", "500")  # faults that each affect one question, at every attempt
_QUESTION_COUNT = (len(_ONCE) + len(_ALWAYS) + 2) * _SPACING

_CHECKS = (
    "https", "tls-version", "tls-suites", "http", "pipelining", "endpoint", "token-request", "token",
    "correlation-id", "correlation-id-once", "timestamp", "content-type", "document",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scenario:
    """One guided test."""

    name: str
    what: str  # what to do with the client
    expected: tuple[str, ...]  # the rules that the scenario exercises
    faults: tuple[str, ...] = ()
    daily_cap: int | None = None
    rate_per_s_max: int | None = None
    has_wrong_ports: bool = False

    def settings(self, given: SandboxSettings) -> SandboxSettings:
        """Return the sandbox settings for this scenario; other settings in `given` are kept."""
        return replace(
            given,
            faults=(*given.faults, *map(parse, self.faults)),
            daily_cap=given.daily_cap if self.daily_cap is None else self.daily_cap,
            rate_per_s_max=given.rate_per_s_max if self.rate_per_s_max is None else self.rate_per_s_max,
        )


SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        "basic",
        "Check scenario.csv with the profile sandbox, and scenario-standard.csv with sandbox-standard.",
        (*_CHECKS, "token-reuse", "client-certificate", "requesting-bank"),
    ),
    Scenario(
        "faults",
        "Check scenario.csv with the profile production, until each row has an answer or is given up.",
        (
            *_CHECKS, "token-reuse", "token-renewal", "no-repeat-after-400", "retry-after", "echo", "content",
            "retry", "retry-limit", "responder-wait", "cookie", "redirect",
        ),
        faults=(
            *(f"{name}:question={place * _SPACING},first=1" for place, name in enumerate(_ONCE, start=1)),
            *(
                f"{name}:question={place * _SPACING}"
                for place, name in enumerate(_ALWAYS, start=len(_ONCE) + 1)
            ),
            # Must be last, because a client without a new token sees no other fault.
            f"tokens-revoked:question={_QUESTION_COUNT - _SPACING},first=1",
        ),
    ),
    Scenario(
        "tls",
        f"Check scenario.csv with the profile sandbox, and with each of "
        f"{', '.join(f'tls-{port}' for port in WRONG_PORTS)}, which must all fail.",
        (*_CHECKS, *(f"tls-{port}" for port in WRONG_PORTS)),
        has_wrong_ports=True,
    ),
    Scenario(
        "caps",
        f"Check scenario.csv with the profile test: {_SCENARIO_DAILY_CAP} requests a day, "
        f"{_SCENARIO_RATE_PER_S} a second.",
        (*_CHECKS, "rate", "daily-cap"),
        daily_cap=_SCENARIO_DAILY_CAP,
        rate_per_s_max=_SCENARIO_RATE_PER_S,
    ),
)  # fmt: skip
"""Every scenario, simplest first."""


def scenario_named(name: str) -> Scenario:
    """Return the scenario with this name."""
    return next(scenario for scenario in SCENARIOS if scenario.name == name)


def write_scenario(folder: Path, scenario: Scenario) -> None:
    """Write the scenario's payment files into its sandbox's folder, mode 0600."""
    files = {
        "scenario.csv": [*_uk_rows(scenario), *(_iban_rows() if scenario.name in {"basic", "tls"} else [])]
    }
    if scenario.name == "basic":
        files["scenario-standard.csv"] = list(_iban_rows())
    for name, rows in files.items():
        text = io.StringIO()
        writer = csv.DictWriter(text, HEADER, restval="", lineterminator="\n")
        writer.writeheader()
        for number, row in enumerate(rows, start=1):
            writer.writerow({"payment_id": f"PAY-{number:04d}", "amount": f"{number}.00", **row})
        write_private(folder / name, text.getvalue().encode())


def _uk_rows(scenario: Scenario) -> Iterator[dict[str, str]]:
    """Yield one row per question, about dummy accounts for role sandbox or else accounts of the network."""
    if scenario.name in {"basic", "tls"}:
        for account in UK_ACCOUNTS:
            for name in (account.name, account.close_name, account.other_name):
                yield _uk_row(name, account.account_type.value, account.identification)
        return
    count = _QUESTION_COUNT if scenario.name == "faults" else _SCENARIO_DAILY_CAP + 4
    for number in range(1, count + 1):
        # Not consecutive, which a client may take for an account search.
        yield _uk_row(f"Invented Payee {number}", "Personal", f"010203{10_000_000 + 7_919 * number}")


def _uk_row(name: str, account_type: str, identification: str) -> dict[str, str]:
    return {
        "name": name,
        "account_type": account_type,
        "sort_code": identification[:6],
        "account_number": identification[6:],
        "currency": "GBP",
    }


def _iban_rows() -> Iterator[dict[str, str]]:
    for account in IBAN_ACCOUNTS:
        for name in (account.name, account.close_name, account.other_name):
            yield {"name": name, "iban": account.iban, "currency": "EUR"}
