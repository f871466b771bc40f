"""Rows that are commented out, one payment over two rows, and an IBAN over several columns."""

import pytest
from refusals import refused

from pipeline.errors import InputError
from pipeline.stages.read import read

IBANS = (
    "DE89370400440532013000",
    "FR1420041010050500013M02606",
    "NL91ABNA0417164300",
    "DE02120300000000202051",
)
NAMES = ("Ada Quillon", "Bea Marrow", "Cid Thornwood", "Dee Okonjo")


@pytest.fixture
def source(tmp_path):
    """What is read from these lines."""

    def of(*lines, **mapping):
        path = tmp_path / "payments.csv"
        path.write_text("\n".join([*lines, ""]), encoding="utf-8")
        return read(path, mapping=mapping)

    return of


def defects(source, *rows, headers="Name;IBAN;Amount"):
    return source(headers, *rows).payments["defect"].to_list()


def row(name, at=0, amount="10.00"):
    return f"{name};{IBANS[at]};{amount}"


@pytest.mark.parametrize(
    "name",
    [
        "# Bea Marrow",
        "#Bea Marrow",
        "# old: Bea Marrow",
        "-- Bea Marrow",
        "--do not use: Bea Marrow",
        "// Bea Marrow",
        "/* Bea Marrow */",
        "DO NOT PAY Bea Marrow",
        "Bea Marrow (do not pay)",
        "Bea Marrow - nicht zahlen!",
        "NE PAS PAYER Bea Marrow",
    ],
)
def test_a_payee_that_is_commented_out_is_never_asked_about(source, name):
    assert defects(source, row(NAMES[0]), row(name, 1), row(NAMES[2], 2)) == [None, "ROW_COMMENTED", None]


@pytest.mark.parametrize(
    "name",
    [
        "Rem Quillon",
        "C# Consulting",
        "Marrow // Quillon Ltd",
        "Pay-Not Ltd",
        "N/A--",
        "#1 Tiles",
        "#REF!",
        "#N/A",
        "#DIV/0!",
    ],
)
def test_names_with_such_signs_inside_are_names(source, name):
    assert defects(source, row(NAMES[0]), row(name, 1)) == [None, None]


def test_a_mark_in_the_first_cell_comments_out_its_row_unless_most_rows_have_one(source):
    headers, rows = "Id;Name;IBAN", [f"{number};{NAMES[number]};{IBANS[number]}" for number in range(4)]
    for mark in ("// ", "-- ", "# "):
        assert defects(source, *rows[:3], mark + rows[3], headers=headers) == [None] * 3 + ["ROW_COMMENTED"]
        assert defects(source, *(mark + row for row in rows), headers=headers) == [None] * 4
    assert defects(source, *rows[:3], "#" + rows[3], headers=headers) == [None] * 4, "an id"


@pytest.mark.parametrize(
    ("above", "below"),
    [
        ("Quillon Grounds Maintenance", "and Landscaping Ltd"),
        ("Quillon Grounds Maintenance", "& Sons"),
        ("Quillon Grounds Maintenance", "Holdings Ltd"),
        ("Quillon Grounds Maintenance", "GmbH"),
        ("Marrow &", "Thornwood"),
        ("Maria Marrow de", "Oliveira"),
        ("Quillon, Marrow,", "Thornwood"),
    ],
)
def test_a_name_that_goes_on_in_the_next_row_is_never_asked_about_in_half(source, above, below):
    rows = [row(NAMES[0]), row(above, 1), f"{below};;", row(NAMES[2], 2)]
    assert defects(source, *rows) == [None, "ROW_CONTINUED", "ROW_CONTINUED", None]


def test_a_name_that_begins_in_the_row_above_its_account_is_never_asked_about_in_half(source):
    for above, below in (("Quillon and", "Marrow Ltd"), ("Quillon", "and Marrow"), ("Quillon", "Ltd")):
        rows = [row(NAMES[0]), row(NAMES[1], 1), f"{above};;", row(below, 2)]
        assert defects(source, *rows) == [None, None, "ROW_CONTINUED", "ROW_CONTINUED"]


def test_a_name_under_every_payment_is_the_rest_of_its_name(source):
    rows = [line for at in range(3) for line in (row(NAMES[at], at), f"Street{at};;")]
    assert defects(source, *rows) == ["ROW_CONTINUED"] * 6
    assert set(defects(source, *rows[:2])) == {None}, "one payment shows no pattern"


@pytest.mark.parametrize(
    "rows",
    [
        ("Sales;;", row("Ada Quillon"), row("Bea Marrow", 1), "Accounts;;", row("Cid Thornwood", 2)),
        ("Quillon Ltd;;", row("Ada Quillon"), row("Bea Marrow", 1), "Marrow GmbH;;", row("Cid Thornwood", 2)),
        (row("Ada Quillon"), "Bea Marrow;;20.00", row("Cid Thornwood", 2)),
        (row("Ada Quillon"), "Bea Marrow;;", row("Cid Thornwood", 2), row("Dee Okonjo", 3)),
        (row("ada quillon"), "bea marrow;;", row("cid thornwood", 2), row("dee okonjo", 3)),
        (row("Ada Quillon"), row("Bea Marrow", 1), "prepared by Zoe Quillon;;"),
        (row("Ada Quillon"), row("Bea Marrow", 1), "all of these amounts are net of fees;;"),
    ],
)
def test_groups_notes_and_payees_that_lack_their_account_spoil_no_other_row(source, rows):
    assert "ROW_CONTINUED" not in defects(source, *rows)


@pytest.mark.parametrize("cut", [6, 14, 17])
def test_an_iban_that_goes_on_in_the_next_row_rejects_both(source, cut):
    rows = [row(NAMES[0]), f"{NAMES[1]};{IBANS[1][:cut]};10.00", f";{IBANS[1][cut:]};", row(NAMES[2], 2)]
    assert defects(source, *rows) == [None, "ROW_CONTINUED", "ROW_CONTINUED", None]
    rows[2] = f";{IBANS[0][cut:]};"  # not its rest
    assert "ROW_CONTINUED" not in defects(source, *rows)


def in_parts(*ends, count):
    """Return rows of a name and an IBAN that is cut into cells at these places."""
    return [
        f"{name};{';'.join(iban[a:b] for a, b in zip((0, *ends), (*ends, 40), strict=True))}"
        for name, iban in zip(NAMES[:count], IBANS[:count], strict=True)
    ]


@pytest.mark.parametrize(
    ("headers", "ends"),
    [
        ("Name;IBAN;BBAN", (4,)),
        ("Name;Country;Check digits;BBAN", (2, 4)),
        ("Name;IBAN prefix;Account number", (4,)),
        ("Name;IBAN 1;IBAN 2", (12,)),
        ("Name;IBAN;;;;;;", range(4, 28, 4)),
    ],
)
def test_an_iban_over_several_columns_is_read_if_its_check_digits_fit_in_each_row(source, headers, ends):
    found = source(headers, *in_parts(*ends, count=3))
    read_as = [(iban or "").replace(" ", "") for iban in found.payments["iban"]]
    assert read_as == list(IBANS[:3])
    assert found.decision["iban"] == "+".join(f"#{number}" for number in range(2, len(ends) + 3))
    assert all(str(reading.how) for reading in found.columns)
    assert set(found.payments["defect"]) == {None}
    # The user may name them, too.
    again = source(headers, *in_parts(*ends, count=3), name="Name", iban=found.decision["iban"])
    assert again.payments["iban"].to_list() == found.payments["iban"].to_list()


def test_columns_that_make_an_iban_in_some_rows_only_or_your_own_are_not_joined(source):
    one, *rest = in_parts(4, count=3)
    found = source("Name;IBAN;BBAN", one.replace("89;", "88;"), *rest)
    assert found.payments["iban"].to_list() == ["DE88", "FR14", "NL91"]
    own = [f"{name};DE;89370400440532013000;12-34-56;1234567{at}" for at, name in enumerate(NAMES)]
    found = source("Name;Country;Number;Sort code;Account number", *own)
    assert found.payments["iban"].null_count() == len(own)
    with refused(InputError, "headers.no_account_and_no_payee"):
        source("Who;X;Y", "Ada Quillon;DE;1", "Bea Marrow;FR;2")
