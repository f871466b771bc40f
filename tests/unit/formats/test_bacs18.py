"""Standard 18: what is a payment, what is told, what is refused, and what a changed copy says of itself."""

from dataclasses import replace

import polars as pl
import pytest
from refusals import refused, said, says
from standard_18 import PENCE_MAX, File, Payment

from pipeline.errors import InputError
from pipeline.formats import bacs18
from pipeline.formats.edits import edited
from pipeline.formats.table import ReadingOptions
from pipeline.wording import Sentence

ADA = Payment()
ZOE = Payment("445566", "87654321", 200_05, "Z MARROW & SONS", "INVOICE 2")
LONG = Payment(name="TEASEL GARDENS LTD")
TWO = File((ADA, ZOE))
DEBIT = Payment(code="17", reference="DUES", name="B HOLT")


def read(data):
    return bacs18.read(data, ReadingOptions({}), where="pay.bac")


def split(data, *keep, role="release"):
    message = read(data)
    edits = bacs18.kept(data, message, pl.Series(keep, dtype=pl.Boolean), role)
    return b"".join(edited(data, edits))


def differing(data):
    return (
        read(data)
        .controls.filter(~pl.col("agrees").fill_null(value=False))
        .drop("agrees", "difference", "place")
        .rows()
    )


def with_line(data, number, change):
    lines = data.split(b"\r\n")
    lines[number - 1] = change(lines[number - 1])
    return b"\r\n".join(lines)


def test_a_payment_is_read_by_its_places():
    message = read(TWO.data())
    assert message.payments.drop_nulls("name").select(
        "sort_code", "account_number", "name", "amount", "currency", "reference"
    ).rows() == [
        ("112233", "12345678", "ADA QUILLON", "123.45", "GBP", "INVOICE 1"),
        ("445566", "87654321", "Z MARROW & SONS", "200.05", "GBP", "INVOICE 2"),
    ]
    assert message.payments.select("iban", "payment_id", "secondary_reference").null_count().row(0) == (
        2,
        2,
        2,
    )
    assert message.locations.select("row", "line", "batch", "code").rows() == [
        (1, 5, "2026-11-26 400001 88888888", "99"),
        (2, 6, "2026-11-26 400001 88888888", "99"),
    ]
    assert message.defects.null_count() == 2
    assert message.difference is None
    assert message.facts["service user number"] == "123456"
    assert message.facts["days"] == "one"


def test_the_bytes_of_a_payment_are_its_line():
    data = TWO.data()
    start, end = read(data).locations.select("start", "end").row(1)
    assert data[start:end] == ZOE.record().encode() + b"\r\n"


@pytest.mark.parametrize("pence", [0, 1, 99, 100, PENCE_MAX])
def test_pence_become_pounds(pence):
    data = File((replace(ADA, pence=pence),), labels=False, contras=False).data()
    assert read(data).payments["amount"].to_list() == [f"{pence // 100}.{pence % 100:02d}"]


def test_a_payment_of_a_day_of_its_own_is_booked_with_that_day():
    days = File((replace(ADA, day=" 26331"), replace(ZOE, day=" 26332")))
    message = read(days.data())
    assert message.locations["batch"].to_list() == [
        "2026-11-27 400001 88888888",
        "2026-11-28 400001 88888888",
    ]
    assert message.facts["days"] == "several"


def test_direct_debits_and_instructions_are_told_and_never_payments():
    mixed = File((ADA, DEBIT, replace(ADA, code="0N", pence=0), ZOE), contras=False)
    message = read(mixed.data())
    assert message.payments["name"].to_list() == ["ADA QUILLON", "Z MARROW & SONS"]
    assert message.set_aside.rows() == [
        (6, "17", "direct debit"),
        (7, "0N", "direct debit instruction"),
    ]
    assert message.difference is None


def test_a_file_of_direct_debits_is_refused():
    with refused(InputError, "bacs18.only_credits_checked", where="pay.bac", kinds=["formats.direct_debit"]):
        read(File((DEBIT,), contras=False).data())


def test_a_payment_whose_reference_begins_with_contra_is_a_payment():
    message = read(File((replace(ADA, reference="CONTRA"), ZOE)).data())
    assert message.payments.height == 2


def test_a_direct_debit_for_a_contract_is_no_contra():
    message = read(File((ADA, replace(DEBIT, reference="CONTRACT 12")), contras=False).data())
    assert message.set_aside["kind"].to_list() == ["direct debit"]


def test_a_contra_from_another_account_is_one_where_it_says_so():
    contra = Payment("400001", "77777777", ADA.pence, "QUILLON MILLS", "CONTRA", "17")
    data = f"{ADA.record()}\n{contra.record()}\n".encode()
    assert read(data).set_aside.is_empty()
    assert read(data).difference is None


def test_an_unknown_code_is_a_row_that_is_told_not_one_that_is_skipped():
    message = read(File((replace(ADA, code="98"), ZOE), labels=False, contras=False).data())
    assert message.defects.to_list() == ["CODE_UNKNOWN", None]


@pytest.mark.parametrize("amount", [b"0000001234O", b"-0000012345", b"000000123.4", b"        123"])
def test_an_amount_that_is_no_digits_is_a_defect_and_never_another_amount(amount):
    data = with_line(TWO.data(), 5, lambda line: line[:35] + amount + line[46:])
    message = read(data)
    assert message.defects.to_list() == ["AMOUNT_MALFORMED", None]
    assert message.payments["amount"].to_list() == [None, "200.05"]
    assert differing(data)


def test_a_day_that_is_none_is_a_defect():
    message = read(File((replace(ADA, day=" 26366"), replace(ZOE, day=" 26331"))).data())
    assert message.defects.to_list() == ["DAY_MALFORMED", None]


def test_a_name_that_fills_its_field_is_told():
    message = read(File((ADA, LONG)).data())
    assert message.warnings.select("row", "field", "code").rows() == [(2, "name", "NAME_TRUNCATED")]


TOTAL_DIFFERS = Sentence(
    "formats.control_differs",
    file=Sentence("formats.the_file"),
    stated="323.60",
    where=Sentence("bacs18.in_utl1", name=Sentence("bacs18.debit_total")),
    found="323.50",
)


def test_totals_that_lie_are_told():
    data = TWO.data().replace(b"UTL1000000003235", b"UTL1000000003236")
    [control] = differing(data)
    assert control == ("UTL1, debit total", "323.60", "323.50")
    assert read(data).difference == TOTAL_DIFFERS


def test_a_payment_cut_out_by_hand_is_told_by_every_total():
    lines = TWO.data().split(b"\r\n")
    data = b"\r\n".join([*lines[:4], *lines[5:]])
    assert [where for where, _, _ in differing(data)] == [
        said("bacs18.in_utl1", name=Sentence("bacs18.credit_total")),
        said("bacs18.in_utl1", name=Sentence("bacs18.number_of_credits")),
        said("bacs18.contra_in_line", line=6),
    ]


def test_an_account_without_a_contra_is_told_where_others_have_one():
    elsewhere = replace(ZOE, originator="50000299999999")
    data = File((ADA, elsewhere), labels=False).data()
    without = data.split(b"\r\n")
    [control] = differing(b"\r\n".join([*without[:3], b""]))
    assert control[0] == said("bacs18.contra_of_account", line=2)


def payment_has(count):
    has = Sentence("bacs18.has_characters", count=count)
    return Sentence("bacs18.payment_length_wrong", line=6, has=has, single=100, multi=106)


@pytest.mark.parametrize(
    ("number", "change", "sentence"),
    [
        (6, lambda line: line[:-3], payment_has(97)),
        (6, lambda line: line + b" 2633", payment_has(105)),
        (6, lambda line: line + b" " * 12, payment_has(112)),
        (6, lambda _: b"", Sentence("bacs18.blank_line", line=6)),
        (
            6,
            lambda line: line[:-4] + "É".encode() + line[-2:],
            Sentence("bacs18.character_not_allowed", line=6),
        ),
        (6, lambda line: line[:-4] + b"\0" + line[-3:], Sentence("bacs18.control_character_in_line", line=6)),
        (
            10,
            lambda line: b"UTL1" + b"X" * 40 + line[44:],
            Sentence("bacs18.utl1_not_a_number", line=10, name="bacs18.debit_total"),
        ),
        (
            4,
            lambda line: line[:20] + b"01" + line[22:],
            Sentence("bacs18.currency_not_sterling", line=4, sterling="00"),
        ),
        (
            1,
            lambda line: line + b"X",
            Sentence(
                "bacs18.label_length_wrong",
                line=1,
                has=Sentence("bacs18.has_characters", count=81),
                label_length=80,
            ),
        ),
    ],
)
def test_a_line_that_is_none_of_standard_18_is_refused_in_a_sentence(number, change, sentence):
    with refused(InputError, sentence, where="pay.bac"):
        read(with_line(TWO.data(), number, change))


def test_a_file_that_is_cut_after_its_payments_is_refused():
    with refused(InputError, "bacs18.no_utl1_at_end", where="pay.bac", first="VOL1"):
        read(TWO.data()[:-82])


def test_several_submissions_in_one_file_are_refused():
    with refused(
        InputError, "bacs18.line_out_of_order", where="pay.bac", line=11, records="UTL1", kind="VOL1"
    ):
        read(TWO.data() * 2)


def test_blank_lines_and_an_end_mark_after_the_last_line_stay():
    data = TWO.data() + b"\r\n\x1a"
    assert split(data, True, True) == data


def test_a_name_is_written_in_its_field_and_nowhere_else():
    data = TWO.data()
    edits = bacs18.renamed(data, read(data), {2: "Zoë Marrow & Søns"})
    assert b"".join(edited(data, edits)) == data.replace(b"Z MARROW & SONS   ", b"ZOE MARROW & SONS ")


def test_a_name_that_stands_there_as_far_as_it_goes_is_no_edit():
    data = File((LONG,)).data()
    assert bacs18.renamed(data, read(data), {1: "Teasel Gardens Ltd (Leeds)"}) == []


def test_a_name_is_cut_at_its_field_and_ends_with_a_letter():
    assert bacs18.fitted("Quillon & Marrow E Ltd") == "QUILLON & MARROW E"
    assert bacs18.fitted("Quillon and Marro Ltd") == "QUILLON AND MARRO"


def test_a_name_in_other_letters_is_told_not_mangled():
    message = read(TWO.data())
    assert bacs18.name_obstacle(message, 1, "Zoë Søn") is None
    assert bacs18.name_obstacle(message, 1, "Λάμδα Ltd") == Sentence("bacs18.letters_not_of_bacs")


def test_each_half_of_a_split_is_the_file_that_its_maker_would_have_written():
    data = TWO.data()
    assert split(data, True, False) == TWO.of(ADA).data()
    assert split(data, False, True, role="hold") == TWO.of(ZOE).data()


def test_the_contra_of_an_account_without_payments_goes():
    both = File((ADA, replace(ZOE, originator="50000299999999")))
    assert split(both.data(), False, True) == both.of(both.payments[1]).data()


def test_contras_beyond_eleven_digits_are_several():
    large = replace(ADA, pence=PENCE_MAX)
    file = File((large, large, ZOE))
    assert split(file.data(), True, False, True) == file.of(large, ZOE).data()
    assert split(file.data(), False, False, True) == file.of(ZOE).data()


def test_contras_that_are_right_stay_as_they_are():
    halves = [
        Payment("400001", "88888888", pence, "QUILLON MILLS", "CONTRA", "17") for pence in (10_000, 22_350)
    ]
    records = [each.record() for each in (ADA, ZOE, *halves)]
    data = ("\n".join(records) + "\n").encode()
    assert split(data, True, True) == data


def test_a_contra_of_nothing_stays_with_its_payments_and_goes_with_them():
    nothing = Payment("400001", "88888888", 0, "QUILLON MILLS", "CONTRA", "17")
    elsewhere = replace(nothing, originator="50000299999999", pence=12_345)
    records = [replace(ADA, pence=0), nothing, replace(ADA, originator="50000299999999"), elsewhere]
    lines = [f"{each.record()}\n".encode() for each in records]
    assert split(b"".join(lines), True, True) == b"".join(lines)
    assert split(b"".join(lines), False, True) == b"".join(lines[2:])


def test_blocks_are_counted_anew_where_they_were_right():
    many = File((ADA,) * 40, contras=False)
    assert split(many.data(), *[True] * 20, *[False] * 20) == many.of(*[ADA] * 20).data()


def test_blocks_that_were_never_counted_stay_as_they_are():
    data = File((ADA,) * 40, contras=False).data().replace(b"000002" + b" " * 20, b"000000" + b" " * 20)
    assert b" 26337 000002" not in split(data, *[True] * 20, *[False] * 20)


def test_a_file_whose_totals_lie_is_not_changed():
    data = TWO.data().replace(b"UTL1000000003235", b"UTL1000000003236")
    assert bacs18.obstacle(read(TWO.data())) is None
    assert bacs18.obstacle(read(data)) == TOTAL_DIFFERS
    for change in (
        lambda: split(data, True, False),
        lambda: bacs18.renamed(data, read(data), {1: "Zoe"}),
    ):
        with pytest.raises(AssertionError):
            change()


def test_a_file_that_cannot_be_added_up_is_not_changed():
    data = with_line(TWO.data(), 5, lambda line: line[:35] + b"0000001234O" + line[46:])
    assert bacs18.obstacle(read(data)) == Sentence(
        "formats.amounts_cannot_be_added",
        file=Sentence("formats.the_file"),
        stated="323.50",
        where=Sentence("bacs18.in_utl1", name=Sentence("bacs18.credit_total")),
    )


@pytest.mark.parametrize(
    ("other", "key", "values"),
    [
        (DEBIT, "formats.mixed_with_payments", {"what": "formats.direct_debit"}),
        (replace(ADA, code="Z9"), "formats.line_of_unknown_kind", {}),
    ],
)
def test_a_file_with_other_codes_is_not_split(other, key, values):
    data = File((ADA, ZOE, other), labels=False, contras=False).data()
    says(bacs18.split_obstacle(read(data)), key, file="formats.the_file", line=3, **values)
    assert bacs18.split_obstacle(read(TWO.data())) is None


@pytest.mark.parametrize(
    ("head", "is_ours"),
    [
        (TWO.data(), True),
        (File((ADA,), labels=False).data(), True),
        (File((ADA,), labels=False, pad_to=111).data(), True),
        (b"UHL1 26330999999    00      1 DAILY  007\r\n", True),
        (TWO.data().replace(b"\r\n", b"\r"), True),
        (TWO.data().replace(b"\r\n", b"\r\r\n"), True),
        (TWO.data().replace(b"\r\n", b""), True),
        (b"HDR1,2026-11-22,Quillon Mills,count,of,payments,and,what,they,add,up,to,in,pounds\n", False),
        (b"VOL1 is not what this is about, though it is just as long as a label is, with words\n", False),
        (b"name,sort_code,account_number\nAda,112233,12345678\n", False),
        (b"1122331234567809940000188888888", False),
        (b"", False),
    ],
)
def test_it_is_recognised_by_its_content(head, is_ours):
    assert bacs18.sniff(head) is is_ours


@pytest.mark.parametrize("oddly", [str.lower, " {}".format, "\t{}".format])
@pytest.mark.parametrize("at", [0, 3, -1])
def test_a_label_in_small_letters_or_indented_is_one_of_standard_18_and_refused(at, oddly):
    lines = File((Payment(),)).lines()
    kind, lines[at] = lines[at][:4], oddly(lines[at])
    data = "\r\n".join(lines).encode()
    assert bacs18.sniff(data)
    with refused(InputError, "bacs18.label_indented_or_lower_case", kind=kind):
        bacs18.read(data, ReadingOptions({}, None), where="x.bac")
