"""The sandbox server: the three APIs, an identity provider and a simulated bank network.

A real HTTPS server, for trying precheck without credentials and for realistic tests. It shares only
`schemas`, `errors` and `files` with the client, so that the two have few bugs in common. Answers are
simulated: every name, account and identification is invented.
"""
