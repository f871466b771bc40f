"""The sandbox server: the three APIs, an identity provider and a simulated bank network, over real HTTPS.

It shares only `schemas`, `errors` and `files` with the client, so that the two have few bugs in common.
"""
