"""Faults of the server, which turn the sandbox into a conformance suite for any client.

A fault affects only requests that would have been answered: bad requests are refused as usual.
"""
