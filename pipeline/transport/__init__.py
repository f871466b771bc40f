"""The network, the clock and chance: everything that can differ between two identical runs.

`client` sends a request and returns the response; `tls`, with `cipher_suites` and `certificates`, decides
which servers to trust, which ciphers to use, and which certificate to present; `tokens` manages the access
token; `rate_limiter` limits the rate; `retry` is a pure function that decides the next step. No module here
knows about payees.
"""
