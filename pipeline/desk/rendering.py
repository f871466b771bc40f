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
from pipeline.reports.compiled import templates
from pipeline.reports.groups import money_texts, shown
from pipeline.reports.payment_lines import breakable
from pipeline.reports.wording import visible, warning_text
from pipeline.wording import LANGUAGES, Sentence, SurfaceKind, language, rendered
from schemas.desk import Deed

IS_DEMO = web.AppKey("is_demo", bool)  # True if all answers at this desk are simulated
PERSON = web.RequestKey("person", Person)  # the user, once the guards have identified them
PATH = web.RequestKey("path", str)  # the requested path, without the secret part of the address

NEXT_STEPS = {
    401: gettext_noop(
        "Close this page. On the computer that runs the desk, open it again with the link it prints."
    ),
    403: gettext_noop("Go back, or ask someone with that role."),
    404: gettext_noop("Go to the list of files."),
    409: gettext_noop("Reload the page to see the current state."),
    500: gettext_noop("Go to the list of files, and try again."),
    413: gettext_noop("Split the file, or ask your administrator to allow larger files."),
}
"""What users can do about a refusal that has no advice of its own."""
_PUT_RIGHT = gettext_noop("Go back and correct it.")
_TITLES = {
    401: gettext_noop("Not signed in"),
    403: gettext_noop("Not allowed"),
    404: gettext_noop("Not found"),
}
DEEDS = {
    Deed.OPENED: gettext_noop("opened"),
    Deed.CLOSED: gettext_noop("closed"),
    Deed.UPLOADED: gettext_noop("uploaded"),
    Deed.READ_AS: gettext_noop("read as"),
    Deed.PLANNED: gettext_noop("planned"),
    Deed.STARTED: gettext_noop("started"),
    Deed.STOPPED: gettext_noop("stopped"),
    Deed.STARTED_OVER: gettext_noop("started over"),
    Deed.DECIDED: gettext_noop("decided"),
    Deed.HANDED_OVER: gettext_noop("handed over"),
    Deed.SENT_BACK: gettext_noop("sent back"),
    Deed.NOT_NOTIFIED: gettext_noop("notification failed"),
    Deed.APPROVED: gettext_noop("approved"),
    Deed.CORRECTED: gettext_noop("corrected"),
    Deed.COMPARED: gettext_noop("compared with the bank's report"),
    Deed.GIVEN: gettext_noop("gave it to the bank"),
    Deed.COMMENTED: gettext_noop("commented"),
    Deed.SAW_ACCOUNTS: gettext_noop("saw whole account numbers"),
    Deed.DOWNLOADED: gettext_noop("downloaded"),
    Deed.VERIFIED: gettext_noop("verified"),
    Deed.PURGED: gettext_noop("deleted the names"),
    Deed.REFUSED: gettext_noop("refused"),
}
"""The phrase for each action, for example on the audit page."""
FACTS = {
    "byte_count": gettext_noop("bytes"),
    "row": gettext_noop("row"),
    "row_count": gettext_noop("rows"),
    "decision": gettext_noop("decision"),
    "released_count": gettext_noop("rows released"),
    "money": gettext_noop("money"),
    "mapped_count": gettext_noop("columns chosen by hand"),
    "carried_count": gettext_noop("holds carried over"),
    "format": gettext_noop("format"),
    "encoding": gettext_noop("encoding"),
    "sheet": gettext_noop("sheet"),
    "differing_count": gettext_noop("differences"),
    "unfinished_upload_count": gettext_noop("uploads left unfinished when the desk was killed"),
    "from_workbook": gettext_noop("from a workbook"),
    "file": gettext_noop("file"),
    "profile": gettext_noop("profile"),
    "reason": gettext_noop("reason"),
    "page": gettext_noop("page"),
    "rule": gettext_noop("rule"),
    "repeated_count": gettext_noop("times before"),
}
"""Words for the recorded facts of an action."""
ASKED = (
    *(
        gettext_noop("account"),
        gettext_noop("responder bic"),
        gettext_noop("remittance"),
        gettext_noop("row"),
    ),
)
"""Fields that questions have but payments lack."""
ENDINGS = (
    *(gettext_noop("answered"), gettext_noop("refused"), gettext_noop("failed"), gettext_noop("in doubt")),
)
"""Words for the result of a request."""
_NOT_DONE = gettext_noop("Not done")


def html(request: web.Request, name: str, status: int = 200, **values: Any) -> web.Response:  # noqa: ANN401 (what templates take)
    """Render the named template (without suffix) with these values."""
    person = request.get(PERSON)
    text = (
        environment()
        .get_template(f"{name}.html")
        .render(person=person, path=request.get(PATH, ""), is_demo=request.app.get(IS_DEMO), **values)
    )
    return web.Response(text=text, content_type="text/html", charset="utf-8", status=status)


def attachment(
    name: str, body: bytes | IO[bytes], content_type: str = "application/octet-stream"
) -> web.Response:
    """Return a file to download."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return web.Response(body=body, content_type=content_type, headers=headers)


def refused(request: web.Request, message: Sentence | str, status: int, next_step: str = "") -> web.Response:
    """Render a page about a refused request, with what the user can do."""
    step = next_step or NEXT_STEPS.get(status, _PUT_RIGHT)
    title = gettext(_TITLES.get(status, _NOT_DONE))
    file_id = request.match_info.get("id") if status != HTTPStatus.NOT_FOUND else None
    back = f"/files/{file_id}" if file_id else None
    sentence = rendered(message, SurfaceKind.PAGE)
    return html(
        request, "refused", status, title=title, sentence=sentence, next_step=gettext(step), back=back
    )


@cache
def environment() -> Environment:
    """The templates, each compiled at its first use."""
    made = templates("pipeline.desk", extensions=["jinja2.ext.i18n"])
    made.newstyle_gettext = True  # type: ignore[attr-defined]  # set by the i18n extension
    made.policies["ext.i18n.trimmed"] = True
    made.filters |= {
        "n": languages.number,
        "moment": _moment,
        "shown": shown,
        "breakable": breakable,
        "amounts": money_texts,
        "price": languages.price,
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
    return sentence % {"num": languages.number(count), **values}


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
