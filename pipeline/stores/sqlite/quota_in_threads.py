"""The count of a daily cap for the tasks of an event loop, which must not wait for a disk."""

from datetime import datetime

import anyio.to_thread

from pipeline.stores.sqlite.quota import SqliteQuota


class QuotaInThreads:
    """A `Quota` of this machine, in the hands of tasks. Its owner closes it."""

    def __init__(self, quota: SqliteQuota) -> None:
        self._quota = quota

    async def reserve(self) -> bool:
        """As `SqliteQuota.reserve`."""
        return await anyio.to_thread.run_sync(self._quota.reserve)

    async def resets_at(self) -> datetime:
        """As `SqliteQuota.resets_at`."""
        return await anyio.to_thread.run_sync(self._quota.resets_at)

    async def close_for_today(self) -> None:
        """As `SqliteQuota.close_for_today`."""
        await anyio.to_thread.run_sync(self._quota.close_for_today)

    async def go_by(self, server_now: datetime) -> None:
        """As `SqliteQuota.go_by`."""
        await anyio.to_thread.run_sync(self._quota.go_by, server_now)
