"""The faults that the server can be given: the sandbox as a conformance suite for any client.

    catalogue.py    the table: each fault's name, what the server does, what a right client does
    effects.py      what a fault does to an exchange, as values
    changes.py      what it makes of the reply
    deliveries.py   how the reply leaves, or does not
    selection.py    which requests meet it
    injector.py     puts the chosen faults to work

A fault befalls only a request that would have been answered: what is wrong with a request is told to
the client all the same.
"""
