"""Executors: they ask the questions of a run."""
