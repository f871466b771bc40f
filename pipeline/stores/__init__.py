"""State that outlives a run and is shared by processes: ledgers, daily caps, shares of servers."""
