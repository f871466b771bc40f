"""The folder of a run, when a run begins and when it ends: what is there already, and what must go."""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from pipeline.errors import InputError, OutputError, UsageError
from pipeline.formats import NAMES, format_named
from pipeline.formats.whole import refuse_what_is_no_file
from pipeline.jobs import Job
from pipeline.ledger import Ledger
from pipeline.manifest import read_manifest
from pipeline.reports.documents import REPORT_NAMES
from pipeline.stages.read import Source
from schemas.folder import CHANGES, PAYEES, files_of_review
from schemas.manifest import NAME as MANIFEST_NAME
from schemas.strict import parse
from schemas.summary import Summary


def folders(files: Sequence[Path], out: Path | None) -> dict[Path, Path]:
    """Where the results of each file go.

    Raises:
        UsageError: two files would share a folder.
    """
    if len(files) == 1:
        return {files[0]: out or Path(f"{files[0].stem}.precheck")}
    chosen = {file: out / file.stem if out else Path(f"{file.stem}.precheck") for file in files}
    shared = {folder for folder in chosen.values() if list(chosen.values()).count(folder) > 1}
    if shared or len(chosen) < len(files):
        raise UsageError(
            f"{', '.join(str(folder) for folder in shared) or 'FILE'}: named twice; check one alone"
        )
    return chosen


def finished_before(job: Job, source: Source, ledger: Ledger, compared_with: str | None) -> Summary | None:
    """The summary of an earlier run that left nothing to do, if its files are still there.

    Args:
        job: what is to be done.
        source: the payment file.
        ledger: of the folder.
        compared_with: what the file is to be compared with, in words.
    """
    outcome_file = job.out / f"outcomes{format_named(job.format or source.outcome_format).SUFFIX}"
    finish = ledger.last_finish
    if finish is None or ledger.finished_at is None:
        return None
    try:
        summary = parse(Summary, (job.out / "summary.json").read_bytes())
        manifest = read_manifest(job.out)
        hashes = {file.name: file.sha256 for file in manifest.files}
        unchanged = [name for name in ("summary.json", PAYEES, CHANGES) if name in hashes]
        if any(hashes[name] != _sha256(job.out / name) for name in unchanged):
            return None
        if {_sha256(outcome_file), manifest.outcome_file.sha256} != {finish.outcome_sha256}:
            return None
    except (OSError, ValueError, UsageError, InputError):
        return None
    file = summary.input
    said_before = None if summary.compared is None else summary.compared.said
    before = (file.columns, file.decision, file.encoding, file.delimiter, file.sheet, said_before)
    now = (source.read_as, source.decision, source.encoding, source.delimiter, job.sheet, compared_with)
    if before != now:
        return None  # --map or the like was another one, and so were the questions, or what is compared
    nothing = {"request_count": 0, "repeat_count": 0}
    calls = [
        call.model_copy(update={"answered_before_count": call.question_count - call.reused_count, **nothing})
        for call in summary.calls
    ]
    return summary.model_copy(update={"calls": calls})


def _sha256(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def _outcome_files(folder: Path) -> dict[str, Path]:
    return {name: folder / f"outcomes{format_named(name).SUFFIX}" for name in NAMES}


def refuse_what_is_not_ours(folder: Path, *, fresh: bool) -> None:
    """Before anything is sent, see to it that what will be written replaces nobody else's file.

    Raises:
        OutputError: a name of ours is a link or a folder, or a file in a folder without a ledger.
    """
    others = (folder / name for name in ("summary.json", MANIFEST_NAME, PAYEES, CHANGES, *REPORT_NAMES))
    for path in (*_outcome_files(folder).values(), *others):
        refuse_what_is_no_file(path)
        if path.exists() and not fresh and not (folder / "ledger.db").exists():
            raise OutputError(
                f"{path}: exists, and there is no run of this tool in its folder; choose another --out, "
                "or replace it with --fresh"
            )


def remove_stale(folder: Path, format_name: str, *, compared: bool) -> None:
    """An outcome file of an earlier run in the other format would tell an older story."""
    for name, path in _outcome_files(folder).items():
        if name != format_name:
            path.unlink(missing_ok=True)
    if not compared:
        for name in (PAYEES, CHANGES):
            (folder / name).unlink(missing_ok=True)
    # So would what `precheck fix` and `precheck split` made of earlier answers.
    for path in files_of_review(folder):
        path.unlink(missing_ok=True)
