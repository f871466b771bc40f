"""Receive uploads: write them as they arrive, under a safe name, and delete incomplete ones."""

import asyncio
import os
import shutil
import unicodedata
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from aiohttp import BodyPartReader, MultipartReader, web

from pipeline.desk.context import Context
from pipeline.desk.folders import DeskHome, FileFolder
from pipeline.desk.people import folded
from pipeline.desk.refusals import DeskRefusal, TooLarge
from pipeline.errors import DiskError
from pipeline.files.private import opened
from pipeline.runs.manifest import identity_of
from pipeline.wording import Sentence, language
from schemas.desk import DeskFile
from schemas.strict import timestamp

CHUNK_BYTES = 256 * 1024
NAME_CHARS_MAX = 120
REPORTS_MAX = 100
_MIB = 1024**2


async def take(context: Context, request: web.Request, by: str) -> FileFolder:
    """Receive an uploaded file, and write it as it arrives; a partial file is deleted.

    Raises DeskRefusal: the file is missing, empty or too large, or this person's total is; DiskError.
    """
    parts = await _parts_of(request)
    part, request_bytes = await file_in(request, parts), request.content_length
    name, now = safe_name(part.filename), timestamp(context.clock())
    file_bytes_max = context.settings.upload_mib_max * _MIB
    owner, arriving = folded(by), context.home.arriving
    room = context.settings.person_mib_max * _MIB - bytes_of(context.home, by) - arriving[owner]
    bytes_max = max(0, min(file_bytes_max, room, request_bytes or room))
    too_large = _too_large(file_bytes_max)
    if room < file_bytes_max:
        too_large = TooLarge(Sentence("desk.room_used_up", size=context.settings.person_mib_max))
    folder = context.home.new_folder(now, context.chance)
    is_whole = False
    arriving[owner] += bytes_max
    try:
        path = folder.path / "input" / name
        digest, byte_count = await _write(part, path, bytes_max, too_large)
        if not byte_count:
            raise DeskRefusal(Sentence("desk.upload_is_empty", file=name))
        file = uploaded(name, digest, byte_count, by, now)
        if await _write_reports(parts, folder.reports, bytes_max - byte_count, too_large):
            file = file.model_copy(update={"reported_by": by})
        await asyncio.to_thread(folder.write, file)
        is_whole = True
    except OSError as error:
        raise DiskError(Sentence("desk.upload_not_saved", name=name, why=error)) from error
    finally:
        arriving[owner] -= bytes_max
        if not is_whole:  # for example because the browser closed the connection
            shutil.rmtree(folder.path, ignore_errors=True)
    return folder


async def made_here(
    context: Context, name: str, by: str, make: Callable[[Path], object]
) -> tuple[FileFolder, DeskFile]:
    """Make a file for a person in a new folder; return the folder, and the file's record to be written."""
    now = timestamp(context.clock())
    folder = context.home.new_folder(now, context.chance)
    path = folder.path / "input" / name
    await asyncio.to_thread(make, path)
    digest, byte_count = await asyncio.to_thread(identity_of, path)
    return folder, uploaded(name, digest, byte_count, by, now)


def uploaded(name: str, digest: str, byte_count: int, by: str, now: str) -> DeskFile:
    """Return the record of a new file: its SHA-256 and length, by whom and when."""
    facts = {"name": name, "sha256": digest, "byte_count": byte_count, "language": language()}
    return DeskFile.model_validate({**facts, "uploaded_by": by, "uploaded_at": now})


def uploaded_facts(file: DeskFile, carried_count: int) -> dict[str, str | int]:
    """Facts about an upload for the audit."""
    carried = {"carried_count": carried_count} if carried_count else {}
    return {"sha256": file.sha256, "byte_count": file.byte_count, **carried}


async def uploaded_to(path: Path, request: web.Request, *, bytes_max: int) -> None:
    """Write the only file of an upload (DeskRefusal: missing or too large)."""
    await _write(await file_in(request), path, bytes_max, _too_large(bytes_max))


async def take_reports(context: Context, request: web.Request, folder: FileFolder) -> None:
    """Replace the bank's latest reports with uploaded ones (DeskRefusal: none)."""
    bytes_max = context.settings.upload_mib_max * _MIB
    arriving = folder.path / f"reports-{context.chance()}"
    try:
        if not await _write_reports(await _parts_of(request), arriving, bytes_max, _too_large(bytes_max)):
            raise DeskRefusal(Sentence("desk.choose_a_file"))
        shutil.rmtree(folder.reports, ignore_errors=True)
        arriving.rename(folder.reports)
    except OSError as error:
        raise DiskError(Sentence("desk.upload_not_saved", name=folder.id, why=error)) from error
    finally:
        shutil.rmtree(arriving, ignore_errors=True)


async def _write_reports(
    parts: MultipartReader | None, folder: Path, bytes_max: int, too_large: TooLarge
) -> int:
    count = 0
    while parts is not None and (part := await parts.next()) is not None:
        if not isinstance(part, BodyPartReader) or part.name != "report" or not part.filename:
            continue
        count += 1
        if count > REPORTS_MAX:
            raise too_large
        place = folder / f"{count:03}"
        place.mkdir(mode=0o700, parents=True)
        bytes_max -= (await _write(part, place / safe_name(part.filename), bytes_max, too_large))[1]
    return count


async def _write(part: BodyPartReader, path: Path, bytes_max: int, too_large: TooLarge) -> tuple[str, int]:
    """Write a file as it arrives; return its SHA-256 and its length."""
    digest, byte_count = sha256(), 0
    with opened(path, os.O_EXCL) as file:
        while chunk := await part.read_chunk(CHUNK_BYTES):
            byte_count += len(chunk)
            if byte_count > bytes_max:
                raise too_large
            digest.update(chunk)
            await asyncio.to_thread(file.write, chunk)
    return digest.hexdigest(), byte_count


def _too_large(bytes_max: int) -> TooLarge:
    return TooLarge(Sentence("desk.upload_too_large", size=bytes_max // _MIB))


async def _parts_of(request: web.Request) -> MultipartReader | None:
    return await request.multipart() if request.content_type == "multipart/form-data" else None


async def file_in(request: web.Request, parts: MultipartReader | None = None) -> BodyPartReader:
    """Find the file in an upload (DeskRefusal: missing)."""
    parts = parts or await _parts_of(request)
    if parts is not None:
        part = await parts.next()
        if isinstance(part, BodyPartReader) and part.name == "file" and part.filename:
            return part
    raise DeskRefusal(Sentence("desk.choose_a_file"))


def safe_name(claimed: str | None) -> str:
    r"""Turn the name of an upload into a safe file name.

    >>> safe_name("C:\\pay\\November.CSV"), safe_name("../../etc/x.csv"), safe_name(".csv")
    ('November.CSV', 'x.csv', 'payments.csv')
    >>> safe_name("a\u202eb.csv")
    'ab.csv'

    Raises DeskRefusal: the name is missing.
    """
    if not claimed:
        raise DeskRefusal(Sentence("desk.choose_a_file"))
    last = claimed.replace("\\", "/").rpartition("/")[2]
    kept = "".join(one for one in unicodedata.normalize("NFC", last) if one.isprintable()).strip()
    stem, dot, suffix = kept.rpartition(".") if "." in kept else (kept, "", "")
    stem = stem.strip(". ")[: NAME_CHARS_MAX - 20] or "payments"
    encoded = stem.encode(errors="ignore")[:180].decode(errors="ignore")
    return f"{encoded}{dot}{suffix[:12]}"


def bytes_of(home: DeskHome, by: str) -> int:
    """Return the size in bytes of one person's uploads at the desk, without unreadable folders."""
    kept = (file for file in home.files().values() if file.purged_at is None)
    return sum(file.byte_count for file in kept if folded(file.uploaded_by) == folded(by))
