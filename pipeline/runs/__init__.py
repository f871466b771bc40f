"""The folder of one run: its arguments, its files, and whether they are unchanged."""
