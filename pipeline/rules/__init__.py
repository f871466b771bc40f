"""Local rules: errors and warnings about payments before a bank is asked."""
