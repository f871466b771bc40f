"""The stages of a run: functions from frames to frames, each in its own module; `jobs.check` joins them."""
