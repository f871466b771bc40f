"""The processor seconds that the reports of a finished run take, printed: page, workbook, attention file."""

import sys
import time
from pathlib import Path

from pipeline.jobs.report import rows_of
from pipeline.reports.documents import reports
from pipeline.runs.manifest import read_manifest
from schemas.strict import parse
from schemas.summary import Summary

folder = Path(sys.argv[1])
summary = parse(Summary, (folder / "summary.json").read_bytes())
manifest = read_manifest(folder)
rows = rows_of(folder, manifest)
before = time.process_time()
reports(folder, summary, rows, outcome_name=manifest.outcome_file.name)
print(time.process_time() - before)
