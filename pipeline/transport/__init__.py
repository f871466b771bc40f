"""The network, the clock and chance: all that can differ between two equal runs.

`client` sends one request and brings back one response; `tls`, with `cipher_suites` and `certificates`,
decides which servers to trust, which ciphers to use, and which certificate to present; `tokens` manages the
access token; `rate_limiter` limits the rate; `retry` is a pure function that decides the next step. Nothing
here knows about payees.
"""
