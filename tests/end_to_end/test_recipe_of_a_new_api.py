"""The recipe "A new API" of CONTRIBUTING: a developer who follows it, and nothing else, has a fourth API.

The APIs here are toys with JSON of their own: one checks names against Norwegian accounts, one against UK
accounts.
"""

import json
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiohttp import web
from refusals import said

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("payee_precheck.py", "pipeline", "schemas")

SCHEMA = '''
"""The documents of the toy API."""

from typing import Literal

from schemas.strict import Document


class FjordQuestion(Document):
    account: str
    holder: str


class FjordAnswer(Document):
    verdict: Literal["SAME", "OTHER", "UNKNOWN"]
'''

MODULE = '''
"""The toy API: a name check against Norwegian accounts."""

from typing import TYPE_CHECKING, ClassVar

import polars as pl
from pydantic import Field

from pipeline.apis import (
    MATCH_CODE,
    Api,
    ApiDeclaration,
    Basis,
    ContractBreachError,
    ParsedAnswer,
    Route,
    post,
)
from pipeline.apis import require_echo, require_json
from pipeline.frames import Check, Meaning, RouteReason
from pipeline.sections import Oauth, Server
from pipeline.wording import Sentence
from schemas.fjord import FjordAnswer, FjordQuestion
from schemas.outcomes import Action, ApiName, Outcome
from schemas.strict import parse

if TYPE_CHECKING:
    import httpx


class Fjord(Oauth):
    name: ClassVar[ApiName] = ApiName.FJORD

    greeting: str = Field(description="What is said first.")


def read(response: "httpx.Response", _check: Check, request_id: str) -> ParsedAnswer:
    require_json(response)
    require_echo(response, "X-Question", request_id)
    try:
        verdict = parse(FjordAnswer, response.content).verdict
    except ValueError:
        raise ContractBreachError(Sentence("apis.not_of_model", model="FjordAnswer")) from None
    return ParsedAnswer(MATCH_CODE if verdict == "SAME" else f"FJORD_{verdict}", None)


def responder(check: Check) -> str:
    return check.account[4:8]


def api(section: Server) -> Api:
    assert isinstance(section, Fjord)

    def request(check: Check, request_id: str, _time: str) -> "httpx.Request":
        assert check.name is not None
        body = FjordQuestion(account=check.account, holder=check.name)
        headers = {"X-Question": request_id, "X-Greeting": section.greeting}
        headers |= {"Content-Type": "application/json"}
        return post("/holders", headers, body.to_json())

    return Api(ApiName.FJORD, 2.0, request, read, MEANINGS, responder)


MEANINGS = {
    (Basis.NAME, MATCH_CODE): Meaning(Outcome.MATCH, Action.PAY, Sentence("fjord.same"), "more."),
    (Basis.NAME, "FJORD_OTHER"): Meaning(
        Outcome.NO_MATCH, Action.ASK_PAYEE, Sentence("fjord.other"), "who it is."
    ),
    (Basis.NAME, "FJORD_UNKNOWN"): Meaning(
        Outcome.NOT_POSSIBLE, Action.ASK_PAYEE, Sentence("fjord.unknown"), "why."
    ),
}
DECLARATION = ApiDeclaration(
    name=ApiName.FJORD,
    key="fjord",
    form="",
    section=Fjord,
    api=api,
    takes=frozenset({"name"}),
    routes={RouteReason.IBAN: Route(pl.col("iban"), only=pl.col("iban").str.starts_with("NO"))},
    meanings=MEANINGS,
    asked={Basis.NAME: "The toy"},
)
'''

UK_SCHEMA = '''
"""The documents of the UK toy."""

from schemas.strict import Document


class AlbionQuestion(Document):
    account: str


class AlbionAnswer(Document):
    code: str
'''

UK_MODULE = '''
"""The UK toy: a name check against sort codes and account numbers."""

from typing import TYPE_CHECKING, ClassVar

import polars as pl

from pipeline.apis import MATCH_CODE, Api, ApiDeclaration, Basis, ParsedAnswer, Route, post
from pipeline.frames import Check, Meaning, RouteReason
from pipeline.sections import Oauth, Server
from pipeline.wording import Sentence
from schemas.albion import AlbionAnswer, AlbionQuestion
from schemas.outcomes import Action, ApiName, Outcome
from schemas.strict import parse

if TYPE_CHECKING:
    import httpx


class Albion(Oauth):
    name: ClassVar[ApiName] = ApiName.ALBION


def request(check: Check, _request_id: str, _time: str) -> "httpx.Request":
    headers = {"Content-Type": "application/json"}
    return post("/holders", headers, AlbionQuestion(account=check.account).to_json())


def read(response: "httpx.Response", _check: Check, _request_id: str) -> ParsedAnswer:
    return ParsedAnswer(parse(AlbionAnswer, response.content).code, None)


def api(_section: Server) -> Api:
    return Api(ApiName.ALBION, 2.0, request, read, MEANINGS, lambda check: check.account[:6])


MEANINGS = {
    (Basis.NAME, MATCH_CODE): Meaning(Outcome.MATCH, Action.PAY, Sentence("albion.same"), "more."),
    (Basis.NAME, "AC01"): Meaning(Outcome.NOT_POSSIBLE, Action.ASK_PAYEE, Sentence("albion.unknown"), "why."),
}
DECLARATION = ApiDeclaration(
    name=ApiName.ALBION,
    key="albion",
    form="",
    section=Albion,
    api=api,
    takes=frozenset({"name", "account_type"}),
    routes={RouteReason.SORT_CODE: Route(pl.concat_str("sort_code", "account_number"))},
    meanings=MEANINGS,
    asked={Basis.NAME: "The UK toy"},
)
'''


def catalogues(room, **sentences):
    """What its codes say of a row; the words of the toys are the same in each language."""
    entries = "".join(f'\nmsgid "{room}.{name}"\nmsgstr "{said}"\n' for name, said in sentences.items())
    head = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=utf-8\\n"\n'
    return {
        f"pipeline/wording/catalogues/{language}/{room}.po": head + entries for language in ("en", "de", "fr")
    }


WRITTEN = {
    "schemas/fjord.py": SCHEMA,
    "pipeline/apis/fjord.py": MODULE,
    **catalogues("fjord", same="The holder has this name.", other="Another holder.", unknown="No account."),
}
UK_WRITTEN = {
    "schemas/albion.py": UK_SCHEMA,
    "pipeline/apis/albion.py": UK_MODULE,
    **catalogues("albion", same="The holder has this name.", unknown="No such account."),
}
ADDED = {
    "schemas/outcomes.py": [('    VOP_STANDARD = "vop_standard"\n', '    FJORD = "fjord"\n')],
    "pipeline/apis/registry.py": [
        (
            "from pipeline.apis import ApiDeclaration, ReportDeclaration, cop, vop\n",
            "from pipeline.apis import fjord\n",
        ),
        (
            "    ApiName.VOP_STANDARD: vop.STANDARD_DECLARATION,\n",
            "    ApiName.FJORD: fjord.DECLARATION,\n",
        ),
    ],
}
"""File -> lines, each after one that is there."""


def norwegian(account):
    """The IBAN of an account of eleven digits."""
    return f"NO{98 - int(f'{account}232400') % 97:02d}{account}"


SAME, OTHER, UNKNOWN = (norwegian(account) for account in ("86011117947", "15030000017", "60550000018"))
ANSWERS = {SAME: "SAME", OTHER: "OTHER", UNKNOWN: "UNKNOWN"}
GERMAN = "DE89370400440532013000"


@pytest.fixture
def house(tmp_path):
    """A copy of the program in which the recipe was followed."""
    return followed(tmp_path / "house", WRITTEN, ADDED)


@pytest.fixture
def uk_house(tmp_path):
    """A copy of the program in which it was followed for the UK toy."""
    added = {
        file: [
            tuple(re.sub("fjord", "albion", re.sub("FJORD", "ALBION", text)) for text in pair)
            for pair in lines
        ]
        for file, lines in ADDED.items()
    }
    return followed(tmp_path / "uk_house", UK_WRITTEN, added)


def followed(copy, written, added):
    copy.mkdir()
    for name in SOURCES:
        of = ROOT / name
        (shutil.copytree if of.is_dir() else shutil.copy2)(of, copy / name)
    for name, text in written.items():
        (copy / name).write_text(text.lstrip())
    for name, lines in added.items():
        text = (copy / name).read_text()
        for after, line in lines:
            assert text.count(after) == 1
            text = text.replace(after, after + line)
        (copy / name).write_text(text)
    return copy


def touched(copy):
    """The files of the copy that are not those of the program."""
    here = {path.relative_to(copy) for path in copy.rglob("*.py")}
    return {
        name.as_posix()
        for name in here
        if not (ROOT / name).exists() or (ROOT / name).read_bytes() != (copy / name).read_bytes()
    }


def recipe():
    """The files that CONTRIBUTING names for an API called fjord."""
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    [section] = re.findall(r"^### A new API$(.*?)^#", page, re.MULTILINE | re.DOTALL)
    names = re.findall(r"^\| `([^`]+\.py)` \|", section, re.MULTILINE)
    return {name.replace("NAME", "fjord") for name in names}


def test_the_recipe_names_four_files_and_these_are_all_that_is_touched(house):
    assert touched(house) == recipe()
    assert len(recipe()) == 4


def test_an_api_added_by_the_recipe_is_asked_and_its_answers_count(desk, house, sandbox, misbehaving):
    asked = []

    async def holders(request):
        said = await request.json()
        asked.append((request.path, request.headers["X-Greeting"], said))
        echo = {"X-Question": request.headers["X-Question"]}
        return web.json_response({"verdict": ANSWERS[said["account"]]}, headers=echo)

    ibans = (SAME, OTHER, UNKNOWN, GERMAN, "")
    rows = [{"payment_id": f"P{n}", "name": f"Ada Quillon {n}", "iban": iban} for n, iban in enumerate(ibans)]
    file = desk.payments(rows)
    python = {"PYTHONPATH": str(house)}
    with misbehaving(holders) as url:
        toy = sandbox.section(base_url=url, token_url=f"{url}/token", greeting="hei")
        words = desk.using(fjord=toy, vop=sandbox.section(api="vop"))
        done = desk("run", file, *words, "--quiet", **python)
    assert done.status == 0, done.err

    said = {row["payment_id"]: row for row in desk.outcomes()}
    assert [(row["check_api"], row["check_outcome"], row["check_code"]) for row in said.values()][:3] == [
        ("fjord", "match", "MTCH"),
        ("fjord", "no_match", "FJORD_OTHER"),
        ("fjord", "not_possible", "FJORD_UNKNOWN"),
    ]
    assert said["P1"]["check_reason"] == "Another holder."
    assert said["P3"]["check_api"] == "vop_gateway"  # takes every IBAN, and comes after who takes some
    assert said["P4"]["check_outcome"] == "rejected"
    said_of = {body["account"]: (path, greeting, body["holder"]) for path, greeting, body in asked}
    assert said_of == {rows[n]["iban"]: ("/holders", "hei", rows[n]["name"]) for n in range(3)}
    assert len(asked) == len(said_of)
    assert "Another holder." in (desk.folder / "payments.precheck" / "report.html").read_text()
    verified = desk("verify", "payments.precheck", *words[:2], **python)
    assert verified.status == 0, verified.err


@pytest.mark.nightly
def test_a_folder_from_before_the_api_is_still_that_of_the_same_run(desk, house, sandbox):
    file = desk.payments([{"payment_id": "P1", "name": "Ada Quillon", "iban": GERMAN}])
    words = ("run", file, *desk.using(vop=sandbox.section(api="vop")), "--quiet")
    assert desk(*words).status == 0
    asked = sandbox.call_count
    again = desk(*words, PYTHONPATH=str(house))
    assert again.status == 0, again.err
    assert sandbox.call_count == asked


WEIGHTS = "010203 010203 MOD10 0 0 0 0 0 0 0 0 0 0 0 0 1 0\n"
"""An account fails whose last digit but one is not zero."""


def uk_rows(*numbers):
    names = (f"Ada Quillon {number}" for number in numbers)
    return [
        {"name": name, "sort_code": "010203", "account_number": f"{number:08}", "amount": "10.00"}
        for name, number in zip(names, numbers, strict=True)
    ]


@pytest.fixture
def uk_toy(desk, sandbox, misbehaving):
    """`with uk_toy() as (words, asked)`: the UK toy, which knows no account, and modulus tables."""

    @contextmanager
    def served():
        asked = []

        async def holders(request):
            asked.append((await request.json())["account"])
            return web.json_response({"code": "AC01"})

        desk.file("weights.txt", WEIGHTS)
        desk.file("substitutions.txt", "938600 938611\n")
        with misbehaving(holders) as url:
            config = desk.configuration(
                mine={"albion": sandbox.section(base_url=url, token_url=f"{url}/token")}
            )
            tables = (
                "[profiles.mine]",
                'modulus_weights = "weights.txt"',
                'modulus_substitutions = "substitutions.txt"',
                f"modulus_weights_date = {datetime.now(UTC).date()}",
            )
            config.write_text("\n".join(tables) + "\n" + config.read_text())
            yield ("--config", config, "--profile", "mine"), asked

    return served


def test_a_second_uk_api_has_the_rules_of_uk_accounts(desk, uk_house, uk_toy):
    rows = uk_rows(1000, 1001, 1002, 1003, 1004, 1010)
    rows.append({**rows[0], "currency": "GBP"})
    with uk_toy() as (words, asked):
        done = desk("run", desk.payments(rows), *words, "--json", PYTHONPATH=str(uk_house))
    assert done.status == 0, done.err

    assert {name.replace("albion", "fjord") for name in touched(uk_house)} == recipe()
    *unknown, failing, again = desk.outcomes()
    assert [row["check_api"] for row in unknown] == ["albion"] * 5
    assert all(said("rule.enumeration", "") in row["check_reason"] for row in unknown)
    assert failing["check_code"] == "MODULUS"
    # It gives no currency: pounds.
    assert said("rule.payment_repeated", "", row="row 1 (line 2)") in again["check_reason"]
    assert sorted(asked) == [f"010203{number:08}" for number in range(1000, 1005)]
    assert json.loads(done.out)["modulus"]["uncovered_count"] == 0


ASKS_FOR_A_TYPE = """
import sys
from pipeline.desk.pages.checking import takes_account_type
from schemas.forecast import Forecast

sys.exit(not takes_account_type(Forecast.model_validate_json(sys.stdin.buffer.read())))
"""


def test_the_desk_asks_for_the_account_types_that_a_second_uk_api_takes(desk, uk_house, uk_toy):
    with uk_toy() as (words, _):
        planned = desk("plan", desk.payments(uk_rows(1000)), *words, "--json", PYTHONPATH=str(uk_house))
    assert planned.status == 0, planned.err
    subprocess.run(
        [sys.executable, "-c", ASKS_FOR_A_TYPE], input=planned.out.encode(), cwd=uk_house, check=True
    )


@pytest.mark.nightly
def test_so_it_has_in_a_data_set(desk, uk_house, uk_toy):
    (desk.folder / "set").mkdir()
    desk.payments(uk_rows(1000, 1001, 1002), "set/a.csv")
    desk.payments([*uk_rows(1003, 1004, 1010), *uk_rows(7)], "set/b.csv")
    with uk_toy() as (words, asked):
        done = desk("run", "set", "--work", "work", *words, "--quiet", PYTHONPATH=str(uk_house))
    assert done.status == 0, done.err

    parts = sorted((desk.folder / "set.precheck" / "outcomes").iterdir())
    said = [row for part in parts for row in desk.outcomes(part.parent, part.name)]
    in_sequence = ["unknown accounts with consecutive numbers" in row["check_reason"] for row in said]
    assert in_sequence == [True] * 5 + [False] * 2
    assert said[5]["check_code"] == "MODULUS"
    assert len(asked) == 6
