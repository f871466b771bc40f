"""The smaller tables on a terminal: the plan, the columns, the caps, the doctor's findings."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeline.reports.changes import print_changes
from pipeline.reports.terminal import (
    counted,
    not_payments_told,
    notes_told,
    rule_table,
    table_of,
    visible,
    warning_text,
    which_rows,
)
from schemas.places import place_text
from schemas.summary import ApiForecast, Forecast

REJECTS_SHOWN_MAX = 20
VALUE_CHARS_MAX = 30
CANDIDATE = "candidate"
"""How the rule of a column begins that could be a field and is not read, as nobody can choose."""


def print_forecast(forecast: Forecast, console: Console) -> None:
    """Show what checking a file would take."""
    title = (
        f"{forecast.input_name}: {counted(forecast.row_count, 'payment')}, "
        f"{forecast.accepted_count:,} to be checked, {forecast.rejected_count:,} rejected by the local rules"
    )
    if forecast.unasked_count:
        title += f", {forecast.unasked_count:,} left unasked by the profile"
    console.print(Text(visible(title), style="bold"))
    print_changes(forecast, forecast.changes, console)
    if forecast.apis:
        console.print(_apis(forecast))
    for line in _spared(forecast):
        console.print(Text(visible(line)))
    saved = f"{counted(forecast.saved_call_count, 'call')} saved by asking each distinct question once."
    console.print(Text(f"{saved} Nothing was sent."))
    for line in (*notes_told(forecast.notes), *not_payments_told(forecast.not_payments)):
        console.print(Text(visible(line)))
    if forecast.refusal:
        said = f"Warning: this run would be refused: {forecast.refusal}."
        console.print(Text(visible(said), style="bold yellow"))
    for count in forecast.warning_codes:
        console.print(Text(visible(warning_text(count, forecast.places))))
    if forecast.rejects:
        console.print(_rejects(forecast, console.width))


def _apis(forecast: Forecast) -> Table:
    apis = table_of("API", ">rows", ">calls", "at most", "about")
    for api in forecast.apis:
        apis.add_row(
            api.api.value,
            f"{api.row_count:,}",
            f"{api.call_count:,}",
            f"{api.rate_per_s:g} a second" + (f", {api.daily_cap:,} a day" if api.daily_cap else ""),
            _duration(api),
        )
    return apis


def _numbered(row: int, forecast: Forecast) -> str:
    """The number of a row, and its place in the file below it."""
    return f"{row}\n{place_text(row, forecast.places)}".strip()


def _spared(forecast: Forecast) -> Iterator[str]:
    """What need not be asked any more, and why that may be more than could be told."""
    if before := sum(api.answered_before_count for api in forecast.apis):
        yield f"{counted(before, 'call')} saved by answers of an earlier run in the same folder."
    if reused := sum(api.reused_count for api in forecast.apis):
        yield f"{counted(reused, 'call')} saved by matches of an earlier run (--reuse-from)."
    if forecast.why_uncounted:
        yield f"Answers of an earlier run are not counted: {forecast.why_uncounted}."


def _rejects(forecast: Forecast, width: int) -> Table:
    """Each broken rule of each row where they are few, by kind where they are many."""
    if sum(kind.row_count for kind in forecast.broken_rules) <= REJECTS_SHOWN_MAX:
        each = [
            (_numbered(reject.row, forecast), reject.field, reject.code, reject.message)
            for reject in forecast.rejects
        ]
        return rule_table(">row", each, width=width)
    kinds = [
        (
            f"{kind.row_count:,}",
            kind.field,
            kind.code,
            f"{kind.message}: {which_rows(kind.rows, kind.row_count, places=forecast.places)}",
        )
        for kind in forecast.broken_rules
    ]
    return rule_table(">rows", kinds, width=width)


def print_columns(
    columns: Sequence[tuple[str, str | None, str, Sequence[str], Sequence[str]]],
    notes: Sequence[str],
    console: Console,
) -> None:
    """Show how columns were read: (header, field or None, rule, other candidates, values), and notes."""
    table = table_of("header", "field", "why", "values")
    for column in table.columns:
        column.no_wrap = False  # a header can be a sentence
    for header, field, rule, others, values in columns:
        style = "yellow" if rule.startswith(CANDIDATE) else ""
        name = Text(field or "-", style="bold" if field else "dim")
        instead = f"; not {', '.join(others)}" if others else ""
        table.add_row(
            Text(visible(header)),
            name,
            Text(visible(f"{rule}{instead}"), style=style),
            Text(visible(", ".join(value[:VALUE_CHARS_MAX] for value in values)), style="dim"),
        )
    console.print(table)
    for line in notes_told(notes):
        console.print(Text(visible(line)))


def print_quota(uses: Sequence[tuple[str, int, int, datetime]], console: Console) -> None:
    """Show how much of each cap is used: (scope, used, cap, when it begins anew)."""
    if not uses:
        console.print(Text("No daily cap has been used by this user."))
        return
    table = table_of("server and client", ">used", ">cap", "begins anew")
    for scope, used, cap, resets_at in uses:
        table.add_row(Text(visible(scope)), f"{used:,}", f"{cap:,}", f"{resets_at:%Y-%m-%d %H:%M} UTC")
    console.print(table)


def print_findings(findings: Sequence[tuple[str, str, bool]], console: Console) -> None:
    """Show what was tried: (what, what was found, whether it is well).

    One line each, which a terminal gets wrapped below itself.
    """
    table = Table.grid(padding=(0, 1, 0, 0))
    for what, said, well in findings:
        mark, text = _mark(well), Text(f"{what}: {visible(said)}")
        if console.is_terminal:
            table.add_row(mark, text)
        else:
            console.print(mark + Text(" ") + text, soft_wrap=True)
    if console.is_terminal:
        console.print(table)


def _mark(well: bool) -> Text:
    return Text("ok     ", style="green") if well else Text("PROBLEM", style="bold red")


def _duration(api: ApiForecast) -> str:
    if api.daily_cap is not None and api.used_count >= api.daily_cap and api.call_count:
        return f"{counted(api.day_count, 'day')}, from tomorrow: today's {api.daily_cap:,} are used"
    if api.day_count > 1:
        used = f": {api.used_count:,} of today's are used" if api.used_count else ""
        return f"{api.day_count:,} days{used}"
    seconds = round(api.duration_s)
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60:,} min" if seconds < 7200 else f"{seconds // 3600:,} h {seconds % 3600 // 60} min"
