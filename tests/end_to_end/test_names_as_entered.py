"""A name reaches the bank as it was entered, no spreadsheet runs it, and who is out of reach is not asked."""

import json

import openpyxl
import pytest
from aiohttp import web
from refusals import said

pytestmark = pytest.mark.usefixtures("in_this_process")

UK = {"account_type": "Business", "sort_code": "010203", "amount": "5.00"}
IBAN = {"iban": "DE89370400440532013000", "amount": "7.00", "currency": "EUR"}
HEADER_OF = ("x-fapi-interaction-id", "X-Request-ID")
HELD_NAME = "@Home Limited"


def replied(request, document):
    echo = {name: value for name, value in request.headers.items() if name in HEADER_OF}
    return web.json_response(document, headers=echo)


@pytest.fixture
def asked(desk, misbehaving, sandbox):
    """`asked(rows, keys)`: run a file at a bank of the test's own, and give what the bank was told."""

    def run(rows, keys=""):
        told = []

        async def answer(request):
            told.append(json.loads(await request.read()))
            if "copgateway" in request.path:
                report = {"matched": False, "reasonCode": "MBAM", "name": HELD_NAME}
                return replied(request, {"data": {"verificationReport": report}})
            return replied(request, {"partyNameMatch": "NMTC"})

        secret = desk.folder / "secret"
        secret.touch(mode=0o600)
        secret.write_text("invented")
        with misbehaving(answer) as url:
            changes = {"base_url": url, "token_url": f"{url}/token", "client_secret_file": str(secret)}
            path = desk.configuration(mine=sandbox.both(server="production", **changes))
            path.write_text(f"[profiles.mine]\n{keys}\n{path.read_text()}")
            done = desk("run", desk.payments(rows), "--config", path, "--profile", "mine")
        return done, told

    return run


def test_name_that_a_spreadsheet_would_run_is_asked_about_as_it_is_and_runs_nowhere(desk, asked):
    names = ["@Home Ltd", "+Plus Ltd", '="Ada Quillon"', "=VLOOKUP(A2;B)"]
    rows = [{**UK, "account_number": f"1000000{n}", "name": name} for n, name in enumerate(names)]
    done, told = asked([*rows, {**IBAN, "name": "=Objekt GmbH"}])

    assert done.status == 0, done.err
    by_name = {body["data"]["name"] if "data" in body else body["party"]["name"] for body in told}
    assert by_name == {"@Home Ltd", "+Plus Ltd", "Ada Quillon", "=Objekt GmbH"}
    outcomes = desk.outcomes()
    assert [row["name"] for row in outcomes] == [*names, "=Objekt GmbH"]
    assert [row["check_code"] for row in outcomes] == ["MBAM", "MBAM", "MBAM", "NAME_FORMULA", "NMTC"]
    assert outcomes[0]["check_matched_name"] == HELD_NAME
    [attention] = desk.outcomes(name="attention.csv")
    assert attention["name"] == "'=Objekt GmbH"
    book = openpyxl.load_workbook(desk.folder / "payments.precheck" / "report.xlsx")
    assert not [cell for sheet in book for row in sheet for cell in row if cell.data_type == "f"]

    accepted = ("--accept", "close_match", "--reason", "agreed", "--by", "Mara Ellery")
    assert desk("fix", "payments.precheck", *accepted).status == 0
    corrections = {row["row"]: row for row in desk.outcomes(name="corrections.csv") if row["row"] != "5"}
    assert (corrections["1"]["from"], corrections["1"]["to"]) == ("'@Home Ltd", f"'{HELD_NAME}")
    assert desk.outcomes(name="corrected.csv")[0]["name"] == HELD_NAME


def test_iban_out_of_reach_is_not_asked_and_every_later_command_understands_it(desk, asked):
    rows = [
        {**IBAN, "name": "Quillon Mills BV"},
        {**IBAN, "iban": "FR7630003012340000482100733", "name": "Marrow SARL"},
        {**IBAN, "iban": "FR7630003012340000482100733", "name": "\u0391\u03b4\u03b1"},
    ]
    keys = ('vop_countries = ["FR"]', 'vop_names = "latin"', 'policy = { OUT_OF_REACH = "release" }')
    done, told = asked(rows, "\n".join(keys))

    assert done.status == 0, done.err
    assert [body["party"]["name"] for body in told] == ["Marrow SARL"]
    first, second, third = desk.outcomes()
    assert (first["check_outcome"], first["check_code"]) == ("not_possible", "OUT_OF_REACH")
    assert (third["check_outcome"], third["check_code"]) == ("not_possible", "OUT_OF_ALPHABET")
    assert (first["check_api"], first["check_id"], second["check_code"]) == ("", "", "NMTC")
    assert [row["check_code"] for row in desk.outcomes(name="attention.csv")] == [
        "OUT_OF_REACH",
        "NMTC",
        "OUT_OF_ALPHABET",
    ]
    assert desk("verify", "payments.precheck").status == 0
    assert "OUT_OF_REACH" in desk("show", "payments.precheck", "--row", 1).out
    assert desk("split", "payments.precheck", "--config", "mine.toml").status == 0
    assert [row["row"] for row in desk.outcomes(name="hold_reasons.csv")] == ["2", "3"]


def test_plan_tells_before_any_call_which_names_may_not_arrive(desk):
    file = desk.payments([{**IBAN, "name": "\u0391\u03b4\u03b1"}, {**IBAN, "name": "Ada Quillon"}])
    planned = desk("plan", file)
    assert said("warned.NAME_NOT_LATIN") + ": 1 row (1; line 2)." in planned.out
    assert said("terminal.calls_saved", count=0) in planned.out
