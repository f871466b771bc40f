"""Leases that end soon: `python short_lease.py precheck run ...`, or `shorten` in a fork.

PRECHECK_TEST_LEASE_S says how long a lease of questions or of a share is; a request may be in flight for
twice as long. PRECHECK_TEST_WAIT_S says how long a command waits for a database that is away.
"""

import os
import sys
from functools import partial

from pipeline import connections
from pipeline.stores import leased_shares, protocols, sharing
from pipeline.stores.postgres.store import PostgresStore


def shorten() -> None:
    """Do as the environment says."""
    lease_s = float(os.environ["PRECHECK_TEST_LEASE_S"])
    PostgresStore.shared_run.__kwdefaults__["lease_s"] = lease_s
    sharing.LEASE_S = leased_shares.LEASE_S = lease_s
    connections._deadline_s = lambda _: 2 * lease_s  # noqa: SLF001 (no profile can have it so short)
    if "PRECHECK_TEST_WAIT_S" in os.environ:
        wait_max_s = float(os.environ["PRECHECK_TEST_WAIT_S"])
        protocols.StoreClocks = partial(protocols.StoreClocks, wait_max_s=wait_max_s)


if __name__ == "__main__":
    shorten()
    sys.argv = sys.argv[1:]
    from payee_precheck import main

    main()
