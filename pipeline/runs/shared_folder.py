"""Which run of a shared ledger the folder of a run belongs to: `store.json`."""

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
    """The shared run that a folder belongs to, or an OutputError; None if its ledger is its own."""
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
    """Note which run a folder belongs to, before anything is asked; raises as `write_atomically`."""
    with write_atomically(folder / STORE) as file:
        file.write(record.model_dump_json(indent=2).encode() + b"\n")


def forget_store_record(folder: Path) -> None:
    """Let a folder belong to no shared run."""
    (folder / STORE).unlink(missing_ok=True)


def settled(folder: Path, ledger: RunLedger, chosen: Chosen) -> bool:
    """True if the ledger of a folder says all there is to know of a run that has finished in it.

    Raises:
        OtherRunError: the folder was begun with a shared ledger and the profile has none, or the reverse: its
            questions would be asked again.
        OutputError: what the folder says of that cannot be read.
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
