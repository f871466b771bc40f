"""Files and child processes of any content: atomic writing, confined parsing, memory, locks."""
