"""The folder of one run: what it is told, what lies in it, and whether it is as the run left it."""
