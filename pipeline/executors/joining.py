"""The way into a ledger that processes share, and into a run of it."""

import os
import time
from importlib.metadata import version
from socket import gethostname
from uuid import UUID, uuid4

import polars as pl
from pydantic import SecretStr

from pipeline.runs.request import Clock
from pipeline.stores.postgres.address import LedgerAddress
from pipeline.stores.postgres.connection import StoreClocks
from pipeline.stores.postgres.lines import StoredRun
from pipeline.stores.postgres.store import AskingProcess, PostgresStore
from pipeline.stores.values import RunIdentity


def open_store(address: LedgerAddress, secret: SecretStr, clock: Clock) -> PostgresStore:
    """Open a shared ledger for this process.

    Raises:
        ConfigurationError, IncompleteError: as `PostgresStore.open`.
    """
    process = AskingProcess(uuid4(), gethostname(), os.getpid(), version("payee-precheck"))
    return PostgresStore.open(address, secret, process, StoreClocks(clock, time.monotonic))


def join(
    store: PostgresStore, identity: RunIdentity, questions: pl.DataFrame, run_id: UUID | None
) -> StoredRun:
    """Join the run of a file.

    Args:
        store: the ledger.
        identity: of the run.
        questions: `Checks`, by their numbers.
        run_id: of a folder that belongs to a run; None: the unfinished run of this identity, or a new one.

    Raises:
        UsageError, ConfigurationError, DiskError, IncompleteError: as `PostgresStore.join`.
    """
    return store.join(identity, store.plan_hash([questions]), new_id=uuid4(), run_id=run_id)
