"""Child processes and what the operating system says that they cost; and the sandbox."""

import csv
import os
import re
import subprocess
import sys
import threading
import time
import tomllib
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

COMMAND = [sys.executable, "-m", "payee_precheck"]
RUN_MAX_S = 900
LOOK_EVERY_S = 0.05
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""As users have it: what Python has compiled once, it need not compile at every start."""


class Cost(NamedTuple):
    """What a process took, its own children included."""

    wall_s: float
    cpu_s: float
    peak_mib: float
    """Resident, of all its processes at the same time."""
    largest_mib: float
    """The same of the largest of them by itself."""


def cost_of(command, *, status=0, stdin=""):
    """Run a command to its end.

    Its own processor time is read from the system's account when it is reaped, so that nothing else on
    the machine is in it.
    """
    started = time.monotonic()
    with subprocess.Popen(
        [str(word) for word in command],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT | {"XDG_STATE_HOME": os.environ.get("XDG_STATE_HOME", "")},
    ) as process:
        together = Together(process.pid)
        process.stdin.write(stdin)
        process.stdin.close()
        said = process.stderr.read()
        _, ended, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(ended)
        together.join()
    if process.returncode != status:
        raise SystemExit(f"{command}: ended with {process.returncode}\n{said}")
    return Cost(
        time.monotonic() - started,
        usage.ru_utime + usage.ru_stime,
        max(usage.ru_maxrss / 1024, together.peak_mib),
        usage.ru_maxrss / 1024,
    )


class Together(threading.Thread):
    """The memory of a process and its children at the same time, looked at until it ends.

    What the system keeps is the peak of the largest of them.
    """

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.peak_mib = 0.0
        self._pid = pid
        self.start()

    def run(self):
        while (mib := _resident_mib(self._pid)) > 0:
            self.peak_mib = max(self.peak_mib, mib)
            time.sleep(LOOK_EVERY_S)


def cpu_s_of(pid):
    """Processor time of a process that runs, so far, its children left out."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident_mib(pid):
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024**2 + sum(map(_resident_mib, children))


class Sandbox:
    """A server in a process of its own, with a configuration that points at it and a call log."""

    def __init__(self, folder, process):
        self.configuration = folder / "precheck.toml"
        self.log = folder / "calls.jsonl"
        self._text = self.configuration.read_text()
        self._process = process

    def set(self, **limits):
        """Write the profiles with other limits."""
        text = self._text
        for name, value in limits.items():
            text, count = re.subn(rf"^{name} = .*$", f"{name} = {value}", text, flags=re.MULTILINE)
            assert count, name
        self.configuration.write_text(text)

    def cpu_s(self):
        """Processor time of the server so far."""
        return cpu_s_of(self._process.pid)

    def gateway(self):
        """What a peer needs to ask the same server."""
        section = tomllib.loads(self._text)["profiles"]["production"]["cop"]
        folder = self.configuration.parent
        return section | {
            "ca_file": str(folder / section["ca_file"]),
            "client_secret": (folder / section["client_secret_file"]).read_text().strip(),
        }


@contextmanager
def serving(command):
    """A server in a process of its own, while the block lasts: the process, and the first line it prints."""
    with subprocess.Popen(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=ENVIRONMENT,
    ) as process:
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.terminate()


@contextmanager
def sandbox(folder, *words):
    """Serve until the block ends."""
    command = [*COMMAND, "sandbox", "--folder", folder, "--call-log", folder / "calls.jsonl", *words]
    folder.mkdir()
    with serving(command) as (process, address):
        assert address.startswith("https://"), address
        yield Sandbox(folder, process)


def payments(path, count, *, cop_only=True):
    """Write a file of `count` payments; of distinct ones for one API, unless told otherwise."""
    everything = path.with_name("everything.csv")
    rows = count * 3 + 100 if cop_only else count
    cost_of([*COMMAND, "sandbox", "--write-payments", everything, "--rows", rows, "--force"])
    if not cop_only:
        return everything.rename(path)
    seen = set()
    with everything.open(newline="") as source, path.open("w", newline="") as target:
        reader = csv.DictReader(source)
        writer = csv.DictWriter(target, reader.fieldnames)
        writer.writeheader()
        for row in reader:
            question = (row["sort_code"], row["account_number"])
            if all(map(str.isdigit, question)) and question not in seen and len(seen) < count:
                seen.add(question)
                writer.writerow(row)
    return path


def real_mix(kind, path):
    """A file of payments of which two in five are to be looked at, most of them close matches.

    Args:
        kind: a file of the sandbox's, most of whose names are those of the accounts.
        path: of the file to write.
    """
    with kind.open(newline="") as source, path.open("w", newline="") as target:
        reader = csv.DictReader(source)
        rows = list(reader)
        writer = csv.DictWriter(target, reader.fieldnames)
        writer.writeheader()
        for place, row in enumerate(rows):
            match place % 10:
                case 0:
                    row["name"] = rows[place - 1]["name"]
                case 2 | 5 if row["account_type"] == "Personal":
                    row["name"] = " ".join(row["name"].split(" ", 1)[::-1])
                case 2 | 5:
                    row["name"] = row["name"][1:2].upper() + row["name"][2:]
            writer.writerow(row)
    return path


def run(server, file, out):
    """The command as a user gives it."""
    return [
        *COMMAND, "run", file, "--profile", "production", "--config", server.configuration,
        "--out", out, "--quiet", "--fresh",
    ]  # fmt: skip
