"""Which header is which field."""

import pytest

from pipeline.errors import InputError
from pipeline.headers.columns import (
    ColumnReading,
    ColumnsError,
    fold,
    is_sufficient,
    read_columns,
    recognised,
)
from pipeline.headers.synonyms import (
    COMBINED,
    COMPANY_NAME,
    FAMILY_NAME,
    GIVEN_NAME,
    SECOND_CHOICE,
    SYNONYMS,
)
from schemas.payments import FIELDS

WHERE = "payroll.csv"


def headers_of(*headers, mapping=None):
    return read_columns(headers, mapping or {}, where=WHERE)


def test_canonical_headers_are_read_as_their_fields():
    columns = headers_of(*FIELDS)
    assert columns.readings == tuple(ColumnReading(field, field, "canonical") for field in FIELDS)


@pytest.mark.parametrize(
    ("field", "header"),
    [(f, h) for table in (SYNONYMS, SECOND_CHOICE) for f, group in table.items() for h in group],
)
def test_every_synonym_is_read_as_its_field(field, header):
    rest = [name for name in ("name", "iban") if name != field]
    columns = headers_of(*rest, header)
    assert columns.headers[field] == (header,)
    assert columns.readings[-1].how == "synonym"


def test_no_header_means_two_things():
    groups = [
        *SYNONYMS.values(),
        *SECOND_CHOICE.values(),
        COMBINED,
        GIVEN_NAME,
        FAMILY_NAME,
        COMPANY_NAME,
        FIELDS,
    ]
    folded = [fold(header) for group in groups for header in group]
    assert sorted(folded) == sorted(set(folded))


def test_a_second_choice_is_a_column_like_any_other_where_the_field_has_a_better_header():
    columns = headers_of("Supplier Name", "Account Name", "Employee No", "payment_id", "iban")
    assert columns.headers == {"name": ("Account Name",), "payment_id": ("payment_id",), "iban": ("iban",)}
    assert [reading.field for reading in columns.readings] == [None, "name", None, "payment_id", "iban"]


@pytest.mark.parametrize("parts", [("First Name", "Surname"), ("Company",)])
def test_a_second_choice_gives_way_to_the_parts_of_a_name(parts):
    assert headers_of("Full Name", *parts, "iban").headers["name"] == parts


def test_two_second_choices_for_one_field_are_refused():
    with pytest.raises(InputError, match=r'"Supplier Name" and "Customer Name" all read as name'):
        headers_of("Supplier Name", "Customer Name", "iban")


def test_nom_beside_prenom_may_be_the_family_name_alone():
    with pytest.raises(InputError, match=r"--map name=Nom, or --map name=FIRST\+LAST"):
        headers_of("Prénom", "Nom", "iban")


def test_all_that_is_missing_is_told_at_once():
    with pytest.raises(InputError, match=r"the account .* and none for the payee .*--map iban=.*--map name="):
        headers_of("amount", "reference")


def test_every_field_is_one_of_the_contract():
    assert set(SYNONYMS) <= set(FIELDS)


@pytest.mark.parametrize(
    "header",
    [
        "Sort Code",
        "sort_code",
        "SORT-CODE",
        "sortCode",
        "\ufeffSort.Code",
        "sort/code",
        "(Sort Code)",
        "\uff33ort \uff23ode",
    ],
)
def test_case_spaces_punctuation_and_width_do_not_matter(header):
    assert headers_of("name", header, "account number").headers["sort_code"] == (header,)


@pytest.mark.parametrize(
    "header", ["Details", "code", "number", "identifier", "id", "BLZ", "bank code", "InstrId"]
)
def test_a_header_that_could_mean_two_things_is_kept_as_unknown(header):
    columns = headers_of("name", "iban", header)
    assert columns.readings[-1] == ColumnReading(header, None, "unknown (kept)")


def test_combined_column_is_read_as_account_number():
    columns = headers_of("Payee", "Sort Code and Account Number")
    assert columns.readings[1] == ColumnReading("Sort Code and Account Number", "account_number", "combined")


def test_two_headers_for_one_field_are_refused_with_the_way_out():
    with pytest.raises(
        InputError, match=r'"Payee Name" and "Account Name" all read as name.*--map name=HEADER'
    ):
        headers_of("Payee Name", "Account Name", "iban")


def test_map_decides_between_two_headers_and_the_other_is_kept():
    columns = headers_of("Payee Name", "Account Name", "iban", mapping={"name": "Account Name"})
    assert columns.headers["name"] == ("Account Name",)
    assert columns.readings[0] == ColumnReading("Payee Name", None, "unknown (kept)")
    assert columns.readings[1] == ColumnReading("Account Name", "name", "map")


def test_map_takes_a_header_away_from_the_field_it_would_have_been():
    columns = headers_of("payee", "reference", "iban", mapping={"secondary_reference": "reference"})
    assert columns.headers["secondary_reference"] == ("reference",)
    assert "reference" not in columns.headers


def test_map_folds_the_header_like_the_file():
    assert headers_of("Who", "iban", mapping={"name": "who"}).headers["name"] == ("Who",)


def test_map_to_a_missing_header_is_refused_and_says_what_was_found():
    with pytest.raises(
        InputError, match=r'--map name=Whom: the file has no such header \(found: "payee", "iban"\)'
    ):
        headers_of("payee", "iban", mapping={"name": "Whom"})


def test_map_of_a_field_that_does_not_exist_is_refused():
    with pytest.raises(InputError, match=r"--map nickname: no such field; the fields are payment_id"):
        headers_of("payee", "iban", mapping={"nickname": "payee"})


def test_map_of_one_header_to_two_fields_is_refused():
    with pytest.raises(InputError, match="one header as two fields"):
        headers_of("payee", "iban", mapping={"name": "payee", "reference": "payee"})


def test_a_header_that_stands_twice_is_refused_without_quoting_it():
    with pytest.raises(InputError, match=r"columns 2 and 3 have the same header") as error:
        headers_of("iban", "Marrow", "Marrow")
    assert "Marrow" not in str(error.value)


def test_a_file_without_an_account_is_refused():
    with pytest.raises(
        InputError, match=r"no column for the account \(iban or account_number\).*--map iban="
    ):
        headers_of("payee", "sort code")


def test_a_file_without_a_payee_is_refused():
    with pytest.raises(InputError, match=r"no column for the payee"):
        headers_of("iban", "amount")


@pytest.mark.parametrize("field", ["lei", "organisation_bic", "organisation_id"])
def test_an_identification_is_payee_enough(field):
    assert headers_of("iban", field).headers[field] == (field,)


def test_cells_of_an_unknown_first_line_are_not_quoted():
    with pytest.raises(InputError) as error:
        headers_of("Quillon Marrow", "Ostrava Lane")
    assert "Marrow" not in str(error.value)
    assert "2 columns" in str(error.value)


def test_long_numbers_in_headers_are_not_quoted():
    with pytest.raises(InputError) as error:
        headers_of("name", "12345678")
    assert "12345678" not in str(error.value)


def test_first_and_last_name_are_joined_in_that_order_wherever_they_stand():
    columns = headers_of("Surname", "iban", "First Name")
    assert columns.headers["name"] == ("First Name", "Surname")
    assert columns.readings[0] == ColumnReading("Surname", "name", "first/last name part")


def test_company_name_stands_beside_a_name_in_parts():
    columns = headers_of("FirstName", "LastName", "CompanyName", "iban")
    assert columns.company == "CompanyName"
    assert columns.readings[2] == ColumnReading("CompanyName", "name", "first/last name part")


def test_company_name_alone_is_the_name():
    columns = headers_of("Company Name", "iban")
    assert columns.headers["name"] == ("Company Name",)
    assert columns.company is None
    assert columns.readings[0].how == "synonym"


def test_whole_name_beside_parts_is_refused():
    with pytest.raises(InputError, match="all read as name"):
        headers_of("Account Name", "First Name", "Last Name", "iban")


def test_a_bare_name_beside_a_last_name_is_refused_because_it_may_be_a_first_name():
    with pytest.raises(InputError, match=r"--map name=FIRST\+LAST"):
        headers_of("name", "lname", "iban")


def test_map_joins_two_headers_into_a_name():
    columns = headers_of("name", "lname", "iban", mapping={"name": "name+lname"})
    assert columns.headers["name"] == ("name", "lname")


def test_a_first_name_alone_is_not_a_payee():
    with pytest.raises(InputError, match="no column for the payee"):
        headers_of("First Name", "iban")


def test_recognised_names_the_fields_of_a_header_line():
    found = recognised(["Sort Code", "Account No", "Vorname", "Nachname", "Colour"], {"reference": "Colour"})
    assert found == {"sort_code", "account_number", "given name", "family name", "reference"}
    assert is_sufficient(found)
    assert not is_sufficient(found - {"family name"})


@pytest.mark.parametrize(
    ("headers", "mapping", "readings"),
    [
        (
            ["Name", "Payee", "IBAN", "Memo"],
            {},
            [("name", "ambiguous"), ("name", "ambiguous"), ("iban", "canonical"), (None, "unknown (kept)")],
        ),
        (["Vendor code", "IBAN"], {}, [(None, "unknown (kept)"), ("iban", "canonical")]),
        (["Payee"], {}, [("name", "synonym")]),
        (
            ["First name", "Payee", "IBAN"],
            {"iban": "Gone"},
            [("name", "ambiguous")] * 2 + [(None, "unknown (kept)")],
        ),
        (["Memo", "Sort code"], {"name": "Memo"}, [("name", "map"), ("sort_code", "canonical")]),
    ],
)
def test_headers_that_cannot_be_used_still_tell_how_each_would_be_read(headers, mapping, readings):
    with pytest.raises(ColumnsError) as raised:
        read_columns(headers, mapping, where="x.csv")
    assert [(reading.field, reading.how) for reading in raised.value.readings] == readings
    assert [reading.header for reading in raised.value.readings] == headers


def test_a_line_without_a_known_header_is_not_repeated():
    """It may be somebody's payment."""
    with pytest.raises(ColumnsError) as raised:
        read_columns(["Ada Quillon", "12345678"], {}, where="x.csv")
    assert raised.value.readings == ()
