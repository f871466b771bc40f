"""The sandbox server: the three APIs, an identity provider and a simulated bank network.

A real HTTPS server, for trying precheck without credentials and for realistic tests. It shares only
`schemas`, `errors` and `files` with the client, so that the two have few bugs in common.

    server.py      starts, announces, stops; connections: tls.py (client_hello.py), http_connection.py
    service.py     one request in, one response out;  endpoints.py  handlers of paths
    intake.py      reads bodies, and checks the rules for requests
    identity.py    tokens;  participants.py  client certificates
    accounts.py    role sandbox: fixed dummy accounts, and answers of a rehearsal about others
    network.py     roles test and production: banks.py, registers.py, matching.py; delays and failures
    faults/        failures on request
    openapi.py     a description of the APIs for other tools
    journal.py     the record of a client's calls;  verdict/  judges them
    scenarios.py   guided tests of a client
    control.py     changes settings at run time

Answers are simulated. Every name, account and identification is invented.
"""
