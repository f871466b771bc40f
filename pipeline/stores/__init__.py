"""State that outlives a run and is shared by processes: the ledger, the daily cap, the lease of a server."""
