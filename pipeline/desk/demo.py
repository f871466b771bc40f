"""A demonstration desk: five invented files in five states, with simulated answers."""

import shutil
import time
from collections.abc import Callable
from datetime import datetime

from pipeline.desk import checks
from pipeline.desk.families import by_row, released_before
from pipeline.desk.folders import DeskHome, FileFolder
from pipeline.desk.jobs import SIMULATED
from pipeline.desk.people import ALONE, Person
from pipeline.desk.releasing import (
    Decided,
    ToApprove,
    approve,
    approved_facts,
    decide,
    shaped_by,
    shaping,
    signed,
)
from pipeline.desk.review import reviewed
from pipeline.desk.states import status_of
from pipeline.desk.uploads import uploaded
from pipeline.runs.manifest import identity_of
from pipeline.wording import Sentence, language, words
from schemas.desk import Deed
from schemas.review import Act, Decision
from schemas.strict import timestamp

_WAIT_S = 0.1
_FILES = ("new_suppliers.csv", "refunds.csv", "payroll.csv", "suppliers.csv", "rents.csv")
"""One each: new, planned, to review, waiting for approval, released."""
PREFIX = "precheck-demo-"
CONFIG = '[profiles.sandbox.policy]\nclose_match = "review"\n'
"""A policy that leaves rows for the reviewer and decisions for the approver."""
Clock = Callable[[], datetime]


def fill(home: DeskHome, clock: Clock, chance: Callable[[], str], environment: dict[str, str]) -> None:
    """Create the files and check the last three; same errors as the jobs."""
    from pipeline.sandbox.samples import write_dummy_payments

    ulla, rita, anna = (Person(name, ALONE) for name in ("Ulla (demo)", "Rita (demo)", "Anna (demo)"))
    folders = []
    for number, name in enumerate(_FILES):
        folder = home.new_folder(timestamp(clock()), chance)
        path = folder.path / "input" / name
        write_dummy_payments(path)
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines[: len(lines) - number]))  # so that no two files are the same
        digest, byte_count = identity_of(path)
        file = uploaded(name, digest, byte_count, ulla.name, timestamp(clock()))
        folder.write(file.model_copy(update={"profile": SIMULATED, "planned": number > 0}))
        home.record(clock(), ulla.name, Deed.UPLOADED, folder.id)
        folders.append(folder)
    checked = folders[2:]
    for folder in checked:
        checks.start(folder, environment)
        home.record(clock(), ulla.name, Deed.STARTED, folder.id)
    while any(map(checks.is_running, checked)):
        time.sleep(_WAIT_S)
    for folder in checked[1:]:
        _hand_over(home, clock, rita, folder)
    status, (review, decisions) = status_of(checked[2]), reviewed(checked[2])
    before = by_row(released_before(home, checked[2]))
    wanted = ToApprove(review, decisions, shaped_by(home, checked[2]), before, hold_undecided=True)
    facts = approved_facts(approve(status, wanted, anna, clock()))
    home.record(clock(), anna.name, Deed.APPROVED, checked[2].id, **facts)


def _hand_over(home: DeskHome, clock: Clock, person: Person, folder: FileFolder) -> None:
    """Release the row with the largest amount that may be released, then submit the file for approval."""
    status, (review, _) = status_of(folder), reviewed(folder)
    found = review.to_look_at.filter("can_release")["row"].head(1).to_list()
    if found:
        wanted = Decided(found, Decision.RELEASE, words(Sentence("desk.demo_reason"), language=language()))
        decide(status, review, wanted, person, clock())
        home.record(clock(), person.name, Deed.DECIDED, folder.id, row=found[0], decision="release")
    status = status_of(folder)
    agreed = signed(status, person, clock())
    folder.change(shaping(status.file, person.name, Act.HANDED_OVER, agreed.time), handed_over=agreed)
    home.record(clock(), person.name, Deed.HANDED_OVER, folder.id)


def forget(home: DeskHome) -> None:
    """Delete the desk, after stopping any check that a user has started in it."""
    for folder in home.folders():
        if checks.is_running(folder):
            checks.stop(folder)
            while checks.is_running(folder):
                time.sleep(_WAIT_S)
    shutil.rmtree(home.path, ignore_errors=True)
