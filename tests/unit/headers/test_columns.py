"""Which column of a file is which field: the joined decision, `--map`, and what is said of each header."""

import re

import polars as pl
import pytest
from refusals import refused

from pipeline.errors import InputError
from pipeline.headers.cells import SAMPLE_ROWS, ColumnCells
from pipeline.headers.columns import ColumnsError, is_sufficient, read_columns, recognised
from pipeline.wording import Sentence
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
    own = Sentence("column.the_fields_name")
    assert all(own in (reading.how, reading.how.values.get("one")) for reading in columns.readings)


def test_all_that_is_missing_is_told_at_once():
    with refused(
        InputError,
        "headers.no_account_and_no_payee",
        pairs=[Sentence("headers.iban_or_numbers", iban=("iban", "HEADER")), ("name", "HEADER")],
    ):
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
    assert (reading.field, reading.how) == (None, Sentence("column.header_not_known"))


def test_a_reading_says_rule_other_candidates_and_values():
    columns = columns_of("Beneficiary Name", "Supplier", "IBAN")
    name, supplier, _ = columns.readings
    assert name[1:4] == ("name", Sentence("column.the_payees_role"), ("Supplier",))
    assert name.values == ("Beneficiary Name 0", "Beneficiary Name 1")
    assert supplier[1:3] == (None, Sentence("column.read_instead", header='"Beneficiary Name"'))


def test_map_decides_between_two_headers_and_the_other_is_kept():
    columns = columns_of("Payee Name", "Account Name", "iban", mapping={"name": "Account Name"})
    assert columns.sources["name"] == (("Account Name",),)
    assert [reading.field for reading in columns.readings] == [None, "name", "iban"]
    assert str(columns.readings[1].how) == "map"


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
    with refused(InputError, "headers.no_such_header"):
        columns_of("a", "b", "iban", mapping={"name": place})


def test_a_header_that_looks_like_a_place_is_a_header_first():
    assert columns_of("#2", "b", "iban", mapping={"name": "#2"}).sources["name"] == (("#2",),)


def test_map_to_a_missing_header_is_refused_and_says_what_was_found():
    with refused(
        InputError, "headers.no_such_header", field="name", target="Whom", headers=['"payee"', '"iban"']
    ):
        columns_of("payee", "iban", mapping={"name": "Whom"})


def test_map_of_a_field_that_does_not_exist_is_refused():
    with refused(
        InputError, "headers.no_such_field", "headers.choose_from", field="nickname", fields=list(FIELDS)
    ):
        columns_of("payee", "iban", mapping={"nickname": "payee"})


def test_map_of_one_header_to_two_fields_is_refused():
    with refused(InputError, "headers.one_header_mapped"):
        columns_of("payee", "iban", mapping={"name": "payee", "reference": "payee"})


def test_a_column_that_is_to_be_ignored_is_read_as_nothing():
    seen = columns_of("payee", "iban", "reference", "bic", mapping={"ignore": "reference|#4"})
    assert seen.sources == {"name": (("payee",),), "iban": (("iban",),)}
    assert [(reading.field, str(reading.how)) for reading in seen.readings[2:]] == [(None, "ignored")] * 2
    assert seen.decision == {"name": "#1", "iban": "#2"}


def test_of_two_columns_that_could_be_the_payee_one_is_ignored():
    both = ("Tenant", "Landlord", "iban")
    with pytest.raises(InputError):
        columns_of(*both)
    assert columns_of(*both, mapping={"ignore": "Tenant"}).sources["name"] == (("Landlord",),)


@pytest.mark.parametrize("ignored", ["payee", "iban"])
def test_without_the_payee_or_the_account_nothing_is_read(ignored):
    with refused(ColumnsError, {"headers.no_payee", "headers.no_account"}) as error:
        columns_of("payee", "iban", "reference", mapping={"ignore": ignored})
    [reading] = [one for one in error.value.readings if one.header == ignored]
    assert reading.field is None
    assert str(reading.how).startswith("ignored")


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


def said_of(headers, *rows, mapping=None):
    """Header -> what is said of it, of a file with these cells, which may be refused."""
    cells = pl.DataFrame(rows, schema=headers, orient="row")
    try:
        readings = read_columns(cells, mapping or {}, where=WHERE).readings
    except ColumnsError as error:
        readings = error.readings
    return {reading.header: reading for reading in readings}


def test_headers_that_cannot_be_used_still_tell_how_each_would_be_read():
    with pytest.raises(ColumnsError) as raised:
        columns_of("Tenant", "Landlord", "IBAN", "Colour")
    subject = Sentence("column.the_subject_of_the_list")
    no_iban = Sentence("column.none_in_cells", field=Sentence("field.iban"))
    assert [reading[:4] for reading in raised.value.readings] == [
        ("Tenant", "name", subject, ("Landlord",)),
        ("Landlord", "name", subject, ("Tenant",)),
        ("IBAN", "iban", Sentence("column.both", one=Sentence("column.the_fields_name"), other=no_iban), ()),
        ("Colour", None, Sentence("column.header_not_known"), ()),
    ]
    assert [reading.is_disputed for reading in raised.value.readings] == [True, True, False, False]


@pytest.mark.parametrize(
    ("headers", "disputed"),
    [
        (("Pupil name", "Parent name", "IBAN"), {"Pupil name", "Parent name"}),
        (("Name 1", "Name 2", "IBAN"), {"Name 1", "Name 2"}),
        (("Payee", "IBAN", "Old IBAN", "Lei", "LEI code"), {"IBAN", "Old IBAN", "Lei", "LEI code"}),
    ],
)
def test_whatever_the_sentence_says_could_be_it_is_a_candidate_and_nothing_else_is(headers, disputed):
    rows = [
        [f"{iban}{row}" if "IBAN" in header else f"{header} of {row}" for header in headers]
        for row, iban in enumerate(("DE89370400440532013000", "FR7630003012340000482100733"))
    ]
    if "Old IBAN" in headers:
        rows[0][2] = "DE35370400440084210077"
    said = said_of(headers, *rows)
    assert {header for header, reading in said.items() if reading.is_disputed} == disputed


def test_what_is_not_read_says_why():
    headers = (
        "Employer",
        "Staff Name",
        "First name",
        "Vendor",
        "Contact",
        "Our IBAN",
        "Saldo",
        "Valuta",
        "IBAN",
    )
    iban, theirs = "DE89370400440532013000", "FR7630003012340000482100733"
    said = said_of(
        headers,
        ("Mills Ltd", "Avery Thornwood", "Avery", "V100", "Rowan", iban, "1.00", "27.11.2026", theirs),
        ("Mills Ltd", "Imre Falkner", "Imre", "V101", "Rowan", iban, "2.00", "28.11.2026", iban),
        mapping={"iban": "IBAN"},
    )
    assert {header: reading.how for header, reading in said.items() if reading.field is None} == {
        "Employer": Sentence("column.the_employer_never_the_payee"),
        "First name": Sentence("column.read_instead", header='"Staff Name"'),
        "Vendor": Sentence("column.no_name_in_its_cells"),
        "Contact": Sentence("column.never_the_payee"),
        "Our IBAN": Sentence("column.your_own_side_never_asked_about"),
        "Saldo": Sentence("column.a_balance"),
        "Valuta": Sentence("column.none_in_cells", field=Sentence("field.currency")),
    }


def test_a_name_of_your_own_and_an_account_of_nobody_are_told_as_such():
    iban, other = "DE89370400440532013000", "FR7630003012340000482100733"
    said = said_of(
        ("Konto", "Name", "Empfänger", "IBAN"),
        ("4711", "Mills Ltd", "Avery Thornwood", iban),
        ("4711", "Mills Ltd", "Imre Falkner", other),
    )
    assert [said[header].how.key for header in ("Name", "Konto")] == [
        "column.the_same_in_every_row_where_the_payee_differs_so_taken_for_your_own",
        "column.no_stated_owner_so_taken_for_your_own_next_to_the_payees",
    ]
    assert said["Empfänger"].others == ()


ACCOUNT = Sentence("column.the_header_says_account")
KINDS = [
    Sentence("column.ibans"),
    Sentence("column.account_numbers"),
    Sentence("column.sort_codes_with_account_numbers"),
]


@pytest.mark.parametrize(
    ("cells", "how"),
    [
        (("12345678", "87654321"), ACCOUNT),
        (
            ("DE89.3704.0044.0532.0130.00", "12345678", "12-34-56 12345678"),
            Sentence("column.both", one=ACCOUNT, other=Sentence("column.holds", kinds=KINDS)),
        ),
        (
            ("SUP001", "SUP002"),
            Sentence(
                "column.both",
                one=ACCOUNT,
                other=Sentence("column.none_in_cells", field=Sentence("field.account_number")),
            ),
        ),
    ],
)
def test_a_column_of_accounts_says_which_kinds_are_in_it(cells, how):
    said = said_of(("Payee", "Account"), *((f"Payee {at}", cell) for at, cell in enumerate(cells)))
    assert said["Account"].how == how


def test_where_no_header_says_it_the_cells_show_what_to_say():
    headers, row = ("Who", "Where", "When"), ("Avery Thornwood", "DE89370400440532013000", "2026-11-27")
    with refused(
        ColumnsError,
        Sentence("headers.each_of_pairs", pairs=[("iban", "#2")]),
        Sentence("headers.each_of_pairs", pairs=[("name", "#1")]),
    ) as raised:
        read_columns(pl.DataFrame([row], schema=headers, orient="row"), {}, where=WHERE)
    unknown = Sentence("column.header_not_known")
    names, ibans = (
        Sentence("column.both", one=unknown, other=Sentence("column.cells_look_like", kinds=[kind]))
        for kind in (Sentence("column.names"), Sentence("column.ibans"))
    )
    assert [(reading.map, reading.how) for reading in raised.value.readings] == [
        ("name=#1", names), ("iban=#2", ibans), (None, unknown)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("account", "payers", "advice"),
    [
        ("IBAN", ("Ada Quillon", "Bo Marrow"), ["#1", "#3"]),
        ("Payee IBAN", ("Ada Quillon", "Bo Marrow"), ["#3"]),
        ("IBAN", ("Ada Quillon", "Ada Quillon"), ["#3"]),
    ],
)
def test_payers_who_differ_are_offered_as_payees_of_refunds(account, payers, advice):
    ibans = ("DE89370400440532013000", "FR1420041010050500013M02606")
    cells = {"Payer": payers, account: ibans, "Comment": ("Event cancelled", "Paid twice")}
    with refused(ColumnsError, "headers.name_columns", pairs=[("name", place) for place in advice]):
        read_columns(pl.DataFrame(cells), {}, where=WHERE)


def test_a_refusal_names_candidates_with_shortened_values_and_what_to_say():
    cells = pl.DataFrame(
        {"Tenant": ["Quillon Marrow"], "Landlord": ["Ostrava Lane Ltd"], "IBAN": ["DE89370400440532013000"]}
    )
    columns = [
        Sentence("headers.column_and_values", column=f'"{header}"', values=[value])
        for header, value in (("Tenant", "Q… M…"), ("Landlord", "O… L… L…"))
    ]
    with refused(
        InputError,
        "files.refused_because",
        Sentence("headers.either_could_be", columns=columns, what="headers.the_payee"),
        Sentence("headers.choose_one", pairs=[("name", "Tenant"), ("name", "Landlord")]),
        where="payroll.csv",
    ) as raised:
        read_columns(cells, {}, where=WHERE)
    assert len(raised.value.messages) == 1


def test_a_line_without_a_known_header_is_in_the_table_and_not_in_the_sentence():
    """It may be somebody's payment, and the sentence may end in a log."""
    with pytest.raises(ColumnsError) as raised:
        columns_of("Ada Quillon", "12345678")
    assert [reading.header for reading in raised.value.readings] == ["Ada Quillon", "12345678"]
    assert not {"Quillon", "12345678"} & set(re.findall(r"\w+", str(raised.value)))


def test_columns_differ_where_one_row_does_however_far_down_it_stands():
    alike = {"Payee": ["Ada"] * 2 * SAMPLE_ROWS, "Recipient": ["ADA"] * 2 * SAMPLE_ROWS}
    another = {"Payee": [*alike["Payee"], "Ada"], "Recipient": [*alike["Recipient"], "Bo"]}
    assert not ColumnCells(pl.DataFrame(alike)).differ(["Payee"], ["Recipient"])
    assert ColumnCells(pl.DataFrame(another)).differ(["Payee"], ["Recipient"])


def test_account_numbers_of_rows_without_an_iban_need_their_sort_code():
    cells = pl.DataFrame(
        {
            "Payee": ["Ada", "Bo"],
            "IBAN": [None, "DE89370400440532013000"],
            "Account number": ["31926819", None],
            "Bank zorblex": ["200415", None],
        }
    )
    with refused(InputError, "headers.one_of_pairs", pairs=[("sort_code", "Bank zorblex")]):
        read_columns(cells, {}, where=WHERE)
