"""What goes on in the ledger that the hosts of a profile share."""

from typing import TYPE_CHECKING

from pipeline.jobs.ledger import LedgerJob, connected_ledger
from schemas.outcomes import ApiName, Environment
from schemas.shared import CapStatus, HolderStatus, LedgerStatus, RunStatus, SharedAccount, ShareStatus

if TYPE_CHECKING:
    from pipeline.stores.postgres.accounts import DividedAccount


def status_of(job: LedgerJob) -> LedgerStatus:
    """Look at the runs that have not finished, and at the processes that ask.

    Raises:
        ConfigurationError: the profile names no ledger, or the server refuses.
        IncompleteError: the server is away.
    """
    with connected_ledger(job) as (named, database):
        from pipeline.stores.postgres.status import state_of

        state = state_of(database)
    return LedgerStatus(
        ledger=named.address.url,
        time=state.time,
        runs=[
            RunStatus(
                run=row.id,
                created=row.created,
                tool_version=row.tool_version,
                input_sha256=row.input_sha256,
                environment=Environment(row.environment),
                attempt_count=row.attempt_count,
                answer_count=row.answer_count,
                round=row.round,
                open=row.is_open,
                undone_chunk_count=row.undone_count,
                free_chunk_count=row.free_count,
            )
            for row in state.runs
        ],
        holders=[HolderStatus.model_validate(row._asdict()) for row in state.holders],
        accounts=[_account(account) for account in state.accounts],
        caps=[
            CapStatus(scope=cap.scope, cap=cap.cap, used=cap.used, closed=cap.is_closed) for cap in state.caps
        ],
    )


def _account(account: "DividedAccount") -> SharedAccount:
    shares = [
        ShareStatus(
            host=share.who.host,
            pid=share.who.pid,
            requests=share.part.requests,
            places=share.part.places,
        )
        for share in account.shares
        if any(share.part)
    ]
    return SharedAccount(
        scope=account.scope, api=ApiName(account.api), paused_s=account.paused_s, shares=shares
    )
