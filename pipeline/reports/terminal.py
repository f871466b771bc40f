"""The summary on a terminal: readable at 80 columns, without colour, and in a pipe."""

import unicodedata
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from schemas.outcomes import Action, Outcome
from schemas.summary import Money, Summary

ROWS_SHOWN_MAX = 20

_STYLES = {
    Outcome.MATCH: "green",
    Outcome.CLOSE_MATCH: "yellow",
    Outcome.NO_MATCH: "bold red",
    Outcome.NOT_POSSIBLE: "magenta",
    Outcome.REJECTED: "red",
    Outcome.DEFERRED: "cyan",
    Outcome.UNANSWERED: "cyan",
}
_ADVICE = {
    Action.PAY: "nothing to do",
    Action.FIX_NAME: "correct the name to the one on the account",
    Action.FIX_ACCOUNT_TYPE: "change the account type",
    Action.FIX_NAME_AND_ACCOUNT_TYPE: "correct the name and the account type",
    Action.CHECK_ACCOUNT_DETAILS: "check the account details with the payee",
    Action.ADD_SECONDARY_REFERENCE: "add the secondary reference",
    Action.GET_NEW_ACCOUNT_DETAILS: "get the new account details",
    Action.ASK_PAYEE: "ask the payee, by a known contact",
    Action.RETRY_LATER: "check again later",
    Action.CORRECT_ROW: "correct the row",
}


def render(summary: Summary) -> RenderableType:
    """Lay out a summary.

    Text from the file or the server is shown as text: no markup in it is followed, and control
    characters are made visible.
    """
    parts: list[RenderableType] = [_title(summary), _outcomes(summary)]
    if summary.attention:
        parts.append(_attention(summary))
    parts.extend(_footnotes(summary))
    return Group(*parts)


def print_summary(summary: Summary, folder: Path, console: Console, *, already_finished: bool) -> None:
    """Show a summary on a console, and say where the files are."""
    if already_finished:
        said = f"Finished already, at {summary.finished}: nothing was sent. --fresh starts over."
        console.print(Text(said, style="bold"))
    console.print(render(summary))
    console.print(Text(visible(f"The outcome of every row is in {folder}."), style="bold"))


def visible(text: str) -> str:
    r"""Text with everything that a terminal would act on made visible.

    >>> visible("Acme [bold]\x1b[31m")
    'Acme [bold]\\x1b[31m'
    """
    return "".join(
        character
        if unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Zl", "Zp"}
        else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def _title(summary: Summary) -> RenderableType:
    source = summary.input
    line = Text.assemble(
        ("\n" + visible(source.name), "bold"), f": {source.row_count:,} payments, {summary.environment.value}"
    )
    if not summary.simulated:
        return line
    warning = Text("SIMULATED: these answers come from a sandbox and say nothing about real accounts.")
    warning.stylize("bold reverse yellow")
    return Group(line, warning)


def _outcomes(summary: Summary) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("outcome", no_wrap=True)
    table.add_column("rows", justify="right", no_wrap=True)
    table.add_column("amount", justify="right")
    for total in summary.outcomes:
        if total.row_count == 0:
            continue
        amounts = "\n".join(amount(money) for money in total.totals)
        name = Text(total.outcome.value.replace("_", " "), style=_STYLES[total.outcome])
        table.add_row(name, f"{total.row_count:,}", amounts)
    return table


def amount(money: Money) -> str:
    """A total as people write it: `1,234.56 GBP`."""
    return f"{money.amount:,} {visible(money.currency or '(no currency)')}"


def _attention(summary: Summary) -> RenderableType:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("row", justify="right", no_wrap=True)
    table.add_column("amount", justify="right", no_wrap=True)
    table.add_column("code", no_wrap=True)
    table.add_column("what it means, and what to do")
    for row in summary.attention[:ROWS_SHOWN_MAX]:
        money = "" if row.amount is None else f"{row.amount:,} {visible(row.currency or '')}"
        advice = f"{row.reason} {_ADVICE[row.action].capitalize()}."
        table.add_row(str(row.row), money, Text(row.code, style=_STYLES[row.outcome]), Text(visible(advice)))
    title = Text(f"Look at these {summary.attention_count:,} rows before you pay:", style="bold")
    return Group(title, table)


def _footnotes(summary: Summary) -> list[RenderableType]:
    sent = sum(call.request_count for call in summary.calls)
    before = sum(call.answered_before_count for call in summary.calls)
    questions = sum(call.question_count for call in summary.calls)
    lines = []
    hidden = summary.attention_count - min(len(summary.attention), ROWS_SHOWN_MAX)
    if hidden:
        lines.append(f"... and {hidden:,} more in attention.csv.")
    lines.append(
        f"{questions:,} distinct questions ({summary.saved_call_count:,} calls saved): "
        f"{sent:,} requests sent, {before:,} answers from an earlier run."
    )
    if summary.warning_count:
        first = summary.warnings[0]
        more = f", and {summary.warning_count - 1:,} more" if summary.warning_count > 1 else ""
        lines.append(f"Warning: row {first.row}: {first.message}{more}.")
    if summary.next_step:
        lines.append(summary.next_step)
    return [Text(visible(line)) for line in lines]
