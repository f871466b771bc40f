"""The processor seconds that the page, workbook and attention file of a run take, with imports, printed."""

import gc
import sys
import time
from pathlib import Path

from pipeline.reports.documents import reports
from pipeline.runs.ended import ended_run

gc.set_threshold(200_000)  # as the command does
run = ended_run(Path(sys.argv[1]))
summary, rows = run.summary(), run.rows()
before = time.process_time()
reports(run.folder, summary, rows, outcome_name=run.outcome_file.name)
print(time.process_time() - before)
