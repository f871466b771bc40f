"""The desk: a browser interface to upload, check, decide and release payment files.

It calls jobs and has no rules of its own. All its data are files: each run's folder, and beside it what
users entered (`schemas.desk`).
"""
