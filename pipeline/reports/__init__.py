"""Reports: a Summary in, a document for people out."""

PAGE_NAME = "report.html"
"""The report as a page, in the folder of a run."""
