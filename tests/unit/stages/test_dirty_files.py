"""Dirty files as public sources describe them: each row is asked about rightly, or not at all.

A file has one dirty row and one clean row beside it. Each kind names its source; the values are invented.
"""

# ruff: noqa: RUF001

from itertools import count

import pytest

from pipeline.errors import InputError
from pipeline.stages.read import read
from pipeline.stages.validate import Routes, validate
from schemas.outcomes import ApiName

BOTH = Routes([ApiName.COP, ApiName.VOP_GATEWAY])
HEADERS = ("Name", "Sort Code", "Account Number", "IBAN", "BIC", "Account Type", "Amount", "Currency")
IBAN, UK = "DE62370400440532013001", "01020312345678"
OF_IBAN = dict(zip(HEADERS, ("Ada Quillon", "", "", IBAN, "", "", "10.00", "EUR"), strict=True))
OF_UK = dict(zip(HEADERS, ("Ada Quillon", "010203", "12345678", "", "", "", "10.00", "GBP"), strict=True))
CLEAN = ("Ben Reed", "", "", "DE35370400440532013002", "", "", "20.00", "EUR")

ASKED_IBAN, ASKED_UK, REJECTED = ("Ada Quillon", IBAN), ("Ada Quillon", UK), None
NOTHING = (
    "-",
    "--",
    "–",
    ".",
    "/",
    "n/a",
    "N/A",
    "NA",
    "na",
    "none",
    "NONE",
    "null",
    "nil",
    "nan",
    "NaN",
    "0",
    "000",
)
WORDS = ("TBC", "see below", "as before", "pending", "on file")
KINDS = [
    # source, the row, the column, its cells, what is asked
    ("pandas, read_csv: na_values", OF_UK, "IBAN", NOTHING, ASKED_UK),
    ("pandas, read_csv: na_values", OF_IBAN, "Account Number", NOTHING, ASKED_IBAN),
    (
        "ISO 20022 usage of NOTPROVIDED",
        OF_IBAN,
        "BIC",
        ("NOTPROVIDED", "not provided", "-", "n/a"),
        ASKED_IBAN,
    ),
    ("payment templates filled in by hand", OF_UK, "IBAN", WORDS, REJECTED),
    (
        "Pay.UK, sort codes as they are printed",
        OF_UK,
        "Sort Code",
        (
            "01-02-03",
            "01 02 03",
            "01–02–03",
            "01‑02‑03",
            "01‐02‐03",
            "01−02−03",
            "'010203",
            '="010203"',
            "SC 01-02-03",
        ),
        ASKED_UK,
    ),
    (
        "Microsoft support: leading zeros and large numbers",
        OF_UK,
        "Sort Code",
        ("10203", "2003-02-01", "1.0203E+04", "01/02/2003", "01-Feb-03", "O10203", "01:02:03 AM"),
        REJECTED,
    ),
    (
        "Microsoft support: leading zeros and large numbers",
        OF_UK,
        "Account Number",
        (
            "1234567",
            "1.23E+07",
            "12345678.0",
            "12,345,678",
            "A2345678",
            "1234567 8x",
            "#12345678",
            "123456789",
        ),
        REJECTED,
    ),
    ("Pay.UK, account numbers", OF_UK, "Account Number", ("1234 5678", "'12345678", '="12345678"'), ASKED_UK),
    (
        "SWIFT IBAN registry: print format",
        OF_IBAN,
        "IBAN",
        (
            *("DE62 3704 0044 0532 0130 01", "de62370400440532013001", "IBAN DE62370400440532013001"),
            *(
                "IBAN: DE62 3704 0044 0532 0130 01",
                "DE62-3704-0044-0532-0130-01",
                "DE62.3704.0044.0532.0130.01",
            ),
            "DE62\u00a03704\u00a00044\u00a00532\u00a00130\u00a001",
        ),
        ASKED_IBAN,
    ),
    (
        "SWIFT IBAN registry: check digits",
        OF_IBAN,
        "IBAN",
        (
            *(
                "DE63370400440532013001",
                "DE6237040044053201300",
                "DE62370400440532O13001",
                "XX62370400440532013001",
            ),
            *("DE6237\u200b0400440532013001", "3.7E+21", "DE62370400440532013001 / DE35370400440532013002"),
        ),
        REJECTED,
    ),
    (
        "CLDR number and currency patterns",
        OF_IBAN | {"Currency": ""},
        "Amount",
        (
            *(
                "1.250,50 €",
                "€ 1.250,50",
                "1 250,50",
                "1'250.50",
                "1250,5",
                "1.250,-",
                ".50",
                ",50",
                "Fr. 50.--",
            ),
            *(
                "1.250,50 kr",
                "kr 1.250,50",
                "1 250,50 zł",
                "1 250,50 Kč",
                "Euro 1250.50",
                "1250.50 eur",
                "1250",
                "1´250.50",
            ),
        ),
        ASKED_IBAN,
    ),
    (
        "CLDR number and currency patterns",
        OF_IBAN,
        "Amount",
        ("1,250", "-10.00", "10.00-", "(10.00)", "0", "0,00", "ten", "10.001", "1e3", "#REF!", "10.00 10.00"),
        REJECTED,
    ),
    (
        "statements and ledgers: marks for debit and credit",
        OF_IBAN,
        "Amount",
        (
            "10.00 CR",
            "10.00 DR",
            "10.00C",
            "D 10.00",
            "10,00 S",
            "10,00 H",
            "+10.00",
            "10.00 EUR CR",
            "Cr. 10.00",
        ),
        REJECTED,
    ),
    (
        "sort code and account in one cell",
        OF_UK | {"Account Number": ""},
        "Sort Code",
        ("010203 12345678", "01-02-03 12345678", "01-02-03/12345678", "01-02-03, 12345678", UK),
        ASKED_UK,
    ),
    (
        "sort code and account in one cell",
        OF_UK,
        "Account Number",
        (UK, "01-02-03 12345678", "01-02-03;12345678"),
        ASKED_UK,
    ),
    (
        "sort code and account in one cell",
        OF_UK,
        "Account Number",
        ("04-05-06 12345678", "01-02-03 1234567", "1234-5678", "A/C 12345678"),
        REJECTED,
    ),
    (
        "sort code and account in the other's column",
        OF_UK,
        "Sort Code",
        ("12345678", "1234-5678", "0102-0304"),
        REJECTED,
    ),
    (
        "words of ledgers for kinds of accounts",
        OF_IBAN,
        "Account Type",
        ("Vendor", "IBAN", "Girokonto", "Savings", "SEPA", "Personal Business", "G/L Account", "Employee"),
        ASKED_IBAN,
    ),
    (
        "words of ledgers for kinds of accounts",
        OF_UK,
        "Account Type",
        ("Personal Savings", "Business Current", "Privat", "Firma", "PERSONAL", "company", "particulier"),
        ASKED_UK,
    ),
    (
        "ftfy: examples of mojibake",
        OF_IBAN,
        "Name",
        ("BjÃ¶rn Olm", "RenÃ© Tarn", "Oâ€™Brien", "Å‚ukasz", "A &amp; B Ltd", "M?ller", "D&uuml;rr"),
        ...,
    ),
    (
        "Unicode TR 36: security considerations",
        OF_IBAN,
        "Name",
        (
            "Ada\u202eQuillon",
            "Ada\u200bQuillon",
            "Ada\x07Quillon",
            "Ada\ufffdQuillon",
            "#N/A",
            "=B7",
            "+44 20 7946 0000",
        ),
        REJECTED,
    ),
    (
        "placeholders for names in payment templates",
        OF_IBAN,
        "Name",
        ("N/A", "n/a", ".", "?", "TBC", "unknown", "none", "-", ""),
        REJECTED,
    ),
    (
        "workbooks and mail merges: what stands where a name was",
        OF_IBAN,
        "Name",
        (
            "TRUE",
            "WAHR",
            "0.5",
            "3,14",
            "1899-12-31T10:20:00",
            "ada@quillon.example",
            "http://quillon.example",
            IBAN,
        ),
        REJECTED,
    ),
    ("pandas: columns of bytes", OF_IBAN, "Name", ("b'Ada Quillon'", '{"first": "Ada"}'), ...),
    (
        "ISO 4217 and ISO 9362: another country",
        OF_UK,
        "Currency",
        ("INR", "DKK", "SEK", "ZAR", "HKD", "PLN", "NOK", "AUD"),
        REJECTED,
    ),
    (
        "ISO 9362: banks elsewhere",
        OF_UK,
        "BIC",
        ("DABADKKK", "HDFCINBB", "COBADEFFXXX", "CHASUS33"),
        REJECTED,
    ),
    ("ISO 9362: banks of the UK", OF_UK, "BIC", ("NWBKGB2L", "BARCGB22XXX"), ASKED_UK),
]
CELLS = [
    pytest.param(row, column, cell, asked, id=f"{number}-{column}")
    for number, (row, column, cell, asked) in zip(
        count(1),
        ((row, column, cell, asked) for _, row, column, cells, asked in KINDS for cell in cells),
        strict=False,
    )
]
WHOLE = {
    "KB 77295 of Microsoft: delimiters missing after row 16": f"Name,IBAN,Note\nAda Quillon,{IBAN}\n",
    "RFC 4180, delimiters too many": f"Name,IBAN\nAda Quillon,{IBAN},,,\n",
    "CP/M and DOS, end of file": f"Name,IBAN\nAda Quillon,{IBAN}\n\x1a",
    "RFC 4180, quotes": f'"Name","IBAN"\r\n"Ada Quillon","{IBAN}"\r\n',
    "Unicode FAQ, byte order mark": f"\ufeffName;IBAN\r\nAda Quillon;{IBAN}\r\n",
    "classic Mac OS, line ends": f"Name\tIBAN\rAda Quillon\t{IBAN}\r",
    "exports with a title": f"Payments of November\n\nName,IBAN\nAda Quillon,{IBAN}\n",
    "exports with totals": f"Name,IBAN,Amount\nAda Quillon,{IBAN},10.00\nTotal,,10.00\n",
    "SAP, LFBK: bank keys of any country": (
        f"NAME1;BANKS;BANKL;BANKN;IBAN\nAda Quillon;DE;37040044;0532013001;{IBAN}\n"
    ),
    "MySQL, LOAD DATA: NULL": f"Name,IBAN,BIC\nAda Quillon,{IBAN},\\N\n",
    "Excel, sep=": f"sep=;\nName;IBAN\nAda Quillon;{IBAN}\n",
    "CPython issue 154744, blanks before quotes": f'Name, IBAN, Amount\n"Ada Quillon", "{IBAN}", "10.00"\n',
    "exports with apostrophes for quotes": f"'Name','IBAN','Amount'\n'Ada Quillon','{IBAN}','10.00'\n",
    "pretix pull request 4782, a delimiter too many in the header": f"Name,IBAN,\nAda Quillon,{IBAN}\n",
    "buckets issue 300, lines above and below": (
        f'"Account Name:","Personal ****"\n\nName,IBAN,Amount\nAda Quillon,{IBAN},10.00\nTRAILER,1,10.00\n'
    ),
    "firefly-iii issue 1286, lines above the headers": f"Export\n\nName;IBAN\nAda Quillon;{IBAN}\n",
    "moneymanagerex issue 7030, a cell of several lines": f'Name,IBAN,Note\nAda Quillon,{IBAN},"1\n\n2"\n',
    "bank2ynab issue 483, quotes only where needed": f'Name;IBAN;Note\nAda Quillon;{IBAN};"a; b"\n',
    "sure issue 2537, narrow blanks": f"Name;IBAN;Amount\nAda Quillon;{IBAN};1\u202f234,56 €\n",
    "gumroad pull request 5546, blanks of any kind in an account": (
        "Name,IBAN\nAda Quillon,DE62\u00a03704\u202f0044\u20090532 0130 01\n"
    ),
    "tallybook issue 184, two marks before the headers": f"\ufeff\ufeffName,IBAN\nAda Quillon,{IBAN}\n",
    "headers in two languages": f"Empfänger;IBAN;Betrag\nAda Quillon;{IBAN};1,00\n",
}
pytestmark = pytest.mark.nightly


def asked_in(path):
    """The name and the account of each question, in the order of the rows; None where nothing is asked."""
    source = read(path, mapping={})
    found = validate(source.payments, BOTH, source.positions).accepted
    questions = dict(zip(found["row"], zip(found["name"], found["account"], strict=True), strict=True))
    return [questions.get(row) for row in source.payments["row"]]


def written(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "dirty.csv"
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize(("row", "column", "cell", "asked"), CELLS)
def test_a_dirty_cell_asks_the_right_question_or_none(row, column, cell, asked, tmp_path):
    rows = [HEADERS, [(row | {column: cell})[header] for header in HEADERS], CLEAN]
    text = "".join(",".join('"' + each.replace('"', '""') + '"' for each in cells) + "\r\n" for cells in rows)
    asked = (cell, IBAN) if asked is ... else asked
    assert asked_in(written(tmp_path, text)) == [asked, ("Ben Reed", "DE35370400440532013002")]


@pytest.mark.parametrize("source", WHOLE)
def test_a_dirty_file_asks_the_right_question(source, tmp_path):
    assert asked_in(written(tmp_path, WHOLE[source])) == [ASKED_IBAN]


@pytest.mark.parametrize(
    "encoding", ["cp1250", "cp1252", "cp850", "cp852", "mac-roman", "iso-8859-2", "iso-8859-15"]
)
def test_a_file_in_an_old_encoding_asks_nothing_until_it_is_named(encoding, tmp_path):
    path = written(tmp_path, f"Name,IBAN\nJürgen Öl,{IBAN}\n", encoding)
    with pytest.raises(InputError):
        read(path, mapping={})
    assert read(path, mapping={}, encoding=encoding).payments["name"][0] == "Jürgen Öl"


@pytest.mark.parametrize(
    ("encoding", "name"),
    [
        *((encoding, "דנה לוי") for encoding in ("cp1255", "iso-8859-8")),
        *((encoding, "Γιώργος Παπάς") for encoding in ("cp1253", "iso-8859-7", "cp737")),
        *((encoding, "Наталья Щербакова") for encoding in ("cp1251", "koi8-r", "cp866")),
        *((encoding, "İbrahim Çağlar") for encoding in ("cp1254", "iso-8859-9", "cp857")),
        *((encoding, "Ģirts Kļaviņš") for encoding in ("cp1257", "iso-8859-13", "cp775")),
        *((encoding, "Święta Żółć") for encoding in ("cp1250", "iso-8859-2", "cp852")),
    ],
)
def test_the_first_advice_of_a_refusal_reads_the_names(encoding, name, tmp_path):
    path = written(tmp_path, f"Name,IBAN\n{name},{IBAN}\n", encoding)
    with pytest.raises(InputError) as refusal:
        read(path, mapping={})
    advised = refusal.value.sentence("command").split("--encoding ")[1].split()[0]
    assert read(path, mapping={}, encoding=advised).payments["name"].to_list() == [name]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_file_with_a_mark_is_read(encoding, tmp_path):
    assert asked_in(written(tmp_path, f"Name,IBAN\nZoë Öl,{IBAN}\n", encoding)) == [("Zoë Öl", IBAN)]


def test_the_corpus_holds_at_least_150_dirty_files_each_with_its_source():
    assert len(CELLS) + len(WHOLE) >= 150
    assert all(source for source, *_ in KINDS)
