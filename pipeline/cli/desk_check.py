"""`precheck desk-check`: the desk runs it for each check; users do not."""

import os
import signal
import sys
from pathlib import Path

import click

from pipeline.cli.clock import now
from pipeline.cli.exit_status import stoppable
from pipeline.cli.helps import Command
from pipeline.cli.options import PATH


@click.command(cls=Command, hidden=True)
@click.argument("folder", type=PATH)
def desk_check(*, folder: Path) -> None:
    """Check the file in FOLDER, a folder of the desk."""
    from pipeline.cli.logs import log_to_stderr
    from pipeline.desk.child import check_file
    from pipeline.files.open_files import require_open_files

    require_open_files()
    stop = stoppable()
    log_to_stderr("json", quiet=False)
    sys.exit(check_file(folder, now, stop, lambda: os.kill(os.getpid(), signal.SIGTERM)))
