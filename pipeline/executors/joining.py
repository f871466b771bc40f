"""Join a shared ledger: use one of its runs, and the server limits shared by all processes."""

import os
import time
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from datetime import datetime
from importlib.metadata import version
from math import inf
from socket import gethostname
from typing import NamedTuple
from uuid import UUID, uuid4

import polars as pl
from pydantic import SecretStr

from pipeline.config import Profile
from pipeline.connections import account_of, open_channels, scope_for
from pipeline.executors.kept_open import KeptOpen, Opening
from pipeline.runs.request import Clock, RunObserver
from pipeline.stages.ask.values import ApiChannel, AskingContext
from pipeline.stores.kinds import opened_store
from pipeline.stores.leased_shares import LeaseTerms
from pipeline.stores.shared import (
    AccountCap,
    AskingProcess,
    QuestionParts,
    SharedRun,
    SharedStore,
    StoreClocks,
    StoredRun,
)
from pipeline.stores.values import RunIdentity
from schemas.outcomes import ApiName


class SharedAccess(NamedTuple):
    """A shared ledger, and access to servers within the limits shared by all its processes."""

    store: SharedStore
    profile: Profile
    kept: KeptOpen | None = None  # resources that stay open for the next file

    def shared_run(self, run: StoredRun, questions: QuestionParts) -> SharedRun:
        """Open a run for this process, counting its requests towards the caps; the caller closes it."""
        return self.store.shared_run(run, questions, caps=self._caps)

    @asynccontextmanager
    async def channels(
        self, apis: Collection[ApiName], world: AskingContext, watch: RunObserver, *, wait_max_s: float = inf
    ) -> AsyncIterator[Mapping[ApiName, ApiChannel]]:
        """Open channels to these APIs during the block, each with a share of its account.

        Raises:
            ConfigurationError: a process on another host has other limits for an account.
            IncompleteError: other processes held all shares until the timeout, or the database is
            unavailable.
            PrecheckError: see `open_channels`.
        """
        shares = self.store.shares(LeaseTerms(world.now, world.clock, watch.wait, wait_max_s))
        quotas = {ApiName(api): self.store.cap(cap) for api, cap in self._caps.items()}
        opening: Opening = open_channels(self.profile, apis, now=world.now, shares=shares, quotas=quotas)
        if self.kept is not None:
            servers = [server for server in self.profile.servers if server.name in apis]
            opening = self.kept.channels(servers, opening, world.tally)
        async with opening as channels:
            yield channels

    def require_same_limits(self, apis: Collection[ApiName], clock: Clock) -> None:
        """Refuse to begin a run while another process has different limits for an account.

        Raises:
            ConfigurationError: the limits differ; the error names both hosts.
            IncompleteError: the database is unavailable.
        """
        accounts = [account_of(server) for server in self.profile.servers if server.name in apis]
        self.store.require_same_limits(accounts, now=clock())

    async def spent_cap(self, api: ApiName) -> tuple[int, datetime] | None:
        """Return an API's daily cap, and when it resets, if it is used up; otherwise None."""
        if (cap := self._caps.get(api)) is None:
            return None
        quota = self.store.cap(cap)
        return (cap.cap, await quota.resets_at()) if await quota.is_spent() else None

    @property
    def _caps(self) -> dict[str, AccountCap]:
        return {
            server.name.value: AccountCap(scope_for(server), server.cap, server.cap_window)
            for server in self.profile.servers
            if server.cap is not None
        }


def open_store(url: str, secret: SecretStr, clock: Clock) -> AbstractContextManager[SharedStore]:
    """Open a shared ledger for this process (ConfigurationError, IncompleteError: see `opened_store`)."""
    process = AskingProcess(uuid4(), gethostname(), os.getpid(), version("payee-precheck"))
    return opened_store(url, secret, process, StoreClocks(clock, time.monotonic))


def join(
    store: SharedStore, identity: RunIdentity, questions: Iterable[pl.DataFrame], run_id: UUID | None
) -> StoredRun:
    """Join the run of a file, like `SharedStore.join`; `questions` are each part's `Checks` by number."""
    return store.join(identity, store.plan_of(questions), new_id=uuid4(), run_id=run_id)
