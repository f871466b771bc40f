"""What a bank may refuse in a pain.001, on the page of the plan."""

import re
from pathlib import Path

import pytest

SAMPLE = Path(__file__).parents[3] / "sample_data" / "payments_pain001.xml"


@pytest.fixture(scope="module")
def rita(desk_here):
    return desk_here.visitor("Rita")


def test_the_plan_of_a_pain001_says_what_the_bank_may_refuse(desk_here, rita):
    old = SAMPLE.read_bytes().replace(b"pain.001.001.09", b"pain.001.001.03")
    at = rita.file(old, "old.xml")

    assert rita.post(f"/files/{at}/columns", {"then": "plan"}).to.endswith("/plan")

    assert re.search(r'<p class="notice">[^<]*VERSION_RETIRED', rita.get(f"/files/{at}/plan").text)
