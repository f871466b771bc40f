"""Print the activity in a shared ledger for an operator."""

from collections.abc import Iterator

from rich.console import Console

from pipeline.reports.terminal import text_line
from pipeline.wording import Moment, Sentence
from schemas.shared import AccountUse, CapStatus, HolderStatus, LedgerStatus, RunStatus


def print_status(status: LedgerStatus, console: Console) -> None:
    """Print the open runs, the processes that ask, and the limits of each."""
    title = Sentence("status.title", ledger=status.ledger, time=Moment(status.time))
    console.print(text_line(title, "bold"), soft_wrap=True)
    for line in _lines(status):
        console.print(text_line(line), soft_wrap=True)


def _lines(status: LedgerStatus) -> Iterator[Sentence]:
    yield from map(_run, status.runs)
    if not status.runs:
        yield Sentence("status.no_run")
    yield from map(_holder, status.holders)
    if not status.holders:
        yield Sentence("status.no_process")
    for account in status.accounts:
        yield from _account(account)
    yield from map(_cap, status.caps)


def _run(run: RunStatus) -> Sentence:
    state = Sentence("status.asked_by_none")
    if run.open:
        chunks = Sentence("status.chunks", count=run.undone_chunk_count)
        state = Sentence("status.open", round=run.round, chunks=chunks, free_count=run.free_chunk_count)
    sentence = Sentence(
        "status.run",
        run=str(run.run),
        created=Moment(run.created),
        left_count=run.left_count,
        questions=Sentence("status.questions", count=run.question_count),
        answers=Sentence("status.answers", count=run.answer_count),
        requests=Sentence("status.requests", count=run.attempt_count),
        state=state,
    )
    return (
        Sentence("status.with_reused", sentence=sentence, count=run.reused_count)
        if run.reused_count
        else sentence
    )


def _holder(holder: HolderStatus) -> Sentence:
    who = Sentence("status.process", pid=holder.pid, host=holder.host, started=Moment(holder.started))
    if not holder.alive:
        return Sentence("status.process_gone", who=who, silent_s=holder.silent_s)
    left_s = holder.oldest_lease_s
    if left_s is None:
        return Sentence("status.process_idle", who=who, silent_s=holder.silent_s)
    return Sentence(
        "status.process_at_work" if left_s > 0 else "status.process_overdue",
        who=who,
        silent_s=holder.silent_s,
        chunks=Sentence("status.chunks", count=holder.chunk_count),
        questions=Sentence("status.questions", count=holder.question_count),
        lease_s=abs(left_s),
    )


def _account(account: AccountUse) -> Iterator[Sentence]:
    whose = f"{account.scope}, {account.api.value}"
    for share in account.shares:
        yield Sentence(
            "status.share",
            whose=whose,
            pid=share.pid,
            host=share.host,
            requests=Sentence("status.requests", count=share.requests),
            rate_per_s=share.rate_per_s,
            places=Sentence("status.places", count=share.slots),
            in_flight_max=share.in_flight_max,
        )
    if account.paused_s:
        yield Sentence("status.paused", whose=whose, paused_s=account.paused_s)


def _cap(cap: CapStatus) -> Sentence:
    key = "status.cap_closed" if cap.closed else "status.cap"
    return Sentence(key, scope=cap.scope, used=cap.used, cap=cap.cap)
