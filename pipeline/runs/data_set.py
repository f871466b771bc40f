"""A data set: a folder of payment files, the parts of one table, or a large Parquet file."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from pipeline.errors import InputError
from pipeline.files.disk_errors import OTHER_WORK_FOLDER, writing
from pipeline.files.dividing import divide_parquet
from pipeline.files.plain import plain_bytes, real_path
from pipeline.formats import parquet
from pipeline.formats.registry import PART_NAMES, entry_named
from pipeline.runs.folder import keep_document
from pipeline.runs.manifest import identity_of, identity_of_parts, parts_in
from pipeline.runs.work_folder import PartFiles
from pipeline.wording import Sentence
from schemas.data_set import DataSetRecord, PartKept
from schemas.folder import DATA_SET
from schemas.row_positions import RowPositions
from schemas.strict import parse

_ENTRIES = [entry_named(name) for name in PART_NAMES]
PART_ROWS = 500_000  # how many rows a part has when a file is divided
_PACKED = ".gz"


class DataPart(NamedTuple):
    """One part of a data set, which is a file."""

    number: int  # from 0, in the order of names
    file: Path  # absolute, because a worker elsewhere has another working folder
    name: str
    outcome_name: str  # the name of the outcome file, without its suffix
    sha256: str
    byte_count: int


class DataSet(NamedTuple):
    """A data set, with its parts."""

    path: Path
    format: str
    parts: tuple[DataPart, ...]
    sha256: str  # SHA-256 of the names and bytes of all parts, or of the file that was divided into them
    divided: Path | None = None  # the folder of the parts that a file was divided into, until the end

    @property
    def outcome_format(self) -> str:
        """The default format of outcomes."""
        return entry_named(self.format).outcomes.NAME

    @property
    def byte_count(self) -> int:
        """The size of all parts together."""
        return sum(part.byte_count for part in self.parts)


def open_data_set(path: Path, work: Path) -> DataSet:
    """Find and hash the parts of a data set; a single Parquet file is first divided in the work folder.

    Raises InputError: no file, or not parts of one table; OutputError, DiskError: they cannot be written.
    """
    if not path.is_dir():
        return _divided(path, work)
    files = _files_in(path)
    found: dict[str, Path] = {}
    for file in files:
        suffix = Path(file.name.lower().removesuffix(_PACKED)).suffix
        known = next((some.format for some in _ENTRIES if suffix in some.format.SUFFIXES), None)
        if known is None:
            raise InputError(Sentence("runs.part_of_unknown_format", foreign=file, formats=list(PART_NAMES)))
        found.setdefault(known.NAME, file)
    (format_name, first), *others = found.items()
    for other_name, second in others:
        one = {"first": first.name, "first_format": format_name}
        other = {"second": second.name, "second_format": other_name}
        raise InputError(Sentence("runs.parts_of_two_formats", path=path, **one, **other))
    names = _outcome_names(files)
    parts = tuple(
        DataPart(number, file.absolute(), file.name, name, *_identity(file))
        for number, (file, name) in enumerate(zip(files, names, strict=True))
    )
    return DataSet(path, format_name, parts, identity_of_parts((part.name, part.sha256) for part in parts))


def _divided(path: Path, work: Path) -> DataSet:
    """Return a Parquet file as a data set, writing its rows to parts unless these exist."""
    if path.suffix.lower() not in parquet.SUFFIXES:
        raise InputError(Sentence("runs.not_a_data_set", path=path))
    sha256, _ = _identity(path)
    if not sha256:
        raise InputError(Sentence("runs.parquet_file_unreadable", path=path))
    folder = real_path(work) / f"parts-{sha256[:32]}"
    whole = folder / "whole"
    with writing(folder, otherwise=OTHER_WORK_FOLDER):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not whole.exists():
            divide_parquet(path, folder, rows_max=PART_ROWS)
            whole.touch()
    files = sorted(folder.glob("part-*.parquet"))
    if not files:
        raise InputError(Sentence("runs.no_payment_rows", path=path))
    parts = tuple(
        DataPart(number, file, file.name, file.stem, *_identity(file)) for number, file in enumerate(files)
    )
    return DataSet(path, parquet.NAME, parts, sha256, folder)


def known_in(folder: Path, data: DataSet) -> tuple[DataSet, str]:
    """Return a data set and its identity in the ledger, which fixing or removing unusable parts keeps."""
    record = read_record(folder)
    if record is None:
        return data, data.sha256
    now = {part.name: part.sha256 for part in data.parts}
    before = {part.name: (not part.is_usable, place) for place, part in enumerate(record.parts)}
    is_unchanged = all(now.get(part.name) == part.sha256 for part in record.parts if part.is_usable)
    if not is_unchanged or not before.keys() >= now.keys():
        return data, data.sha256
    # Fixed parts come last, because decisions and releases name the rows by number.
    parts = sorted(data.parts, key=lambda part: before[part.name])
    return data._replace(parts=tuple(parts)), record.input_sha256


def read_record(folder: Path) -> DataSetRecord | None:
    """Read the record of the data set whose run is in the folder; None if there is none."""
    try:
        return parse(DataSetRecord, plain_bytes(folder / DATA_SET))
    except (OSError, ValueError):
        return None


def write_record(
    folder: Path, data: DataSet, input_sha256: str, unusable: Collection[int], files: PartFiles
) -> None:
    """Record the parts of a data set, and remove the work folder of the previous one."""
    parts = [
        PartKept(name=part.name, sha256=part.sha256, is_usable=part.number not in unusable)
        for part in sorted(data.parts, key=lambda part: part.number in unusable)
    ]
    before = read_record(folder)
    record = DataSetRecord(input_sha256=input_sha256, parts=parts, work=str(files.root))
    if before is not None and before.work != record.work:
        PartFiles(Path(before.work)).remove()
    keep_document(folder / DATA_SET, record)


def places_in(parts: Iterable[DataPart], row_counts: Iterable[int]) -> RowPositions:
    """Return the positions of a data set's rows: the part, and the row within the part."""
    names, stretches, row = [], [], 1
    for number, (part, row_count) in enumerate(zip(parts, row_counts, strict=True), start=1):
        names.append(part.name)
        stretches.append((row, number, 0))
        row += row_count
    return RowPositions(unit="part", stretches=stretches, names=names)


def _files_in(path: Path) -> list[Path]:
    try:
        found = parts_in(path)
    except OSError as error:
        raise InputError(Sentence("runs.data_set_folder_unreadable", path=path, why=error)) from error
    for file in found:
        if file.is_dir():
            raise InputError(Sentence("runs.folder_in_data_set", file=file))
    if not found:
        raise InputError(Sentence("runs.data_set_without_files", path=path))
    return found


def _outcome_names(files: Iterable[Path]) -> list[str]:
    """Return unique names for the outcome files, each beginning with `part-`."""
    names: list[str] = []
    for file in files:
        stem = file.name[: -len(_PACKED)] if file.name.lower().endswith(_PACKED) else file.name
        name = "part-" + Path(stem).stem.removeprefix("part-")
        if name.casefold() in {other.casefold() for other in names}:
            raise InputError(Sentence("runs.part_name_taken", file=file))
        names.append(name)
    return names


def _identity(file: Path) -> tuple[str, int]:
    """Return SHA-256 and size. If the file is unreadable, the hash is empty: reading reports the error."""
    try:
        return identity_of(file)
    except OSError:
        return "", 0
