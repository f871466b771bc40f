"""The processor seconds that the reports of a finished run take, printed: page, workbook, attention file."""

import sys
import time
from pathlib import Path

from pipeline.folder import rows_of
from pipeline.manifest import read_manifest
from pipeline.reports.documents import reports
from schemas.strict import parse
from schemas.summary import Summary

folder = Path(sys.argv[1])
summary = parse(Summary, (folder / "summary.json").read_bytes())
rows = rows_of(folder, read_manifest(folder))
before = time.process_time()
reports(folder, summary, rows)
print(time.process_time() - before)
