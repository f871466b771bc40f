"""Write the figures of a run in the Prometheus text format, for a textfile collector.

A snapshot of the last run of a job, so everything is a gauge; without names and accounts, as all users may
read it. Source: Prometheus documentation, "Exposition formats", text-based format 0.0.4.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from pipeline.files.atomic import write_atomically
from pipeline.stores.sqlite.quota import QuotaUse
from schemas.outcomes import ApiName, Outcome
from schemas.summary import Summary


class FileEnd(NamedTuple):
    """The result of one file of a command."""

    name: str
    exit_code: int | None  # None if the command ended before this file
    summary: Summary | None  # None without an outcome file


@dataclass(slots=True)
class RunFigures:
    """The figures of a command at its end, however it ended."""

    version: str
    started: datetime
    finished: datetime
    exit_status: int
    summaries: Sequence[Summary] = ()  # only files with an outcome file
    quotas: Sequence[QuotaUse] = ()


_Samples = Iterable[tuple[Mapping[str, str], float]]


def write_metrics(path: Path, text: bytes) -> None:
    """Replace a metrics file, which all users may read; same errors as `write_atomically`."""
    with write_atomically(path, readable_by_all=True) as file:
        file.write(text)


def metrics_text(figures: RunFigures) -> str:
    """Return the figures as text."""
    return "".join(_family(name, meaning, samples) for name, meaning, samples in _families(figures))


def _families(figures: RunFigures) -> Iterator[tuple[str, str, _Samples]]:
    duration_s = (figures.finished - figures.started).total_seconds()
    yield "exit_status", "Exit status of the command.", _one(figures.exit_status)
    yield "build_info", "Version of the tool.", [({"version": figures.version}, 1)]
    yield "start_timestamp_seconds", "When the command began.", _one(figures.started.timestamp())
    yield "finish_timestamp_seconds", "When the command ended.", _one(figures.finished.timestamp())
    yield "run_duration_seconds", "How long the command took.", _one(duration_s)
    yield "files", "Payment files that came to an outcome file.", _one(len(figures.summaries))
    if figures.summaries:
        yield from _of_summaries(figures.summaries)
    scopes = [({"scope": quota.scope}, quota) for quota in figures.quotas]
    if scopes:
        used = [(labels, quota.used_count) for labels, quota in scopes]
        yield "quota_used_requests", "Requests of the day's cap that are used.", used
        caps = [(labels, quota.cap) for labels, quota in scopes]
        yield "quota_cap_requests", "Requests a day at most.", caps


def _of_summaries(summaries: Sequence[Summary]) -> Iterator[tuple[str, str, _Samples]]:
    rows: Counter[Outcome] = Counter()
    for summary in summaries:
        rows.update({total.outcome: total.row_count for total in summary.outcomes})
    yield "rows", "Payments by outcome.", [({"outcome": outcome.value}, rows[outcome]) for outcome in Outcome]
    is_complete = all(summary.complete for summary in summaries)
    yield "complete", "1 where every row is decided.", _one(is_complete)
    is_simulated = any(summary.simulated for summary in summaries)
    yield "simulated", "1 where the server is a sandbox.", _one(is_simulated)
    for name, meaning, of_call in (
        ("questions", "Distinct questions.", "question_count"),
        ("answered_before", "Questions answered by an earlier run.", "answered_before_count"),
        ("requests", "Requests sent, repeats included.", "request_count"),
        ("repeats", "Requests that asked a question again.", "repeat_count"),
        ("pauses", "Pauses that the server asked for.", "pause_count"),
    ):
        counts: Counter[ApiName] = Counter()
        for summary in summaries:
            counts.update({call.api: getattr(call, of_call) for call in summary.calls})
        yield name, meaning, [({"api": api.value}, count) for api, count in sorted(counts.items())]
    if least := _in_flight_least(summaries):
        yield "in_flight_least", "The fewest requests in flight, where the server wanted fewer.", least


def _in_flight_least(summaries: Iterable[Summary]) -> _Samples:
    least: dict[ApiName, float] = {}
    for call in (call for summary in summaries for call in summary.calls):
        if (window := call.in_flight_least) is not None:
            least[call.api] = min(window, least.get(call.api, window))
    return [({"api": api.value}, window) for api, window in sorted(least.items())]


def _one(number: float) -> _Samples:
    return [({}, number)]


def _family(name: str, meaning: str, samples: _Samples) -> str:
    lines = [f"# HELP precheck_{name} {meaning}", f"# TYPE precheck_{name} gauge"]
    for labels, number in samples:
        shown = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        figure = f"{number:d}" if isinstance(number, int) else f"{number:.3f}"
        lines.append(f"precheck_{name}{'{' + shown + '}' if shown else ''} {figure}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
