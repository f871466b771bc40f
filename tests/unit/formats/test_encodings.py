"""What encoding a text is in: by a mark, by what the user says, else by the readings that fit."""

from pathlib import Path

import pytest
from refusals import refused
from tables import for_each

from pipeline.errors import InputError
from pipeline.formats.encodings import readings
from pipeline.stages.read import read

CASES = Path(__file__).parents[2] / "cases"
NAMES = {
    "cp1252 cp850 mac-roman iso-8859-15": [
        ["Jürgen Größ", "Bäcker & Söhne", "JOSÉ MÜLLER"],
        ["René Dupré", "Hélène Lefèvre"],
        ["José Núñez", "María García"],
        ["Niccolò D'Amico", "Società Caffè"],
        ["João Gonçalves", "Conceição Lda"],
        ["Åsa Öberg", "Märta Sjöström"],
        ["Søren Ærø", "Åse Nørgård"],
        ["Päivi Hämäläinen", "Ann Dee"],
    ],
    "cp1250 cp852 iso-8859-2": [
        ["Łukasz Żółw", "Małgorzata Dąbek", "Święty Ćwik"],
        ["Jiří Dvořák", "Žaneta Nováková", "Štěpán Čech"],
        ["Győző Szűcs", "Ágnes Kovács"],
        ["Ştefan Ionaşcu", "Brânduşa Ţîrlea"],
        ["Željko Šarić", "Đuro Čović"],
    ],
    "cp1254 iso-8859-9 cp857": [["Işıl Gündoğdu", "Özgür Yağcı"], ["Şükrü Güneş", "İbrahim Çağlar"]],  # noqa: RUF001
    "cp1257 cp775": [["Jūratė Žukauskienė", "Šarūnas Čepas"], ["Jānis Bērziņš", "Ģirts Kļaviņš"]],
    "cp1255 iso-8859-8 cp862": [["דנה לוי", "משה כהן"], ["שרה ישראלי"]],
    "cp1253 iso-8859-7 cp737 cp869 mac-greek": [["Γιώργος Παππάς", "Ελένη Μαύρου"]],
    "cp1251 koi8-r cp866 iso-8859-5 mac-cyrillic": [["Наталья Щербакова", "Фёдор Ёлкин"]],
    "iso-8859-3": [["Ġorġ Żammit", "Ħal Qormi Ltd"]],
    "iso-8859-16 mac-romanian": [["Ștefan Țăranu", "Brândușa Țîrlea"]],
    "mac-turkish": [["Işıl Gündoğdu", "Özgür Yağcı"]],  # noqa: RUF001
    "iso-8859-6 cp1256": [["محمد علي", "فاطمة حسن"]],
    "cp855": [["Јован Петровић", "Милица Ђурић"]],
    "shift_jis": [["山田太郎", "カブシキガイシャ"]],
    "gb18030": [["王小明", "北京贸易有限公司"]],
}


@for_each(
    ("encoding", "names"),
    [
        (encoding, names)
        for encodings, lists in NAMES.items()
        for encoding in encodings.split()
        for names in lists
    ],
)
def test_names_show_their_encoding_by_their_letters(encoding, names):
    text = "Name,IBAN\n" + "".join(f"{name},DE62370400440532013001\n" for name in names)
    found = readings(text.encode(encoding))
    [right] = [each for each in found if text.encode(encoding).decode(each.encoding) == text]
    assert right in found[:2]
    assert right.cells == tuple(name for name in names if not name.isascii())[:3]


@for_each(
    "damaged",
    [b"Andr\xc3,", "André,".encode("cp1252"), b"Zo\xed\xa0\xbd\xed\xb8\x80,", "Müller;".encode("cp850")],
)
def test_utf_8_with_a_damaged_line_is_not_sent_to_another_encoding(damaged, tmp_path):
    text = "Name,IBAN\nZoë Größe,1\nŁukasz Żółw,2\n".encode() + damaged + b"3\n"
    (tmp_path / "pay.csv").write_bytes(text)
    with refused(InputError, "csv.correct_line_not_utf_8", line=4) as raised:
        read(tmp_path / "pay.csv", mapping={})
    assert "--encoding" not in str(raised.value)


MISREAD = {
    "Polish": ["Paweł Wójcik", "Grażyna Krawczyńska"],
    "Hungarian": ["Szűcs Gergő", "Kovács Őrsi", "Ágnes Nagy"],
    "Czech": ["Jiří Dvořák", "Růžena Němcová"],
}


@for_each(
    ("language", "encoding"),
    [(each, named) for each in MISREAD for named in ("cp1252", "latin-1", "iso-8859-15")],
)
def test_an_encoding_that_misspells_most_names_is_refused_with_the_right_one(language, encoding, tmp_path):
    rows = "".join(f"{name},DE62370400440532013001\n" for name in MISREAD[language])
    (tmp_path / "pay.csv").write_bytes(("Name,IBAN\n" + rows).encode("cp1250"))
    with refused(InputError, "csv.names_misspelt_in_encoding", encoding=encoding) as said:
        read(tmp_path / "pay.csv", mapping={}, encoding=encoding)
    choices = said.value.advice[0].lists("choices")
    assert "cp1250" in choices
    assert encoding not in choices
    assert [*read(tmp_path / "pay.csv", mapping={}, encoding="cp1250").payments["name"]] == MISREAD[language]


@for_each(
    "names",
    [
        ["Zoë Größe", "Søren Ærø"],
        ["João Gonçalves", "Simões Lda"],
        ["Renée Brûlé", "Noël Lefœuvre"],
        ["Tõnu Põld"],
    ],
)
def test_an_encoding_that_spells_the_names_right_is_taken(names, tmp_path):
    rows = "".join(f"{name},DE62370400440532013001\n" for name in names)
    (tmp_path / "pay.csv").write_bytes(("Name,IBAN\n" + rows).encode("cp1252"))
    assert [*read(tmp_path / "pay.csv", mapping={}, encoding="cp1252").payments["name"]] == names


def test_the_language_of_the_headers_decides_between_readings_that_fit():
    rows = "Dąbek;DE62370400440532013001\n".encode("cp1250")
    assert [each.encoding for each in readings(b"Nazwa odbiorcy;Rachunek\n" + rows)][:1] == ["cp1250"]
    assert [each.encoding for each in readings(b"Naziv;Racun\n" + "Dšbek;\n".encode("iso-8859-2"))][:1] == [
        "iso-8859-2"
    ]


def test_a_text_in_two_encodings_has_no_reading():
    assert readings("Zoë Müller,\n".encode() + "Jürgen,\n".encode("cp1252")) == []


@pytest.mark.parametrize(
    ("name", "encoding", "options"),
    [
        (
            "e01_polish_cp1250.csv",
            "cp1250",
            ["cp1250 (Łukasz Żółw, Małgorzata Dąbek, Zoë Olm)", "iso-8859-2 (Ł"],
        ),
        ("e04_german_cp850.csv", "cp850", ["cp850 (Schröder, Bäcker, Weiß)"]),
        ("own_french_mac.csv", "mac-roman", ["mac-roman (Hélène Marçais, Noël Tarn)"]),
    ],
)
def test_a_file_in_another_encoding_is_refused_with_the_names_in_each_and_read_by_the_option(
    name, encoding, options
):
    with refused(InputError, "csv.byte_not_in_encoding", line=2, encoding="UTF-8") as raised:
        read(CASES / name, mapping={})
    said = raised.value.sentence("command")
    assert all(f"--encoding {option}" in said for option in options)
    assert "Schröder" not in str(raised.value)
    assert (
        read(CASES / name, mapping={}, encoding=encoding).payments["name"][0]
        == options[0].split("(")[1].split(",")[0]
    )


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", ["Ada Quillon", "Zoë Olm"])
def test_utf_16_without_a_mark_is_read_as_its_refusal_says(encoding, name, tmp_path):
    (path := tmp_path / "pay.csv").write_bytes(f"name,iban\n{name},DE89370400440532013000\n".encode(encoding))
    with refused(InputError, choices=[encoding]):
        read(path, mapping={})
    assert read(path, mapping={}, encoding=encoding).payments["name"].to_list() == [name]


def test_utf_16_that_is_named_needs_no_mark(tmp_path):
    (path := tmp_path / "pay.csv").write_bytes("name,iban\nZoë,DE89370400440532013000\n".encode("utf-16-le"))
    assert read(path, mapping={}, encoding="utf-16").payments["name"].to_list() == ["Zoë"]
