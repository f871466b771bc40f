"""The current activity in the shared ledger of a profile."""

from pipeline.jobs.ledger import LedgerJob, connected_ledger
from pipeline.stores.sharing import NOTHING, Division
from schemas.outcomes import ApiName
from schemas.shared import AccountUse, CapStatus, HolderStatus, LedgerStatus, RunStatus, ShareStatus

SILENT_MAX_S = 15.0
"""A process that has not reported for this long is silent; live ones report every few seconds."""


def status_of(job: LedgerJob) -> LedgerStatus:
    """Return the unfinished runs, and the processes that ask.

    Raises:
        ConfigurationError: the profile names no ledger, or the server refuses access.
        IncompleteError: the server is unavailable.
    """
    with connected_ledger(job) as (named, care):
        state = care.state()
    return LedgerStatus(
        ledger=named.url,
        time=state.time,
        runs=[
            RunStatus(
                **row._asdict(), left_count=max(row.question_count - row.answer_count - row.reused_count, 0)
            )
            for row in state.runs
        ],
        holders=[HolderStatus(**row._asdict(), alive=row.silent_s <= SILENT_MAX_S) for row in state.holders],
        accounts=[_account(*account) for account in state.accounts],
        caps=[CapStatus.model_validate(row._asdict()) for row in state.caps],
    )


def _account(scope: str, api: str, division: Division, now: float) -> AccountUse:
    shares = [
        ShareStatus(
            host=share.who.host,
            pid=share.who.pid,
            requests=share.part.requests,
            rate_per_s=share.rate_per_s,
            slots=share.part.slots,
            in_flight_max=share.in_flight_max,
            lease_s=share.until - now,
        )
        for share in division.shares
        if share.part != NOTHING
    ]
    paused_s = max(division.paused_until - now, 0.0)
    return AccountUse(scope=scope, api=ApiName(api), paused_s=paused_s, shares=shares)
