"""The jobs, one use case per module: arguments in, results out."""
