"""The network, the clock and chance: everything that can differ between two equal runs.

`client` sends one request and brings back one response; `tls`, with `suites` and `certificates`,
decides whom it trusts, in which cipher, and who it says it is; `tokens` keeps the access token;
`pace` keeps the rate; `retry` says, as a pure function, what an answer means for the next step.
Nothing here knows what a payee is.
"""
