"""Files and child processes, whatever is in them: atomic writing, parsing in confinement, memory, locks."""
