"""Layouts of banks, bureaus and the user: lines of cells without headers, recognised by tags and shapes.

The built-in layouts are in one table (`table`), in the form of a `[layouts.NAME]` section (`model`).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from pipeline.errors import ConfigurationError
from pipeline.formats.edits import Edit
from pipeline.formats.layouts import reading, writing
from pipeline.formats.layouts.model import UK_ACCOUNT, BankLayout
from pipeline.formats.layouts.recognition import fits, known_by
from pipeline.formats.layouts.table import LAYOUTS
from pipeline.formats.message import Message, Role, split_obstacle
from pipeline.formats.table import ReadingOptions, load
from pipeline.wording import Sentence

__all__ = ["LAYOUTS", "BankLayout", "LayoutFormat", "layout_formats"]


@dataclass(frozen=True, slots=True)
class LayoutFormat:
    """A layout as a format."""

    NAME: str
    layout: BankLayout
    SUFFIXES: tuple[str, ...] = (".csv", ".txt")
    MEMORY_PER_BYTE: int = 20
    OPTIONS: tuple[str, ...] = ("encoding",)
    load = staticmethod(load)
    split_obstacle = staticmethod(split_obstacle)

    def sniff(self, head: bytes) -> bool:
        """True if a file starts as this layout prescribes."""
        return fits(head, self.layout)

    @property
    def TITLE(self) -> str:  # noqa: N802 - like the constants of other formats
        """The title of the layout, for people."""
        return self.layout.title

    @property
    def KNOWN_BY(self) -> Sentence:  # noqa: N802 - like the constants of other formats
        """How its files start, in words."""
        return known_by(self.layout)

    @property
    def ORIGINS(self) -> Mapping[str, Sentence]:  # noqa: N802 - like the constants of other formats
        """Field -> its cells, counted from 1."""
        numbers: dict[str, list[int]] = {}
        for kind in self.layout.payments:
            for field, place in kind.columns.items():
                for one in ("sort_code", "account_number") if field == UK_ACCOUNT else (field,):
                    numbers.setdefault(one, []).append(place)
        origins = {
            field: Sentence("column.cells", cells=[str(cell) for cell in sorted({*cells})])
            for field, cells in numbers.items()
        }
        currencies = list(dict.fromkeys(kind.currency for kind in self.layout.payments if kind.currency))
        return {"currency": Sentence("column.by_the_format", currencies=currencies), **origins}

    def read(self, data: bytes, options: ReadingOptions, *, where: str) -> Message:
        """Read a file; see `reading.read`."""
        return reading.read(data, self.layout, encoding=options.encoding, where=where)

    def fitted(self, name: str) -> str | None:
        """Return a name as the bank accepts it; None if it cannot be written."""
        return writing.fitted(name, self.layout)

    def obstacle(self, message: Message) -> Sentence | None:
        """Return why a file must not be changed; None if it may."""
        return writing.obstacle(self.layout, message)

    def name_obstacle(self, message: Message, row: int, name: str) -> Sentence | None:
        """Return why a payee cannot get a name; None if it can."""
        return writing.name_obstacle(self.layout, message, row, name)

    def renamed(self, data: bytes, message: Message, names: Mapping[int, str]) -> list[Edit]:
        """Return the edits that give payees new names; see `writing.renamed`."""
        return writing.renamed(data, self.layout, message, names)

    def kept(
        self,
        data: bytes,
        message: Message,
        keep: pl.Series,
        role: Role,  # noqa: ARG002 - layouts have no IDs of their own
    ) -> list[Edit]:
        """Return the edits that keep only these payments; see `writing.kept`."""
        return writing.kept(data, self.layout, message, keep)


def layout_formats(own: Mapping[str, BankLayout]) -> dict[str, LayoutFormat]:
    """Return the formats of all layouts by name; configured ones never have a built-in name."""
    for name in own:
        if name in LAYOUTS:
            raise ConfigurationError(Sentence("layouts.layouts_there_layout", name=name))
    titled = {name: layout.model_copy(update={"title": layout.title or name}) for name, layout in own.items()}
    return {name: LayoutFormat(name, layout) for name, layout in {**LAYOUTS, **titled}.items()}
