import pytest

from pipeline.headers.parties import payee_id_header


@pytest.mark.parametrize(
    "header",
    [
        "Employee No",
        "employee_id",
        "STAFF NUMBER",
        "Payroll No.",
        "Supplier Code",
        "VendorID",
        "Lieferantennummer",
        "Mitarbeiter-Nr.",
        "Kreditoren-ID",
    ],
)
def test_the_payers_own_number_of_a_payee_is_found(header):
    assert payee_id_header(["Name", header, "Amount"]) == header


@pytest.mark.parametrize(
    "header",
    ["Payment ID", "Account Number", "Sort Code", "Employee Name", "Reference Number", "Id", "Number"],
)
def test_no_other_number_is_taken_for_it(header):
    assert payee_id_header(["Name", header, "Amount"]) is None


def test_of_several_the_surest_is_taken_and_of_two_such_the_first():
    assert payee_id_header(["Customer No", "Supplier No", "Employee No"]) == "Employee No"
    assert payee_id_header(["Supplier Code", "Supplier No"]) == "Supplier Code"
