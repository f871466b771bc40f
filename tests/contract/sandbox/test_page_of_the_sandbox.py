"""docs/sandbox.md: the curl lines do what they say, and `--list-accounts` prints what the tables hold."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from refusals import said

from pipeline.sandbox.accounts import account_lines, describe_accounts

PAGE = Path(__file__).parents[3] / "docs" / "sandbox.md"


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs the curl command")
def test_the_curl_lines_of_each_api_are_answered(sandbox):
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 5
    script = "\n".join([*blocks[:2], *(f"{block.rstrip()}; echo" for block in blocks[2:])])
    script = script.replace("127.0.0.1:8443", sandbox.url.removeprefix("https://"))
    script = re.sub(r"\bsandbox/(?=\w+\.\w)", f"{sandbox.folder}/", script)
    done = subprocess.run(
        ["bash", "-eu", "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [
        '{"data":{"verificationReport":{"matched":false,"reasonCode":"MBAM","name":"Avery',
        'Thornwood"}}}',
        '{"partyNameMatch":"MTCH"}',
        '{"partyNameMatch":"MTCH"}',
    ]


def test_every_dummy_account_is_listed():
    lines = iter(account_lines())
    assert next(lines).split()[0] == "API"
    assert next(lines).strip() == said("story.name_at_the_bank")
    for known in describe_accounts():
        line = next(lines)
        assert known.account in line
        assert known.asked in line
        assert known.code in line
        assert known.matched_name is None or next(lines).strip() == known.matched_name
    assert not list(lines)
    assert max(map(len, account_lines())) <= 80
