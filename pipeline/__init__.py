"""payee-precheck: check every payee name in a payment file before the money leaves.

Read `jobs/check.py` first: it is the whole job, in order.
"""
