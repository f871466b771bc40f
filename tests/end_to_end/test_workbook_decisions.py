"""The workbook of a real run offers what the policy of its profile can follow, today."""

import openpyxl
from readers import run_command

LINES = """name,account_type,sort_code,account_number,amount,currency
Averi Thornwood,Personal,001122,00012345,120.50,GBP
Rowan Blackmere,Personal,001122,00012345,89.99,GBP
"""


def test_workbook_offers_what_the_policy_follows_and_a_new_report_what_it_follows_today(tmp_path):
    (tmp_path / "pay.csv").write_text(LINES)
    config = tmp_path / "precheck.toml"
    config.write_text('[profiles.sandbox.policy]\nclose_match = "review"\n')
    run_command(tmp_path, "run", "pay.csv", "--profile", "sandbox", "--out", "out", "--quiet")
    assert offers(tmp_path) == {1: "release,fix,hold", 2: "hold"}
    config.write_text('[profiles.sandbox.policy]\nno_match = "review"\n')
    run_command(tmp_path, "report", "out")
    assert offers(tmp_path) == {1: "fix,hold", 2: "release,hold"}


def offers(folder):
    """Row -> the words of its list."""
    sheet = openpyxl.load_workbook(folder / "out" / "report.xlsx")["All"]
    return {
        sheet.cell(line, 1).value: choice.formula1.strip('"')
        for choice in sheet.data_validations.dataValidation
        for part in choice.sqref.ranges
        for line in range(part.min_row, part.max_row + 1)
    }
