"""The stages of a run: functions from frames to frames, each in a module of the same name.

No stage imports another; `pipeline.jobs.check` joins them.
"""
