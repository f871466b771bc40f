"""Bank layouts: one table, recognised by tags and shapes, read and written as the bank has them."""

import tomllib
from dataclasses import replace

import polars as pl
import pytest
from bank_files import ADA, BO, MAKERS, THREE, WRITABLE, ZOE, Payee, bank_file
from pydantic import ValidationError
from refusals import refused, says

from pipeline.errors import ConfigurationError, InputError, OutputError, UsageError
from pipeline.formats.edits import edited
from pipeline.formats.layouts import LAYOUTS, BankLayout, layout_formats, model
from pipeline.formats.layouts.reading import hundredths
from pipeline.formats.table import ReadingOptions
from pipeline.wording import Sentence

FORMATS = layout_formats({})
IN_EVERY_LAYOUT = ["name", "sort_code", "account_number", "amount", "currency"]
OWN = {
    "separator": ";",
    "amount_in": "minor",
    "header": {"tags": {"1": "H"}, "count": 2},
    "payments": [
        {
            "tags": {"1": "P"},
            "columns": {"uk_account": 2, "name": 3, "amount": 4, "payment_id": 5},
            "currency": "GBP",
        }
    ],
    "trailer": {"tags": {"1": "T"}, "count": 2, "sum": 3},
}
OWN_FILE = (
    b"H;2\r\nP;112233-12345678;Ada Quillon;12345;A1\r\nP;44556687654321;Zoe Marrow;00500;A2\r\n"
    b"T;002;0000012845\r\n"
)
FIXED = {
    "widths": [6, 8, 10, 7],
    "amount_in": "minor",
    "payments": [
        {"columns": {"sort_code": 1, "account_number": 2, "name": 3, "amount": 4}, "currency": "GBP"},
    ],
    "trailer": {"tags": {"1": "END"}, "widths": [3, 5, 9], "count": 2, "sum": 3},
}
FIXED_FILE = b"11223312345678Ada Quil  0012345\n44556687654321Zoe Marrow0000500\nEND00002000012845\n"


def own(section, data):
    fmt = layout_formats({"own": BankLayout.model_validate(section)})["own"]
    return fmt, fmt.read(data, ReadingOptions({}), where="own.csv")


def recognised(data):
    return [name for name, each in FORMATS.items() if each.sniff(data)]


def read(layout, data, **said):
    return FORMATS[layout].read(data, ReadingOptions({}, **said), where="pay.csv")


def split(layout, data, *keep):
    fmt = FORMATS[layout]
    message = fmt.read(data, ReadingOptions({}), where="pay.csv")
    edits = fmt.kept(data, message, pl.Series(keep, dtype=pl.Boolean), "release")
    return b"".join(edited(data, edits))


def test_every_row_of_the_table_has_a_file_here():
    assert set(LAYOUTS) == set(MAKERS)


@pytest.mark.parametrize("end", [b"\r\n", b"\r\r\n", b"\r"])
@pytest.mark.parametrize("layout", MAKERS)
def test_a_layout_is_recognised_as_itself_and_nothing_else(layout, end):
    assert recognised(bank_file(layout).replace(b"\r\n", end)) == [layout]


@pytest.mark.parametrize("layout", MAKERS)
def test_the_same_payments_are_read_from_every_layout(layout):
    message = read(layout, bank_file(layout))
    plain = message.payments.with_columns(pl.col("sort_code").str.replace_all("-", ""))
    assert plain.select(IN_EVERY_LAYOUT).rows() == [
        (each.name, each.sort_code, each.account, each.amount, "GBP") for each in THREE
    ]
    assert message.defects.null_count() == 3
    assert message.difference is None


@pytest.mark.parametrize(
    ("layout", "batch", "code"),
    [
        ("bankline", "26112026 40000188888888", "01"),
        ("bank-of-scotland", "20261126 400001-88888888", None),
        ("lloyds", "MONTHLY", None),
        ("paygate", "26/11/2026 400001 88888888", "99"),
        ("rbs-autopay", "26330", "99"),
        ("santander", "26112026 40000188888888", None),
        ("cashbacs", None, None),
    ],
)
def test_what_payments_are_booked_with_is_their_batch(layout, batch, code):
    places = read(layout, bank_file(layout)).locations
    assert places.select("batch", "code").row(2) == (batch, code)


def test_bankline_has_international_payments_among_the_others():
    line = bank_file("bankline", [ADA]).replace(b",01,", b",04,", 1)
    line = line.replace(b"112233", b"MARWDEFFXXX").replace(b"12345678", b"DE02120300000000202051", 1)
    message = read("bankline", bank_file("bankline", [ZOE]) + line)
    assert message.payments.select("sort_code", "bic", "iban", "currency").rows() == [
        ("445566", None, None, "GBP"),
        (None, "MARWDEFFXXX", "DE02120300000000202051", None),
    ]


@pytest.mark.parametrize(
    "data",
    [
        b"Sort code,Name,Account,Amount,Reference,Code\n112233,Ada,12345678,1.00,x,99\n",
        b"name,sort_code,account_number\nAda,112233,12345678\n",
        b"112233,Ada,12345678,1.00,x,98\n",
        b"112233,Ada,1234,1.00,x,99\n445566,Zoe,12,1.00,x,99\n",
        b"H,20261126,a,b\nX,1\n",
        b"H,26112026,PAYROLL,1,1.00\nD,M,400001-88888888\nC,Ada,12345678,112233,R,1.00,N,20261126,E\n",
        b"H\nT\n",
        b"\n\n",
        b"",
    ],
)
def test_one_column_alone_makes_no_layout(data):
    assert recognised(data) == []


def test_mistakes_in_some_rows_make_no_other_file_of_it():
    wrong = replace(ZOE, account="8765", amount="two")
    data = bank_file("barclays", [ADA, wrong, BO])
    assert recognised(data) == ["barclays"]
    assert read("barclays", data).payments["amount"].to_list() == ["123.45", "two", "7.00"]


HEADERS = b'"Sort code","Account","Name","Net pay"\r\n'
WRONG = b'"11-22-33","1234","Ada","none"\r\n'


@pytest.mark.parametrize(
    "data",
    [
        HEADERS + bank_file("cashbacs"),
        bank_file("cashbacs", [ADA]) + WRONG,
        bank_file("cashbacs", [ADA, ZOE]) + WRONG * 2,
        bank_file("bankline", [ADA]).replace(b",01,", b",04,", 1) + bank_file("bankline"),
    ],
    ids=["headers", "half", "half of four", "another kind first"],
)
def test_the_first_payment_and_most_payments_look_as_the_layout_says(data):
    assert recognised(data) == []


def test_some_payments_may_be_wrong():
    data = bank_file("cashbacs", [ADA, ZOE]) + WRONG
    assert recognised(data) == ["cashbacs"]


def test_a_byte_order_mark_hides_no_layout():
    data = bank_file("lloyds", encoding="utf-8-sig")
    assert recognised(data) == ["lloyds"]
    assert split("lloyds", data, True, True, True) == data


def test_a_head_that_ends_within_a_line_is_recognised():
    for layout in MAKERS:
        head = bank_file(layout, THREE * 10)[:500]
        assert recognised(head) == [layout]


@pytest.mark.parametrize("layout", WRITABLE)
def test_a_split_leaves_the_file_that_its_maker_would_have_written(layout):
    data = bank_file(layout)
    if layout == "lloyds":
        data = data.replace(b",E2E3", b",E2E2")
    expected = bank_file(layout, [ADA, BO])
    assert split(layout, data, True, False, True) == expected
    assert split(layout, data, True, True, True) == data


def test_a_batch_without_payments_goes():
    lines = bank_file("lloyds", [ADA]).splitlines(keepends=True)
    more = b"D,BONUS,400001-88888888\r\n" + bank_file("lloyds", [ZOE]).splitlines(keepends=True)[2]
    data = b"".join(lines).replace(b",1,123.45", b",2,323.50") + more
    message = read("lloyds", data)
    assert message.locations["batch"].to_list() == ["MONTHLY", "BONUS"]
    assert split("lloyds", data, True, False) == bank_file("lloyds", [ADA])


@pytest.mark.parametrize("layout", WRITABLE)
def test_a_name_is_written_in_its_cell_and_nowhere_else(layout):
    data = bank_file(layout)
    fmt = FORMATS[layout]
    edits = fmt.renamed(data, read(layout, data), {2: "ZOE MARROW"})
    assert b"".join(edited(data, edits)) == data.replace(b"Z MARROW & SONS", b"ZOE MARROW")


def test_a_name_is_cut_to_what_the_bank_takes():
    assert FORMATS["lloyds"].fitted("Teasel Gardens and Sons Ltd") == "Teasel Gardens and"
    assert FORMATS["rbs-autopay"].fitted("Søren O'Brien") == "SOREN O BRIEN"
    assert FORMATS["rbs-autopay"].fitted("Σ") is None
    assert FORMATS["lloyds"].fitted("Ada\nQuillon") is None


def test_a_name_with_the_separator_is_quoted():
    data = bank_file("lloyds", [ADA])
    edits = FORMATS["lloyds"].renamed(data, read("lloyds", data), {1: "Quillon, Ada"})
    copy = b"".join(edited(data, edits))
    assert b'C,"Quillon, Ada",12345678' in copy
    assert read("lloyds", copy).payments["name"].to_list() == ["Quillon, Ada"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "latin-1"])
def test_letters_of_more_bytes_shift_no_edit(encoding):
    data = bank_file("lloyds", [replace(ADA, name="Zoë Märrow", reference="Été"), ZOE], encoding=encoding)
    said = None if encoding == "utf-8" else encoding
    message = read("lloyds", data, encoding=said)
    edits = FORMATS["lloyds"].renamed(data, message, {1: "Zoé", 2: "Zoë"})
    changed = b"".join(edited(data, edits)).decode(encoding)
    assert changed == data.decode(encoding).replace("Zoë Märrow", "Zoé").replace("Z MARROW & SONS", "Zoë")


def test_bytes_of_another_encoding_are_refused_never_guessed():
    data = bank_file("lloyds", [replace(ADA, name="Zoë")], encoding="cp1252")
    with refused(
        InputError,
        Sentence("csv.byte_not_in_encoding", where="pay.csv", line=3, encoding="UTF-8"),
        Sentence("advice.reading", encoding="cp1252", cells=["Zoë"]),
    ):
        read("lloyds", data)


@pytest.mark.parametrize("encoding", ["utf-16", "klingon", "cp037", "a\0b", "shift_jis", "euc-kr"])
def test_an_encoding_that_no_bank_takes_is_refused(encoding):
    with refused(UsageError, {"csv.encoding_not_supported", "layouts.encoding_not_supported"}):
        read("lloyds", bank_file("lloyds"), encoding=encoding)


def test_a_name_that_cannot_be_written_is_told():
    message = read("lloyds", bank_file("lloyds", [ADA], encoding="cp1252"), encoding="cp1252")
    assert FORMATS["lloyds"].name_obstacle(message, 1, "Zoë") is None
    obstacle = FORMATS["lloyds"].name_obstacle(message, 1, "Łukasz")
    assert obstacle == Sentence("layouts.name_not_in_encoding", encoding="cp1252")
    message = read("paygate", bank_file("paygate"))
    assert FORMATS["paygate"].name_obstacle(message, 1, "Σ") == Sentence("layouts.name_letters_not_accepted")


def test_a_line_that_is_not_as_others_gets_no_name():
    data = bank_file("barclays") + b"112233,ADA,12345678,1.00,x,99,more\r\n"
    obstacle = FORMATS["barclays"].name_obstacle(read("barclays", data), 4, "Zoe")
    assert obstacle == Sentence("layouts.line_differs")


def test_a_hash_of_unknown_rule_is_read_and_never_written():
    data = bank_file("santander")
    message = read("santander", data)
    obstacle = FORMATS["santander"].obstacle(message)
    why = "layouts.hash_total_rule_unknown"
    says(obstacle, "layouts.cannot_be_changed", file="formats.the_file", why=why)
    with pytest.raises(AssertionError):
        split("santander", data, True, False, True)
    with pytest.raises(AssertionError):
        FORMATS["santander"].renamed(data, message, {1: "ZOE"})


@pytest.mark.parametrize(
    ("said", "key", "values"),
    [
        (b",4,", "formats.control_differs", {"stated": "4", "found": "3"}),
        (b",three,", "formats.stated_unreadable", {}),
    ],
)
def test_a_count_that_lies_is_told_and_the_file_is_not_changed(said, key, values):
    data = bank_file("lloyds").replace(b",3,", said)
    assert read("lloyds", data).difference is not None
    obstacle = FORMATS["lloyds"].obstacle(read("lloyds", data))
    says(obstacle, key, Sentence("formats.count_in_line", line=1), file="formats.the_file", **values)
    with pytest.raises(AssertionError):
        split("lloyds", data, True, False, False)


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("7", "main", 700),
        ("7.5", "main", 750),
        ("0.05", "main", 5),
        ("999999999999999.99", "main", 99_999_999_999_999_999),
        ("1,234.50", "main", None),
        ("1.234", "main", None),
        ("-1.00", "main", None),
        (".50", "main", None),
        ("9" * 16, "main", None),
        (None, "main", None),
        ("5", "minor", 5),
        ("9" * 15, "minor", 999_999_999_999_999),
        ("9" * 16, "minor", None),
        ("", "minor", None),
        ("1.5", "minor", None),
    ],
)
def test_an_amount_is_hundredths_or_cannot_be_known(text, unit, value):
    layout = BankLayout.model_validate({**OWN, "amount_in": unit})
    assert pl.select(hundredths(pl.lit(text, dtype=pl.String), layout)).item() == value


def test_a_batch_says_what_is_in_it_alone():
    batch = {"tags": {"1": "B"}, "label": 2, "count": 3, "sum": 4}
    data = (
        b"H;3\nB;JUNE;2;700\nP;11223312345678;Ada;500;A1\nP;11223312345678;Bo;200;A2\n"
        b"B;JULY;1;9\nP;11223312345678;Zoe;9;A3\nT;3;709\n"
    )
    fmt, message = own({**OWN, "batch": batch}, data)
    assert message.difference is None
    assert message.controls.height == 7
    assert message.locations["batch"].to_list() == ["JUNE", "JUNE", "JULY"]
    left = b"".join(edited(data, fmt.kept(data, message, pl.Series([True, False, False]), "release")))
    assert left == b"H;1\nB;JUNE;1;500\nP;11223312345678;Ada;500;A1\nT;1;500\n"
    assert own({**OWN, "batch": batch}, data.replace(b"JULY;1;9", b"JULY;1;8"))[1].controls.filter(
        ~pl.col("agrees")
    )["where"].to_list() == ["line 5, sum"]


def test_a_cell_for_a_count_that_is_blank_says_nothing():
    data = bank_file("lloyds").replace(b",3,330.50", b",,330.50")
    assert read("lloyds", data).controls["where"].to_list() == ["line 1, sum"]
    assert read("lloyds", data).difference is None
    assert split("lloyds", data, True, False, False).startswith(b"H,20261126,PAYROLL,,123.45\r\n")


@pytest.mark.parametrize(
    ("said", "kept", "expected"),
    [
        ("330.50", (False, True, True), "207.05"),
        ("330.5", (False, True, True), "207.05"),
        ("330.5", (False, False, True), "7.0"),
        ("000330.50", (True, False, False), "000123.45"),
        ("330.50", (False, False, True), "7.00"),
    ],
)
def test_a_sum_is_written_in_the_form_that_it_had(said, kept, expected):
    data = bank_file("lloyds").replace(b"330.50", said.encode())
    assert f",{sum(kept)},{expected}\r\n".encode() in split("lloyds", data, *kept)


def test_a_sum_of_what_cannot_be_added_is_told():
    data = bank_file("lloyds").replace(b"7.00,N", b"seven,N")
    assert read("lloyds", data).difference is not None


@pytest.mark.parametrize(
    ("layout", "damage", "sentence"),
    [
        ("lloyds", lambda data: data[data.index(b"D,") :], Sentence("layouts.header_line_missing", first=1)),
        ("bank-of-scotland", lambda data: data[:-3], Sentence("layouts.trailer_line_missing", last=4)),
        (
            "cashbacs",
            lambda data: data.replace(b'TEASEL"', b"TEASEL"),
            Sentence("csv.quoted_cell_malformed", line=3),
        ),
        ("lloyds", lambda _: b"\r\n\r\n", "layouts.file_empty"),
        ("lloyds", lambda _: b"H,20261126,P,0,0.00\r\n", "layouts.no_payments"),
        ("paygate", lambda data: data.replace(b"\r\n", b"\r"), Sentence("layouts.line_ends_with_cr", line=1)),
        ("paygate", lambda data: data.decode().encode("utf-16"), "layouts.utf_16_not_accepted"),
    ],
)
def test_what_is_not_in_its_layout_is_refused_in_a_sentence(layout, damage, sentence):
    with refused(InputError, sentence, where="pay.csv"):
        read(layout, damage(bank_file(layout)))


def test_a_line_of_no_known_kind_is_a_row_that_is_told_not_one_that_is_skipped():
    data = bank_file("lloyds").replace(b"C,BO", b"X,BO")
    message = read("lloyds", data)
    assert message.defects.to_list() == [None, None, "CODE_UNKNOWN"]
    assert message.difference is not None


def test_direct_debits_are_told_and_never_payments():
    data = bank_file("paygate").replace(b"7.00,99", b"7.00,17")
    message = read("paygate", data)
    assert message.payments.height == 2
    assert message.set_aside.rows() == [(3, "17", "direct debit")]
    says(
        FORMATS["paygate"].split_obstacle(message),
        "formats.mixed_with_payments", file="formats.the_file", what="formats.direct_debit", line=3,
    )  # fmt: skip
    with pytest.raises(AssertionError):
        split("paygate", data, True, False)


def test_rows_with_too_few_or_too_many_cells_are_told():
    data = bank_file("barclays") + b"112233,ADA,12345678,1.00\r\n112233,ADA,12345678,1.00,x,99,more\r\n"
    # Without its tag the first is of no known kind.
    assert read("barclays", data).defects.to_list() == [None] * 3 + ["CODE_UNKNOWN", "LINE_TOO_LONG"]


def test_a_name_that_fills_its_cell_is_told():
    data = bank_file("lloyds", [ADA, Payee(name="TEASEL GARDENS LTD")])
    assert read("lloyds", data).warnings.select("row", "code").rows() == [(2, "NAME_TRUNCATED")]
    assert read("barclays", bank_file("barclays")).warnings.is_empty()


def test_a_layout_of_the_user_is_read_and_written_as_the_banks_are():
    fmt, message = own(OWN, OWN_FILE)
    assert fmt.sniff(OWN_FILE)
    assert message.difference is None
    assert message.payments.select("payment_id", *IN_EVERY_LAYOUT).rows() == [
        ("A1", "Ada Quillon", "112233", "12345678", "123.45", "GBP"),
        ("A2", "Zoe Marrow", "445566", "87654321", "5.00", "GBP"),
    ]
    edits = fmt.kept(OWN_FILE, message, pl.Series([False, True]), "hold")
    expected = b"H;1\r\nP;44556687654321;Zoe Marrow;00500;A2\r\nT;001;0000000500\r\n"
    assert b"".join(edited(OWN_FILE, edits)) == expected


@pytest.mark.parametrize("separator", [",", ";", "|", "\t"])
def test_cells_in_quotes_are_read_whatever_stands_between_them(separator):
    section = {**OWN, "separator": separator, "header": None, "trailer": None}
    cells = ["P", '"112233-12345678"', '"Quillon, Ada; ""A|B"""', "1", "A1"]
    plain = ["P", '"112233-12345678"', '"Ada Quillon"', "1", "A1"]
    data = "".join(separator.join(row) + "\n" for row in (cells, plain)).encode()
    _, message = own(section, data)
    assert message.payments["name"].to_list() == ['Quillon, Ada; "A|B"', "Ada Quillon"]
    assert message.payments["sort_code"].to_list() == ["112233"] * 2


def test_the_example_of_a_layout_in_toml_is_one():
    text = model.__doc__.partition(":\n\n")[2].replace("\n    ", "\n")
    section = tomllib.loads(text)["layouts"]["northgate"]
    layout = BankLayout.model_validate(section)
    message = layout_formats({"northgate": layout})["northgate"].read(
        b"P;112233;12345678;Ada;1.00\nT;1;1.00\n", ReadingOptions({}), where="own.csv"
    )
    assert message.facts["layout"] == "northgate"
    assert message.difference is None
    assert message.payments.height == 1


def test_a_layout_of_widths_is_read_and_written_in_its_places():
    fmt, message = own(FIXED, FIXED_FILE)
    assert fmt.sniff(FIXED_FILE)
    assert message.difference is None
    assert message.payments.select(IN_EVERY_LAYOUT).row(0) == (
        "Ada Quil", "112233", "12345678", "123.45", "GBP"
    )  # fmt: skip
    edits = fmt.renamed(FIXED_FILE, message, {1: "Ada Q"})
    edits += fmt.kept(FIXED_FILE, message, pl.Series([True, False]), "release")
    assert b"".join(edited(FIXED_FILE, edits)) == b"11223312345678Ada Q     0012345\nEND00001000012345\n"
    assert fmt.fitted("Ada Quillon") == "Ada Quillo"
    assert message.warnings["row"].to_list() == [2]


def test_a_sum_that_its_cell_has_no_room_for_is_told():
    trailer = {**FIXED["trailer"], "widths": [3, 5, 3]}
    lines = (b"11223312345678Ada Quil  0123.45", b"44556687654321Zoe Marrow0005.55", b"END00002129")
    data = b"\n".join(lines)
    fmt, message = own({**FIXED, "amount_in": "main", "trailer": trailer}, data)
    with refused(OutputError, "layouts.no_room_for_sum", line=3, old_count=3):
        fmt.kept(data, message, pl.Series([True, False]), "release")


def test_a_line_of_widths_that_is_cut_is_never_another_amount():
    _, message = own(FIXED, FIXED_FILE.replace(b"0012345", b"00123", 1))
    assert message.defects.to_list() == ["LINE_TOO_SHORT", None]
    _, message = own(FIXED, FIXED_FILE.replace(b"0012345", b"00123456", 1))
    assert message.defects.to_list() == ["LINE_TOO_LONG", None]


@pytest.mark.parametrize("amount", [b"123.45", b"-1", b"", b"12 345"])
def test_minor_units_are_digits_and_nothing_else(amount):
    _, message = own(OWN, OWN_FILE.replace(b";12345;", b";" + amount + b";"))
    assert message.payments["amount"].to_list() == [None, "5.00"]
    assert message.defects.to_list()[0] == ("AMOUNT_MALFORMED" if amount else None)
    assert message.difference is not None


@pytest.mark.parametrize(
    ("change", "key", "values"),
    [
        ({"separator": None}, "layouts.separator_or_widths", {}),
        ({"widths": [1, 2]}, "layouts.separator_or_widths", {}),
        (
            {"separator": None, "widths": [1, 2]},
            "layouts.column_beyond_widths",
            {"column": 5, "width_count": 2},
        ),
        ({"payments": [{"tags": {"1": "P"}, "columns": {"name": 2, "amount": 3}}]}, "layouts.no_account", {}),
        ({"payments": [{"columns": {"iban": 2}}]}, "layouts.no_payee", {}),
        (
            {"payments": [{"columns": {"iban": 1, "payee": 2}}]},
            "layouts.no_such_field",
            {"fields": {"payment_id"}},
        ),
        ({"payments": [{"columns": {"iban": 1, "name": 2}}]}, "layouts.sum_without_amounts", {}),
        ({"trailer": {"tags": {"1": "H"}}}, "layouts.same_tags", {}),
        ({"batch": {"label": 2}}, "layouts.lines_without_tags", {}),
    ],
)
def test_a_layout_that_cannot_work_is_refused_in_a_sentence(change, key, values):
    with pytest.raises(ValidationError) as refusal:
        BankLayout.model_validate({**OWN, **change})
    says(refusal.value.errors()[0]["ctx"]["error"], key, **values)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"payments": [{"columns": {"iban": 0, "name": 2}}]}, "greater_than_equal"),
        ({"separator": ":"}, "literal_error"),
        ({"colour": "red"}, "extra_forbidden"),
    ],
)
def test_a_layout_of_another_form_is_refused(change, kind):
    with pytest.raises(ValidationError) as refusal:
        BankLayout.model_validate({**OWN, **change})
    assert kind in {error["type"] for error in refusal.value.errors()}


def test_a_layout_known_by_one_column_alone_is_refused():
    columns = {"account_number": 1, "sort_code": 1, "name": 1}
    with pytest.raises(ValidationError) as refusal:
        BankLayout.model_validate({"separator": ",", "payments": [{"columns": columns}]})
    says(refusal.value.errors()[0]["ctx"]["error"], "layouts.recognised_by_one_column")


def test_a_layout_of_the_user_does_not_take_the_name_of_a_bank():
    with refused(ConfigurationError, "layouts.layout_name_taken", name="lloyds"):
        layout_formats({"lloyds": BankLayout.model_validate(OWN)})
