"""One row's story on a terminal."""

import pytest
from refusals import said

from pipeline.apis import RETRY_ELSEWHERE
from pipeline.reports.story import ROWS_SHOWN_MAX, print_story
from pipeline.wording import Sentence
from pipeline.wording.language import speaking
from schemas.outcomes import ApiName, Environment, OutcomeColumns
from schemas.story import Story, StoryAttempt, StoryFinding, StoryQuestion, StoryRoute

SENT, ENDED = "2030-01-01T00:00:00.123Z", "2030-01-01T00:00:01.456Z"


@pytest.fixture
def told(shown):
    """What is printed of a story, in one line."""

    def text_of(width=80, **said):
        outcome = {
            "check_outcome": "close_match",
            "check_code": "MBAM",
            "check_reason": "The name is close to the name on the account.",
            "check_action": "fix_name",
            "check_matched_name": "Adah Quillon",
            "check_api": "cop",
            "check_environment": "production",
            "check_id": "id-1",
            "check_time": ENDED,
            "check_attempts": 1,
        }
        usual = {
            "file": "x.csv",
            "row": 17,
            "environment": Environment.PRODUCTION,
            "simulated": False,
            "payment": {"name": "Ada Quillon", "account_number": "**5678"},
            "findings": [],
            "route": StoryRoute(api=ApiName.COP, reason="sort code and account number", bic_source=None),
            "question": StoryQuestion(fields={"api": "cop", "name": "Ada Quillon"}, rows=[17], row_count=1),
            "attempts": [attempt()],
            "answered_by_earlier_run": False,
            "outcome": OutcomeColumns(**{**outcome, **said.pop("outcome", {})}),
        }
        text = shown(lambda console: print_story(Story(**{**usual, **said}), console), width=width)
        assert max(map(len, text.splitlines())) <= width
        return " ".join(text.split())

    return text_of


def attempt(**said):
    usual = {"number": 1, "request_id": "id-1", "sent": SENT, "ended": "answered", "code": "MBAM"}
    return StoryAttempt(**{**usual, "ended_at": ENDED, **said})


def test_the_batch_of_a_payment_stands_beside_it(told):
    account, batch = said("field.account_number"), said("story.batch")
    assert f"{account} **5678 {batch} RUN-1" in told(batch="RUN-1", place="PmtInf[1]/CdtTrfTxInf[2]")


def test_a_german_user_reads_german_labels_places_and_reasons(told):
    with speaking("de"):
        text = told(place="line 18")
    assert "Zeile 17 (Dateizeile 18)" in text
    assert f"{said('field.account_number', 'command', 'de')} **5678" in text
    because, reason = (said(key, "command", "de") for key in ("story.because", "story.because_sort_code"))
    assert f"{because} {reason}" in text
    assert "beantwortet mit MBAM" in text


@pytest.mark.parametrize("width", [60, 80])
def test_everything_is_told_in_order(told, width):
    text = told(width)
    parts = (
        "x.csv, row 17: production",
        f"{said('field.account_number')} **5678",
        f"{said('story.asked_of')} cop",
        f"{said('story.also_for')} {said('story.no_other_row')}",
        "sent 2030-01-01 00:00:00.123 UTC, answered MBAM at 00:00:01.456, id id-1",
        f"{said('story.outcome')} {said('outcome.close_match')}",
        f"{said('story.name_at_the_bank')} Adah Quillon",
        f"{said('story.to_do')} fix name: {said('todo.fix_name')}",
    )
    places = [text.find(part) for part in parts]
    assert -1 not in places
    assert places == sorted(places)


def test_a_request_in_doubt_is_said_to_be(told):
    text = told(attempts=[attempt(ended="in doubt", code=None, ended_at=None)])
    in_doubt = Sentence("story.ended_in_doubt")
    assert said("story.sent_in_doubt", sent="2030-01-01 00:00:00.123", ended=in_doubt, id="id-1") in text


def test_no_requests_are_explained(told):
    assert said("story.no_request") in told(attempts=[])
    assert said("story.answered_earlier") in told(attempts=[], answered_by_earlier_run=True)


def test_a_row_without_a_question_says_why(told):
    text = told(
        route=None,
        question=None,
        attempts=[],
        findings=[StoryFinding(field="iban", code="IBAN_LENGTH", message="too short", is_warning=False)],
    )
    assert f"{said('story.broken')} {said('field.iban')} IBAN_LENGTH too short" in text
    assert said("story.no_question") in text
    assert "Requests" not in text


def test_rules_are_readable_where_there_is_little_room(told):
    text = told(60, findings=[StoryFinding(field="row", code="ODD", message="odd " * 30, is_warning=True)])
    assert f"{said('story.warning')} row, ODD odd odd" in text


def test_one_other_row_that_shares_the_question_is_a_row(told):
    text = told(question=StoryQuestion(fields={"api": "cop"}, rows=[5, 17], row_count=2))
    assert f"{said('story.also_for')} {said('places.rows', count=1, rows='5')}" in text


def test_many_rows_that_share_the_question_are_counted(told):
    fields = {"api": "cop"}
    text = told(question=StoryQuestion(fields=fields, rows=list(range(1, 101)), row_count=1234))
    listed = ", ".join(str(row) for row in range(1, ROWS_SHOWN_MAX + 2) if row != 17)
    assert f"also for rows {listed} and {1233 - ROWS_SHOWN_MAX:,} more" in text


def test_an_answer_that_its_folder_keeps_says_where_to_ask_again(told):
    kept = {"check_outcome": "not_possible", "check_code": "HTTPERR", "check_action": "retry_later"}
    assert str(RETRY_ELSEWHERE) in told(outcome={**kept, "check_matched_name": None})


def test_a_row_that_no_run_asks_about_any_more_is_not_told_to_wait(told):
    outcome = {"check_outcome": "unanswered", "check_code": "HTTP_403", "check_action": "retry_later"}
    text = told(outcome={**outcome, "check_matched_name": None, "check_id": None, "check_time": None})
    assert said("explain.run_again_three_times") in text


@pytest.mark.parametrize(("language", "label", "changed", "filled_in"), [
    ("en", "account type", 'from "Personl" to "Personal"', '"Personal"; the cell was empty'),
    ("de", "Kontoart", "von „Personl“ in „Personal“ geändert", "„Personal“; die Zelle war leer"),
    ("fr", "type de compte", "de « Personl » à « Personal »", "« Personal » ; la cellule était vide"),
])  # fmt: skip
def test_a_correction_is_told_with_its_old_and_its_new_value(told, language, label, changed, filled_in):
    decision = {"by": "Rita", "time": ENDED, "decision": "fix", "what": "fix: written", "why": "seen",
                "approved_by": "Rita", "self_approved": True, "claimed_by": None}  # fmt: skip
    for before, part in (("Personl", changed), ("", filled_in)):
        corrections = [{"field": "account_type", "before": before, "now": "Personal"}]
        with speaking(language):
            text = told(decisions=[decision], corrections=corrections)
        assert f"{label} {part}" in text.replace("\xa0", " ").replace("\u202f", " ")
