"""What the sections of the configuration are made of: kinds of values, secrets, a server and its limits."""
