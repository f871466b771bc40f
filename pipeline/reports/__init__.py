"""Reports: a Summary in, a document for people out."""

from schemas.folder import REPORT_HTML

PAGE_NAME = REPORT_HTML
"""The report as a page, in the folder of a run."""
