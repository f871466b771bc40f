"""Print a summary, corrections and a split on a terminal: at 80 columns, without colour and in a pipe."""

import errno
import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO, cast

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from pipeline.reports.wording import (
    SIMULATED,
    SaidReasons,
    advice,
    counted,
    currency_sentences,
    difference_sentences,
    in_brackets,
    in_words,
    money_lines,
    not_payment_sentences,
    note_sentences,
    number,
    say,
    sentences_of,
    visible,
    warning_text,
    which_rows,
)
from pipeline.wording import Sentence
from schemas.folder import REPORT_HTML, pain002_name
from schemas.outcomes import Action, Outcome
from schemas.review import ControlTotal, Fix, Split
from schemas.summary import OutcomeTotal, Summary

ROWS_SHOWN_MAX = 10
_LINES_BELOW = 4  # lines kept free below a summary for the paths of files and the prompt
LEFT_OUT_MAX = 2  # how many levels of detail `render` can leave out of a summary
_NONE: SaidReasons = {}
ROOMY_WIDTH = 72  # terminal width where a table of four columns leaves room for a sentence

STYLES = {
    Outcome.MATCH: "green",
    Outcome.CLOSE_MATCH: "yellow",
    Outcome.NO_MATCH: "bold red",
    Outcome.NOT_POSSIBLE: "magenta",
    Outcome.REJECTED: "red",
    Outcome.DEFERRED: "cyan",
    Outcome.UNANSWERED: "cyan",
}


def render(
    summary: Summary, next_step: Sentence | None = None, reasons: SaidReasons = _NONE, *, left_out: int = 0
) -> RenderableType:
    """Lay out a summary; `left_out` 1 drops the meanings of codes, 2 also the list of rows to review.

    Text from the file or the server is shown as text: markup in it is ignored, and control characters are
    made visible.
    """
    parts: list[RenderableType] = [_title(summary), ""]
    if any(count.outcome is not Outcome.MATCH for count in summary.codes):
        parts += [_codes_alone(summary) if left_out else _what_to_do(summary, reasons), ""]
    if summary.to_look_at_count:
        parts += [_attention(summary, is_listed=left_out < LEFT_OUT_MAX), ""]
    # The totals come last: small terminals show only the end.
    totals = outcome_table(summary.outcomes, between="\n" if left_out < LEFT_OUT_MAX else ", ")
    return Group(*parts, totals, "", *_footnotes(summary, next_step))


def console() -> Console:
    """Return the console for progress, on standard error. It does not interpret markup in text from files."""
    return _Console(stderr=True, markup=False, highlight=False, emoji=False)


def answers() -> Console:
    """Return the console for a command's answer: standard output. If the reader closes it, printing ends."""
    file = sys.stdout if sys.stdout.isatty() else cast(TextIO, _Unpadded())
    return _Answers(file=file, markup=False, highlight=False, emoji=False)


def text_line(text: Sentence | str, style: str = "") -> Text:
    """Return a line for a terminal, without control characters."""
    return Text(visible(in_words(text)), style=style)


class _Console(Console):
    """A console that reports a closed pipe like any other failed output."""

    def on_broken_pipe(self) -> None:
        """Raise the error; Rich would end the process with 1, the status of --fail-on."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


class _Unpadded:
    """Standard output for files and pipes, without padding after a table's last column."""

    def __getattr__(self, name: str) -> object:
        """Return any other attribute of the stream."""
        return getattr(sys.stdout, name)

    def write(self, text: str) -> int:
        """Write complete lines without trailing blanks."""
        return sys.stdout.write(re.sub(r" +$", "", text, flags=re.MULTILINE))


class _Answers(Console):
    """A console whose reader, such as `head`, may close the pipe, which ends only the printing."""

    def on_broken_pipe(self) -> None:
        """Stop printing."""
        self.quiet = True


def print_summary(  # noqa: PLR0913 (the result of a run, and how to print it)
    summary: Summary,
    folder: Path,
    console: Console,
    *,
    already_finished: bool,
    next_step: Sentence | None = None,
    reasons: SaidReasons = _NONE,
) -> None:
    """Print a summary and the paths of the files; `reasons` has sentences to translate."""
    if already_finished:
        console.print(text_line(Sentence("terminal.finished_already", time=summary.finished), "bold"))
    layouts = (render(summary, next_step, reasons, left_out=number) for number in range(LEFT_OUT_MAX + 1))
    shown = next(layouts)
    while console.is_terminal and len(console.render_lines(shown)) + _LINES_BELOW > console.height:
        if (shorter := next(layouts, None)) is None:
            break
        shown = shorter
    console.print(shown)
    where = Sentence("terminal.this_folder") if folder == Path() else folder
    console.print(text_line(Sentence("terminal.outcomes_are_in", where=where), "bold"))
    if (page := folder / REPORT_HTML).exists():
        console.print(text_line(Sentence("terminal.open_page", page=page), "bold"))
    if (report := folder / pain002_name(simulated=summary.simulated)).exists():
        console.print(text_line(Sentence("terminal.bank_software_reads", report=report), "bold"))


def _title(summary: Summary) -> RenderableType:
    source = summary.input
    title = Sentence("terminal.title", count=source.row_count, environment=summary.environment.value)
    line = Text.assemble(("\n" + visible(source.name), "bold"), f": {in_words(title)}")
    if not summary.simulated:
        return line
    return Group(line, Text(f" {in_words(SIMULATED)} ", "bold reverse yellow"))


def outcome_table(totals: Iterable[OutcomeTotal], between: str = "\n") -> Table:
    """Return rows and amounts by outcome, without empty outcomes; `between` separates currencies."""
    table = table_of("outcome", ">rows", ">amount")
    for total in totals:
        if total.row_count == 0:
            continue
        amounts = money_lines(total.row_count, total.totals) if total.totals else ""
        name = Text(in_words(Sentence(f"outcome.{total.outcome}")), style=STYLES[total.outcome])
        table.add_row(name, number(total.row_count), Text(amounts.replace("\n", between)))
    return table


def _codes_alone(summary: Summary) -> Text:
    """List the codes and their rows, for screens too small for their meanings."""
    others = [one for one in summary.codes if one.outcome is not Outcome.MATCH]
    codes = [f"{one.code} {number(one.row_count)}" for one in others]
    return text_line(Sentence("terminal.codes_and_rows", codes=codes))


def _what_to_do(summary: Summary, reasons: SaidReasons) -> Table:
    """Explain every outcome except a match."""
    order = list(Outcome)
    table = table_of(">rows", "code", "what it means, and what to do")
    for count in sorted(summary.codes, key=lambda count: order.index(count.outcome)):
        if count.outcome is not Outcome.MATCH:
            numbers = ", ".join(map(str, count.rows)) + in_brackets(count.rows, summary.input.positions)
            more = ", ..." if count.row_count > len(count.rows) else "."
            which = in_words(Sentence("terminal.rows", count=count.row_count, rows=numbers)) + more
            # A rejected row's reason already contains the advice.
            to_do = "" if count.action is Action.CORRECT_ROW else in_words(advice(count.action, count.code))
            reason = map(in_words, sentences_of(count.reason, reasons, summary.input.positions))
            meaning = " ".join(filter(None, (*reason, to_do, which)))
            table.add_row(number(count.row_count), _code(count.code, count.outcome), Text(visible(meaning)))
    return table


def _attention(summary: Summary, *, is_listed: bool) -> RenderableType:
    """Return the number of rows to review before payment, and the worst of them, largest first."""
    count, row_count = summary.to_look_at_count, summary.input.row_count
    key = "terminal.nothing_checked" if summary.is_unasked else "terminal.needs_review"
    title = text_line(Sentence(key, count=count, row_count=row_count), "bold")
    if not summary.attention or not is_listed:
        return title
    positions = summary.input.positions
    where = [] if positions is None else [f">{header}" for header in positions.headers]
    table = table_of(">row", *where, ">amount", "code", "payment id")
    for row in summary.attention[:ROWS_SHOWN_MAX]:
        amount = "" if row.amount is None else f"{number(row.amount)} {visible(row.currency or '')}"
        payment_id = Text(visible(row.payment_id or ""))
        numbers = [row.row, *([] if positions is None else positions.numbers(row.row))]
        table.add_row(*map(str, numbers), Text(amount), _code(row.code, row.outcome), payment_id)
    is_all = summary.attention_count <= ROWS_SHOWN_MAX
    which = "" if is_all else Sentence("terminal.here_the_largest", number=ROWS_SHOWN_MAX)
    worst = Sentence("terminal.no_match_or_not_possible", count=summary.attention_count, which=which)
    return Group(title, text_line(worst), table)


def header_of(text: str) -> Sentence:
    """Return the sentence of a header; its key is made from the English words.

    >>> header_of("payment id").key
    'header.payment_id'
    """
    return Sentence("header." + "_".join(re.findall("[a-z]+", text.lower())))


def table_of(*headers: str) -> Table:
    """Return a plain table; a header that starts with > marks numbers. Only the last column wraps.

    Headers are given in English and shown in the terminal's language.
    """
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for header in headers:
        justify: JustifyMethod = "right" if header.startswith(">") else "left"
        text = header.removeprefix(">")
        shown = in_words(header_of(text)) if text else ""
        table.add_column(shown, justify=justify, no_wrap=header != headers[-1])
    return table


def rule_table(first: str, rows: Iterable[tuple[str, str, str, str]], *, width: int) -> Table:
    """Lay out broken rules in columns, stacked on narrow terminals: first cell, field, code, sentence."""
    heading = "what is wrong, and what to do"
    table = table_of(first, "field", "code", heading) if width >= ROOMY_WIDTH else table_of(first, heading)
    for row, name, code, sentence in rows:
        field = say(f"field.{name}")
        if width >= ROOMY_WIDTH:
            table.add_row(row, field, code, Text(visible(sentence)))
        else:
            table.add_row(row, Text(f"{field}, {code}\n{visible(sentence)}"))
    return table


def _code(code: str, outcome: Outcome) -> Text:
    return Text(code, style=STYLES[outcome])


def _asked(summary: Summary) -> Sentence:
    """Say what was asked, or that the bank's reports answer."""
    if summary.is_bank_answered:
        return Sentence("terminal.results_from_bank_reports", count=len(summary.bank_reports))
    sent = sum(call.request_count for call in summary.calls)
    before = sum(call.answered_before_count for call in summary.calls)
    questions = sum(call.question_count for call in summary.calls)
    return Sentence(
        "terminal.questions_and_requests",
        questions=Sentence("counted.distinct_question", count=questions),
        saved=Sentence("terminal.calls", count=summary.saved_call_count),
        sent=Sentence("counted.request", count=sent),
        before=Sentence("terminal.of_an_earlier_run", count=before) if before else "",
    )


def _footnotes(summary: Summary, next_step: Sentence | None) -> list[RenderableType]:
    notes: list[Sentence | str] = [_asked(summary)]
    if elsewhere := sum(call.elsewhere_count for call in summary.calls):
        notes.append(Sentence("terminal.to_other_processes", count=elsewhere))
    if reused := sum(call.reused_count for call in summary.calls):
        notes.append(Sentence("terminal.answers_reused", count=reused))
    if summary.simulated:
        notes.insert(0, SIMULATED)
        outcomes = {total.outcome for total in summary.outcomes if total.row_count}
        if not summary.is_rehearsal and outcomes - {Outcome.REJECTED} == {Outcome.NOT_POSSIBLE}:
            notes.append(Sentence("terminal.sandbox_knows_none"))
    is_list = any(note.sentence[0] == "stages.list_of_payees" for note in summary.input.notes)
    if "amount" not in summary.input.columns.values() and not is_list:
        notes.append(Sentence("terminal.no_amount_column"))
    notes += [in_words(warning.sentence) for warning in summary.input.bank_warnings]
    notes += note_sentences(summary.input.notes)
    if summary.input.warning_codes:
        notes.append(Sentence("terminal.totals_differ"))
    notes += not_payment_sentences(summary.input.not_payments)
    notes += [aside.sentence for aside in summary.input.set_aside]
    notes += difference_sentences(summary.input.controls)
    if summary.modulus is not None and summary.modulus.is_old:
        notes.append(Sentence("terminal.old_modulus_tables"))
    if summary.modulus is not None and (count := summary.modulus.uncovered_count):
        notes.append(Sentence("terminal.not_covered_by_modulus", count=count))
    notes += currency_sentences(summary.input.currency_sources)
    notes += [warning_text(count, summary.input.positions) for count in summary.warning_codes]
    if step := next_step or summary.next_step:
        notes.append(step)
    return [text_line(line) for line in notes]


def print_fix(done: Fix, console: Console) -> None:
    """Print the required and written corrections, and how to continue."""
    if done.simulated:
        console.print(text_line(SIMULATED, "bold reverse yellow"))
    for line in _to_correct(done):
        console.print(text_line(line), soft_wrap=True)
    if done.corrected is not None:
        which = which_rows(done.corrected_rows, positions=done.positions)
        rows = counted(len(done.corrected_rows), "row")
        line = Sentence("review.corrected_rows", rows=rows, which=which, path=done.corrected.path)
        console.print(text_line(line, "bold"), soft_wrap=True)
    for note in note_sentences(done.notes):
        console.print(text_line(note, "bold yellow"), soft_wrap=True)
    if done.refused_rows:
        which = which_rows(done.refused_rows, positions=done.positions)
        line = Sentence("review.not_corrected_rows", which=which, corrections=done.corrections)
        console.print(text_line(line, "bold red"), soft_wrap=True)
    if done.corrected is not None or done.correctable_count:
        console.print(text_line(done.before_next), soft_wrap=True)
        console.print(Text(f"  {visible(done.next_step)}", style="bold"), soft_wrap=True)


def _to_correct(done: Fix) -> Iterator[Sentence]:
    """Yield the number of rows to correct, and whether a payment file was written."""
    if not done.row_count:
        yield Sentence("review.nothing_to_correct", corrections=done.corrections)
        return
    yield Sentence(
        "review.rows_to_correct" if done.correctable_count else "review.rows_for_a_person",
        rows=counted(done.row_count, "row"),
        can=done.correctable_count,
        corrections=done.corrections,
    )
    if not done.correctable_count:
        yield Sentence("review.no_file_see_corrections", corrections=done.corrections)
    elif done.corrected is None:
        yield Sentence("review.no_file_written")


def print_split(done: Split, console: Console) -> None:
    """Print the control totals, and why rows are held."""
    if done.simulated:
        console.print(text_line(SIMULATED, "bold reverse yellow"))
    totals = table_of("file", ">rows", ">amount")
    for name, part in (("input", done.input), ("release", done.release), ("hold", done.hold)):
        totals.add_row(say(f"review.{name}"), *_total(part))
    console.print(totals, "")
    texts = (warning_text(count, done.positions) for count in done.released_warnings)
    warned = [Sentence("review.released_anyway", warning=text) for text in texts]
    differs = [Sentence("terminal.warning", sentence=in_words(difference)) for difference in done.differences]
    lines: list[Sentence | str] = [*differs, *warned, *note_sentences(done.notes)]
    for line in lines:
        console.print(text_line(line, "bold yellow"), soft_wrap=True)
    if done.how_to_hold is not None:
        console.print(text_line(done.how_to_hold), "", soft_wrap=True)
    if done.held:
        reasons = table_of(">rows", "why they are held")
        for held in done.held:
            reasons.add_row(number(held.row_count), text_line(in_words(held.why)))
        console.print(reasons, "")
    if done.unheeded_rows:
        which = which_rows(done.unheeded_rows, positions=done.positions)
        console.print(text_line(Sentence("review.held_despite_release", which=which), "bold red"))
    files = [file.path for file in (done.release, done.hold) if file is not None]
    if done.release is None:
        console.print(text_line(Sentence("review.no_row_may_be_paid"), "bold"))
    for path in (*files, done.reasons):
        console.print(Text(visible(path), style="bold"), soft_wrap=True)


def _total(part: ControlTotal | None) -> tuple[str, Text]:
    if part is None:
        return "0", Text()
    return number(part.row_count), Text(money_lines(part.row_count, part.totals))
