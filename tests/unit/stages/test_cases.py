"""Files as people have them: what each of `tests/cases` comes out as, beside one of our own of its kind."""

# ruff: noqa: RUF001

from pathlib import Path

import pytest
from refusals import refused

from pipeline.errors import InputError
from pipeline.stages.read import read
from pipeline.stages.validate import Routes, validate
from schemas.outcomes import ApiName

CASES = Path(__file__).parents[2] / "cases"
BOTH = Routes([ApiName.COP, ApiName.VOP_GATEWAY])
DE = [
    *("DE62370400440532013001", "DE35370400440532013002", "DE08370400440532013003", "DE78370400440532013004"),
    *("DE51370400440532013005", "DE24370400440532013006", "DE94370400440532013007", "DE67370400440532013008"),
]


def judged(path, **said):
    """What each row is asked about, or the code of its first broken rule; and the codes of its warnings."""
    source = read(path, mapping=said.pop("mapping", {}), **said)
    valid = validate(source.payments, BOTH, source.positions)
    asked = dict(valid.accepted.select("row", "account").iter_rows())
    broken = dict(valid.rejects.select("row", "code").reverse().iter_rows())
    rows = [asked.get(row) or broken[row] for row in source.payments["row"]]
    return rows, valid.warnings["code"].to_list(), [note.key for note in source.notes]


@pytest.fixture
def own(tmp_path):
    """The path of a file with this text or these bytes."""

    def written(text, name="own.csv", encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
        return path

    return written


def test_a_name_that_was_damaged_before_is_asked_as_entered_with_a_warning(own):
    assert judged(CASES / "d37_mojibake_csv.csv")[:2] == (DE[:3], ["NAME_DAMAGED"] * 3)
    names = ["A &amp; B", "M?ller", "JOSÃ‰", "D&uuml;rr", "Å‚ukasz", "Ð¸Ð²", "Oâ€™Brien"]
    names += [
        "Ma³gorzata Reed",
        "Pawe³",
        "Gra¿yna",
        "£ukasz",
        "Szûcs",
        "Gergõ Nagy",
        "Kovács Õrsi",
        "Jiøí",
        "Nìmcová",
    ]
    names += ["Krawczyñska", "Bãlþescu", "M+APw-ller", "M%C3%BCller", "M=FCller", "Popºa"]
    names += [r"O\'Neil", r"\"Q\" Ltd", r"M\u00fcller", "<b>Bo</b>", "Bo<br/>Ek"]
    whole = ["What? Ltd", "A & B", "JOÃO", "CAFÉ–BAR", "Oʼ’Neill", "AT&T; Ltd", r"A\B", "I <3 U", "Łukasz"]
    whole += [
        "Søren Åse",
        "Mª José Núñez",
        "Simões Conceição",
        "Tõnu Põld",
        "Võ Thị Ánh",
        "Mícheál Ó Néill",
        "Nº 7 Ltd",
    ]
    whole += [
        "Þóra Jónsdóttir",
        "Brûlé Frères",
        "Chloë Forlì",
        "Cœur de Lion",
        "Peña Muñoz",
        "O´Brien",
        "Müller+Co",
        "¿Qué?",
    ]
    for text, warned in ((names, ["NAME_DAMAGED"] * len(names)), (whole, [])):
        rows = "".join(f"{name},{DE[0]}\n" for name in text)
        found = judged(own(f"name,iban\n{rows}"))
        assert [code for code in found[1] if code == "NAME_DAMAGED"] == warned
        assert found[0] == [DE[0]] * len(text)


def test_what_is_said_to_be_latin_1_and_is_utf_8_is_refused(own):
    for path in (CASES / "d10_utf8.csv", own(f"name,iban\nŁukasz,{DE[0]}\n")):
        with refused(InputError, "csv.file_is_utf_8"):
            read(path, mapping={}, encoding="latin-1")
        assert judged(path)[0][0] == DE[0]
    with refused(InputError, "pain001.is_utf_8_despite_declaration"):
        read(CASES / "p09_says_latin1_is_utf8.xml", mapping={})


def test_rows_as_spreadsheets_write_them_are_asked_with_a_note(own):
    rows, warned, notes = judged(CASES / "m01_excel16.csv")
    assert (len(rows), {row[:2] for row in rows}, warned) == (20, {"DE"}, [])
    assert notes == ["stages.cells_missing"]
    assert judged(CASES / "d05_trailing_only_rows.csv") == (DE[:3], [], ["stages.cells_too_many"])
    assert judged(CASES / "d13_ctrl_z.csv") == (DE[:3], [], [])
    assert judged(CASES / "m07_long_mixed.csv")[0] == [DE[0], "ROW_TOO_LONG"]
    mixed = f"name;iban;amount;note\nAda;{DE[0]}\nBo;{DE[1]};1;;;\nTern; Bo;{DE[2]};1;x\nCy;{DE[3]};1;x\x1a"
    assert judged(own(mixed)) == (
        [DE[0], DE[1], "ROW_TOO_LONG", DE[3]],
        [],
        ["stages.cells_missing", "stages.cells_too_many"],
    )


def test_bank_lines_and_standard_18_of_any_make(own):
    assert judged(CASES / "bankline80.csv")[0] == ["15100044298801"]
    cells = (CASES / "bankline80.csv").read_text().rstrip("\r\n")
    for count in (84, 86, 90):
        assert judged(own(cells + "," * (count - 80) + "\n"))[0] == ["15100044298801"]
    assert judged(CASES / "s16_utf8_bom.txt")[0] == ["01020312345601", "01020312345602"]
    record = (CASES / "s16_utf8_bom.txt").read_bytes().splitlines(keepends=True)[1]
    for label in (b"VOL1123456", b"UHL1 26330", b"HDR1A123456S  1123456"):
        with refused(InputError, "bacs18.no_utl1_at_end"):
            read(own(label + b"\r\n" + record), mapping={})


def test_sort_codes_and_account_numbers_in_any_shape(own):
    rows, *_ = judged(CASES / "a06_uk_shapes.csv")
    asked = [row for row in rows if row.isdigit()]
    assert asked == [
        f"010203{number:08}"
        for number in (
            *(12345601, 12345602, 12345603, 12345609, 12345617, 12345618),
            *(12345621, 12345622, 12345623, 12345624, 12345625, 12345626),
            *(12345627, 12345628, 12345629, 12345630, 12345631, 12345642, 12345643),
        )
    ]
    text = "name,sort code,account number\nA,,12345624 010203\nB,,12345624/01-02-03\nC,01―02‒03,12345624\n"
    assert judged(own(text))[0] == ["01020312345624"] * 3


def refusal(path):
    with pytest.raises(InputError) as raised:
        read(path, mapping={})
    return str(raised.value)


UK = "Ada,010203,12345678,{}\nBen,010203,12345679,{}\n"


def test_direct_debits_by_their_code_and_statements_ask_nothing_and_say_why(own):
    head = "Name,Sort Code,Account Number,Transaction Code\n"
    with refused(InputError, "headers.direct_debits", columns=['"Transaction Code"']):
        read(own(head + UK.format("17", "01")), mapping={})
    assert judged(own(head + UK.format("99", "18")))[0] == ["01020312345678", "DIRECT_DEBIT"]
    with refused(InputError, "headers.bank_statement", column='"Balance"'):
        read(own("Name,Sort Code,Account Number,Balance\n" + UK.format("1", "2")), mapping={})
    rows = f"1.11.2026;2.11.2026;Ada Quill;{DE[0]};10,00\n1.11.2026;2.11.2026;Ben Reed;{DE[1]};5,00\n"
    for days in ("Buchungstag;Valuta", "Booking date;Value date", "Buchungstag;Valutadatum"):
        columns = [f'"{header}"' for header in days.split(";")]
        with refused(InputError, "headers.statement_of_two_days", columns=columns):
            read(own(f"{days};Empfänger;IBAN;Betrag\n{rows}"), mapping={})
    negative = "Name,Sort Code,Account Number,Amount\n" + UK.format("10.00", "-20.00")
    assert judged(own(negative))[0] == ["01020312345678", "AMOUNT_NEGATIVE"]


def test_a_sort_code_that_stands_unread_is_proposed_and_a_suppliers_number_never(own):
    rows = "Ada Quill,{0}2,12345678,1.00,GBP\nBen Reed,{0}3,12345679,2.00,GBP\n"
    for header, code in (("Filiale", "01020"), ("Bnk", "01-02-0"), ("Office", "01 02 0")):
        said = refusal(own(f"Name,{header},Account Number,Amount,Currency\n{rows.format(code)}"))
        assert f"sort_code={header}" in said
    for header in ("LIFNR", "Supplier", "Vendor no", "KUNNR", "Customer id", "Debit bank code"):
        found = judged(own(f"Name,{header},Account Number,Amount,Currency\n{rows.format('10020')}"))
        assert found[0] == ["SORT_CODE_MISSING"] * 2
    sap = "LIFNR,NAME1,BANKL,BANKN,WRBTR,WAERS\n100234,Ada Quill,010203,12345678,10.00,GBP\n"
    assert judged(own(sap))[0] == ["01020312345678"]


@pytest.mark.parametrize(
    "header", ["Bank Branch No.", "Bank Transit No.", "Bank Clearing No.", "Payee Branch Sort"]
)
def test_sort_codes_by_the_words_of_ledgers(header, own):
    text = f"Name,{header},Bank Account No.,Amount,Currency\nAda Quill,010203,12345601,1.00,GBP\n"
    assert judged(own(text))[0] == ["01020312345601"]
    assert judged(CASES / "h12_vendor_bc.csv")[0] == ["01020312345601", "01020312345602"]


@pytest.mark.parametrize("header", ["Building Society Ref", "BS Roll No", "Bldg Soc Ref", "Roll Reference"])
def test_roll_numbers_by_the_words_of_building_societies(header, own):
    path = own(f"Name,Sort Code,Account Number,{header}\nAda,010203,12345678,A/1\n")
    for file in (path, CASES / "h22_building_society.csv"):
        assert read(file, mapping={}).payments["secondary_reference"][0] in ("A/1", "A/12345678-9")


def test_account_types_are_read_where_they_are_some(own):
    types = ["Personal Savings", "Business Current", "Privat", "Firma", "Vendor", "Private Limited"]
    rows = "".join(f"Ada,{DE[0]},{each}\n" for each in types)
    assert judged(own(f"name,iban,account type\n{rows}"))[0] == [DE[0]] * len(types)
    assert judged(CASES / "h29_bc_journal.csv")[0] == DE[:3]
    asked, *_ = judged(CASES / "a02_types_iban.csv")
    assert len(asked) == 52
    assert {each[:2] for each in asked} == {"DE"}
    uk = "name,sort code,account number,account type\n" + "".join(
        f"Ada,010203,1234567{at},{each}\n" for at, each in enumerate(types)
    )
    source = read(own(uk), mapping={})
    found = validate(source.payments, BOTH, source.positions)
    kinds = ["Personal", "Business", "Personal", "Business", "Personal"]
    assert found.accepted["account_type"].to_list() == kinds
    assert found.rejects["code"].to_list() == ["ACCOUNT_TYPE"]
    odd = uk.replace("Personal Savings", "Employee").replace("Business Current", "Vendor")
    odd = odd.replace("Privat\n", "Bank\n").replace("Firma", "G/L").replace("Private Limited", "Vendor")
    assert judged(own(odd))[0] == [f"0102031234567{at}" for at in range(6)]
