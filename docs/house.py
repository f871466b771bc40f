"""The picture of the house, `images/house.svg`: rooms by layer, and who imports whom, drawn from the code.

An arrow that follows from others is left out: where `jobs` imports `runs`, and `runs` imports `files`, no
arrow from `jobs` to `files` is drawn, though `jobs` may import it.
"""

import ast
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from textwrap import wrap
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "images" / "house.svg"
PACKAGE = "pipeline"

WIDTH, ROOM_WIDTH, ROOM_HEIGHT, LAYER_GAP, ROOM_GAP, SIDE_STEP = 1260, 300, 62, 34, 40, 34
LETTERS_IN_LINE, LINES_MAX = 48, 2
STYLE = (
    "text{font-family:system-ui,sans-serif;fill:#1c2733}.name{font-weight:600;font-size:15px}"
    ".what{font-size:11px;fill:#4a5a6a}rect{fill:#f4f7fa;stroke:#7a8c9e;rx:6}"
    "path{fill:none;stroke:#8fa1b3;stroke-width:1.2}svg{background:#fff}"
)

TIP = (
    '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0L8 4L0 8z" style="fill:#8fa1b3;stroke:none"/></marker>'
)


class Room(NamedTuple):
    """A package or a module directly under `pipeline`, and where it is drawn."""

    name: str
    what: str
    x: float
    y: float


def layers() -> list[list[str]]:
    """The rooms by layer, from the top: the one list, in pyproject.toml, by which imports are checked."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    [found] = [contract["layers"] for contract in contracts if contract["id"] == "layers"]
    return [layer.split(" | ") for layer in found]


def imports() -> dict[str, set[str]]:
    """Room -> the rooms that it imports."""
    return {room: set(_imported(room)) - {room} for layer in layers() for room in layer}


def _imported(room: str) -> Iterator[str]:
    for path in _modules(room):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.ImportFrom(module=str(module), names=names):
                    found = [module, *(f"{module}.{alias.name}" for alias in names)]
                case ast.Import(names=names):
                    found = [alias.name for alias in names]
                case _:
                    continue
            yield from (name.split(".")[1] for name in found if name.startswith(f"{PACKAGE}."))


def _modules(room: str) -> list[Path]:
    folder = ROOT / PACKAGE / room
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]


def drawn(edges: Mapping[str, set[str]]) -> set[tuple[str, str]]:
    """The arrows that follow from no others."""
    below: dict[str, set[str]] = {}

    def reach(room: str) -> set[str]:
        if room not in below:
            below[room] = edges[room].union(*(reach(other) for other in edges[room]))
        return below[room]

    return {
        (room, other)
        for room, others in edges.items()
        for other in others & edges.keys()
        if not any(other in reach(between) for between in (others & edges.keys()) - {other})
    }


def _what(room: str) -> str:
    """The first sentence of a room's docstring."""
    folder = ROOT / PACKAGE / room
    path = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    said = (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").split("\n")[0]
    return said.partition(": ")[0] if len(said) > LETTERS_IN_LINE * LINES_MAX else said


def _placed(rows: Sequence[Sequence[str]]) -> dict[str, Room]:
    rooms = {}
    for number, row in enumerate(rows):
        left = (WIDTH - len(row) * ROOM_WIDTH - (len(row) - 1) * ROOM_GAP) / 2
        for at, name in enumerate(row):
            x, y = left + at * (ROOM_WIDTH + ROOM_GAP), 12 + number * (ROOM_HEIGHT + LAYER_GAP)
            rooms[name] = Room(name, _what(name), x, y)
    return rooms


def picture() -> str:
    """The picture, as SVG."""
    rows = layers()
    rooms = _placed(rows)
    height = 24 + len(rows) * (ROOM_HEIGHT + LAYER_GAP) - LAYER_GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        "<title>The rooms of payee-precheck by layer; imports point down</title>",
        f"<style>{STYLE}</style>",
        TIP,
        *(_arrow(rooms[upper], rooms[lower]) for upper, lower in sorted(drawn(imports()))),
        *(_box(room) for room in rooms.values()),
        "</svg>\n",
    ]
    return "\n".join(parts)


def _arrow(upper: Room, lower: Room) -> str:
    """Straight to the next floor; past others, around the side of the house that is nearer."""
    floors = round((lower.y - upper.y) / (ROOM_HEIGHT + LAYER_GAP))
    if floors == 1:
        start, end = upper.x + ROOM_WIDTH / 2, lower.x + ROOM_WIDTH / 2
        top, bottom, bend = upper.y + ROOM_HEIGHT, lower.y, LAYER_GAP / 2
        path = f"M{start:g} {top:g}C{start:g} {top + bend:g} {end:g} {bottom - bend:g} {end:g} {bottom:g}"
    else:
        is_right = upper.x + lower.x + ROOM_WIDTH >= WIDTH
        start, end = ((room.x + (ROOM_WIDTH if is_right else 0)) for room in (upper, lower))
        reach = ROOM_GAP + SIDE_STEP * floors
        aside = max(start, end) + reach if is_right else min(start, end) - reach
        top, bottom = upper.y + ROOM_HEIGHT * 0.7, lower.y + ROOM_HEIGHT * 0.3
        path = f"M{start:g} {top:g}C{aside:g} {top:g} {aside:g} {bottom:g} {end:g} {bottom:g}"
    return f'<path d="{path}" marker-end="url(#tip)"/>'


def _box(room: Room) -> str:
    lines = wrap(room.what, LETTERS_IN_LINE)[:LINES_MAX]
    texts = "".join(
        f'<text class="what" x="{room.x + 12:g}" y="{room.y + 37 + 15 * number:g}">{escape(line)}</text>'
        for number, line in enumerate(lines)
    )
    return (
        f'<rect x="{room.x:g}" y="{room.y:g}" width="{ROOM_WIDTH}" height="{ROOM_HEIGHT}"/>'
        f'<text class="name" x="{room.x + 12:g}" y="{room.y + 20:g}">{escape(room.name)}</text>{texts}'
    )
