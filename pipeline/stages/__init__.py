"""The stages of a run: one function each, named as its module, from frames to frames.

No stage imports another; `pipeline.jobs.check` joins them.
"""
