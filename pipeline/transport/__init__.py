"""The network, the clock and chance: everything that can differ between two identical runs."""
