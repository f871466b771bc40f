"""Fault table E3: the report page shows what payers and banks wrote, and runs and loads none of it."""

import shutil
from html import unescape
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import html5lib
import pytest

from schemas.payments import FIELDS

UK = {
    "payment_id": "P1", "name": "Some Payee", "account_type": "Personal", "sort_code": "010203",
    "amount": "1.00", "currency": "GBP",
}  # fmt: skip
PAYLOADS = (
    "<script>window.hit=1</script>",
    "<SCRIPT SRC=//x.example/a.js></SCRIPT>",
    "</script><script>window.hit=1</script>",
    "</title></style><script>window.hit=1</script>",
    "</td></tr></table></template><script>window.hit=1</script>",
    "--><script>window.hit=1</script><!--",
    "]]><script>window.hit=1</script>",
    "<scr<script>ipt>window.hit=1</scr</script>ipt>",
    "<svg><script>window.hit=1</script></svg>",
    "<math><annotation-xml encoding=text/html><script>window.hit=1</script>",
    "<noscript><p title='</noscript><script>window.hit=1</script>'>",
    "<svg/onload=window.hit=1>",
    "<img src=x onerror=window.hit=1>",
    "<img src=https://x.example/a.png>",
    "<link rel=stylesheet href=https://x.example/a.css>",
    "<meta http-equiv=refresh content='0;url=https://x.example/'>",
    "<base href=https://x.example/>",
    "<iframe srcdoc='<script>parent.hit=1</script>'></iframe>",
    "<object data=https://x.example/></object>",
    "<form action=https://x.example/><input autofocus onfocus=window.hit=1>",
    "<style>@import 'https://x.example/a.css'; body{display:none}</style>",
    '" autofocus onfocus=window.hit=1 x="',
    "' onmouseover=window.hit=1 x='",
    "` onclick=window.hit=1 x=`",
    "javascript:window.hit=1",
    "&lt;script&gt;window.hit=1&lt;/script&gt;",
    "&#60;script&#62;window.hit=1&#60;/script&#62;",
    "{{ 7*7 }}{% raw %}<script>window.hit=1</script>{% endraw %}",
    "<plaintext>",
    "<script\x00>window.hit=1</script>",
    "\uff1cscript\uff1ewindow.hit=1\uff1c/script\uff1e",
)
"""Each is what a page without escaping would run, load or be broken by."""
ELEMENTS = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "script",
        "header",
        "main",
        "footer",
        "section",
        "nav",
    ),
    *(
        "h1",
        "h2",
        "h3",
        "p",
        "div",
        "span",
        "a",
        "b",
        "i",
        "strong",
        "small",
        "bdi",
        "mark",
        "code",
        "noscript",
    ),
    *("dl", "dt", "dd", "ol", "ul", "li", "table", "caption", "thead", "tbody", "tfoot", "tr", "th", "td"),
    *("label", "input", "select", "option", "button", "template", "svg", "rect", "wbr"),
}
"""What the page is made of."""
OWN = {
    "style": files("pipeline.reports").joinpath("templates", "report.css").read_text("utf-8"),
    "script": files("pipeline.reports").joinpath("templates", "report.js").read_text("utf-8"),
}
"""What it may carry and run."""
ACTS = {"src", "srcset", "srcdoc", "action", "formaction", "data", "style", "autofocus"}
"""Attributes that load or run something, beside those that start with `on`."""


class HostilePage(NamedTuple):
    file: Path
    text_count: int
    """Of hostile texts in cells of the file, and in names that the bank returned."""
    returned: list[str]


@pytest.fixture
def hostile_page(desk, bank, words, reply):
    """The page of a run in which every field of some row, and every returned name, is hostile."""

    async def close(request, body):
        number = int(body.split(b"1000")[1][:4]) % len(PAYLOADS)
        code = "MBAM" if "copgateway" in request.path else "CMTC"
        return reply(request, code, PAYLOADS[number])

    cells = [(field, text) for text in PAYLOADS for field in (*FIELDS, "<script>note</script>")]
    rows = [
        {**UK, "account_number": f"1000{number:04d}", field: text}
        for number, (field, text) in enumerate(cells)
    ]
    header = (*FIELDS, "<script>note</script>")
    file = desk.payments(rows, "<img src=x onerror=window.hit=1>.csv", header=header)
    with bank(close) as running:
        why = ("--allow-many-names", PAYLOADS[0])
        finished = desk("run", file, *words(running), *why, "--out", "out", "--quiet")
    assert finished.status == 0, finished.err
    returned = [name for name in (row["check_matched_name"] for row in desk.outcomes("out")) if name]
    assert len(set(returned)) > 20, "the bank returned hardly any hostile name"
    return HostilePage(desk.folder / "out" / "report.html", len(cells) + len(returned), returned)


def elements(text):
    """What the HTML standard makes of a page: local names, attributes and text of its elements."""
    tree = html5lib.parse(text, treebuilder="etree", namespaceHTMLElements=False)
    for element in tree.iter():
        if isinstance(element.tag, str):  # else it is a comment
            yield element.tag.rpartition("}")[2], element.attrib, "".join(element.itertext())


def is_foreign(tag, attributes, text):
    """Whether an element can only have come from data."""
    acts = any(name in ACTS or name.startswith("on") for name in attributes)
    leads_away = not attributes.get("href", "#").startswith("#") or attributes.get("http-equiv") == "refresh"
    return tag not in ELEMENTS or acts or leads_away or OWN.get(tag, text) != text


def test_e3_no_text_becomes_an_element_of_the_page(hostile_page, tell):
    page = hostile_page.file.read_text("utf-8")
    text = unescape(page.replace("<mark>", "").replace("</mark>", ""))
    missing = [name for name in hostile_page.returned if name.isprintable() and name not in text]
    assert not missing, "what the bank returned is not on the page: this tried nothing"
    found = list(elements(page))
    foreign = [tag for tag, attributes, text in found if is_foreign(tag, attributes, text)]
    script_count = sum(tag == "script" for tag, _, _ in found) - 1
    tell(
        "E3",
        "markup in every text field and in returned names",
        tried=hostile_page.text_count,
        survived=hostile_page.text_count - len(foreign) if not script_count else 0,
        figure=f"{script_count} script nodes, {len(foreign)} foreign elements, by html5lib",
        goal="0 and 0",
    )


def test_e3_a_browser_runs_nothing_and_asks_for_nothing(hostile_page, tell):
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed: make tools")
    requests, complaints = [], []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium)
        page = browser.new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(hostile_page.file.as_uri(), wait_until="networkidle")
        hit = page.evaluate("window.hit ?? null")
        is_shown = page.locator("h1").is_visible() and page.locator("footer").is_visible()
        browser.close()
    outside = [url for url in requests if url != hostile_page.file.as_uri()]
    tell(
        "E3",
        "the same page in chromium",
        tried=hostile_page.text_count,
        survived=hostile_page.text_count if hit is None and is_shown and not outside + complaints else 0,
        figure=f"{len(outside)} requests, {int(hit is not None)} scripts run, {len(complaints)} refused",
        goal="0, 0 and 0",
    )
