"""The other side of the wire: the three APIs, an identity provider and a simulated bank network.

A real HTTPS server, for trying the tool without credentials and for testing it without pretending.
It shares the documents in `schemas` with the client and nothing else, so that the two sides of the
wire cannot share a bug.

    server.py      starts, announces, stops
    service.py     one request in, one response out
    intake.py      the rules that a request must keep
    identity.py    tokens;  participants.py  client certificates
    accounts.py    role sandbox: fixed dummy accounts
    network.py     roles test and production: banks.py, registers.py, matching.py
    responders.py  how long a bank takes, and how it fails
    faults/        what goes wrong on request
    openapi.py     all of this, described for other tools

Answers are simulated. Every name, account and identification is invented.
"""
