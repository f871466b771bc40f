"""What goes on in the ledger that the hosts of a profile share."""

from pipeline.jobs.ledger import LedgerJob, connected_ledger
from schemas.outcomes import Environment
from schemas.shared import HolderStatus, RunStatus, Status


def status_of(job: LedgerJob) -> Status:
    """Look at the runs that have not finished, and at the processes that ask.

    Raises:
        ConfigurationError: the profile names no ledger, or the server refuses.
        IncompleteError: the server is away.
    """
    with connected_ledger(job) as (named, database):
        from pipeline.stores.postgres.status import state_of

        state = state_of(database)
    return Status(
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
    )
