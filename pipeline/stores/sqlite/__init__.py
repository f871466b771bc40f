"""Stores in SQLite files: a run's ledger, the daily caps, the locks and shares of servers."""

import sqlite3

SQLITE_VERSION = sqlite3.sqlite_version
