"""The record in a folder of its run in a shared ledger: `store.json`."""

from pathlib import Path

from pipeline.config.profiles import Chosen, ledger_url
from pipeline.errors import OtherRunError, OutputError
from pipeline.files.atomic import write_atomically
from pipeline.files.plain import plain_bytes
from pipeline.stores.protocols import RunLedger
from pipeline.wording import Sentence
from schemas.folder import STORE
from schemas.shared import SharedRunRecord
from schemas.strict import parse


def read_store_record(folder: Path) -> SharedRunRecord | None:
    """Read which shared run a folder belongs to (OutputError: unreadable); None if it has its own ledger."""
    path = folder / STORE
    try:
        return parse(SharedRunRecord, plain_bytes(path))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise OutputError(
            Sentence("runs.not_run_wrote_2", path=path),
            advice=(Sentence("runs.bring_back_from"), Sentence("advice.other_folder")),
        ) from error


def write_store_record(folder: Path, record: SharedRunRecord) -> None:
    """Record a folder's shared run before the first question; same errors as `write_atomically`."""
    with write_atomically(folder / STORE) as file:
        file.write(record.model_dump_json(indent=2).encode() + b"\n")


def forget_store_record(folder: Path) -> None:
    """Delete the record of a folder's shared run."""
    (folder / STORE).unlink(missing_ok=True)


def settled(folder: Path, ledger: RunLedger, chosen: Chosen) -> bool:
    """True if the folder's ledger has everything about a finished run.

    Raises:
        OtherRunError: the folder's run used a shared ledger but the profile has none, or the reverse: its
            questions would be asked again.
        OutputError: the record in the folder cannot be read.
    """
    record, is_shared_now = read_store_record(folder), ledger_url(chosen) is not None
    if is_shared_now is (record is None) and (record is not None or any(ledger.counts)):
        raise OtherRunError(
            Sentence("runs.begun_unshared", folder=folder)
            if record is None
            else Sentence("runs.begun_shared", folder=folder, ledger=record.ledger),
            advice=(
                Sentence("runs.name_same_profile"),
                Sentence("advice.other_folder"),
                Sentence("advice.start_over"),
            ),
        )
    return record is None or record.finished
