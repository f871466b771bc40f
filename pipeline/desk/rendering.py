"""Pages: a template filled in, every text in it escaped, with the style of the report."""

from datetime import datetime
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from typing import Any

from aiohttp import web
from jinja2 import Environment, FunctionLoader, StrictUndefined

from pipeline.desk.people import Person
from pipeline.desk.states import WORDS
from pipeline.reports.compiled import CompiledTemplates
from pipeline.reports.groups import amount_text, currency_text, shown
from pipeline.reports.payment_lines import breakable
from pipeline.reports.wording import SIMULATED, counted

PERSON = web.RequestKey("person", Person)
"""Who asks, once the guards know."""

NEXT_STEPS = {
    401: "Close this page. On the computer where the desk runs, open it again with the link that it gives.",
    403: "Go back, or ask somebody who may.",
    404: "Go to the list of files.",
    409: "Load the page again to see how things stand now.",
    500: "Go to the list of files, and try again.",
    413: "Split the file, or ask who looks after this desk to allow larger ones.",
}
"""What to do about a refusal that does not say it itself."""


def html(request: web.Request, name: str, status: int = 200, **values: Any) -> web.Response:  # noqa: ANN401 (what templates take)
    """A page.

    Args:
        request: that asks for it.
        name: of the template, without its suffix.
        status: of the answer.
        values: that are filled in.
    """
    person = request.get(PERSON)
    text = environment().get_template(f"{name}.html").render(person=person, path=request.path, **values)
    return web.Response(text=text, content_type="text/html", charset="utf-8", status=status)


def refused(request: web.Request, sentence: str, status: int, next_step: str = "") -> web.Response:
    """A page about what was not done, and what to do instead."""
    next_step = next_step or NEXT_STEPS.get(status, "Go back, and put it right.")
    title = {401: "Not signed in", 403: "Not allowed", 404: "Not found"}.get(status, "Not done")
    return html(request, "refused", status, title=title, sentence=sentence, next_step=next_step)


@cache
def environment() -> Environment:
    """The templates, compiled as they are needed."""
    made = Environment(
        loader=FunctionLoader(_source),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=CompiledTemplates(),
    )
    made.filters |= {
        "n": "{:,}".format,
        "moment": moment,
        "shown": shown,
        "breakable": breakable,
        "money": _money,
        "size": size_text,
        "words": lambda text: text.replace("_", " "),
        "duration": duration_text,
    }
    made.globals |= {"counted": counted, "SIMULATED": SIMULATED, "STATES": WORDS, "HTTPStatus": HTTPStatus}
    return made


def moment(time: str) -> str:
    """A time of a document as people read it.

    >>> moment("2030-01-02T03:04:05.678Z")
    '2030-01-02 03:04 UTC'
    """
    return f"{datetime.fromisoformat(time):%Y-%m-%d %H:%M} UTC"


def size_text(byte_count: int) -> str:
    """A size as people read it.

    >>> size_text(900), size_text(2_048), size_text(5_000_000)
    ('900 bytes', '2.0 KB', '4.8 MB')
    """
    if byte_count < 1024:
        return f"{byte_count:,} bytes"
    return f"{byte_count / 1024:,.1f} KB" if byte_count < 1024**2 else f"{byte_count / 1024**2:,.1f} MB"


def duration_text(seconds: float) -> str:
    """A duration as people read it.

    >>> duration_text(0.2), duration_text(75), duration_text(8_000)
    ('less than a second', '1 min 15 s', '2 h 13 min')
    """
    whole = round(seconds)
    if whole < 1:
        return "less than a second"
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _money(totals: Any) -> list[str]:  # noqa: ANN401 (a list of Money)
    return [f"{amount_text(money.amount)} {currency_text(money.currency)}" for money in totals]


def _source(name: str) -> str:
    return files("pipeline.desk").joinpath("templates", name).read_text("utf-8")
