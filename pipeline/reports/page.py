"""The report as one HTML page: no network, nothing from data is run, bounded in size.

The page carries its own style and script, and a content-security policy that allows these two by their
hash and nothing else (RELIABILITY, table E). Every text goes through the template's escaping.
"""

from base64 import b64encode
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import NamedTuple

import polars as pl
from jinja2 import Environment, FunctionLoader, StrictUndefined, Template
from markupsafe import Markup

from pipeline.reports.groups import REASON_CHARS_MAX, pending, shown
from pipeline.reports.overview import overview
from pipeline.reports.terminal import ADVICE, SIMULATED, counted
from schemas.outcomes import Environment as Server
from schemas.summary import Summary, WarningRow

ROWS_MAX = 20_000
"""Payments listed on the page, at most."""
ROWS_AT_ONCE = 500
"""Of these, payments in the document at one time."""
ODDITIES_MAX = 20
ROWS_NAMED_MAX = 10

ENVIRONMENTS = {
    Server.SANDBOX: "Sandbox: simulated answers",
    Server.TEST: "Test server, live network",
    Server.PRODUCTION: "Production",
}


class Oddity(NamedTuple):
    """What was odd about some rows, and stopped nothing."""

    message: str
    rows: str
    """The numbers of the first of them."""


def page(summary: Summary, rows: pl.DataFrame) -> str:
    """Render the report of one run.

    Args:
        summary: what the run found.
        rows: one row per payment of the file, with `groups.COLUMNS`: `Payments` beside `Outcomes`.

    Returns:
        A whole HTML document. It names payees and masks accounts; it lists at most `ROWS_MAX`
        payments, and says so where there are more.
    """
    assert rows.height == summary.input.row_count
    return _template().render(
        summary=summary,
        file=shown(summary.input.name),
        server=ENVIRONMENTS[summary.environment],
        simulated=SIMULATED if summary.simulated else "",
        finished=f"{datetime.fromisoformat(summary.finished):%Y-%m-%d %H:%M} UTC",
        overview=overview(summary.outcomes),
        counts={total.outcome: total.row_count for total in summary.outcomes if total.row_count},
        pending=pending(rows, rows_max=ROWS_MAX),
        oddities=_oddities(summary.warnings),
        requests=sum(call.request_count for call in summary.calls),
        questions=sum(call.question_count for call in summary.calls),
    )


@cache
def _template() -> Template:
    environment = Environment(
        loader=FunctionLoader(_source),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style, script = _source("report.css"), _source("report.js")
    environment.globals |= {
        "style": Markup(style),  # noqa: S704 (our own file, in which nothing is filled in)
        "script": Markup(script),  # noqa: S704 (the same)
        "policy": _policy(style, script),
        "advice": ADVICE,
        "counted": counted,
        "shown": shown,
        "rows_at_once": ROWS_AT_ONCE,
    }
    return environment.get_template("report.html")


def _source(name: str) -> str:
    return files("pipeline.reports").joinpath("templates", name).read_text("utf-8")


def _policy(style: str, script: str) -> str:
    """Nothing may be loaded, sent or run but this style and this script."""
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _oddities(warnings: Sequence[WarningRow]) -> list[Oddity]:
    rows: dict[str, list[int]] = {}
    for warning in warnings:
        rows.setdefault(warning.message, []).append(warning.row)
    return [
        Oddity(shown(message, REASON_CHARS_MAX), _numbers(numbers))
        for message, numbers in list(rows.items())[:ODDITIES_MAX]
    ]


def _numbers(rows: Sequence[int]) -> str:
    """Row numbers, the first of them where they are many."""
    named = ", ".join(f"{row:,}" for row in rows[:ROWS_NAMED_MAX])
    return named if len(rows) <= ROWS_NAMED_MAX else f"{named} and {len(rows) - ROWS_NAMED_MAX:,} more"
