"""The jobs: one use case per module, with arguments in and results out."""
