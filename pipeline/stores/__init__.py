"""State that outlives a run and is shared by processes: ledgers, daily caps, leases of servers."""
