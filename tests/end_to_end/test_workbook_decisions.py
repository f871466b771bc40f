"""The workbook of a real run offers what the policy of its profile can follow, today."""

import openpyxl

LINES = """name,account_type,sort_code,account_number,amount,currency
Averi Thornwood,Personal,001122,00012345,120.50,GBP
Rowan Blackmere,Personal,001122,00012345,89.99,GBP
"""


def test_workbook_offers_what_the_policy_follows_and_a_new_report_what_it_follows_today(desk, sandbox):
    def policy(**rules):
        return desk.configuration("precheck.toml", mine={"cop": sandbox.section("sandbox"), "policy": rules})

    policy(close_match="review")
    assert desk("run", desk.file("pay.csv", LINES), "--profile", "mine", "--out", "out").status == 0
    assert offers(desk.folder) == {1: "release,fix,hold", 2: "hold"}
    policy(no_match="review")
    assert desk("report", "out").status == 0
    assert offers(desk.folder) == {1: "fix,hold", 2: "release,hold"}


def offers(folder):
    """Row -> the words of its list."""
    sheet = openpyxl.load_workbook(folder / "out" / "report.xlsx")["All"]
    return {
        sheet.cell(line, 1).value: choice.formula1.strip('"')
        for choice in sheet.data_validations.dataValidation
        for part in choice.sqref.ranges
        for line in range(part.min_row, part.max_row + 1)
    }
