"""Who carries the asking out."""
