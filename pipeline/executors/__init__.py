"""Executors, which ask the questions of a run."""
