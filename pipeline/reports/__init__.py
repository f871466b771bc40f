"""Reports: turn a Summary into documents for people."""
