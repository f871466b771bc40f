"""What a person at a command line reads of an error."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pipeline.errors import PrecheckError
from pipeline.wording import SurfaceKind


@contextmanager
def refused(kind: type[PrecheckError], match: str) -> Iterator[pytest.ExceptionInfo[PrecheckError]]:
    """The block ends in this error, and its sentence has this in it in the words of the command line."""
    with pytest.raises(kind) as raised:
        yield raised
    [sentence] = raised.value.sentences(SurfaceKind.COMMAND)
    assert re.search(match, sentence), sentence
