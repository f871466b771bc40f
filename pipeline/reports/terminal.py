"""The summary on a terminal: readable at 80 columns, without colour, and in a pipe."""

import errno
import os
import re
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import fill

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from pipeline.apis import RETRY_ELSEWHERE, RETRY_HERE
from pipeline.apis.own_codes import TOO_LARGE, WRONG_FORM
from schemas.folder import REPORT_HTML
from schemas.outcomes import Action, Outcome, WarningCode
from schemas.places import Places, in_brackets
from schemas.summary import CurrencySources, Money, NotPayment, OutcomeTotal, Summary, WarningCount

ROWS_SHOWN_MAX = 10
ROWS_NAMED_MAX = 10
ROOMY_WIDTH = 72
"""Columns of a terminal on which four columns of a table leave room for a sentence."""
SIMULATED = "SIMULATED by a sandbox: no answer says anything about a real account"

STYLES = {
    Outcome.MATCH: "green",
    Outcome.CLOSE_MATCH: "yellow",
    Outcome.NO_MATCH: "bold red",
    Outcome.NOT_POSSIBLE: "magenta",
    Outcome.REJECTED: "red",
    Outcome.DEFERRED: "cyan",
    Outcome.UNANSWERED: "cyan",
}
ADVICE = {
    Action.PAY: "Pay.",
    Action.FIX_NAME: "Judge first whether both names are the payee's; only then correct the name to the "
    "bank's.",
    Action.FIX_ACCOUNT_TYPE: "Change the account type.",
    Action.FIX_NAME_AND_ACCOUNT_TYPE: "Judge first whether both names are the payee's; only then correct the "
    "name and the account type.",
    Action.CHECK_ACCOUNT_DETAILS: "Check the account details with the payee.",
    Action.ADD_SECONDARY_REFERENCE: "Add the secondary reference, or correct it.",
    Action.GET_NEW_ACCOUNT_DETAILS: "Get the new account details.",
    Action.ASK_PAYEE: "Ask the payee, by a known contact.",
    Action.RETRY_LATER: RETRY_HERE,
    Action.CORRECT_ROW: "Correct the row in the file.",
}
"""What a person does next, as a sentence."""
_ASK_PROVIDER = "Ask the provider: nothing in the row is the cause."
ADVICE_BY_CODE = {
    "NO_API": "Add the missing section to the profile, and check the file again.",  # the row may be right
    "RESPONDER_BIC_UNKNOWN": "Give the bank's BIC in the row or in the profile, and check the file again.",
    "FOURHUN": "Check the account details; where they are right, ask the provider.",
    "HTTPERR": RETRY_ELSEWHERE,  # an answer, unlike what else is worth another try
    TOO_LARGE: _ASK_PROVIDER,
    WRONG_FORM: _ASK_PROVIDER,
}
"""The same where a code asks for something else than its action does elsewhere."""
WARNINGS = {
    WarningCode.ACCOUNT_CHANGED: "Known payee, other account than last time",
    WarningCode.NAME_CHANGED: "Known account, other name than last time",
    WarningCode.PAYEE_NEW: "Warning: neither payee nor account was there and confirmed last time",
    WarningCode.PAYMENT_REPEATED: "Paid twice? The same payment as an earlier one",
    WarningCode.MANY_NAMES: "Warning: one of many names or identifications for one account",
    WarningCode.ENUMERATION: "Warning: one of several unknown accounts with numbers in sequence",
    WarningCode.MIXED_SCRIPTS: "Warning: letters of two alphabets in one word of the name",
    WarningCode.MODULUS_OLD_TABLES: "Warning: fails the UK modulus check, by tables older than a year",
    WarningCode.NAME_NOT_LATIN: "Warning: letters that VoP need not carry between banks in the name",
    WarningCode.NAME_CLEANED: 'Warning: asked about without ="..." or unseen marks around the name',
    WarningCode.ACCOUNT_TYPE_DEFAULT: "Warning: an account type that names a product; the default was taken",
    WarningCode.BIC_OTHER_COUNTRY: "Warning: a BIC of another country than the IBAN",
    WarningCode.NAME_TRUNCATED: "Warning: a name that may be cut, as it fills its field",
}
"""What was odd about some rows and stopped nothing; their number follows."""


def render(summary: Summary) -> RenderableType:
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
    return Group(*parts, outcome_table(summary.outcomes), "", *_footnotes(summary))


def console() -> Console:
    """Where everything but data goes: standard error, on which text from files is shown as text."""
    return _Console(stderr=True, markup=False, highlight=False, emoji=False)


class _Console(Console):
    """A console whose reader may go away, which the command hears of as it does of any other output."""

    def on_broken_pipe(self) -> None:
        """Say so; Rich would end the process with 1, which is the status of --fail-on."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def print_summary(summary: Summary, folder: Path, console: Console, *, already_finished: bool) -> None:
    """Show a summary on a console, and where the files are."""
    if already_finished:
        said = f"Finished already, at {summary.finished}: nothing was sent. --fresh starts over."
        console.print(Text(said, style="bold"))
    console.print(render(summary))
    where = "this folder" if folder == Path() else str(folder)
    console.print(Text(visible(f"The outcome of every row is in {where}."), style="bold"))
    if (folder / REPORT_HTML).exists():
        console.print(Text(visible(f"Open {folder / REPORT_HTML} in a browser."), style="bold"))


def between_words(sentence: str, width: int) -> str:
    """A sentence on lines of a terminal; an option and what follows it stay together.

    >>> print(between_words('say which with --map name=Tenant or --map "name=The owner"', 33))
    say which with --map name=Tenant
    or --map "name=The owner"
    """
    together = _OPTION.sub(lambda option: option[0].replace(" ", _BLANK_KEPT), sentence)
    return fill(together, width, break_long_words=False, break_on_hyphens=False).replace(_BLANK_KEPT, " ")


_OPTION = re.compile(r'--[a-z-]+ (?:"[^"]*"|[^ ]+)')
_BLANK_KEPT = "\0"
"""Stands for a blank at which no line ends; `visible` leaves none in a sentence."""


def advice(action: Action, code: str) -> str:
    """What a person does next about a row, as a sentence."""
    return ADVICE_BY_CODE.get(code) or ADVICE[action]


def counted(count: int, thing: str) -> str:
    """A number of things.

    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{count:,} {thing}" + ("" if count == 1 else "s")


def which_rows(rows: Sequence[int], row_count: int | None = None, *, places: Places | None = None) -> str:
    """Rows by their numbers, the first of them where they are many.

    A row's number is a name, and has no thousands separators: in a list they would look like commas.

    Args:
        rows: All of them, or as many as are named.
        row_count: How many there are; None means the rows given.
        places: Of the rows in their file; None where they have none.

    >>> which_rows([2]), which_rows([2, 1200]), which_rows(range(1, 13))
    ('row 2', 'rows 2, 1200', 'rows 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more')
    """
    numbers = ", ".join(map(str, rows[:ROWS_NAMED_MAX]))
    count = len(rows) if row_count is None else row_count
    more = f" and {count - ROWS_NAMED_MAX:,} more" if count > ROWS_NAMED_MAX else ""
    return f"row{'' if count == 1 else 's'} {numbers}{in_brackets(rows[:ROWS_NAMED_MAX], places)}{more}"


def visible(text: str) -> str:
    r"""Text with everything that a terminal would act on made visible.

    >>> visible("Acme [bold]\x1b[31m")
    'Acme [bold]\\x1b[31m'
    """
    if text.isprintable():  # nearly always, and much quicker to find out
        return text
    return "".join(
        character
        if unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Zl", "Zp"}
        else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


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


def money_text(money: Money) -> str:
    """A total as people write it: `1,234.56 GBP`."""
    return f"{money.amount:,} {visible(money.currency or '(no currency)')}"


def money_lines(row_count: int, totals: Sequence[Money]) -> str:
    """Totals, a line each, and how many rows are in none of them."""
    lines = [money_text(money) for money in totals]
    if without_count := row_count - sum(money.row_count for money in totals):
        lines.append(f"{counted(without_count, 'row')} without a readable amount")
    return "\n".join(lines)


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
            to_do = "" if count.action is Action.CORRECT_ROW else advice(count.action, count.code)
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
    table = table_of(
        ">row", *([] if places is None else [f">{places.unit}"]), ">amount", "code", "payment id"
    )
    for row in summary.attention[:ROWS_SHOWN_MAX]:
        amount = "" if row.amount is None else f"{row.amount:,} {visible(row.currency or '')}"
        payment_id = Text(visible(row.payment_id or ""))
        numbers = [str(row.row), *([] if places is None else [str(places.of(row.row))])]
        table.add_row(*numbers, Text(amount), _code(row.code, row.outcome), payment_id)
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

    Args:
        first: header of the first column, as for `table_of`.
        rows: (text of the first column, field, code, sentence).
        width: of the console.
    """
    heading = "what is wrong, and what to do"
    table = table_of(first, "field", "code", heading) if width >= ROOMY_WIDTH else table_of(first, heading)
    for number, field, code, sentence in rows:
        if width >= ROOMY_WIDTH:
            table.add_row(number, field, code, Text(visible(sentence)))
        else:
            table.add_row(number, Text(f"{field}, {code}\n{visible(sentence)}"))
    return table


def warning_text(count: WarningCount, places: Places | None = None) -> str:
    """A warning, and the rows that it is about, with their places in the file."""
    more = ", ..." if count.row_count > len(count.rows) else ""
    rows = ", ".join(map(str, count.rows))
    where = f"; {in_brackets(count.rows, places)[2:-1]}{more}" if places is not None else ""
    return f"{WARNINGS[count.code]}: {counted(count.row_count, 'row')} ({rows}{more}{where})."


def notes_told(notes: Iterable[str]) -> list[str]:
    """A line for each choice among columns."""
    return [f"Note: {note}." for note in notes]


def not_payments_told(rows: Iterable[NotPayment]) -> list[str]:
    """A line for each row that is no payment; a figure that is not that of the payments is a warning."""
    return [f"Warning: {row.said}" if row.agrees is False else row.said for row in rows]


def _code(code: str, outcome: Outcome) -> Text:
    return Text(code, style=STYLES[outcome])


def _footnotes(summary: Summary) -> list[RenderableType]:
    sent = sum(call.request_count for call in summary.calls)
    before = sum(call.answered_before_count for call in summary.calls)
    questions = sum(call.question_count for call in summary.calls)
    asked = (
        f"{counted(questions, 'distinct question')} ({counted(summary.saved_call_count, 'call')} saved), "
        f"{counted(sent, 'request')} sent"
    )
    lines = [f"{asked}, {counted(before, 'answer')} from an earlier run." if before else f"{asked}."]
    if reused := sum(call.reused_count for call in summary.calls):
        lines.append(f"{counted(reused, 'answer')} of an earlier run used again (--reuse-from).")
    if summary.simulated:
        lines.insert(0, SIMULATED)
    if "amount" not in summary.input.columns.values():
        lines.append("No amount column was found; name it with --map amount=HEADER.")
    lines += notes_told(summary.input.notes)
    lines += not_payments_told(summary.input.not_payments)
    if summary.modulus is not None and summary.modulus.is_old:
        lines.append("The modulus tables are older than a year: they warned and rejected nothing.")
    if summary.modulus is not None and (count := summary.modulus.uncovered_count):
        verb = "is on a sort code" if count == 1 else "are on sort codes"
        lines.append(f"{counted(count, 'UK account')} {verb} that the modulus tables do not cover.")
    lines += currencies_told(summary.input.currency_sources)
    lines += [warning_text(count, summary.input.places) for count in summary.warning_codes]
    if summary.next_step:
        lines.append(summary.next_step)
    return [Text(visible(line)) for line in lines]


def currencies_told(sources: CurrencySources) -> list[str]:
    """How the currencies are known, where the file does not state all of them."""
    ways = [
        (sources.given, "by the file's currency column"),
        (sources.beside_amount, "by the sign or code beside the amount"),
        (sources.uk_account, "GBP, as the account is a UK one"),
        (sources.unknown, "not known, and never guessed"),
    ]
    if sources.given == sum(count for count, _ in ways):
        return []
    told = "; ".join(f"{counted(count, 'row')} {way}" for count, way in ways if count)
    return [f"Currency: {told}."]
