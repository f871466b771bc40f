"""What `[inputs.NAME]` says of files of a name holds for uploads, too."""

import asyncio
import re

import pytest
from aiohttp import FormData
from in_memory import visit
from refusals import said

IBANS = ("DE62370400440532013001", "FR1420041010050500013M02606")
CONFIG = """
[inputs.payroll]
match = "payroll-*.csv"
map = { name = "Wer", iban = "Wohin", amount = "Was" }
encoding = "cp1250"

[inputs.paid]
match = "paid-*.csv"
map = { name = "Payee", iban = "IBAN" }
"""
PAYROLL = f"Wer;Wohin;Was\nŁukasz Żółw;{IBANS[0]};10,00\nMałgorzata Dąbek;{IBANS[1]};20,00\n".encode("cp1250")
STATEMENT = f"Payee,IBAN,Amount,Balance\nAda Quillon,{IBANS[0]},10.00,90.00\n".encode()


@pytest.fixture(autouse=True)
def config(tmp_path, monkeypatch):
    (path := tmp_path / "precheck.toml").write_text(CONFIG, "utf-8")
    monkeypatch.setenv("PRECHECK_CONFIG", str(path))


async def uploaded(ask, name, data):
    form = FormData()
    form.add_field("file", data, filename=name)
    await ask("POST", "/enter", token="token")
    answer, _ = await ask("POST", "/files", form)
    return answer.headers["Location"].rpartition("/")[0]


def test_an_upload_is_read_as_the_section_of_its_name_says(tmp_path):
    async def steps(ask):
        at = await uploaded(ask, "payroll-11.csv", PAYROLL)
        _, columns = await ask("GET", f"{at}/columns")
        assert "Łukasz Żółw" in columns
        assert said("config.read_by_section", "page", section="payroll") in columns
        answer, _ = await ask("POST", f"{at}/columns", then="plan")
        assert answer.headers["Location"] == f"{at}/plan"
        _, plan = await ask("GET", f"{at}/plan")
        assert re.search("2 payments", plan)

    asyncio.run(visit(tmp_path / "home", steps))


def test_a_section_has_no_statement_checked_at_the_desk(tmp_path):
    async def steps(ask):
        at = await uploaded(ask, "paid-11.csv", STATEMENT)
        assert said("headers.bank_statement", "page") in (await ask("GET", f"{at}/columns"))[1]
        answer, _ = await ask("POST", f"{at}/columns", then="plan")
        assert answer.headers["Location"] == f"{at}/columns"

    asyncio.run(visit(tmp_path / "home", steps))
