"""Leases of questions that end soon: `python short_lease.py precheck run ...`, or `shorten` in a fork.

PRECHECK_TEST_LEASE_S says how long a lease is, PRECHECK_TEST_WAIT_S how long a command waits for a database
that is away.
"""

import os
import sys
from functools import partial

from pipeline.executors import joining
from pipeline.stores.postgres.store import PostgresStore
from pipeline.stores.shared import StoreClocks


def shorten() -> None:
    """Do as the environment says."""
    PostgresStore.shared_run.__kwdefaults__["lease_s"] = float(os.environ["PRECHECK_TEST_LEASE_S"])
    if "PRECHECK_TEST_WAIT_S" in os.environ:
        joining.StoreClocks = partial(StoreClocks, wait_max_s=float(os.environ["PRECHECK_TEST_WAIT_S"]))


if __name__ == "__main__":
    shorten()
    sys.argv = sys.argv[1:]
    from payee_precheck import main

    main()
