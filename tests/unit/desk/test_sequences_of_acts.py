"""Generated sequences of acts by people of random roles, against what a file and its family may become.

No sequence releases a payment twice, releases what nobody may have approved, or loses a decision. The acts
are those of the pages; only the files that an approval writes are left out.
"""

import random
import shutil
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from types import SimpleNamespace

import pytest

from pipeline.desk import releasing, review, states
from pipeline.desk.families import by_row, may_be_due_again, released_before
from pipeline.desk.folders import DeskHome
from pipeline.desk.pages import releasing as release_page
from pipeline.desk.people import Person, Role, folded
from pipeline.desk.refusals import DeskRefusal
from pipeline.desk.releasing import Decided, decide, require_possible, shaped_by, shaping, signed
from pipeline.desk.review import reviewed, shown_of
from pipeline.desk.states import State, require, status_of
from pipeline.errors import PrecheckError
from pipeline.review import placements
from schemas.desk import AuditEntry, Deed, DeskFile, SentBack
from schemas.review import Act, Decision
from schemas.strict import timestamp

BY_DAY, BY_NIGHT, SLICE = 40, 20_000, 1_000
ACTS_MAX = 14
ANSWERS = (
    {"outcome": "match", "code": "MTCH"},
    {"outcome": "close_match", "code": "MBAM", "action": "fix_name", "matched_name": "Ada Quillon"},
    {"outcome": "no_match", "code": "ANNM", "action": "ask_payee"},
    {"outcome": "match", "code": "MTCH"},
)
CONFIG = '[profiles.sandbox.policy]\nclose_match = "review"\nno_match = "review"\n'
START = datetime(2030, 1, 2, tzinfo=UTC)


@pytest.fixture(scope="module")
def runs(tmp_path_factory, finish_run, outcomes_of):
    """Row count -> the review of a run with so many rows; and `preview`."""
    there = tmp_path_factory.mktemp("runs")
    (there / "precheck.toml").write_text(CONFIG)
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRECHECK_CONFIG", str(there / "precheck.toml"))
        for count in range(1, len(ANSWERS) + 1):
            home = DeskHome(there / str(count))
            home.make()
            folder = home.new_folder("2030-01-02T03:04:05.678Z", lambda: "0" * 10)
            file = folder.path / "input" / "pay.csv"
            lines = [f"Ada Quilon {row},112233,0000000{row},{row}.00" for row in range(1, count + 1)]
            file.write_text("\n".join(("name,sort_code,account_number,amount", *lines, "")))
            answers = [{**one, "id": str(at)} for at, one in enumerate(ANSWERS[:count])]
            finish_run(file, outcomes_of(*answers), profile="sandbox", reported=False).rename(folder.run)
            folder.write(a_file("0", "Ada"))
            opened = review.opened(folder)
            opened.answers_of([*range(1, count + 1)])
            found[count] = opened
    return {**found, "preview": preview_once()}


def preview_once():
    """`preview`, which gives the same for the same: thousands of stories ask for the same few."""
    known = {}

    def found(judged, decisions, released_in):
        of_what = (judged.height, *sorted(decisions.rows()), *sorted(released_in))
        if of_what not in known:
            known[of_what] = placements.preview(judged, decisions, released_in)
        return known[of_what]

    return found


def a_file(digest, by, **facts):
    return DeskFile(name="pay.csv", sha256=digest, byte_count=1, uploaded_by=by,
                    uploaded_at=timestamp(START), **facts)  # fmt: skip


class Story:
    """One home, its people, and what came of their acts."""

    def __init__(self, path, seed, runs, patch):
        self.rng = random.Random(seed)
        self.home, self.runs, self.ticks = DeskHome(path), runs, 0
        self.home.make()
        self.people = [
            Person(name, frozenset(self.rng.sample(list(Role), self.rng.randint(1, 4))), is_identified=True)
            for name in ("Ada", "Bram", "Cora", "Dan")
        ]
        self.files, self.reviews, self.held, self.decided = [], {}, {}, {}
        self.old_pages, self.taken, self.again = {}, {}, set()
        patch.setattr(review, "opened", lambda folder: self.reviews[folder.id])
        patch.setattr(review, "preview", runs["preview"])
        patch.setattr(releasing, "split_folder", self.split)
        patch.setattr(releasing, "fix_folder", lambda *_, **__: None)
        patch.setattr(releasing, "read_manifest", lambda _: SimpleNamespace(
            splits=[SimpleNamespace(held_rows=self.last_held)]))  # fmt: skip
        patch.setattr(states, "_summary_of", lambda folder: self.reviews[folder.id].summary)

    def now(self):
        self.ticks += 1
        return START + timedelta(seconds=self.ticks)

    def split(self, job, **_):
        at = job.folder.parent.name
        opened, words = self.reviews[at], review.last_decisions(self.reviews[at])
        rows = opened.preview(words, {} if job.release_again else job.released_in).rows.to_list()
        count = opened.summary.input.row_count
        self.last_held = self.held[at] = sorted({*range(1, count + 1)} - {*rows})
        made = SimpleNamespace(path="release.csv", sha256=sha256(f"{at}{rows}".encode()).hexdigest(),
                               row_count=len(rows), totals=[])  # fmt: skip
        if job.release_again:
            self.again.add((at, made.sha256))
        return SimpleNamespace(release=made if rows else None, input=SimpleNamespace(row_count=count))

    def act(self):
        person = self.rng.choice(self.people)
        acts = [self.decide] * 5 + [self.approve] * 4 + [self.take] * 3 + [self.look, self.hand_over]
        acts += [self.give, self.purge, self.send_back, self.upload]
        self.upload(person) if not self.files else self.rng.choice(acts)(person)

    def upload(self, person):
        """A first file, the same again, the correction of one, or what one held."""
        person.require(Role.UPLOADER)
        kind = self.rng.choice(("first", "again", "corrected", "held")) if self.files else "first"
        facts, count, digest = {}, len(ANSWERS), sha256(str(self.ticks).encode()).hexdigest()
        before = self.rng.choice(self.files) if self.files else None
        if kind == "again":
            digest, count = before.read().sha256, self.reviews[before.id].summary.input.row_count
            if before.read().corrects is not None:
                return  # its bytes are known as those of the correction
        elif kind == "corrected":
            facts, count = {"corrects": before.id}, self.reviews[before.id].summary.input.row_count
        elif kind == "held":
            if not self.held.get(before.id):
                return
            facts = {"corrects": before.id, "rows_before": self.held[before.id]}
            count = len(self.held[before.id])
        folder = self.home.new_folder(timestamp(self.now()), lambda: f"{self.ticks:010x}")
        folder.write(a_file(digest, person.name, **facts))
        folder.run.mkdir()
        template = self.runs[count]
        self.reviews[folder.id] = template._replace(decisions=folder.decisions, counted=[], remembered={})
        self.files.append(folder)
        self.decided[folder.id] = 0

    def decide(self, person):
        folder = self.rng.choice(self.files)
        at, (opened, _) = status_of(folder), reviewed(folder)
        row = self.rng.randint(1, opened.summary.input.row_count)
        word = self.rng.choice((*Decision, None))
        if word is not None:
            require_possible(opened, row, word)
        agreed = self.rng.random() < 0.8
        decide(at, opened, Decided([row], word, "why", may_void=agreed), person, self.now())
        self.decided[folder.id] += 1

    def look(self, _):
        folder = self.rng.choice(self.files)
        at, (opened, words) = status_of(folder), reviewed(folder)
        before = by_row(released_before(self.home, folder))
        self.old_pages[folder.id] = str(shown_of(opened, words, at.decisions, before))

    def hand_over(self, person):
        at = status_of(self.rng.choice(self.files))
        require(at, person, Deed.HANDED_OVER)
        agreed = signed(at, person, self.now())
        handed = shaping(at.file, person.name, Act.HANDED_OVER, agreed.time)
        at.folder.change(handed, handed_over=agreed, sent_back=None)

    def send_back(self, person):
        at = status_of(self.rng.choice(self.files))
        require(at, person, Deed.SENT_BACK)
        said = SentBack(by=person.name, time=timestamp(self.now()), comment="why")
        at.folder.change(handed_over=None, sent_back=said)

    def approve(self, person):
        person.require(Role.APPROVER)
        folder = self.rng.choice(self.files)
        at, (opened, words) = status_of(folder), reviewed(folder)
        released = released_before(self.home, folder)
        again = may_be_due_again(released) and self.rng.random() < 0.3
        shown = str(shown_of(opened, words, at.decisions, {} if again else by_row(released)))
        if self.rng.random() < 0.2:
            shown = self.old_pages.get(folder.id, shown)
        said = {"shown": shown, "release_again": "yes" if again else ""}
        release_page.approve_shown(SimpleNamespace(home=self.home, clock=self.now), person, folder, said)
        shapers = {folded(one.by) for one in shaped_by(self.home, folder)}
        assert folded(person.name) not in shapers
        assert person.can(Role.APPROVER)

    def take(self, person):
        person.require_names()
        at = status_of(self.rng.choice(self.files))
        if at.state is State.RELEASED and at.file.released_count:
            release = at.file.releases[-1]
            self._record(person, Deed.DOWNLOADED, at, release)
            self._paid(at, release)

    def give(self, person):
        at = status_of(self.rng.choice(self.files))
        require(at, person, Deed.GIVEN)
        if at.file.released_count:
            at.folder.change(given=signed(at, person, self.now()))
            self._paid(at, at.file.releases[-1])

    def purge(self, person):
        at = status_of(self.rng.choice(self.files))
        require(at, person, Deed.PURGED)
        if self.rng.random() < 0.3:
            at.folder.change(purged_at=timestamp(self.now()))

    def _record(self, person, deed, at, release):
        facts = {"file": release.file, "sha256": release.sha256}
        time = timestamp(self.now())
        self.home.audit.append(
            lambda previous: AuditEntry(previous=previous, time=time, by=person.name, deed=deed, run=at.id,
                                        facts=facts))  # fmt: skip

    def _paid(self, at, release):
        """The bank may have these payments now: none of another release that it may have."""
        rows = {row for first, last in release.rows for row in range(first, last + 1)}
        file = at.file
        while file.corrects is not None:
            if file.rows_before is not None:
                rows = {file.rows_before[row - 1] for row in rows}
            file = self.home.folder(file.corrects).read()
        mine = {(file.sha256, row) for row in rows}
        for other, theirs in self.taken.items():
            is_meant = {other, (at.id, release.sha256)} & self.again
            assert other == (at.id, release.sha256) or is_meant or not mine & theirs, (other, mine & theirs)
        self.taken[at.id, release.sha256] = mine


def play(seed, path, runs):
    with pytest.MonkeyPatch.context() as patch:
        story = Story(path, seed, runs, patch)
        for _ in range(story.rng.randint(4, ACTS_MAX) * 3):
            try:
                story.act()
            except (DeskRefusal, PrecheckError):
                continue
        for folder in story.files:
            assert len(folder.decisions.entries()) == story.decided[folder.id]
        released = len(story.taken)
    shutil.rmtree(path)
    return released


def test_no_sequence_of_acts_pays_twice_or_loses_a_decision(tmp_path, runs):
    assert sum(play(seed, tmp_path / str(seed), runs) for seed in range(BY_DAY)) > BY_DAY / 4


@pytest.mark.nightly
@pytest.mark.parametrize("start", range(0, BY_NIGHT, SLICE))
def test_no_sequence_of_many_does(tmp_path, runs, start):
    assert sum(play(seed, tmp_path / str(seed), runs) for seed in range(start, start + SLICE)) > SLICE / 4
