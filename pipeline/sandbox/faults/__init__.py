"""Faults of the server, which turn the sandbox into a conformance suite for any client.

    catalogue.py    the table: each fault's name, what the server does, what a correct client does
    effects.py      changes of the reply, and ways to send it, or not to
    selection.py    selects the affected requests
    injector.py     applies the chosen faults

A fault affects only requests that would have been answered: bad requests are refused as usual.
"""
