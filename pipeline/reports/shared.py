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
        yield "Nobody asks."
    for account in status.accounts:
        yield from _account(account)
    yield from map(_cap, status.caps)


def _run(run: RunStatus) -> str:
    if run.open:
        left = f"{counted(run.undone_chunk_count, 'chunk')} to do, {run.free_chunk_count:,} of them free"
        state = f"round {run.round}, {left}"
    else:
        state = f"round {run.round} has ended" if run.round else "nothing was asked yet"
    counts = f"{counted(run.answer_count, 'answer')}, {counted(run.attempt_count, 'request')}"
    return f"Run {run.run} since {run.created}: {counts}; {state}."


def _holder(holder: HolderStatus) -> str:
    who = f"Process {holder.pid} on {holder.host} since {holder.started}, seen {holder.seen}"
    left_s = holder.oldest_lease_s
    if left_s is None:
        return f"{who}: no questions."
    lease = f"ends in {left_s:.0f} s" if left_s > 0 else f"ended {-left_s:.0f} s ago"
    return f"{who}: {counted(holder.chunk_count, 'chunk')}; the oldest lease {lease}."


def _account(account: AccountUse) -> Iterator[str]:
    whose = f"{account.scope}, {account.api.value}"
    for share in account.shares:
        limits = f"{counted(share.requests, 'request')} in a window, {counted(share.places, 'place')}"
        yield f"{whose}: process {share.pid} on {share.host}: {limits}."
    if account.paused_s:
        yield f"{whose}: nobody sends for {account.paused_s:.0f} s, as the server asked for a pause."


def _cap(cap: CapStatus) -> str:
    closed = "; the server says that nothing is left" if cap.closed else ""
    return f"{cap.scope}: {cap.used:,} of the daily cap of {cap.cap:,} used{closed}."
