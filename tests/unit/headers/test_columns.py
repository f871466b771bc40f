"""Which column of a file is which field: the joined decision, `--map`, and what is said of each header."""

import polars as pl
import pytest

from pipeline.errors import InputError
from pipeline.headers.columns import ColumnsError, is_sufficient, read_columns, recognised, refuse_repeats
from schemas.payments import FIELDS

WHERE = "payroll.csv"


def cells_of(*headers, row_count=2):
    """Columns in which every cell is another, so that no two of them agree."""
    return pl.DataFrame({header: [f"{header} {row}" for row in range(row_count)] for header in headers})


def columns_of(*headers, mapping=None, decided=None):
    return read_columns(cells_of(*headers), mapping or {}, where=WHERE, decided=decided)


def read_as(columns):
    return {reading.header: reading.field for reading in columns.readings}


def test_canonical_headers_are_read_as_their_fields():
    columns = columns_of(*FIELDS)
    assert read_as(columns) == {field: field for field in FIELDS}
    assert {reading.how for reading in columns.readings} == {"canonical"}


def test_all_that_is_missing_is_told_at_once():
    with pytest.raises(InputError, match=r"the account .* and none for the payee .*--map iban=.*--map name="):
        columns_of("amount", "reference")


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
    assert columns_of("name", header, "account number").sources["sort_code"] == ((header,),)


@pytest.mark.parametrize(
    "header",
    ["Details", "code", "number", "identifier", "id", "BLZ", "bank code", "InstrId", "Beneficiary email"],
)
def test_a_header_that_could_mean_two_things_is_kept_as_unknown(header):
    reading = columns_of("name", "iban", header).readings[-1]
    assert (reading.field, reading.how) == (None, "unknown (kept)")


def test_a_reading_says_rule_other_candidates_and_values():
    columns = columns_of("Beneficiary Name", "Supplier", "IBAN")
    name, supplier, _ = columns.readings
    assert (name.field, name.how, name.others) == ("name", "the payee's role", ("Supplier",))
    assert name.values == ("Beneficiary Name 0", "Beneficiary Name 1")
    assert (supplier.field, supplier.how) == (None, "another column is more explicit (kept)")


def test_map_decides_between_two_headers_and_the_other_is_kept():
    columns = columns_of("Payee Name", "Account Name", "iban", mapping={"name": "Account Name"})
    assert columns.sources["name"] == (("Account Name",),)
    assert [reading.field for reading in columns.readings] == [None, "name", "iban"]
    assert columns.readings[1].how == "map"


def test_map_takes_a_header_away_from_the_field_it_would_have_been():
    columns = columns_of("payee", "reference", "iban", mapping={"secondary_reference": "reference"})
    assert columns.sources["secondary_reference"] == (("reference",),)
    assert "reference" not in columns.sources


def test_map_folds_the_header_like_the_file():
    assert columns_of("Who", "iban", mapping={"name": "who"}).sources["name"] == (("Who",),)


def test_map_takes_the_place_of_a_column():
    columns = columns_of("a", "b", "c", mapping={"name": "#3", "iban": "#1"})
    assert columns.sources == {"name": (("c",),), "iban": (("a",),)}


@pytest.mark.parametrize("place", ["#0", "#4", "#", "#x", "#-1"])
def test_a_place_that_is_not_there_is_refused(place):
    with pytest.raises(InputError, match="the file has no such header"):
        columns_of("a", "b", "iban", mapping={"name": place})


def test_a_header_that_looks_like_a_place_is_a_header_first():
    assert columns_of("#2", "b", "iban", mapping={"name": "#2"}).sources["name"] == (("#2",),)


def test_map_to_a_missing_header_is_refused_and_says_what_was_found():
    with pytest.raises(
        InputError, match=r'--map name=Whom: the file has no such header \(found: "payee", "iban"\)'
    ):
        columns_of("payee", "iban", mapping={"name": "Whom"})


def test_map_of_a_field_that_does_not_exist_is_refused():
    with pytest.raises(InputError, match=r"--map nickname: no such field; the fields are payment_id"):
        columns_of("payee", "iban", mapping={"nickname": "payee"})


def test_map_of_one_header_to_two_fields_is_refused():
    with pytest.raises(InputError, match="one header as two fields"):
        columns_of("payee", "iban", mapping={"name": "payee", "reference": "payee"})


def test_a_header_that_stands_twice_is_refused_without_quoting_it():
    with pytest.raises(InputError, match=r"columns 2 and 3 have the same header") as error:
        refuse_repeats(["iban", "Marrow", "Marrow"], where=WHERE)
    assert "Marrow" not in str(error.value)


def test_map_joins_two_headers_into_a_name_and_takes_the_first_that_is_filled():
    columns = columns_of("name", "lname", "trade", "iban", mapping={"name": "name+lname|trade"})
    assert columns.sources["name"] == (("name", "lname"), ("trade",))


def test_a_decision_read_again_is_the_same_whatever_the_rows_are():
    first = columns_of("Account holder", "Supplier", "IBAN", "Amount")
    again = read_columns(
        cells_of("Account holder", "Supplier", "IBAN", "Amount", row_count=1),
        {},
        where=WHERE,
        decided=first.decision,
    )
    assert again.sources == first.sources
    assert again.decision == first.decision == {"name": "#1", "iban": "#3", "amount": "#4"}


@pytest.mark.parametrize("field", ["lei", "organisation_bic", "organisation_id"])
def test_an_identification_is_payee_enough(field):
    assert columns_of("iban", field).sources[field] == ((field,),)


def test_cells_of_an_unknown_first_line_are_not_quoted():
    with pytest.raises(InputError) as error:
        columns_of("Quillon Marrow", "Ostrava Lane")
    assert "Marrow" not in str(error.value)
    assert "2 columns" in str(error.value)


def test_long_numbers_in_headers_are_not_quoted():
    with pytest.raises(InputError) as error:
        columns_of("name", "12345678")
    assert "12345678" not in str(error.value)


def test_recognised_names_the_fields_of_a_header_line():
    found = recognised(["Sort Code", "Account No", "Vorname", "Nachname", "Colour"], {"reference": "Colour"})
    assert found == {"sort_code", "account_number", "given name", "family name", "reference"}
    assert is_sufficient(found)
    assert not is_sufficient(found - {"family name"})


def test_headers_that_cannot_be_used_still_tell_how_each_would_be_read():
    with pytest.raises(ColumnsError) as raised:
        columns_of("Tenant", "Landlord", "IBAN", "Colour")
    assert [(reading.header, reading.field, reading.how) for reading in raised.value.readings] == [
        ("Tenant", "name", "candidate: whom the list is about"),
        ("Landlord", "name", "candidate: whom the list is about"),
        ("IBAN", "iban", "candidate: canonical"),
        ("Colour", None, "unknown (kept)"),
    ]


def test_a_refusal_names_candidates_with_shortened_values_and_what_to_say():
    cells = pl.DataFrame(
        {"Tenant": ["Quillon Marrow"], "Landlord": ["Ostrava Lane Ltd"], "IBAN": ["DE89370400440532013000"]}
    )
    with pytest.raises(InputError) as raised:
        read_columns(cells, {}, where=WHERE)
    assert str(raised.value) == (
        'payroll.csv: "Tenant" (Q… M…) and "Landlord" (O… L… L…) differ, and either could be the payee; '
        "choose one with --map name=Tenant or --map name=Landlord"
    )


def test_a_line_without_a_known_header_is_not_repeated():
    """It may be somebody's payment."""
    with pytest.raises(ColumnsError) as raised:
        columns_of("Ada Quillon", "12345678")
    assert raised.value.readings == ()
