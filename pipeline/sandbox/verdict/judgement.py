"""The judgement on one rule."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from pipeline.sandbox.journal import Call, Journal, Visit

BREACHES_MAX = 20
"""How many breaches of a rule are listed; all of them are counted."""


class RuleStatus(StrEnum):
    """Whether a client kept a rule."""

    KEPT = "kept"
    BROKEN = "broken"
    NEVER_MET = "never met"


@dataclass(frozen=True, slots=True)
class Judgement:
    """How often a rule was met, and how often it was broken."""

    met_count: int
    breach_count: int = 0
    breaches: tuple[str, ...] = ()  # the first calls or connections that broke the rule

    @property
    def status(self) -> RuleStatus:
        """Kept, broken or never met."""
        if self.breach_count:
            return RuleStatus.BROKEN
        return RuleStatus.KEPT if self.met_count else RuleStatus.NEVER_MET


def judged(met_count: int, breaches: Iterable[str]) -> Judgement:
    """Return the judgement on a rule."""
    found = list(breaches)
    return Judgement(met_count, len(found), tuple(found[:BREACHES_MAX]))


def shown_call(call: Call, note: str = "") -> str:
    """Describe a call in one line; its question appears as a hash."""
    moment = datetime.fromtimestamp(call.time, UTC).isoformat(timespec="milliseconds")[11:-6]
    words = [moment, f"connection {call.connection}", call.method, call.path]
    words.append("no whole answer" if call.status is None else str(call.status))
    words += [f"({call.refused})"] if call.refused else []
    words += [f"request id {call.request_id}"] if call.request_id else []
    words += [f"question {call.question[:12]}"] if call.question else []
    words += [f"fault {', '.join(call.faults)}"] if call.faults else []
    return " ".join(filter(None, words)) + (f": {note}" if note else "")


def shown_visit(visit: Visit, note: str) -> str:
    """Describe a connection in one line."""
    port = f" to the port {visit.port}" if visit.port else ""
    return f"connection {visit.number}{port}: {note}"


def checks(journal: Journal) -> list[Call]:
    """Name checks, in order of arrival."""
    return [call for call in journal.calls if call.asked is not None]
