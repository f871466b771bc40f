"""Building blocks for sections of the configuration: kinds of values, secrets, a server and its limits."""
