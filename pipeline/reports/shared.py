"""What goes on in a shared ledger, on a terminal."""

from rich.console import Console
from rich.text import Text

from pipeline.reports.terminal import table_of
from pipeline.reports.wording import visible
from schemas.shared import HolderStatus, RunStatus, Status


def print_status(status: Status, console: Console) -> None:
    """Show the open runs, and who asks."""
    console.print(Text(visible(f"{status.ledger} at {status.time}"), style="bold"))
    if status.runs:
        table = table_of("run", "began", ">answers", ">requests", "now")
        for run in status.runs:
            counts = (f"{run.answer_count:,}", f"{run.attempt_count:,}")
            table.add_row(str(run.run), run.created, *counts, _state(run))
        console.print(table)
    else:
        console.print(Text("No run is unfinished."))
    if status.holders:
        table = table_of("host", ">process", "since", "last seen", ">chunks", "oldest lease")
        for holder in status.holders:
            who = (Text(visible(holder.host)), str(holder.pid), holder.started, holder.seen)
            table.add_row(*who, f"{holder.chunk_count:,}", _lease(holder))
        console.print(table)
    else:
        console.print(Text("Nobody asks."))
    shares = [(account, share) for account in status.accounts for share in account.shares]
    if shares:
        table = table_of("account", "api", "host", ">process", ">requests a window", ">places")
        for account, share in shares:
            of = (Text(visible(account.scope)), account.api.value, Text(visible(share.host or "")))
            table.add_row(*of, str(share.pid), f"{share.requests:,}", f"{share.places:,}")
        console.print(table)
    for account in status.accounts:
        if account.paused_s:
            said = (
                f"{account.scope}: the server asked for a pause; nobody sends for {account.paused_s:.0f} s."
            )
            console.print(Text(visible(said)))
    for cap in status.caps:
        left = ", closed by the server for today" if cap.closed else ""
        console.print(Text(visible(f"{cap.scope}: {cap.used:,} of the daily cap of {cap.cap:,} used{left}.")))


def _state(run: RunStatus) -> str:
    if not run.open:
        return f"round {run.round} has ended" if run.round else "nothing was asked yet"
    return (
        f"round {run.round}: {run.undone_chunk_count:,} chunks to do, {run.free_chunk_count:,} of them free"
    )


def _lease(holder: HolderStatus) -> str:
    left_s = holder.oldest_lease_s
    if left_s is None:
        return ""
    return f"ends in {left_s:.0f} s" if left_s > 0 else f"ended {-left_s:.0f} s ago"
