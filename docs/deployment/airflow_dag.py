"""Check tonight's payment file with Airflow, and report rows that need review: see docs/operations.md."""

import subprocess
from datetime import datetime, timedelta

from airflow.exceptions import AirflowException, AirflowFailException
from airflow.sdk import dag, task

COMMAND = ["/srv/payments/nightly.sh", "payroll.csv", "--log", "json"]
AGAIN = {75, 129, 130, 143, 152}  # rows are undecided: running the same command again resumes


@dag(schedule="0 2 * * 1-5", start_date=datetime(2026, 1, 1), catchup=False, max_active_runs=1)
def payee_precheck():
    @task(retries=6, retry_delay=timedelta(hours=1))
    def check() -> bool:
        """Whether every row is a match. Fails without retries if a person must correct something."""
        status = subprocess.run(COMMAND).returncode
        if status in AGAIN:
            raise AirflowException(f"not finished ({status}): the next try resumes")
        if status not in {0, 1}:
            raise AirflowFailException(f"stopped with {status}: see the log")
        return status == 0

    @task.short_circuit
    def needs_review(every_row_matches: bool) -> bool:
        return not every_row_matches

    @task
    def notify() -> None:  # put your own message here
        print("review the rows of outcomes.csv whose check_outcome is not match")

    needs_review(check()) >> notify()


payee_precheck()
