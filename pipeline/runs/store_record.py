"""Which run of a shared ledger the folder of a run belongs to: `store.json`."""

from pathlib import Path

from pipeline.errors import Advice, OtherRunError, OutputError
from pipeline.files.atomic import write_atomically
from schemas.folder import STORE
from schemas.shared import SharedRunRecord
from schemas.strict import parse


def read_store_record(folder: Path) -> SharedRunRecord | None:
    """The shared run that a folder belongs to; None where its ledger is its own.

    Raises:
        OutputError: the record cannot be read.
    """
    path = folder / STORE
    try:
        return parse(SharedRunRecord, path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise OutputError(
            f"{path}: not as the run wrote it", advice=("bring it back from a copy", Advice.OTHER_FOLDER)
        ) from error


def write_store_record(folder: Path, record: SharedRunRecord) -> None:
    """Note which run a folder belongs to, before anything is asked.

    Raises:
        OutputError, DiskError: as `write_atomically`.
    """
    with write_atomically(folder / STORE) as file:
        file.write(record.model_dump_json(indent=2).encode() + b"\n")


def forget_store_record(folder: Path) -> None:
    """Let a folder belong to no shared run."""
    (folder / STORE).unlink(missing_ok=True)


def require_same_ledger(
    folder: Path, record: SharedRunRecord | None, ledger: str | None, *, has_answers: bool
) -> None:
    """Refuse a folder that was begun with another ledger: its questions would be asked again.

    Args:
        folder: of the run.
        record: what it says itself.
        ledger: the address of the ledger of the profile; None where the folder is to have its own.
        has_answers: whether its own ledger has anything on record.

    Raises:
        OtherRunError: the ledgers are not the same.
    """
    if record is None:
        if ledger is not None and has_answers:
            raise OtherRunError(
                f"{folder}: this folder holds a run that was begun without the shared ledger",
                advice=("finish it with a profile without `ledger`", Advice.OTHER_FOLDER, Advice.START_OVER),
            )
        return
    if ledger is None:
        raise OtherRunError(
            f"{folder}: this folder holds a run of the shared ledger {record.ledger}",
            advice=("name that one in the profile", Advice.OTHER_FOLDER, Advice.START_OVER),
        )
    if ledger != record.ledger:
        raise OtherRunError(
            f"{folder}: this folder holds a run of another ledger, {record.ledger}",
            advice=("name that one in the profile", Advice.OTHER_FOLDER, Advice.START_OVER),
        )
