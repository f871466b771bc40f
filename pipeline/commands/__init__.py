"""Commands about the folder of a run: parse, call, print, exit. No decision lives here."""
