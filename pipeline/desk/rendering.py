"""Render pages: templates filled with escaped text, in the style of the report."""

from functools import cache
from http import HTTPStatus
from typing import IO, Any

from aiohttp import web
from jinja2 import Environment
from jinja2.runtime import Context
from jinja2.utils import pass_context
from markupsafe import Markup

from pipeline.desk import languages
from pipeline.desk.languages import gettext, gettext_noop, in_page_words, localized, recorded
from pipeline.desk.people import Person
from pipeline.headers.readings import spoken
from pipeline.reports.groups import money_texts, shown
from pipeline.reports.page import breakable, templates
from pipeline.reports.wording import number, price_text, visible, warning_text
from pipeline.wording import LANGUAGES, Sentence, SurfaceKind, language, rendered
from schemas.desk import Deed

_N = gettext_noop
IS_DEMO = web.AppKey("is_demo", bool)  # True if all answers at this desk are simulated
PERSON = web.RequestKey("person", Person)  # the user, once the guards have identified them
PATH = web.RequestKey("path", str)  # the requested path, without the secret part of the address

NEXT_STEPS = {
    401: _N("Close this page. On the computer that runs the desk, open it again with the link it prints."),
    403: _N("Go back, or ask someone with that role."),
    404: _N("Go to the list of files."),
    409: _N("Open the page again to see the current state."),
    500: _N("Go to the list of files, and try again."),
    413: _N("Split the file, or ask your administrator to allow larger files."),
}
"""What users can do about a refusal that has no advice of its own."""
_PUT_RIGHT = _N("Go back and correct it.")
_TITLES = {401: _N("Not signed in"), 403: _N("Not allowed"), 404: _N("Not found")}
DEEDS = {
    Deed.OPENED: _N("opened"),
    Deed.CLOSED: _N("closed"),
    Deed.UPLOADED: _N("uploaded"),
    Deed.READ_AS: _N("read as"),
    Deed.PLANNED: _N("planned"),
    Deed.STARTED: _N("started"),
    Deed.STOPPED: _N("stopped"),
    Deed.STARTED_OVER: _N("started over"),
    Deed.DECIDED: _N("decided"),
    Deed.HANDED_OVER: _N("submitted for approval"),
    Deed.SENT_BACK: _N("sent back"),
    Deed.NOT_NOTIFIED: _N("notification failed"),
    Deed.APPROVED: _N("approved"),
    Deed.CORRECTED: _N("corrected"),
    Deed.COMPARED: _N("compared with the bank's report"),
    Deed.GIVEN: _N("gave it to the bank"),
    Deed.COMMENTED: _N("commented"),
    Deed.SAW_ACCOUNTS: _N("saw whole account numbers"),
    Deed.DOWNLOADED: _N("downloaded"),
    Deed.VERIFIED: _N("verified"),
    Deed.PURGED: _N("deleted the names"),
    Deed.REFUSED: _N("refused"),
}
"""The phrase for each action, for example on the audit page."""
FACTS = {
    "byte_count": _N("bytes"),
    "row": _N("row"),
    "row_count": _N("rows"),
    "decision": _N("decision"),
    "released_count": _N("rows released"),
    "money": _N("amount"),
    "mapped_count": _N("columns chosen by hand"),
    "carried_count": _N("holds carried over"),
    "format": _N("format"),
    "encoding": _N("encoding"),
    "sheet": _N("sheet"),
    "differing_count": _N("differences"),
    "unfinished_upload_count": _N("uploads left unfinished when the desk was killed"),
    "from_workbook": _N("from a workbook"),
    "file": _N("file"),
    "profile": _N("profile"),
    "reason": _N("reason"),
    "page": _N("page"),
    "rule": _N("rule"),
    "repeated_count": _N("earlier repetitions"),
}
"""Words for the recorded facts of an action."""
ASKED = (_N("account"), _N("responder bic"), _N("remittance"), _N("row"))
"""Fields that questions have but payments lack."""
ENDINGS = (_N("answered"), _N("refused"), _N("failed"), _N("in doubt"))  # words for the result of a request
_NOT_DONE = _N("Not done")


def html(request: web.Request, name: str, status: int = 200, **values: Any) -> web.Response:  # noqa: ANN401 (what templates take)
    """Render the named template (without suffix) with these values."""
    person = request.get(PERSON)
    here = {"person": person, "path": request.get(PATH, ""), "is_demo": request.app.get(IS_DEMO)}
    text = environment().get_template(f"{name}.html").render(**here, **values)
    return web.Response(text=text, content_type="text/html", charset="utf-8", status=status)


def attachment(name: str, body: bytes | IO[bytes], kind: str = "application/octet-stream") -> web.Response:
    """Return a file to download."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return web.Response(body=body, content_type=kind, headers=headers)


def refused(request: web.Request, message: Sentence | str, status: int, next_step: str = "") -> web.Response:
    """Render a page about a refused request, with what the user can do."""
    step = next_step or NEXT_STEPS.get(status, _PUT_RIGHT)
    title = gettext(_TITLES.get(status, _NOT_DONE))
    file_id = request.match_info.get("id") if status != HTTPStatus.NOT_FOUND else None
    back = f"/files/{file_id}" if file_id else None
    facts = {"sentence": rendered(message, SurfaceKind.PAGE), "next_step": gettext(step), "back": back}
    return html(request, "refused", status, title=title, **facts)


@cache
def environment() -> Environment:
    """The templates, each compiled at its first use."""
    made = templates("pipeline.desk", extensions=["jinja2.ext.i18n"])
    made.newstyle_gettext = True  # type: ignore[attr-defined]  # set by the i18n extension
    made.policies["ext.i18n.trimmed"] = True
    made.filters |= {
        "n": lambda count: number(round(count, 3), ",.15g"),
        "moment": _moment,
        "shown": shown,
        "breakable": breakable,
        "amounts": money_texts,
        "price": price_text,
        "size": languages.size,
        "words": words,
        "duration": languages.duration,
        "rendered": lambda text: rendered(text, SurfaceKind.PAGE),
        "spoken": lambda localized: in_page_words(map(Sentence.of_data, localized)),
        "localized": localized,
        "finding": lambda data: localized(Sentence.of_data(data)),
        "known": gettext,
        "recorded": recorded,
        "warned": lambda count, places: visible(warning_text(count, places)),
    }
    made.globals |= {
        "_": _in_template,
        "gettext": _in_template,
        "pgettext": _in_context,
        "DEEDS": DEEDS,
        "FACTS": FACTS,
        "ngettext": _several_in_template,
        "language": language,
        "LANGUAGES": LANGUAGES,
        "HTTPStatus": HTTPStatus,
    }
    return made


def _moment(time: str) -> Markup:
    """A time that the browser converts to the reader's time zone."""
    return Markup('<time datetime="{}">{}</time>').format(time, languages.moment(time))


@cache
def _markup(_language: str, message: str) -> Markup:
    return Markup(gettext(message))  # noqa: S704 (our own sentence, not user text)


@pass_context  # so that jinja translates at run time, not in the language of the compilation
def _in_template(_context: Context, message: str, /, **values: object) -> Markup:
    sentence = _markup(language(), message)
    return sentence % values if values else sentence


@pass_context
def _in_context(_context: Context, meant: str, message: str) -> str:
    return languages.pgettext(meant, message)


@pass_context
def _several_in_template(
    _context: Context, one: str, several: str, count: int, /, **values: object
) -> Markup:
    sentence = Markup(languages.form_of(one, several, count))  # noqa: S704 (our own sentence)
    return sentence % {"num": number(count), **values}


def words(name: str) -> str:
    """Name an outcome, a field or a fact in words."""
    return gettext(spoken(name))


def page_number(text: str | None) -> int:
    """Parse a page number; 1 if the text is missing, zero or not a number.

    >>> page_number("12"), page_number(None), page_number("0"), page_number("9" * 99), page_number("x")
    (12, 1, 1, 1, 1)
    """
    is_number = text is not None and text.isascii() and text.isdigit() and len(text) < 8
    return max(int(text or ""), 1) if is_number else 1
