"""A desk in a process of its own, and somebody who asks it for pages."""

import os
import re
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from children import COMMAND, ENVIRONMENT, cpu_s_of, serving

CHECK_MAX_S = 600
MB = 1_000_000


class Desk:
    """A desk that runs, and a person who has come in by its link."""

    def __init__(self, process, link):
        parts = urlsplit(link)
        self.process = process
        self.link = link
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self._client = httpx.Client(
            base_url=self.origin,
            headers={"Origin": self.origin, "Sec-Fetch-Site": "same-origin"},
            timeout=CHECK_MAX_S,
        )
        self.post("/enter", token=parts.query.removeprefix("token="))

    def get(self, path):
        """A page."""
        return _right(self._client.get(path))

    def post(self, path, part=None, **fields):
        """A form that is sent; a `part` of a page is what its scripts ask for."""
        return _right(self._client.post(path, data=fields, headers={"X-Part": part} if part else {}))

    def upload(self, file, profile):
        """The id of a file that was uploaded and planned."""
        answer = _right(self._client.post("/files", files={"file": (file.name, file.read_bytes())}))
        at = answer.headers["Location"].split("/")[2]
        self.post(f"/files/{at}/columns", then="plan")
        self.post(f"/files/{at}/plan", profile=profile)
        return at

    def start(self, at, profile):
        """Have a planned file checked."""
        self.post(f"/files/{at}/start", profile=profile, planned=profile)

    def is_checking(self, at):
        return self.get(f"/files/{at}/progress.json").json()["is_on"]

    def wait(self, at):
        """Until a check has ended."""
        deadline = time.monotonic() + CHECK_MAX_S
        while self.is_checking(at):
            if time.monotonic() > deadline:
                raise SystemExit("a check at the desk never ended")
            time.sleep(0.1)

    def new_link(self, home):
        """A link for a browser."""
        words = ["desk", "--home", home, "--new-link", "Mara"]
        command = [str(word) for word in (*COMMAND, *words)]
        return subprocess.run(
            command, env=ENVIRONMENT, capture_output=True, text=True, check=True
        ).stdout.strip()

    def cpu_s(self):
        """Processor time of the desk so far, without that of the checks that it started."""
        return cpu_s_of(self.process.pid)

    def resident_mb(self):
        """Memory of the desk itself."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / MB

    def each_ms(self, ask, times):
        """What each of several pages costs the desk, and the bytes of the largest of them."""
        before = self.cpu_s()
        sizes = [len(ask(number).content) for number in range(times)]
        return (self.cpu_s() - before) / times * 1000, max(sizes)


@contextmanager
def served_desk(home, *words):
    """A desk of one person, until the block ends."""
    command = [*COMMAND, "desk", "--home", home, "--port", "0", "--no-browser", *words]
    with serving(command) as (process, link):
        assert re.match("http://127.0.0.1:[0-9]+/", link), link
        yield Desk(process, link)


def _right(answer):
    if answer.status_code not in (200, 303):
        raise SystemExit(f"{answer.request.method} {answer.request.url.path}: {answer.status_code}")
    return answer
