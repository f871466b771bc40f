"""The run of a file in a ledger that processes share: begun or joined, noted in the folder, finished.

Without a shared ledger in the profile all this is nothing: the folder's own ledger is the whole record.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.config.profiles import Chosen, ledger_address, ledger_key
from pipeline.errors import Advice, PrecheckError, UsageError
from pipeline.executors.asking import AskingResult
from pipeline.frames import Checks
from pipeline.runs.request import CheckJob, Surface
from pipeline.runs.store_record import (
    forget_store_record,
    read_store_record,
    require_same_ledger,
    write_store_record,
)
from pipeline.runs.work_folder import remove_work, write_work
from pipeline.stores.postgres import require_driver
from pipeline.stores.sqlite.ledger import SqliteLedger
from pipeline.stores.values import RunIdentity
from schemas.outcomes import ApiName, Environment
from schemas.shared import SharedRunRecord, WorkRecord

if TYPE_CHECKING:
    from pipeline.executors.shared_file import JoinedRun


def is_settled(job: CheckJob, chosen: Chosen, ledger: SqliteLedger) -> bool:
    """Whether the folder's own ledger says all there is to know of a run that has finished in it.

    Raises:
        OtherRunError: the folder holds a run of another ledger than the profile's.
        OutputError: what the folder says of that cannot be read.
    """
    record, address = read_store_record(job.out), ledger_address(chosen)
    require_same_ledger(
        job.out, record, None if address is None else address.url, has_answers=any(ledger.counts)
    )
    return record is None or record.finished


@contextmanager
def joined_run(
    job: CheckJob, chosen: Chosen, identity: RunIdentity, checks: Checks, surface: Surface
) -> Iterator["JoinedRun | None"]:
    """The shared run of a file, joined or begun; None where the profile has no shared ledger.

    Its folder, which is locked, is noted to belong to it; its questions lie where workers find them, if the
    job says so.

    Raises:
        UsageError: workers are to help, and the profile has no ledger that they could share.
        ConfigurationError: the ledger cannot be used as the profile says, or another version of this program
            planned the run otherwise.
        IncompleteError: the database has been away for as long as is waited; nothing was asked.
    """
    address = ledger_address(chosen)
    if address is None:
        if job.work is not None:
            raise UsageError("workers help with runs of a shared ledger", advice=Advice.NAME_LEDGER)
        yield None
        return
    require_driver()
    from pipeline.executors.joining import join, open_store
    from pipeline.executors.shared_file import JoinedRun

    secret = ledger_key(chosen)
    assert secret is not None, "a profile with a shared ledger has a key"
    questions = checks.sort("check")
    with open_store(address, secret, surface.clock) as store:
        record = read_store_record(job.out)
        if record is not None and job.fresh:
            if (before := store.find(record.run)) is not None:
                store.mark_finished(before)
            forget_store_record(job.out)
            record = None
        run = join(store, identity, questions, None if record is None else record.run)
        write_store_record(job.out, SharedRunRecord(ledger=address.url, run=run.id))
        if job.work is not None:
            write_work(job.work, _work(identity, questions, run.id, address.url), [questions])
        yield JoinedRun(store, run, questions)
