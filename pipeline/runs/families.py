"""Families of files that share payments, known by the first file and row, so that none is paid twice."""

import errno
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from glob import escape
from itertools import chain, groupby
from os.path import relpath
from pathlib import Path
from typing import NamedTuple

from pipeline.errors import InputError, UsageError
from pipeline.files.disk_errors import not_writable
from pipeline.files.plain import plain_bytes, real_path
from pipeline.files.private import locked
from pipeline.runs.manifest import read_manifest
from schemas.folder import CORRECTED, FAMILY, FAMILY_LOCK, MANIFEST
from schemas.manifest import Manifest, SplitMade
from schemas.review import Decision
from schemas.summary import MadeOf

_READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)


class Origin(NamedTuple):
    """The run that made a file of corrected, held or released payments."""

    folder: Path
    manifest: Manifest
    rows: Sequence[int] | None  # each payment's row in that run's file; None: all rows, in order


def origin_in(folders: Iterable[Path], sha256: str) -> Origin | None:
    """Return the run, among these folders, that made a file; None if none of them did."""
    for folder, manifest in _naming(folders, sha256):
        if manifest.input.sha256 == sha256:
            continue  # the same file again, which holds its own payments
        is_there = any(
            file.sha256 == sha256 and file.name.startswith(f"{CORRECTED}.") for file in manifest.files
        )
        if is_there or any(
            approval.decision is Decision.FIX and sha256 in approval.what for approval in manifest.approvals
        ):
            return Origin(folder, manifest, None)
        for split in _splits(manifest):
            for file, rows in ((split.hold, split.held_rows), (split.release, _released_rows(split))):
                if file is not None and file.sha256 == sha256:
                    return Origin(folder, manifest, rows)
    return None


def made_of(file: Path, sha256: str, out: Path) -> MadeOf | None:
    """Return the run that made a file, found beside it, its own run's or its namesakes; None if unknown."""
    lies_in, own = real_path(file).parent, real_path(out)
    of_its_name = [path.parent for path in own.parent.parent.glob(f"*/{escape(own.name)}/{MANIFEST}")]
    found = origin_in([lies_in, *_beside(own), *of_its_name], sha256)
    if found is None or found.folder == own:
        return None
    first, rows = identity(found.manifest)
    mine = _composed(rows, found.rows)
    if found.folder not in set(_beside(own)):
        _register(found.folder, own)
    return MadeOf(
        folder=relpath(found.folder, own),
        name=found.manifest.input.name,
        is_corrected=found.rows is None,
        first_sha256=first,
        rows=None if mine is None else [*ranges(mine)],
    )


def identity(manifest: Manifest) -> tuple[str, Sequence[int] | None]:
    """Return the SHA-256 of a family's first file, and the rows of that file; None: all rows, in order."""
    before = manifest.input.made_of
    if before is None:
        return manifest.input.sha256, None
    return before.first_sha256, None if before.rows is None else listed(before.rows)


@contextmanager
def splitting(folder: Path) -> Iterator[None]:
    """Prevent other splits in a family during the block, by locking its runs in order, except read-only ones.

    Raises as `read_manifest`, and OutputError, DiskError: a run cannot be locked.
    """
    own = real_path(folder)
    first, _ = identity(read_manifest(own))
    with ExitStack() as locks:
        for path in sorted(other / FAMILY_LOCK for other, _ in _family(own, first)):
            try:
                locks.enter_context(locked(path))
            except OSError as error:
                if error.errno not in _READ_ONLY:
                    raise not_writable(path, error) from error
        yield


def released_before(folder: Path) -> dict[int, str]:
    """Map each row to the release file of the family that already had its payment; raises as `read_manifest`.

    The folder's own releases count only if their answers were replaced, because their files are gone.
    Releases based on simulated answers are never paid, so they count only for simulated corrections.
    """
    own = real_path(folder)
    manifest = read_manifest(own)
    first, rows = identity(manifest)
    mine = None if rows is None else {row: own_row for own_row, row in enumerate(rows, 1)}
    found: dict[int, str] = {}
    for other, theirs in _family(own, first):
        _, its_rows = identity(theirs)
        is_correction = theirs.input.sha256 != manifest.input.sha256
        if theirs.simulated and not (manifest.simulated and is_correction):
            continue
        for split in theirs.replaced_splits if other == own else _splits(theirs):
            if split.release is None:
                continue
            released = f"{split.release.name} of {theirs.input.name}, SHA-256 {split.release.sha256}"
            for row in _composed(its_rows, _released_rows(split)) or ():
                if (own_row := row if mine is None else mine.get(row)) is not None:
                    found[own_row] = released
    return found


def ranges(rows: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last row of each unbroken range of sorted rows."""
    for _, stretch in groupby(enumerate(rows), lambda one: one[1] - one[0]):
        some = [row for _, row in stretch]
        yield some[0], some[-1]


def listed(stretches: Iterable[tuple[int, int]]) -> list[int]:
    """Return the rows in these ranges, one by one."""
    return [*chain.from_iterable(range(first, last + 1) for first, last in stretches)]


def _composed(rows: Sequence[int] | None, some: Sequence[int] | None) -> Sequence[int] | None:
    """Return a file's rows as rows of the file that it was made from; None: all rows, in order."""
    if some is None or rows is None:
        return some if rows is None else rows
    return [rows[row - 1] for row in some]


def _released_rows(split: SplitMade) -> list[int]:
    """Return the rows of the release file; a data set may have more rows by now."""
    held = {*split.held_rows}
    row_count = len(held) + (0 if split.release is None else split.release.row_count)
    return [row for row in range(1, row_count + 1) if row not in held]


def _splits(manifest: Manifest) -> list[SplitMade]:
    return [*manifest.replaced_splits, *manifest.splits]


def _naming(folders: Iterable[Path], sha256: str) -> Iterator[tuple[Path, Manifest]]:
    """Yield the folders whose manifest contains this hash; other manifests are not parsed."""
    for folder in folders:
        with suppress(OSError, InputError, UsageError):
            if sha256.encode() in plain_bytes(folder / MANIFEST):
                yield folder, read_manifest(folder)


def _beside(folder: Path) -> list[Path]:
    return [real_path(path.parent) for path in folder.parent.glob(f"*/{MANIFEST}")]


def _family(folder: Path, first: str) -> Iterator[tuple[Path, Manifest]]:
    """Yield a family's runs: those beside one of its runs, and those of files made from each other."""
    seen: set[Path] = set()
    to_look_beside = [folder]
    while to_look_beside:
        here = to_look_beside.pop()
        for other, manifest in _naming([here, *_beside(here)], first):
            if other in seen or identity(manifest)[0] != first:
                continue
            seen.add(other)
            yield other, manifest
            before = manifest.input.made_of
            with suppress(OSError, ValueError):
                lines = [*_made_elsewhere(other), *([] if before is None else [before.folder])]
                to_look_beside += [path for line in lines if (path := real_path(other / line)) not in seen]


def _made_elsewhere(folder: Path) -> list[str]:
    path = folder / FAMILY
    return plain_bytes(path).decode().splitlines() if path.exists() else []


def _register(folder: Path, own: Path) -> None:
    """Record in a run that a file elsewhere was made from it; read-only folders are skipped."""
    with suppress(OSError):
        if (line := relpath(own, folder)) not in _made_elsewhere(folder):
            path = folder / FAMILY
            path.touch(mode=0o600)
            with path.open("a") as file:
                file.write(f"{line}\n")
