"""payee-precheck: check every payee name in a payment file before the money leaves.

Read `jobs/check.py` first: it has the whole job, step by step.
"""
