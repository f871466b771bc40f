"""One row's story on a terminal: readable at 60 columns, without colour, and in a pipe."""

from collections.abc import Iterable
from itertools import zip_longest

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from pipeline.apis.own_codes import MEANINGS
from pipeline.frames import AnswerState
from pipeline.reports.terminal import STYLES, rule_table, text_line
from pipeline.reports.wording import SIMULATED, advice, visible
from schemas.outcomes import Outcome, OutcomeColumns
from schemas.story import Story, StoryAttempt, StoryDecision, StoryOrigin, StoryPayment

ROWS_SHOWN_MAX = 20
_EYES = {True: ", self-approved", False: ", four eyes"}


def print_story(story: Story, console: Console) -> None:
    """Show a story. Text from the file or the server is shown as text."""
    place = "" if story.place is None else f" ({story.place})"
    title = f"{story.file}, row {story.row}{place}: {story.environment.value}"
    console.print(Text(visible(title), style="bold"))
    if story.simulated:
        console.print(text_line(SIMULATED, "bold yellow"))
    for title, part in _parts(story, console.width):
        console.print(Text(f"\n{title}", style="bold"))
        console.print(part)


def _parts(story: Story, width: int) -> Iterable[tuple[str, RenderableType]]:
    if story.made_of is not None:
        yield "Made of", _pairs(_lines_of_origin(story.made_of))
    of_batch = {} if story.batch is None else {"batch": story.batch}
    yield "What the file says", _pairs((story.payment | of_batch).items())
    if story.findings:
        rules = [
            ("warning" if finding.is_warning else "broken", finding.field, finding.code, finding.message)
            for finding in story.findings
        ]
        yield "Local rules", rule_table("rule", rules, width=width)
    if story.route is None:
        yield "Question", Text("None: the row was rejected before any call.")
    else:
        yield "Question", _question(story)
        yield "Requests", _requests(story)
    yield "Outcome", _outcome(story.outcome)
    if story.decisions:
        yield (
            "Decisions",
            _pairs(line for decision in story.decisions for line in _lines_of_decision(decision)),
        )
    released = {} if story.released_before is None else {"released before": story.released_before}
    placed = {} if story.payment_file is None else dict(_lines_of_payment(story.payment_file))
    if released or placed:
        yield "Payment file", _pairs((placed | released).items())


def _lines_of_origin(origin: StoryOrigin) -> Iterable[tuple[str, str]]:
    yield ("corrected file" if origin.is_corrected else "held payments"), f"of {origin.file}"
    yield "its run", origin.folder
    yield "first file", f"row {origin.first_row}"


def _question(story: Story) -> RenderableType:
    assert story.route is not None
    lines = {"asked of": story.route.api.value, "because": story.route.reason}
    if story.route.bic_source is not None:
        lines["BIC from"] = story.route.bic_source
    if story.question is not None:
        lines |= {field.replace("_", " "): value for field, value in story.question.fields.items()}
        numbered = zip_longest(story.question.rows, story.question.places)
        others = [f"{row} ({place})" if place else f"{row}" for row, place in numbered if row != story.row]
        more = story.question.row_count - 1 - len(others[:ROWS_SHOWN_MAX])
        shared = ", ".join(others[:ROWS_SHOWN_MAX]) + (f" and {more:,} more" if more else "")
        rows = "row" if story.question.row_count == 2 else "rows"
        lines["also for"] = f"{rows} {shared}" if others else "no other row"
        lines.pop("api", None)
    return _pairs(lines.items())


def _requests(story: Story) -> RenderableType:
    if not story.attempts:
        return Text(
            "None: an earlier run had the answer (--reuse-from)."
            if story.answered_by_earlier_run
            else "None in this folder so far."
        )
    return _pairs(line for attempt in story.attempts for line in _lines_of(attempt))


def _lines_of(attempt: StoryAttempt) -> Iterable[tuple[str, str]]:
    yield str(attempt.number), _request(attempt)
    if attempt.detail is not None:
        yield "", f'the server says: "{attempt.detail}"'
    if attempt.has_hidden_detail:
        yield "", "what the server says is encrypted, and the usual configuration does not have its key"


def _request(attempt: StoryAttempt) -> str:
    """A request in a line or two: when it left, its correlation id, how it ended."""
    ended = " ".join(filter(None, (attempt.ended, attempt.code)))
    at = (
        f" at {attempt.ended_at[11:23]}"
        if attempt.ended_at
        else ": the run was killed before the end was on disk"
    )
    return f"sent {attempt.sent[:23].replace('T', ' ')} UTC, {ended}{at}, id {attempt.request_id}"


def _lines_of_decision(said: StoryDecision) -> Iterable[tuple[str, str]]:
    claim = "" if said.claimed_by is None else f" (the workbook names {said.claimed_by})"
    yield (
        said.decision or "no effect",
        f"by {said.by}{claim}, {_moment(said.time)}: {said.why}",
    )
    yield "", said.what
    yield "", f"approved by {said.approved_by}{_EYES[said.self_approved]}"


def _lines_of_payment(placed: StoryPayment) -> Iterable[tuple[str, str]]:
    yield "released in" if placed.is_released else "held in", placed.file
    yield "approved by", f"{placed.approved_by}{_EYES[placed.self_approved]}, {_moment(placed.time)}"


def _moment(time: str) -> str:
    return f"{time[:19].replace('T', ' ')} UTC"


def _to_do(outcome: OutcomeColumns) -> str:
    """What to do: as the code itself says where no usable reply came, else by the action."""
    of_code = MEANINGS.get((AnswerState.UNANSWERED, outcome.check_code))
    if outcome.check_outcome is Outcome.UNANSWERED and of_code is not None and of_code.advice:
        return str(of_code.advice)
    return str(advice(outcome.check_action, outcome.check_code))


def _outcome(outcome: OutcomeColumns) -> RenderableType:
    word = Text(outcome.check_outcome.replace("_", " "), style=STYLES[outcome.check_outcome])
    lines: dict[str, str | Text] = {
        "outcome": word,
        "code": outcome.check_code,
        "means": outcome.check_reason,
    }
    if outcome.check_matched_name is not None:
        lines["name at the bank"] = outcome.check_matched_name
    lines["to do"] = f"{outcome.check_action.replace('_', ' ')}: {_to_do(outcome)}"
    if outcome.check_id is not None:
        lines["answered"] = _moment(outcome.check_time or "")
        lines["answer's id"] = outcome.check_id
    return _pairs(lines.items())


def _pairs(pairs: Iterable[tuple[str, str | Text]]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for name, value in pairs:
        text = value if isinstance(value, Text) else Text(visible(value))
        table.add_row(f"  {name.replace('_', ' ')}", text)
    return table
