"""The network, the clock and chance: everything that can differ between two equal runs.

`client` sends one request and brings back one response; `tls`, with `cipher_suites` and `certificates`,
decides which servers it trusts, with which ciphers, and which certificate it presents; `tokens` keeps the
access token; `rate_limiter` keeps the rate; `retry` decides, as a pure function, what comes next.
Nothing here knows of payees.
"""
