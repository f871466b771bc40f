"""The tables of the simulation, and their places in docs/proof/simulation.md."""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "proof" / "simulation.md"
STATES = (
    "all",
    "starting",
    "first run",
    "resumed",
    "one at a time",
    "slowed down",
    "at full pace",
    "breaker open",
    "half-open",
    "bank's breaker open",
    "bank's half-open",
    "several processes",
    "two APIs",
)
"""What a process may do that meets a fault; it may do several of them."""


def faults(met: "Counter[tuple[str, str]]") -> list[str]:
    """How often each fault was met, and by a process that did what."""
    lines = [f"| fault | {' | '.join(STATES)} |", f"| --- {'| ---: ' * len(STATES)}|"]
    for fault in sorted({fault for fault, _ in met}):
        counts = " | ".join(f"{met[fault, state]:,}" for state in STATES)
        lines.append(f"| {fault} | {counts} |")
    return lines


def mistakes(found: Iterable[tuple[str, int, "Counter[str]"]]) -> list[str]:
    """Within how many histories each known mistake was found, and by which rules."""
    lines = ["| mistake | found within | rules that were broken |", "| --- | ---: | --- |"]
    for name, played, rules in found:
        lines.append(f"| {name} | {played:,} | {', '.join(sorted(rules)) or 'not found'} |")
    return lines


def record(name: str, lines: list[str], last_line: str) -> None:
    """Put a table into the page, with what the run printed at last."""
    mark, end = f"<!-- {name} -->", "<!-- end -->"
    head, found, rest = PAGE.read_text().partition(mark)
    assert found, f"{PAGE}: no {mark}"
    _, _, tail = rest.partition(end)
    table = "\n".join(lines)
    today = datetime.now(UTC).date().isoformat()
    PAGE.write_text(f"{head}{mark}\n\n{table}\n\n`{last_line}` ({today})\n\n{end}{tail}")
