"""What a name-check API is sent: the fields that the page lists, and nothing else."""

import re
from pathlib import Path

import pytest
from aiohttp import web

pytestmark = pytest.mark.usefixtures("in_this_process")

PAGE = (Path(__file__).parents[2] / "docs" / "what-leaves.md").read_text("utf-8")
HEADERS = {
    *("Host", "Accept", "Accept-Encoding", "User-Agent", "Content-Type", "Content-Length"),
    *("X-Request-Timestamp", "Authorization"),
}
CORRELATION_IDS = {"X-FAPI-Interaction-ID", "X-Request-ID"}
PATHS = {"/vopgateway/": "vop_gateway", "/vop/": "vop_standard"}
ROWS = [
    {"name": "Avery Thornwood", "sort_code": "00-11-22", "account_number": "00012345"},
    {"name": "Basil Underhill", "iban": "DE35370400440084210077", "bic": "COBADEFFXXX"},
    {"lei": "529900T8BM49AURSDO55", "iban": "FR7630003012340000482100733", "bic": "SOGEFRPPXXX"},
]
SECRET = {"payment_id": "PAY-CANARY-1", "amount": "4711.11", "currency": "EUR", "note": "a canary note"}
MORE = {"account_type": "Business", "secondary_reference": "roll 17", "reference": "INV 2031"}


def leaves(document, path=""):
    """Where values stand in a document."""
    if isinstance(document, dict):
        return [where for name, inner in document.items() for where in leaves(inner, f"{path}.{name}")]
    if isinstance(document, list):
        return [where for inner in document for where in leaves(inner, f"{path}[]")]
    return [path.removeprefix(".")]


@pytest.mark.parametrize("form", ["gateway", "standard"])
def test_an_api_is_sent_the_fields_of_the_page_and_nothing_else(
    desk, sandbox, misbehaving, monkeypatch, form
):
    listed = set(re.findall(r"^\| `(\w+)` \| `([^`]+)` \|", PAGE, re.MULTILINE))
    seen = []

    async def server(request):
        body = await request.json()
        seen.append((request.path, set(request.headers), body, await request.text()))
        api = next((api for path, api in PATHS.items() if request.path.startswith(path)), "cop")
        if api == "cop":
            answer = {"data": {"verificationReport": {"matched": True}}}
        else:
            answer = {"partyIdMatch" if "identification" in body["party"] else "partyNameMatch": "MTCH"}
        echoed = {name: request.headers[name] for name in CORRELATION_IDS if name in request.headers}
        return web.json_response(answer, headers=echoed)

    profile = {"gateway": "production", "standard": "production-standard"}[form]
    remittance = {"send_remittance": True} if form == "standard" else {}
    with misbehaving(server) as url:
        sections = {
            "cop": sandbox.section("production", "cop", base_url=url),
            "vop": sandbox.section(profile, "vop", base_url=url, **remittance),
        }
        rows = [SECRET | MORE | row | ({} if "iban" in row else {"currency": "GBP"}) for row in ROWS]
        done = desk(
            "run",
            desk.payments(rows, header=tuple({**rows[0], **rows[1], **rows[2]})),
            *desk.using(**sections),
            "--quiet",
        )
    assert done.status == 0, done.err
    assert len(seen) == len(ROWS)
    for path, headers, body, text in seen:
        api = next((api for start, api in PATHS.items() if path.startswith(start)), "cop")
        assert {(api, where) for where in leaves(body)} <= listed
        assert {name.casefold() for name in headers} <= {
            name.casefold() for name in HEADERS | CORRELATION_IDS
        }
        for value in (*SECRET.values(), "payments"):
            assert value not in text or value in {"EUR", "GBP"}
    assert {api for path, *_ in seen for start, api in PATHS.items() if path.startswith(start)} == {
        f"vop_{form}"
    }
