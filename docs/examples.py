"""Output of commands for the pages, printed by the code itself, so that pages cannot differ from it."""

from io import StringIO
from textwrap import fill
from uuid import UUID

from click.testing import CliRunner
from rich.console import Console

from pipeline.cli.main import main as command
from pipeline.reports.listings import print_status
from pipeline.wording import ENGLISH, Moment, Sentence, SurfaceKind, words
from schemas.outcomes import ApiName, Environment
from schemas.shared import AccountUse, CapStatus, HolderStatus, LedgerStatus, RunStatus, ShareStatus

WIDTH = 100


def explained_code() -> str:
    """What `precheck explain` prints, by an example."""
    printed = CliRunner().invoke(command, ["explain", "AC01"], env={"COLUMNS": "80", "LC_ALL": "C"}).output
    lines = "\n".join(line.rstrip() for line in printed.splitlines())
    return f"```console\n$ precheck explain AC01\n{lines}\n```\n"


def cap_used_up() -> str:
    """The message of a run whose daily cap is used up."""
    left = Sentence(
        "executors.left_by_cap", left_count=17, cap=50, time=Moment("2026-11-21T00:00:00Z"), count=1
    )
    return "```text\n" + fill(words(left, SurfaceKind.COMMAND, ENGLISH), WIDTH) + "\n```\n"


def ledger_status() -> str:
    """What `precheck status` prints: a run, a process at work and one that has died."""
    printed = StringIO()
    print_status(_STATUS, Console(file=printed, markup=False, highlight=False, emoji=False))
    return f"```text\n$ precheck status --profile production\n{printed.getvalue()}```\n"


def _process(pid: int, host: str, **differing: object) -> HolderStatus:
    always = {"tool_version": "0.1.0", "seen": "2031-03-01T08:59:58.000Z", "question_count": 100}
    return HolderStatus.model_validate({"pid": pid, "host": host, **always, **differing})


_STATUS = LedgerStatus(
    ledger="postgresql://precheck@db.example/precheck",
    time="2031-03-01T09:00:00.000Z",
    runs=[
        RunStatus(
            run=UUID("5a3e0c51-0d3f-4c1c-9a5b-0f8f0f5d9b11"),
            created="2031-03-01T08:58:10.000Z",
            tool_version="0.1.0",
            input_sha256="0" * 64,
            environment=Environment.PRODUCTION,
            question_count=300,
            left_count=180,
            attempt_count=123,
            answer_count=120,
            reused_count=0,
            round=1,
            open=True,
            undone_chunk_count=2,
            free_chunk_count=1,
        )
    ],
    holders=[
        _process(
            4242,
            "host-a",
            started="2031-03-01T08:58:09.000Z",
            silent_s=2.0,
            alive=True,
            chunk_count=1,
            oldest_lease_s=13.0,
        ),
        _process(
            77,
            "host-b",
            started="2031-03-01T08:58:30.000Z",
            silent_s=40.0,
            alive=False,
            chunk_count=1,
            oldest_lease_s=None,
        ),
    ],
    accounts=[
        AccountUse(
            scope="cop.example|...",
            api=ApiName.COP,
            paused_s=0.0,
            shares=[
                ShareStatus(
                    host="host-a",
                    pid=4242,
                    requests=20,
                    rate_per_s=20.0,
                    slots=64,
                    in_flight_max=64,
                    lease_s=4.0,
                )
            ],
        )
    ],
    caps=[CapStatus(scope="cop.example|...", cap=5000, used=123, closed=False)],
)
