"""Files and child processes, whatever they hold: atomic writing, confined parsing, memory, locks."""
