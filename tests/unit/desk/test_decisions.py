"""What a decision and an approval are about: the answers that there were, and the page that was shown."""

from datetime import UTC, datetime
from hashlib import sha256
from types import SimpleNamespace

import polars as pl
import pytest
from refusals import refused

from pipeline.desk.folders import DeskHome, FileFolder
from pipeline.desk.listing import Asked, Listing
from pipeline.desk.people import ALONE, Person
from pipeline.desk.refusals import Conflict
from pipeline.desk.releasing import Decided, decide, opened_as_recorded, signed
from pipeline.desk.review import OF_A_ROW, Review, last_decisions, refuse_changed, reviewed, shown_of
from pipeline.desk.states import State, status_of
from schemas.desk import DeskFile, Release, RowsDecided
from schemas.outcomes import WarningCode
from schemas.review import Decision, Verdict

NOW = datetime(2030, 1, 2, tzinfo=UTC)
TIME = "2030-01-02T03:04:05.678Z"
MARA = Person("Mara", ALONE)
CLOSE = {"outcome": "close_match", "code": "MBAM", "matched_name": "Ada Quillon", "id": "1"}
PAID = "name,sort_code,account_number,amount\nAda Quilon,112233,00000001,10.00\n"
LINES = "name,sort_code,account_number\nAda Quilon,112233,00000001\n"


@pytest.fixture
def folder(tmp_path, finish_run, outcomes_of, monkeypatch):
    """A file at the desk whose check has ended."""
    (tmp_path / "precheck.toml").write_text('[profiles.sandbox.policy]\nclose_match = "review"\n')
    monkeypatch.setenv("PRECHECK_CONFIG", str(tmp_path / "precheck.toml"))
    (tmp_path / "run.csv").write_text(LINES)
    run = finish_run(tmp_path / "run.csv", outcomes_of(CLOSE), profile="sandbox", reported=False)
    found = FileFolder("1", run.parent)
    assert found.run == run
    found.write(DeskFile(name="run.csv", sha256="0", byte_count=1, uploaded_by="Mara", uploaded_at=TIME))
    return found


def decided(folder, decision=Decision.HOLD, answers=("0",)):
    folder.decisions.append(
        lambda previous: RowsDecided(
            previous=previous,
            time=TIME,
            by="Mara",
            run_id="0",
            rows=[1],
            answers=list(answers),
            decision=decision,
        )
    )


def test_what_is_handed_out_is_what_was_looked_at(folder):
    path = folder.run / "outcomes.csv"
    recorded, other = path.read_bytes(), path.with_name("other")
    other.write_text("another account")
    with opened_as_recorded(status_of(folder), path.name) as file:
        other.replace(path)
        assert file.read() == recorded
    with refused(Conflict, "desk.download_was_changed"):
        opened_as_recorded(status_of(folder), path.name)


def test_a_new_decision_voids_the_approval(folder):
    decided(folder)
    folder.change(approved=signed(status_of(folder), MARA, NOW))
    assert status_of(folder).state is State.RELEASED
    decided(folder)
    assert status_of(folder).state is State.REVIEW


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ("decisions", ["desk.shown_decisions", "desk.shown_totals"]),
        ("policy", ["desk.shown_policy", "desk.shown_totals"]),
        ("outcomes", ["desk.shown_outcomes"]),
    ],
)
def test_a_form_is_refused_with_what_changed_since_its_page_was_shown(folder, change, what):
    review, words = reviewed(folder)
    was = shown_of(review, words, folder.decisions.head)
    refuse_changed(str(was), was)
    if change == "decisions":
        decided(folder, Decision.RELEASE, review.answers_of([1]))
        review, words = reviewed(folder)
    elif change == "policy":
        released = {"close_match": Verdict.RELEASE}
        every = review.judged.with_columns(verdict=pl.lit(Verdict.RELEASE.value))
        review = review._replace(policy=released, judged=every, remembered={})
    else:
        review = review._replace(outcomes_sha256="1" * 64)
    now = shown_of(review, words, folder.decisions.head)

    with refused(Conflict, "desk.changed_since_shown", what=what):
        refuse_changed(str(was), now)
    if change == "decisions":
        refuse_changed(str(was), now, OF_A_ROW)


@pytest.mark.parametrize("field", [None, "", "0-0-0-0-0"])
def test_a_form_that_does_not_say_what_its_page_showed_is_refused(folder, field):
    now = shown_of(*reviewed(folder), folder.decisions.head)
    parts = [f"desk.shown_{part}" for part in ("run", "outcomes", "policy", "decisions", "totals")]
    with refused(Conflict, "desk.changed_since_shown", what=parts):
        refuse_changed(field, now)


def test_a_group_is_not_decided_once_anything_else_was(folder):
    review, _ = reviewed(folder)
    at = status_of(folder)
    decided(folder)
    with refused(Conflict, "desk.changed_since_shown", what=["desk.shown_decisions"]):
        decide(at, review, Decided([1], Decision.HOLD, "", is_next=True), MARA, NOW)
    assert len(folder.decisions.entries()) == 1


@pytest.mark.parametrize("column", ["outcome", "code", "matched_name", "id"])
def test_a_decision_counts_for_the_answer_that_it_was_about_alone(tmp_path, outcomes_of, column):
    folder = FileFolder("1", tmp_path)

    def review(**changes):
        answer = outcomes_of({**CLOSE, **changes})
        summary = SimpleNamespace(input=SimpleNamespace(row_count=1))
        rows = SimpleNamespace(outcomes=answer)
        return Review(summary, "", rows, None, (), {}, None, folder.decisions, {}, [], {}, None, (), {})

    decided(folder, Decision.RELEASE, review().answers_of([1]))
    assert last_decisions(review())[1].decision is Decision.RELEASE
    other = {"outcome": "no_match"}.get(column, "another")
    assert last_decisions(review(**{column: other})) == {}


def test_a_match_that_the_policy_leaves_to_a_person_is_in_the_list(
    tmp_path, finish_run, outcomes_of, monkeypatch
):
    (tmp_path / "precheck.toml").write_text('[profiles.sandbox.policy]\nmatch = "review"\n')
    monkeypatch.setenv("PRECHECK_CONFIG", str(tmp_path / "precheck.toml"))
    (tmp_path / "run.csv").write_text(LINES)
    run = finish_run(
        tmp_path / "run.csv",
        outcomes_of({"outcome": "match", "code": "MTCH", "id": "1"}),
        profile="sandbox",
        reported=False,
    )
    review, words = reviewed(FileFolder("1", run.parent))
    assert [(group.key, group.row_count) for group in review.groups] == [("pay-policy", 1)]
    listing = Listing(review, words)
    assert [line.row.number for line in listing.page(listing.chosen(Asked())).rows] == [1]
    assert review.undecided(words).counts == {"pay-policy": 1}


ABOUT_THE_PAYEE = {
    *("BANK_DIFFERS", "ACCOUNT_CHANGED", "NAME_CHANGED", "PAYMENT_REPEATED", "MANY_NAMES", "ENUMERATION"),
    *("MIXED_SCRIPTS", "NAME_DAMAGED"),
}


@pytest.mark.parametrize("promoted", ["", 'NAME_CLEANED = "review"'])
@pytest.mark.parametrize("code", [*WarningCode])
def test_a_match_is_looked_at_for_a_warning_about_its_payee_or_if_the_policy_says_so(
    tmp_path, finish_run, outcomes_of, monkeypatch, code, promoted
):
    (tmp_path / "precheck.toml").write_text(f"[profiles.sandbox.policy]\n{promoted}\n")
    monkeypatch.setenv("PRECHECK_CONFIG", str(tmp_path / "precheck.toml"))
    (tmp_path / "run.csv").write_text(LINES)
    match = outcomes_of({"outcome": "match", "code": "MTCH", "id": "1"})
    run = finish_run(
        tmp_path / "run.csv", match, profile="sandbox", warnings=[(1, code.value)], reported=False
    )
    review, words = reviewed(FileFolder("1", run.parent))
    is_about_payee, is_promoted = code in ABOUT_THE_PAYEE, code.value in promoted
    assert review.to_look_at_count == (is_about_payee or is_promoted)
    assert review.undecided(words).money.row_count == review.to_look_at_count
    assert [count.code for count in review.warned_of_file] == ([] if is_about_payee else [code])


@pytest.mark.parametrize(("verdict", "at_once"), [("review", 0), ("hold", 0), ("release", 1)])
def test_a_name_that_is_no_match_is_released_with_others_only_where_the_policy_releases_it(
    tmp_path, finish_run, outcomes_of, monkeypatch, verdict, at_once
):
    (tmp_path / "precheck.toml").write_text(f'[profiles.sandbox.policy]\nno_match = "{verdict}"\n')
    monkeypatch.setenv("PRECHECK_CONFIG", str(tmp_path / "precheck.toml"))
    (tmp_path / "run.csv").write_text(LINES)
    no_match = outcomes_of({"outcome": "no_match", "code": "ANNM", "id": "1"})
    run = finish_run(tmp_path / "run.csv", no_match, profile="sandbox", reported=False)
    review, words = reviewed(FileFolder("1", run.parent))
    choice = Listing(review, words).choice(Asked(outcome="no_match"))
    assert (choice.row_count, choice.release_count) == (1, at_once)
    assert choice.one_by_one_count == (verdict == "review")
    assert Listing(review, words).choice(Asked()) is None


def test_what_was_counted_stays_counted_as_more_is_decided(folder):
    review, _ = reviewed(folder)
    decided(folder, Decision.RELEASE, review.answers_of([1]))
    first = last_decisions(review)
    decided(folder, Decision.HOLD, review.answers_of([1]))
    assert [words[1].decision for words in (first, last_decisions(review))] == [
        Decision.RELEASE,
        Decision.HOLD,
    ]
    folder.decisions.path.unlink()
    assert last_decisions(review) == {}


@pytest.mark.parametrize(("days", "environment", "is_found"), [
    (3, "production", True), (40, "production", False), (3, "sandbox", False),
])  # fmt: skip
def test_a_payment_that_another_file_released_is_looked_at_in_list_preview_and_split(
    tmp_path, finish_run, outcomes_of, monkeypatch, days, environment, is_found
):
    config = '[profiles.sandbox.policy]\nPAYMENT_REPEATED = "review"\n'
    (tmp_path / "precheck.toml").write_text(config)
    monkeypatch.setenv("PRECHECK_CONFIG", str(tmp_path / "precheck.toml"))
    home = DeskHome(tmp_path)
    home.make()

    def checked(lines, environment):
        at = home.new_folder("2030-01-02T03:04:05.678Z", lambda: sha256(lines.encode()).hexdigest()[:10])
        file = at.path / "input" / "run.csv"
        file.write_text(lines)
        answer = outcomes_of({"outcome": "match", "code": "MTCH", "id": "1"})
        finish_run(file, answer, profile="sandbox", environment=environment, reported=False).rename(at.run)
        at.write(DeskFile(name="run.csv", sha256=sha256(lines.encode()).hexdigest(), byte_count=1,
                          uploaded_by="Mara", uploaded_at="2030-01-02T03:04:05.678Z"))  # fmt: skip
        return at

    other = checked(PAID, environment)
    time = f"2030-{2 if days > 28 else 1:02}-{(2 + days) % 30:02}T03:04:05.678Z"
    released = Release(file="release.csv", sha256="0", by="Mara", time=time, rows=[(1, 1)])
    other.change(releases=[released])
    folder = checked(f"{PAID}\n", "production")
    review, words = reviewed(folder)
    assert [group.key for group in review.groups] == (["pay-PAYMENT_REPEATED"] if is_found else [])
    assert review.preview(words, {}).release.row_count == (not is_found)
    assert ([one.row for one in review.repeated.values()] == [1]) is is_found
