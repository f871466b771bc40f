"""The network, the clock and chance: everything that can differ between two equal runs.

`client` sends one request and brings back one response; `tls` and `suites` decide whom it trusts
and in which cipher; `tokens` keeps the access token; `pace` keeps the rate; `retry` says, as a
pure function, what an answer means for the next step. Nothing here knows what a payee is.
"""
