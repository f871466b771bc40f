"""The summary on a terminal: readable at 80 columns, without colour, and in a pipe."""

import errno
import os
from collections.abc import Iterable
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from pipeline.reports.wording import (
    SIMULATED,
    advice,
    counted,
    currencies_told,
    differing_told,
    money_lines,
    not_payments_told,
    notes_told,
    visible,
    warning_text,
)
from pipeline.wording import Sentence, SurfaceKind, aloud
from schemas.folder import REPORT_HTML, pain002_name
from schemas.outcomes import Action, Outcome
from schemas.places import in_brackets
from schemas.summary import OutcomeTotal, Summary

ROWS_SHOWN_MAX = 10
ROOMY_WIDTH = 72
"""Columns of a terminal on which four columns of a table leave room for a sentence."""

STYLES = {
    Outcome.MATCH: "green",
    Outcome.CLOSE_MATCH: "yellow",
    Outcome.NO_MATCH: "bold red",
    Outcome.NOT_POSSIBLE: "magenta",
    Outcome.REJECTED: "red",
    Outcome.DEFERRED: "cyan",
    Outcome.UNANSWERED: "cyan",
}


def render(summary: Summary, next_step: Sentence | None = None) -> RenderableType:
    """Lay out a summary.

    Text from the file or the server is shown as text: no markup in it is followed, and control
    characters are made visible.
    """
    parts: list[RenderableType] = [_title(summary), ""]
    if any(count.outcome is not Outcome.MATCH for count in summary.codes):
        parts += [_what_to_do(summary), ""]
    if summary.to_look_at_count:
        parts += [_attention(summary), ""]
    # The totals come last: on a small terminal the end is what is seen.
    return Group(*parts, outcome_table(summary.outcomes), "", *_footnotes(summary, next_step))


def console() -> Console:
    """Where progress goes: standard error. Text from files is shown as text."""
    return _Console(stderr=True, markup=False, highlight=False, emoji=False)


def answers() -> Console:
    """Where the answer of a command goes: standard output. Once its reader goes away, nothing is printed."""
    return _Answers(markup=False, highlight=False, emoji=False)


def in_words(said: Sentence | str) -> str:
    """A sentence as a terminal says it; text as it is."""
    return aloud(said, SurfaceKind.COMMAND)


def text_line(said: Sentence | str, style: str = "") -> Text:
    """A line of a terminal, with nothing in it that a terminal would act on."""
    return Text(visible(in_words(said)), style=style)


class _Console(Console):
    """A console whose reader may go away, which the command hears of as it does of any other output."""

    def on_broken_pipe(self) -> None:
        """Say so; Rich would end the process with 1, which is the status of --fail-on."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


class _Answers(Console):
    """A console whose reader, such as `head`, may have enough: that ends the printing, not the command."""

    def on_broken_pipe(self) -> None:
        """Print nothing more."""
        self.quiet = True


def print_summary(
    summary: Summary,
    folder: Path,
    console: Console,
    *,
    already_finished: bool,
    next_step: Sentence | None = None,
) -> None:
    """Show a summary on a console, and where the files are."""
    if already_finished:
        said = f"Finished already, at {summary.finished}: nothing was sent. --fresh starts over."
        console.print(Text(said, style="bold"))
    console.print(render(summary, next_step))
    where = "this folder" if folder == Path() else str(folder)
    console.print(Text(visible(f"The outcome of every row is in {where}."), style="bold"))
    if (folder / REPORT_HTML).exists():
        console.print(Text(visible(f"Open {folder / REPORT_HTML} in a browser."), style="bold"))
    if (report := folder / pain002_name(simulated=summary.simulated)).exists():
        console.print(Text(visible(f"Bank software reads {report}."), style="bold"))


def _title(summary: Summary) -> RenderableType:
    source = summary.input
    line = Text.assemble(
        ("\n" + visible(source.name), "bold"),
        f": {counted(source.row_count, 'payment')}, {summary.environment.value}",
    )
    if not summary.simulated:
        return line
    warning = Text(
        " SIMULATED by a sandbox: no answer says anything about a real account ", "bold reverse yellow"
    )
    return Group(line, warning)


def outcome_table(totals: Iterable[OutcomeTotal]) -> Table:
    """Rows and amounts by outcome, without the outcomes that have no row."""
    table = table_of("outcome", ">rows", ">amount")
    for total in totals:
        if total.row_count == 0:
            continue
        amounts = money_lines(total.row_count, total.totals) if total.totals else ""
        name = Text(total.outcome.value.replace("_", " "), style=STYLES[total.outcome])
        table.add_row(name, f"{total.row_count:,}", Text(amounts))
    return table


def _what_to_do(summary: Summary) -> Table:
    """What stands behind every outcome but a match."""
    order = list(Outcome)
    table = table_of(">rows", "code", "what it means, and what to do")
    for count in sorted(summary.codes, key=lambda count: order.index(count.outcome)):
        if count.outcome is not Outcome.MATCH:
            end = ", ..." if count.row_count > len(count.rows) else "."
            numbers = ", ".join(map(str, count.rows)) + in_brackets(count.rows, summary.input.places)
            which = f"Row{'s' if count.row_count > 1 else ''} {numbers}{end}"
            # A rejected row's reason already states what to do.
            to_do = "" if count.action is Action.CORRECT_ROW else str(advice(count.action, count.code))
            meaning = " ".join(filter(None, (count.reason, to_do, which)))
            table.add_row(f"{count.row_count:,}", _code(count.code, count.outcome), Text(visible(meaning)))
    return table


def _attention(summary: Summary) -> RenderableType:
    """How many rows must be looked at before anything is paid, and the worst of them, largest first."""
    count, row_count = summary.to_look_at_count, summary.input.row_count
    said = (
        f"{counted(count, 'payment')} of {row_count:,} need{'s' if count == 1 else ''} a look before you pay."
    )
    title = Text(said, style="bold")
    if not summary.attention:
        return title
    places = summary.input.places
    where = [] if places is None else [f">{header}" for header in places.headers]
    table = table_of(">row", *where, ">amount", "code", "payment id")
    for row in summary.attention[:ROWS_SHOWN_MAX]:
        amount = "" if row.amount is None else f"{row.amount:,} {visible(row.currency or '')}"
        payment_id = Text(visible(row.payment_id or ""))
        numbers = [row.row, *([] if places is None else places.numbers(row.row))]
        table.add_row(*map(str, numbers), Text(amount), _code(row.code, row.outcome), payment_id)
    which = "" if summary.attention_count <= ROWS_SHOWN_MAX else f", here the largest {ROWS_SHOWN_MAX}"
    worst = f"No match or not possible: {counted(summary.attention_count, 'row')} (attention.csv{which}):"
    return Group(title, Text(worst), table)


def table_of(*headers: str) -> Table:
    """A plain table; a header that starts with > is of a column of numbers. Only the last one wraps."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for header in headers:
        justify: JustifyMethod = "right" if header.startswith(">") else "left"
        table.add_column(header.removeprefix(">"), justify=justify, no_wrap=header != headers[-1])
    return table


def rule_table(first: str, rows: Iterable[tuple[str, str, str, str]], *, width: int) -> Table:
    """Local rules and what breaks them: in columns where there is room, one below the other elsewhere.

    A row is the text of the first column, whose header is as for `table_of`, then field, code and sentence.
    """
    heading = "what is wrong, and what to do"
    table = table_of(first, "field", "code", heading) if width >= ROOMY_WIDTH else table_of(first, heading)
    for number, field, code, sentence in rows:
        if width >= ROOMY_WIDTH:
            table.add_row(number, field, code, Text(visible(sentence)))
        else:
            table.add_row(number, Text(f"{field}, {code}\n{visible(sentence)}"))
    return table


def _code(code: str, outcome: Outcome) -> Text:
    return Text(code, style=STYLES[outcome])


def _footnotes(summary: Summary, next_step: Sentence | None) -> list[RenderableType]:
    sent = sum(call.request_count for call in summary.calls)
    before = sum(call.answered_before_count for call in summary.calls)
    questions = sum(call.question_count for call in summary.calls)
    asked = (
        f"{counted(questions, 'distinct question')} ({counted(summary.saved_call_count, 'call')} saved), "
        f"{counted(sent, 'request')} sent"
    )
    lines = [f"{asked}, {counted(before, 'answer')} from an earlier run." if before else f"{asked}."]
    if elsewhere := sum(call.elsewhere_count for call in summary.calls):
        lines.append(f"{counted(elsewhere, 'answer')} to other processes that share this run.")
    if reused := sum(call.reused_count for call in summary.calls):
        lines.append(f"{counted(reused, 'answer')} of an earlier run used again (--reuse-from).")
    if summary.simulated:
        lines.insert(0, in_words(SIMULATED))
    if "amount" not in summary.input.columns.values():
        lines.append("No amount column was found; name it with --map amount=HEADER.")
    lines += notes_told(summary.input.notes)
    lines += not_payments_told(summary.input.not_payments)
    lines += [aside.said for aside in summary.input.set_aside]
    lines += differing_told(summary.input.controls)
    if summary.modulus is not None and summary.modulus.is_old:
        lines.append("The modulus tables are older than a year: they warned and rejected nothing.")
    if summary.modulus is not None and (count := summary.modulus.uncovered_count):
        verb = "is on a sort code" if count == 1 else "are on sort codes"
        lines.append(f"{counted(count, 'UK account')} {verb} that the modulus tables do not cover.")
    lines += currencies_told(summary.input.currency_sources)
    lines += [warning_text(count, summary.input.places) for count in summary.warning_codes]
    if step := next_step or summary.next_step:
        lines.append(in_words(step))
    return [Text(visible(line)) for line in lines]
