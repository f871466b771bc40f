"""Executors: they carry out the asking of a run."""
