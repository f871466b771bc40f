"""Commands of `precheck` that are not in `cli` itself: parse, call, print, exit. No decision lives here."""
