"""The local rules: what must be true of a payment, and what is odd about it, before anyone is asked."""
