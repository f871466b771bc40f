"""The command with leases of questions that end soon: `python short_lease.py SECONDS precheck run ...`.

PRECHECK_TEST_WAIT_S says how long it waits for a database that is away.
"""

import os
import sys
from functools import partial

from pipeline.executors import joining
from pipeline.stores.postgres.store import PostgresStore
from pipeline.stores.shared import StoreClocks

if __name__ == "__main__":
    PostgresStore.shared_run.__kwdefaults__["lease_s"] = float(sys.argv[1])
    if "PRECHECK_TEST_WAIT_S" in os.environ:
        joining.StoreClocks = partial(StoreClocks, wait_max_s=float(os.environ["PRECHECK_TEST_WAIT_S"]))
    sys.argv = sys.argv[2:]
    from payee_precheck import main

    main()
