"""The sheets of a workbook, and the choice of one. Source: ECMA-376-1, 18.2 (workbook)."""

import posixpath
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pipeline.errors import InputError
from pipeline.files.expansion import SizeBudget
from pipeline.formats.excel.archive import parse
from pipeline.formats.excel.cells import Cells, Shared, count_cells, shared_by_cells
from pipeline.headers.columns import is_sufficient, recognised
from pipeline.wording import Sentence

_WORKBOOK = "xl/workbook.xml"
_RELATIONS = "xl/_rels/workbook.xml.rels"
_NAMES_QUOTED_MAX = 20
_NAME_QUOTED_LENGTH_MAX = 31  # the longest sheet name that spreadsheet programs allow
_HEADERS_QUOTED_LENGTH_MAX = 120


class Sheet(NamedTuple):
    """One sheet of a workbook."""

    name: str
    is_visible: bool
    part: str  # its XML in the archive


def sheets_of(archive: zipfile.ZipFile) -> list[Sheet]:
    """Return the sheets with cells, in order; chart sheets have none.

    Raises KeyError, ValueError, ExpatError: it is not a workbook.
    """
    parts: dict[str, str] = {}
    found: list[tuple[str, str, str]] = []

    def relation(name: str, attributes: Mapping[str, str]) -> None:
        if name.endswith(" Relationship") and attributes["Type"].endswith("/worksheet"):
            # Relative to the workbook's folder, or, with a leading slash, to the root.
            path = posixpath.normpath(posixpath.join("/xl", attributes["Target"]))
            parts[attributes["Id"]] = path.removeprefix("/")

    def sheet(name: str, attributes: Mapping[str, str]) -> None:
        if name == "sheet":
            [key] = [value for key, value in attributes.items() if key.endswith("/relationships id")]
            found.append((attributes["name"], attributes.get("state", "visible"), key))

    with archive.open(_RELATIONS) as file:
        parse(file, start=relation)
    with archive.open(_WORKBOOK) as file:
        parse(file, start=sheet)
    return [Sheet(name, state == "visible", parts[key]) for name, state, key in found if key in parts]


def chosen(
    archive: zipfile.ZipFile, name: str | None, *, bytes_max: int, headers_of: Callable[[str], Sequence[str]]
) -> tuple[Sheet, Cells]:
    """Choose the sheet of this name, even hidden; else the only visible one with data, or payments.

    `bytes_max` limits the cells, as in `expansion.table_bytes_max`. Raises InputError: the sheet does not
    exist, the choice is ambiguous, or a sheet is too large for payments.
    """
    sheets = sheets_of(archive)
    shared = shared_by_cells(archive, SizeBudget(bytes_max))
    if name is not None:
        named = next((sheet for sheet in sheets if sheet.name == name), None)
        if named is None:
            raise InputError(_refusal("excel.no_such_sheet", sheets), advice=Sentence("advice.name_sheet"))
        return named, _calculated(archive, named, shared, bytes_max)
    counted = [
        (sheet, _calculated(archive, sheet, shared, bytes_max)) for sheet in sheets if sheet.is_visible
    ]
    with_data = [(sheet, cells) for sheet, cells in counted if not cells.are_none]
    if len(with_data) == 1:
        return with_data[0]
    refusal = _refusal("excel.no_visible_sheet_with_data", sheets)
    if with_data:
        headers = [headers_of(sheet.name) for sheet, _ in with_data]
        able = [is_sufficient(recognised(cells, {})) for cells in headers]
        if sum(able) == 1:
            return with_data[able.index(True)]
        firsts = [", ".join(filter(None, cells))[:_HEADERS_QUOTED_LENGTH_MAX] for cells in headers]
        refusal = _refusal("excel.several_sheets_with_data", [sheet for sheet, _ in with_data], firsts)
    raise InputError(refusal, advice=Sentence("advice.name_sheet"))


def all_counted(archive: zipfile.ZipFile, *, bytes_max: int) -> Iterator[Cells]:
    """Count all sheets, even hidden ones (InputError: larger than any payment file)."""
    shared = shared_by_cells(archive, SizeBudget(bytes_max))
    for sheet in sheets_of(archive):
        yield _counted(archive, sheet, shared, bytes_max)


def _calculated(archive: zipfile.ZipFile, sheet: Sheet, shared: Shared, bytes_max: int) -> Cells:
    cells = _counted(archive, sheet, shared, bytes_max)
    if cells.uncalculated_row is not None:
        raise InputError(Sentence("excel.formula_never_calculated", uncalculated_row=cells.uncalculated_row))
    return cells


def _counted(archive: zipfile.ZipFile, sheet: Sheet, shared: Shared, bytes_max: int) -> Cells:
    with archive.open(sheet.part) as file:
        return count_cells(file, shared, SizeBudget(bytes_max))


def _refusal(key: str, sheets: list[Sheet], headers: Sequence[str] = ()) -> Sentence:
    """Return a sentence with the sheets' names as `sheets` and their headers as `headers`."""
    names = [sheet.name[:_NAME_QUOTED_LENGTH_MAX] for sheet in sheets[:_NAMES_QUOTED_MAX]]
    shown = [
        Sentence("excel.sheet" if sheet.is_visible else "excel.hidden_sheet", name=name)
        for sheet, name in zip(sheets, names, strict=False)
    ]
    more_count = len(sheets) - len(names)
    if not names:
        listed = Sentence("excel.no_sheets")
    elif more_count:
        listed = Sentence("excel.sheets_and_more", sheets=shown, more_count=more_count)
    else:
        listed = Sentence("excel.sheets", sheets=shown)
    return Sentence(key, listed=listed, sheets=names, headers=[*headers[:_NAMES_QUOTED_MAX]])
