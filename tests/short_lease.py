"""The command with leases of questions that end soon: `python short_lease.py SECONDS precheck run ...`."""

import sys

from pipeline.stores.postgres.store import PostgresStore

if __name__ == "__main__":
    PostgresStore.shared_run.__kwdefaults__["lease_s"] = float(sys.argv[1])
    sys.argv = sys.argv[2:]
    from payee_precheck import main

    main()
