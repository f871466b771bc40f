"""The local rules: errors and warnings about a payment before a bank is asked."""
