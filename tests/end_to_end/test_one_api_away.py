"""An API that cannot be reached holds up no other: its rows are left for a later run."""

from collections import Counter

import pytest

UK = {"name": "Avery Thornwood", "sort_code": "001122", "account_number": "00012345", "amount": "1.00"}
EUROPEAN = {"name": "Lanternside Logistics B.V.", "iban": "NL27RABO0384210070", "amount": "1.00"}
ROWS = [{"iban": "", **UK}, {"sort_code": "", "account_number": "", **EUROPEAN}] * 3
QUICK = {"probe_wait_s": 0.1}


def outcomes(desk):
    """Outcome and code by whether the row has an IBAN."""
    return Counter((bool(row["iban"]), row["check_outcome"]) for row in desk.outcomes())


@pytest.mark.parametrize("away", ["cop", "vop"])
@pytest.mark.parametrize("how", ["refused", "not trusted"])
def test_the_rows_of_the_other_api_are_asked(desk, sandbox, away, how):
    sections = {api: sandbox.section("sandbox", api, **QUICK) for api in ("cop", "vop")}
    changes = {
        "refused": {"base_url": "https://127.0.0.1:9"},
        "not trusted": {"ca_file": None},
    }[how]
    broken = {**sections, away: sandbox.section("sandbox", away, **QUICK, **changes)}
    file = desk.payments(ROWS)

    run = desk("run", file, *desk.using(**broken))

    assert run.status == {"refused": 75, "not trusted": 78}[how]
    assert outcomes(desk) == {(away == "vop", "deferred"): 3, (away != "vop", "match"): 3}
    if "base_url" in changes:
        return  # of another server the folder would be another run's
    asked = len(sandbox.questions())
    assert desk("run", file, *desk.using(**sections)).status == 0
    assert outcomes(desk) == {(False, "match"): 3, (True, "match"): 3}
    assert len(sandbox.questions()) == asked + 1
