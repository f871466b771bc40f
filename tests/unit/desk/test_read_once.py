"""A page that is shown again does not read, and so not unpack, the uploaded file again."""

import asyncio
import gzip
import re

import pytest
from aiohttp import FormData
from in_memory import visit

ROWS = b"".join(b"Ada Quillon,001122,%08d,10.00,GBP\n" % number for number in range(20))
PAYMENTS = b"name,sort_code,account_number,amount,currency\n" + ROWS
CONFIG = """
[profiles.main.cop]
server = "production"
base_url = "https://cop.example"
token_url = "https://login.example/token"
client_id = "ID"
client_secret_env = "SECRET"
scope = "s"
rate_per_s = {rate}
"""


@pytest.fixture
def config(tmp_path, monkeypatch):
    path = tmp_path / "precheck.toml"
    path.write_text(CONFIG.format(rate=5))
    monkeypatch.setenv("PRECHECK_CONFIG", str(path))
    return path


async def uploaded(ask, name, data):
    form = FormData()
    form.add_field("file", gzip.compress(data), filename=name)
    await ask("POST", "/enter", token="token")
    answer, _ = await ask("POST", "/files", form)
    return answer.headers["Location"].rpartition("/")[0]


def spoiled(home):
    """What shows whether the file is read again."""
    [path] = home.glob("runs/*/input/*")
    path.write_bytes(b"")


def test_the_pages_of_a_packed_file_read_it_once_each(tmp_path, config):
    async def steps(ask):
        at = await uploaded(ask, "pay.csv.gz", PAYMENTS)
        _, columns = await ask("GET", f"{at}/columns")
        answer, _ = await ask("POST", f"{at}/columns", then="plan")
        assert answer.headers["Location"] == f"{at}/plan"
        _, plan = await ask("GET", f"{at}/plan")
        assert "20 payments" in plan
        spoiled(tmp_path / "home")
        assert (await ask("GET", f"{at}/columns"))[1].count("<tr>") == columns.count("<tr>") > 5
        for language in ("en", "de"):
            await ask("POST", "/language", language=language, back="/")
            assert re.search("20 (payments|Zahlungen)", (await ask("GET", f"{at}/plan"))[1])
        config.write_text(CONFIG.format(rate=10))
        assert "20 Zahlungen" not in (await ask("GET", f"{at}/plan"))[1]

    asyncio.run(visit(tmp_path / "home", steps))


@pytest.mark.usefixtures("config")
def test_a_packed_file_that_cannot_be_read_is_unpacked_again_only_when_a_person_says_how(tmp_path):
    async def steps(ask):
        at = await uploaded(ask, "pay.csv.gz", PAYMENTS.replace(b"name,", b"Kennung,"))
        _, columns = await ask("GET", f"{at}/columns")
        assert "Kennung" in columns
        spoiled(tmp_path / "home")
        assert (await ask("GET", f"{at}/columns"))[1] == columns
        fields = {"column:Kennung": "name", "then": "look"}
        answer, _ = await ask("POST", f"{at}/columns", fields)
        assert answer.headers["Location"] == f"{at}/columns"
        assert "Kennung" not in (await ask("GET", f"{at}/columns"))[1]

    asyncio.run(visit(tmp_path / "home", steps))
