"""What a decision and an approval are about: the answers that there were, and the page that was shown."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from pipeline.desk.folders import FileFolder
from pipeline.desk.people import ALONE, Person
from pipeline.desk.refusals import Conflict
from pipeline.desk.releasing import approve, signed
from pipeline.desk.review import Review, last_words
from pipeline.desk.states import State, standing
from schemas.desk import DeskFile, RowsDecided
from schemas.review import Decision

NOW = datetime(2030, 1, 2, tzinfo=UTC)
TIME = "2030-01-02T03:04:05.678Z"
MARA = Person("Mara", ALONE)
CLOSE = {"outcome": "close_match", "code": "MBAM", "matched_name": "Ada Quillon", "id": "1"}
LINES = "name,sort_code,account_number\nAda Quilon,112233,00000001\n"


@pytest.fixture
def folder(tmp_path, finish_run, outcomes_of):
    """A file at the desk whose check has ended."""
    (tmp_path / "run.csv").write_text(LINES)
    run = finish_run(tmp_path / "run.csv", outcomes_of(CLOSE), reported=False)
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


def test_a_new_decision_voids_the_approval(folder):
    decided(folder)
    folder.change(approved=signed(standing(folder), MARA, NOW))
    assert standing(folder).state is State.RELEASED
    decided(folder)
    assert standing(folder).state is State.REVIEW


@pytest.mark.parametrize("shown", ["", "0" * 64])
def test_only_what_the_page_showed_is_approved(folder, shown):
    decided(folder)
    with pytest.raises(Conflict, match="Something was decided since"):
        approve(standing(folder), {}, MARA, NOW, shown=shown, hold_undecided=False)
    assert not list(folder.run.glob("release*"))


@pytest.mark.parametrize("column", ["outcome", "code", "matched_name", "id"])
def test_a_decision_counts_for_the_answer_that_it_was_about_alone(tmp_path, outcomes_of, column):
    folder = FileFolder("1", tmp_path)

    def review(**changes):
        answer = outcomes_of({**CLOSE, **changes})
        summary = SimpleNamespace(input=SimpleNamespace(row_count=1))
        rows = SimpleNamespace(outcomes=answer)
        return Review(summary, rows, None, None, {}, None, folder.decisions, known_answers={})

    decided(folder, Decision.RELEASE, review().answers_of([1]))
    assert last_words(review())[1].decision is Decision.RELEASE
    other = {"outcome": "no_match"}.get(column, "another")
    assert last_words(review(**{column: other})) == {}
