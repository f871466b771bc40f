"""What `precheck fix` and `precheck split` did, on a terminal."""

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from pipeline.reports.terminal import table_of, text_line
from pipeline.reports.wording import SIMULATED, counted, money_lines, visible, warning_text, which_rows
from schemas.review import ControlTotal, Fix, Split


def print_fix(done: Fix, console: Console) -> None:
    """Show what needs a correction, what was corrected, and how to go on."""
    if done.simulated:
        console.print(text_line(SIMULATED, "bold reverse yellow"))
    for said in _to_correct(done):
        console.print(Text(visible(said)), soft_wrap=True)
    if done.corrected is not None:
        which = which_rows(done.corrected_rows, places=done.places)
        what = f"{counted(len(done.corrected_rows), 'row')} corrected, {which}"
        console.print(Text(f"{what}: {visible(done.corrected.path)}", style="bold"), soft_wrap=True)
    if done.refused_rows:
        which = which_rows(done.refused_rows, places=done.places)
        said = f"Not corrected: {which}; {visible(done.corrections)} says why."
        console.print(Text(said, style="bold red"), soft_wrap=True)
    if done.corrected is not None or done.correctable_count:
        console.print(Text(visible(done.before_next)), soft_wrap=True)
        console.print(Text(f"  {visible(done.next_step)}", style="bold"), soft_wrap=True)


def _to_correct(done: Fix) -> Iterator[str]:
    """How many rows are to be corrected, and that no payment file was written where none was."""
    if not done.row_count:
        yield f"Nothing to correct: no payment file was written, and {done.corrections} lists no row."
        return
    can = f"{done.correctable_count:,}" if done.correctable_count else "none"
    yield f"{counted(done.row_count, 'row')} to correct, {can} of them by this program: {done.corrections}"
    if not done.correctable_count:
        yield f"No payment file was written: {done.corrections} says what a person has to correct."
    elif done.corrected is None:
        yield "No payment file was written."


def print_split(done: Split, console: Console) -> None:
    """Show the control totals, and why rows are held."""
    if done.simulated:
        console.print(text_line(SIMULATED, "bold reverse yellow"))
    totals = table_of("file", ">rows", ">amount")
    for name, part in (("input", done.input), ("release", done.release), ("hold", done.hold)):
        totals.add_row(name, *_total(part))
    console.print(totals, "")
    warned = [f"Released: {warning_text(count, done.places)}" for count in done.released_warnings]
    differs = [f"Warning: {visible(difference)}" for difference in done.differences]
    for said in (*differs, *warned, *(f"Note: {visible(note)}" for note in done.notes)):
        console.print(Text(said, style="bold yellow"), soft_wrap=True)
    if done.how_to_hold is not None:
        console.print(Text(visible(done.how_to_hold)), "", soft_wrap=True)
    if done.held:
        reasons = table_of(">rows", "why they are held")
        for held in done.held:
            reasons.add_row(f"{held.row_count:,}", Text(visible(held.why)))
        console.print(reasons, "")
    if done.unheeded_rows:
        which = which_rows(done.unheeded_rows, places=done.places)
        said = f"Decided to release, and held by the policy all the same: {which}."
        console.print(Text(said, style="bold red"))
    files = [file.path for file in (done.release, done.hold) if file is not None]
    if done.release is None:
        console.print(Text("No row may be paid: no file to release was written.", style="bold"))
    for path in (*files, done.reasons):
        console.print(Text(visible(path), style="bold"), soft_wrap=True)


def _total(part: ControlTotal | None) -> tuple[str, Text]:
    if part is None:
        return "0", Text()
    return f"{part.row_count:,}", Text(money_lines(part.row_count, part.totals))
