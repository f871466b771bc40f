"""A search over the files of a desk finds what stands in a cell, and nothing else."""

import polars as pl
import pytest

from pipeline.desk.finding import find
from pipeline.desk.folders import DeskHome
from pipeline.frames import OUTCOMES
from schemas.desk import DeskFile

TIME = "2030-01-02T03:04:05.678Z"
BLOCK = 1 << 20
MANY = 5_000


@pytest.fixture
def at_desk(tmp_path, finish_run):
    """`at_desk(payments)`: the file of a desk whose check has ended, as a list of files has it."""
    home = DeskHome(tmp_path / "desk")
    home.make()

    def build(payments):
        file = tmp_path / "payroll.csv"
        payments.write_csv(file)
        absent = dict.fromkeys(OUTCOMES)
        match = absent | {
            "check_outcome": "match",
            "check_action": "pay",
            "check_code": "MTCH",
            "check_reason": "Same.",
        }
        matched = [match | {"row": row} for row in range(1, payments.height + 1)]
        folder = home.new_folder(TIME, lambda: "0" * 10)
        finish_run(file, pl.DataFrame(matched, schema=OUTCOMES), reported=False).rename(folder.run)
        folder.write(
            DeskFile(
                name=file.name, sha256="", byte_count=1, uploaded_by="", uploaded_at=TIME, profile="main"
            )
        )
        return folder

    return build


def rows_with(folder, text):
    return [hit.row for hit in find([folder], text)]


PAYEES = pl.DataFrame(
    {
        "name": ["Zoë Straßner", 'Ms "Bo" Ray, Baker', "Øyvind Ås", "A (B) [C] 50% $1.*"],
        "sort_code": ["01-02-03", "040506", "07 08 09", "101112"],
        "account_number": ["00012345", "10012345", "20012345", "30012345"],
        "amount": ["1.00"] * 4,
        "currency": ["GBP"] * 4,
    }
)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("zoë", [1]),
        ("STRAßNER", [1]),
        ("straßner", [1]),
        ('"bo" ray', [2]),
        ("ray, b", [2]),
        ("ØYVIND", [3]),
        ("ås", [3]),
        ("(B) [c]", [4]),
        ("$1.*", [4]),
        ("010203", [1]),
        ("04-05-06", [2]),
        ("070809", [3]),
        ("0001 2345", [1]),
        ("12345", [1, 2, 3, 4]),
        ("match", [1, 2, 3, 4]),
        (".....", []),
        ("zoe", [1]),
        ("STRASSNER", [1]),
        ("Øyvind As", [3]),
        ("oyvind", [3]),
        ("Rày", [2]),
        ("zoa", []),
        ("stras ner", []),
    ],
)
def test_a_text_is_found_in_capitals_or_not_and_an_account_in_groups(at_desk, text, rows):
    assert rows_with(at_desk(PAYEES), text) == rows


def test_accents_may_be_written_as_marks_of_their_own_and_in_any_script_of_the_block(at_desk):
    folder = at_desk(
        PAYEES.with_columns(name=pl.Series(["Sole\u0300ne Roy", "Łucja Żak", "Чёрная", "Ng Văn Đạt"]))
    )
    assert [rows_with(folder, text) for text in ("solene", "zak", "van", "чёр", "solenne")] == [
        [1],
        [2],
        [4],
        [3],
        [],
    ]


def test_letters_with_a_stroke_and_letters_that_are_two_are_found_as_people_type_them(at_desk):
    folder = at_desk(
        PAYEES.with_columns(name=pl.Series(["Łucja Wałęsek", "ASTRID KJÆR", "Cœurdoux Sœurs", "Đorđe Æsop"]))
    )
    typed = ("lucja walesek", "kjaer", "KJÆR", "coeur", "sœur", "dorde aesop", "aesir", "łucja")
    assert [rows_with(folder, text) for text in typed] == [[1], [2], [2], [3], [3], [4], [], [1]]


def test_what_lies_across_the_blocks_of_a_large_file_is_found(at_desk):
    number = pl.int_range(MANY)
    folder = at_desk(
        pl.select(
            name=pl.concat_str([pl.format("Payee{} {}", number, pl.lit(part)) for part in range(40)]),
            sort_code=pl.lit("010203"),
            account_number=pl.format("{}", 10_000_000 + number),
            amount=pl.lit("1.00"),
            currency=pl.lit("GBP"),
        )
    )
    text = (folder.run / "outcomes.csv").read_text()
    across = text[BLOCK - 16 : BLOCK + 16]
    assert set(across) <= set("Paye 0123456789"), "the first block ends in a name"
    assert rows_with(folder, across) == [text.count("\n", 0, BLOCK)]
