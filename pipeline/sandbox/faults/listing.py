"""Print the table of faults, for `precheck sandbox --list-faults`."""

from collections.abc import Callable, Iterator
from textwrap import wrap

from pipeline.sandbox.faults.catalogue import FAULTS, SECTIONS
from pipeline.sandbox.faults.selection import FORM
from pipeline.wording import SurfaceKind, rendered

_WIDTH = 80


def lines(translate: Callable[[str], str]) -> Iterator[str]:
    """List the faults by section: each name, what the server does, and how a correct client reacts.

    `translate` translates a text. Only names start at the beginning of a line.
    """
    width = max(map(len, FAULTS))
    server, client = translate("server: "), translate("client: ")
    yield from _beside("--fault ", rendered(FORM, SurfaceKind.COMMAND))
    for title, section in SECTIONS:
        yield ""
        yield translate(title).upper()
        for fault in section:
            yield from _beside(f"{fault.name:<{width}}  {server}", translate(fault.what))
            yield from _beside(f"    {client}", translate(fault.client))


def _beside(head: str, text: str) -> list[str]:
    """Wrap a text for a terminal, to the right of its head."""
    return wrap(
        text,
        _WIDTH,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )
