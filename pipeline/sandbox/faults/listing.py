"""The table of faults as text, for `precheck sandbox --list-faults`."""

from collections.abc import Iterator

from pipeline.sandbox.faults.catalogue import SECTIONS, faults
from pipeline.sandbox.faults.selection import FORM


def lines() -> Iterator[str]:
    """Two lines per fault, under the heading of its section: what the server does, and a right client."""
    width = max(len(fault.name) for fault in faults())
    yield f"--fault {FORM}"
    for title, section in SECTIONS:
        yield ""
        yield title.upper()
        for fault in section:
            yield f"{fault.name:<{width}}  server: {fault.what}"
            yield f"{'':<{width}}  client: {fault.client}"
