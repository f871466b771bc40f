"""The network, the clock and chance: everything that can differ between two identical runs."""

UNREAD = "unread"  # extension of an httpx response: the sentence that says why its body was not read
