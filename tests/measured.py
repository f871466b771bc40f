"""The command of tests/desk.py, with the memory that it takes."""

import csv
import json
import subprocess
import sys
from dataclasses import dataclass

from desk import COMMAND, COMMAND_MAX_S, Desk, Finished

# A small process between, because the peak of a child counts the memory of whoever forks it.
_MEASURED = """
import json, os, resource, subprocess, sys
limit, mask = int(sys.argv[1]), int(sys.argv[2])
os.umask(mask)
if limit:
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
done = subprocess.run(sys.argv[3:], stdin=subprocess.DEVNULL, capture_output=True)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
text = [said.decode(errors="backslashreplace") for said in (done.stdout, done.stderr)]
print(json.dumps([done.returncode, *text, peak]))
"""


@dataclass(frozen=True)
class Measured(Finished):
    """How a command ended, and the memory that it took."""

    peak_bytes: int
    """Resident, of the command or one of its children."""

    @property
    def is_one_sentence_about_the_file(self):
        return self.status == 65 and len(self.sentences) == 1 and "Traceback" not in self.err


class MeasuredDesk(Desk):
    """A desk whose commands are measured, and can be given little memory. Several may run at a time."""

    def __call__(self, *words, memory_max_bytes=0, umask=0o022, **changes) -> Measured:
        limits = (str(memory_max_bytes), str(umask))
        done = subprocess.run(
            [sys.executable, "-c", _MEASURED, *limits, *COMMAND, *map(str, words)],
            cwd=self.folder,
            env=self.environment | changes,
            stdout=subprocess.PIPE,
            timeout=COMMAND_MAX_S,
            check=True,
        )
        return Measured(*json.loads(done.stdout))

    def cells(self, folder, name):
        """Every cell of a file, the headers too."""
        with (self.folder / folder / name).open(newline="", encoding="utf-8-sig") as file:
            return [cell for row in csv.reader(file) for cell in row]
