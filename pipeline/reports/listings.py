"""The smaller tables on a terminal: the plan, the columns, the caps, the doctor's findings."""

from collections.abc import Sequence
from datetime import datetime

from rich.console import Console
from rich.text import Text

from pipeline.reports.terminal import table_of, visible
from schemas.summary import ApiForecast, Forecast

REJECTS_SHOWN_MAX = 20


def print_forecast(forecast: Forecast, console: Console) -> None:
    """Show what checking a file would take."""
    title = (
        f"{forecast.input_name}: {forecast.row_count:,} payments, {forecast.accepted_count:,} to be checked, "
        f"{forecast.rejected_count:,} rejected by the local rules"
    )
    console.print(Text(visible(title), style="bold"))
    apis = table_of("API", ">rows", ">calls", "at most", "about")
    for api in forecast.apis:
        apis.add_row(
            api.api.value,
            f"{api.row_count:,}",
            f"{api.question_count:,}",
            f"{api.rate_per_s:g} a second" + (f", {api.daily_cap:,} a day" if api.daily_cap else ""),
            _duration(api),
        )
    console.print(apis)
    saved = f"{forecast.saved_call_count:,} calls saved by asking each distinct question once."
    console.print(Text(f"{saved} Nothing was sent."))
    if not forecast.rejects:
        return
    rejects = table_of(">row", "field", "code", "what is wrong, and what to do")
    for reject in forecast.rejects[:REJECTS_SHOWN_MAX]:
        rejects.add_row(str(reject.row), reject.field, reject.code, visible(reject.message))
    console.print(rejects)
    hidden = len(forecast.rejects) - REJECTS_SHOWN_MAX
    if hidden > 0:
        console.print(Text(f"... and {hidden:,} more."))


def print_columns(columns: Sequence[tuple[str, str | None, str]], console: Console) -> None:
    """Show how headers were read: (header, field or None, how)."""
    table = table_of("header", "field", "how")
    for header, field, how in columns:
        table.add_row(Text(visible(header)), Text(field or "-", style="bold" if field else "dim"), how)
    console.print(table)


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
    """Show what was tried: (what, what was found, whether it is well); one line each."""
    for what, said, well in findings:
        mark = Text("ok      ", style="green") if well else Text("PROBLEM ", style="bold red")
        console.print(mark + Text(f"{what}: {visible(said)}"), soft_wrap=True)


def _duration(api: ApiForecast) -> str:
    if api.day_count > 1:
        return f"{api.day_count:,} days"
    seconds = round(api.duration_s)
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60:,} min" if seconds < 7200 else f"{seconds // 3600:,} h {seconds % 3600 // 60} min"
