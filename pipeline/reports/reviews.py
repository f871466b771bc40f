"""Print the results of `precheck fix` and `precheck split` on a terminal."""

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from pipeline.reports.terminal import table_of, text_line
from pipeline.reports.wording import (
    SIMULATED,
    counted,
    in_words,
    money_lines,
    note_sentences,
    number,
    say,
    visible,
    warning_text,
    which_rows,
)
from pipeline.wording import Sentence
from schemas.review import ControlTotal, Fix, Split


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
        yield Sentence("review.a_person_corrects", corrections=done.corrections)
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
    warned = [
        Sentence("review.released_anyway", warning=warning_text(count, done.positions))
        for count in done.released_warnings
    ]
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
        console.print(text_line(Sentence("review.held_all_the_same", which=which), "bold red"))
    files = [file.path for file in (done.release, done.hold) if file is not None]
    if done.release is None:
        console.print(text_line(Sentence("review.no_row_may_be_paid"), "bold"))
    for path in (*files, done.reasons):
        console.print(Text(visible(path), style="bold"), soft_wrap=True)


def _total(part: ControlTotal | None) -> tuple[str, Text]:
    if part is None:
        return "0", Text()
    return number(part.row_count), Text(money_lines(part.row_count, part.totals))
