"""The other side of the wire: the three APIs, an identity provider and a simulated bank network.

A real HTTPS server, for trying the tool without credentials and for realistic tests. It shares only
`schemas`, `errors` and `files` with the client, so that the two sides share few bugs.

    server.py      starts, announces, stops;  assembly.py  puts the parts together
    ports.py       connections: tls_handshake.py (TLS, client_hello.py), http_connection.py (HTTP)
    service.py     one request in, one response out;  endpoints.py  what stands at each path
    intake.py      how the body of a request arrives, and the rules that a request must keep
    identity.py    tokens;  participants.py  client certificates
    accounts.py    role sandbox: fixed dummy accounts
    network.py     roles test and production: banks.py, registers.py, matching.py
    responders.py  how long a bank takes, and how it fails
    faults/        what goes wrong on request
    openapi.py     all of this, described for other tools
    journal.py     the record of what a client did;  verdict/  the judgement on it
    scenarios.py   what a client is walked through
    control.py     what can be changed while it serves

Answers are simulated. Every name, account and identification is invented.
"""
