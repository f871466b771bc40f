"""What people said about columns, by the header line: the same export is read the same way next time."""

import json
from hashlib import sha256

from pipeline.desk.folders import DeskHome
from pipeline.files.atomic import write_atomically
from schemas.columns import ColumnsRead

_NAME = "mappings.json"
REMEMBERED_MAX = 500


def remember(home: DeskHome, read: ColumnsRead, mapping: dict[str, str]) -> None:
    """Keep what was said about the columns of a file that is read by it."""
    known = _known(home)
    key = _key(read)
    if known.get(key, {}) == mapping:
        return
    known.pop(key, None)
    known[key] = mapping
    latest = dict([*known.items()][-REMEMBERED_MAX:])
    with write_atomically(home.path / _NAME) as file:
        file.write(json.dumps(latest).encode())


def remembered(home: DeskHome, read: ColumnsRead) -> dict[str, str]:
    """What was said about a file with the same headers; nothing where there was none."""
    return _known(home).get(_key(read), {})


def _known(home: DeskHome) -> dict[str, dict[str, str]]:
    try:
        known = json.loads((home.path / _NAME).read_bytes())
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _key(read: ColumnsRead) -> str:
    return sha256("\0".join(column.header for column in read.columns).encode()).hexdigest()
