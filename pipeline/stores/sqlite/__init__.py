"""The stores in SQLite files: the ledger of a run, the daily caps, the lease of a server."""

import sqlite3

SQLITE_VERSION = sqlite3.sqlite_version
