"""payee-precheck: check every payee name in a payment file before the money leaves.

Read `run.py` first: it is the whole job, in order.
"""
