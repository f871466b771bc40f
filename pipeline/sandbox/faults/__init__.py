"""Faults of the server, which make the sandbox a conformance suite for any client.

    catalogue.py    the table: each fault's name, what the server does, what a right client does
    effects.py      what a fault does to an exchange, as values
    changes.py      what it makes of the reply
    deliveries.py   how the reply leaves, or does not
    selection.py    which requests meet it
    injector.py     puts the chosen faults to work

A fault affects only a request that would have been answered: a bad request is refused as usual.
"""
