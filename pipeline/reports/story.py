"""Print one row's history on a terminal, readable at 60 columns, without colour and in a pipe."""

from collections.abc import Iterable, Mapping
from itertools import chain, zip_longest

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from pipeline.apis.own_codes import MEANINGS
from pipeline.frames import AnswerState, BicSource, RouteReason
from pipeline.reports.terminal import STYLES, rule_table, text_line
from pipeline.reports.wording import (
    ADVICE_BY_CODE,
    SIMULATED,
    SaidReasons,
    advice,
    in_words,
    say,
    sentence_of,
    sentences_of,
    visible,
    which_rows,
)
from pipeline.wording import Sentence
from schemas.outcomes import ABOUT_THE_PAYEE, Action, Environment, Outcome, OutcomeColumns
from schemas.story import Story, StoryAttempt, StoryDecision, StoryOrigin, StoryPayment

ROWS_SHOWN_MAX = 20
_NONE: SaidReasons = {}
_LABELS = {"account": "story.account", "responder_bic": "field.bic", "remittance": "field.reference"}
_WORDS = {
    RouteReason.GB_IBAN: "story.because_gb_iban",
    RouteReason.SORT_CODE: "story.because_sort_code",
    BicSource.FILE: "story.bic_of_file",
    BicSource.TABLE: "story.bic_of_table",
    BicSource.REGISTRY: "story.bic_of_registry",
    AnswerState.ANSWERED: "story.ended_answered",
    AnswerState.REFUSED: "story.ended_refused",
    AnswerState.UNANSWERED: "story.ended_unanswered",
    "failed": "story.ended_failed",
    "in doubt": "story.ended_in_doubt",
    "line": "places.lines",
    "sheet row": "places.sheet_rows",
}
"""English words in the document -> keys of their sentences."""
_APPROVED = {True: "story.approved_self", False: "story.approved_other"}


def print_story(story: Story, console: Console, reasons: SaidReasons = _NONE) -> None:
    """Print a history. Text from the file or server is shown as is; `reasons` has sentences to translate."""
    key = "story.title" if story.place is None else "story.title_at"
    place, environment = _place(story.place or ""), story.environment.value
    heading = Sentence(key, file=story.file, row=story.row, place=place, environment=environment)
    console.print(text_line(heading, "bold"))
    if story.simulated:
        console.print(text_line(SIMULATED, "bold yellow"))
    for title, part in _parts(story, console.width, reasons):
        console.print(Text(f"\n{say(title)}", style="bold"))
        console.print(part)


def _parts(story: Story, width: int, reasons: SaidReasons) -> Iterable[tuple[str, RenderableType]]:
    if story.made_of is not None:
        yield "story.made_of", _pairs(_lines_of_origin(story.made_of))
    of_batch = {} if story.batch is None else {say("story.batch"): story.batch}
    yield "story.of_file", _pairs((_labelled(story.payment) | of_batch).items())
    if story.findings:
        rules = []
        for one in story.findings:
            kind = say("story.warning" if one.is_warning else "story.broken")
            text = in_words(sentence_of(one.sentence, None)) if one.sentence else one.message
            rules.append((kind, one.field, one.code, text))
        yield "story.local_rules", rule_table("rule", rules, width=width)
    if story.route is None:
        yield "story.question", text_line(Sentence("story.no_question"))
    else:
        yield "story.question", _question(story)
        yield "story.requests", _requests(story)
    yield "story.result", _outcome(story, reasons)
    if story.decisions:
        decided = chain(*map(_lines_of_decision, story.decisions), _lines_of_corrections(story))
        yield "story.decisions", _pairs(decided)
    released = {} if story.released_before is None else {say("story.released_before"): story.released_before}
    placed = {} if story.payment_file is None else dict(_lines_of_payment(story.payment_file))
    if released or placed:
        yield "story.payment_file", _pairs((placed | released).items())


def _lines_of_origin(origin: StoryOrigin) -> Iterable[tuple[str, str]]:
    label = "story.corrected_file" if origin.is_corrected else "story.split_payments"
    yield say(label), say("story.of", file=origin.file)
    yield say("story.its_run"), origin.folder
    yield say("story.first_file"), which_rows([origin.first_row])


def _question(story: Story) -> RenderableType:
    assert story.route is not None
    lines = {say("story.asked_of"): story.route.api.value, say("story.because"): _word(story.route.reason)}
    if story.route.bic_source is not None:
        lines[say("story.bic_from")] = _word(story.route.bic_source)
    if story.question is not None:
        lines |= _labelled({field: value for field, value in story.question.fields.items() if field != "api"})
        numbered = zip_longest(story.question.rows, story.question.positions)
        shared_by = ((row, place) for row, place in numbered if row != story.row)
        others = [f"{row} ({_place(place)})" if place else f"{row}" for row, place in shared_by]
        shown = others[:ROWS_SHOWN_MAX]
        shared = Sentence("places.rows", count=story.question.row_count - 1, rows=shown)
        if more := story.question.row_count - 1 - len(shown):
            shared = Sentence("places.rows_and_more", rows=shared, more_count=more)
        lines[say("story.also_for")] = in_words(shared if others else Sentence("story.no_other_row"))
    return _pairs(lines.items())


def _labelled(fields: Mapping[str, str]) -> dict[str, str]:
    return {say(_LABELS.get(field, f"field.{field}")): value for field, value in fields.items()}


def _word(word: str) -> str:
    return say(_WORDS[word]) if word in _WORDS else word


def _place(text: str) -> str:
    """Return the position of a row, such as `line 2`, in the terminal's language."""
    unit, _, number = text.rpartition(" ")
    if unit in _WORDS:
        return say(_WORDS[unit], count=1, places=number)
    part, is_of_part, row = text.rpartition(" row ")
    return say("places.in_part", part=part, row=row) if is_of_part else text


def _requests(story: Story) -> RenderableType:
    if not story.attempts:
        if story.environment is Environment.BANK:
            return text_line(Sentence("story.bank_reported"))
        key = "story.answered_earlier" if story.answered_by_earlier_run else "story.no_request"
        return text_line(Sentence(key))
    return _pairs(line for attempt in story.attempts for line in _lines_of(attempt))


def _lines_of(attempt: StoryAttempt) -> Iterable[tuple[str, str]]:
    yield str(attempt.number), _request(attempt)
    if attempt.detail is not None:
        yield "", say("story.server_says", detail=attempt.detail)
    if attempt.has_hidden_detail:
        yield "", say("story.server_says_hidden")


def _request(attempt: StoryAttempt) -> str:
    """Return a request in one or two lines: when it was sent, its correlation ID and its result."""
    ended = " ".join(filter(None, (_word(attempt.ended), attempt.code)))
    sent = attempt.sent[:23].replace("T", " ")
    if not attempt.ended_at:
        return say("story.sent_in_doubt", sent=sent, ended=ended, id=attempt.request_id)
    return say("story.sent", sent=sent, ended=ended, at=attempt.ended_at[11:23], id=attempt.request_id)


def _lines_of_decision(decision: StoryDecision) -> Iterable[tuple[str, str]]:
    key = "story.by" if decision.claimed_by is None else "story.by_claimed"
    who = say(key, by=decision.by, claimed=decision.claimed_by, time=_moment(decision.time), why=decision.why)
    yield decision.decision or say("story.no_effect"), who
    yield "", decision.what
    yield "", say(_APPROVED[decision.self_approved], by=decision.approved_by)


def _lines_of_corrections(story: Story) -> Iterable[tuple[str, str]]:
    for one in story.corrections:
        key = "story.corrected_from" if one.before else "story.filled_in"
        yield say(f"field.{one.field}"), say(key, before=one.before, now=one.now)


def _lines_of_payment(placed: StoryPayment) -> Iterable[tuple[str, str]]:
    yield say("story.released_in" if placed.is_released else "story.held_in"), placed.file
    approved = say(_APPROVED[placed.self_approved], by=placed.approved_by)
    yield say("story.approved"), f"{approved}, {_moment(placed.time)}"


def _moment(time: str) -> str:
    """Return a time in words; a bank may have stated one without a zone."""
    return f"{time[:19].replace('T', ' ')}{' UTC' if time.endswith('Z') else ''}"


def _to_do(outcome: OutcomeColumns) -> str:
    """Return the next step: by the code if there was no usable reply, else by the action."""
    of_code = MEANINGS.get((AnswerState.UNANSWERED, outcome.check_code))
    if outcome.check_outcome is Outcome.UNANSWERED and of_code is not None and of_code.advice:
        return in_words(of_code.advice)
    return in_words(advice(outcome.check_action, outcome.check_code))


def _outcome(story: Story, reasons: SaidReasons) -> RenderableType:
    outcome = story.outcome
    word = Text(say(f"outcome.{outcome.check_outcome}"), style=STYLES[outcome.check_outcome])
    lines: dict[str, str | Text] = {
        say("story.outcome"): word,
        say("story.code"): outcome.check_code,
        say("story.means"): " ".join(map(in_words, sentences_of(outcome.check_reason, reasons, None))),
    }
    if outcome.check_matched_name is not None:
        lines[say("story.name_at_the_bank")] = outcome.check_matched_name
    action = to_do = say(f"action.{outcome.check_action}")
    if outcome.check_action != Action.PAY:
        to_do = say("story.to_do_what", action=action, advice=_to_do(outcome))
    elif warned := {finding.code for finding in story.findings}.intersection(ABOUT_THE_PAYEE):
        to_do = in_words(ADVICE_BY_CODE[next(code for code in ABOUT_THE_PAYEE if code in warned)])
    lines[say("story.to_do")] = to_do
    if outcome.check_id is not None:
        lines[say("story.answered")] = _moment(outcome.check_time or "")
        lines[say("story.id_of_answer")] = outcome.check_id
    return _pairs(lines.items())


def _pairs(pairs: Iterable[tuple[str, str | Text]]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for name, value in pairs:
        text = value if isinstance(value, Text) else Text(visible(value))
        table.add_row(f"  {name.replace('_', ' ')}", text)
    return table
