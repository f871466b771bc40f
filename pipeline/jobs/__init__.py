"""The jobs, one use case per module: each is told what to do, and returns what came of it."""
