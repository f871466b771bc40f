"""What goes on in a shared ledger, in lines for a person."""

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from pipeline.reports.wording import counted, visible
from schemas.shared import AccountUse, CapStatus, HolderStatus, LedgerStatus, RunStatus


def print_status(status: LedgerStatus, console: Console) -> None:
    """Show the open runs, who asks, and what each may use."""
    console.print(Text(visible(f"{status.ledger} at {status.time}"), style="bold"), soft_wrap=True)
    for line in _lines(status):
        console.print(Text(visible(line)), soft_wrap=True)


def _lines(status: LedgerStatus) -> Iterator[str]:
    yield from map(_run, status.runs)
    if not status.runs:
        yield "No run is unfinished."
    yield from map(_holder, status.holders)
    if not status.holders:
        yield "No process is at work."
    for account in status.accounts:
        yield from _account(account)
    yield from map(_cap, status.caps)


def _run(run: RunStatus) -> str:
    left = f"{run.left_count:,} of {counted(run.question_count, 'question')} left"
    answered = f"{counted(run.answer_count, 'answer')} to {counted(run.attempt_count, 'request')}"
    reused = f", {run.reused_count:,} answered by earlier runs" if run.reused_count else ""
    if run.open:
        chunks = f"{counted(run.undone_chunk_count, 'chunk')} to do, {run.free_chunk_count:,} of them free"
        state = f"open to any process (round {run.round}): {chunks}"
    else:
        state = "asked by no process; the same command goes on with it"
    return f"Run {run.run} since {_when(run.created)}: {left}; {answered}{reused}; {state}."


def _holder(holder: HolderStatus) -> str:
    who = f"Process {holder.pid} on {holder.host} since {_when(holder.started)}"
    if not holder.alive:
        return (
            f"{who}: not seen for {holder.silent_s:.0f} s: it has died or sleeps, others go on in its place."
        )
    seen = f"seen {holder.silent_s:.0f} s ago"
    left_s = holder.oldest_lease_s
    if left_s is None:
        return f"{who}: alive, {seen}; holds no questions now."
    lease = f"ends in {left_s:.0f} s" if left_s > 0 else f"ended {-left_s:.0f} s ago"
    holds = f"{counted(holder.chunk_count, 'chunk')} of {counted(holder.question_count, 'question')}"
    return f"{who}: alive, {seen}; holds {holds}, whose oldest lease {lease} unless it is renewed."


def _account(account: AccountUse) -> Iterator[str]:
    whose = f"{account.scope}, {account.api.value}"
    for share in account.shares:
        limits = (
            f"{counted(share.requests, 'request')} of the rate of {share.rate_per_s:g} a second, "
            f"{counted(share.places, 'place')} in flight of {share.in_flight_max}"
        )
        yield f"{whose}: process {share.pid} on {share.host} has {limits}."
    if account.paused_s:
        yield f"{whose}: nothing is sent for {account.paused_s:.0f} s, as the server asked for a pause."


def _cap(cap: CapStatus) -> str:
    closed = "; the server says that nothing is left" if cap.closed else ""
    return f"{cap.scope}: {cap.used:,} of the daily cap of {cap.cap:,} used{closed}."


def _when(time: str) -> str:
    return f"{time[:19].replace('T', ' ')} UTC"
