"""IBAN, BIC and LEI: what is accepted, and which fault is found in what is not."""

import re
from itertools import pairwise

import polars as pl
import pytest
from tables import for_each

from pipeline.rules.identifiers import (
    BIC,
    bic11,
    compact,
    iban_faults,
    iban_structures,
    lei_faults,
    remainder_97,
)

# The examples that the countries publish in the SWIFT IBAN registry.
PUBLISHED = """
AD1200012030200359100100 AE070331234567890123456 AL47212110090000000235698741 AT611904300234573201
AZ21NABZ00000000137010001944 BA391290079401028494 BE68539007547034 BG80BNBG96611020345678
BH67BMAG00001299123456 BI4210000100010000332045181 BR1800360305000010009795493C1
BY13NBRB3600900000002Z00AB00 CH9300762011623852957 CR05015202001026284066 CY17002001280000001200527600
CZ6508000000192000145399 DE89370400440532013000 DJ2100010000000154000100186 DK5000400440116243
DO28BAGR00000001212453611324 EE382200221020145685 EG380019000500000000263180002 ES9121000418450200051332
FI2112345600000785 FK88SC123456789012 FO6264600001631634 FR1420041010050500013M02606
GB29NWBK60161331926819 GE29NB0000000101904917 GI75NWBK000000007099453 GL8964710001000206
GR1601101250000000012300695 GT82TRAJ01020000001210029690 HN88CABF00000000000250005469
HR1210010051863000160 HU42117730161111101800000000 IE29AIBK93115212345678 IL620108000000099999999
IQ98NBIQ850123456789012 IS140159260076545510730339 IT60X0542811101000000123456
JO94CBJO0010000000000131000302 KW81CBKU0000000000001234560101 KZ86125KZT5004100100
LB62099900000001001901229114 LC55HEMM000100010012001200023015 LI21088100002324013AA LT121000011101001000
LU280019400644750000 LV80BANK0000435195001 LY83002048000020100120361 MC5811222000010123456789030
MD24AG000225100013104168 ME25505000012345678951 MK07250120000058984 MN121234123456789123
MR1300020001010000123456753 MT84MALT011000012345MTLCAST001S MU17BOMM0101101030300200000MUR
NI45BAPR00000013000003558124 NL91ABNA0417164300 NO9386011117947 OM810180000001299123456
PK36SCBL0000001123456702 PL61109010140000071219812874 PS92PALS000000000400123456702
PT50000201231234567890154 QA58DOHB00001234567890ABCDEFG RO49AAAA1B31007593840000 RS35260005601001611379
RU0304452522540817810538091310419 SA0380000000608010167519 SC18SSCB11010000000000001497USD
SD8811123456789012 SE4550000000058398257466 SI56263300012039086 SK3112000000198742637541
SM86U0322509800000000270100 SO211000001001000100141 ST23000100010051845310146
SV62CENR00000000000000700025 TL380080012345678910157 TN5910006035183598478831 TR330006100519786457841326
UA213223130000026007233566001 VA59001123000012345678 VG96VPVG0000012345678901 XK051212012345678906
YE15CBYE0001018861234567891234
""".split()  # noqa: SIM905 (a table is read more easily)
LEIS = ["529900QUILLONMILLS66", "0000QUILLON000000169", "213800MARROW00000280", "ZZZZ00ZZZZZZZZZZZZ67"]


def number_of(text):
    """The number behind the check digits, worked out another way: one integer of any length."""
    return int("".join(str(int(character, 36)) for character in text))


def iban_of(country, rest):
    return f"{country}{98 - number_of(f'{rest}{country}00') % 97:02}{rest}"


def lei_fault_of(lei):
    return lei_faults(pl.Series([lei], dtype=pl.String)).item()


def fault_of(iban):
    return iban_faults(pl.Series([iban], dtype=pl.String)).item()


def faults_of(ibans):
    return dict(zip(ibans, iban_faults(pl.Series(ibans, dtype=pl.String)), strict=True))


def value_of(expression, text):
    return pl.DataFrame({"code": [text]}, schema={"code": pl.String}).select(expression).item()


@for_each("iban", PUBLISHED)
def test_published_example_is_valid(iban):
    assert fault_of(iban) is None


@for_each("iban", PUBLISHED)
def test_published_example_with_one_digit_changed_is_not(iban):
    changed = [
        f"{iban[:position]}{(int(character) + 1) % 10}{iban[position + 1 :]}"
        for position, character in enumerate(iban)
        if character.isdigit()
    ]
    assert faults_of(changed) == dict.fromkeys(changed, "CHECKSUM")


@for_each("iban", PUBLISHED)
def test_published_example_with_two_digits_swapped_is_not(iban):
    swapped = [
        f"{iban[:position]}{right}{left}{iban[position + 2 :]}"
        for position, (left, right) in enumerate(pairwise(iban))
        if left != right and (left + right).isdigit()
    ]
    assert faults_of(swapped) == dict.fromkeys(swapped, "CHECKSUM")


@for_each("iban", PUBLISHED)
def test_published_example_that_lost_or_won_a_character_is_too_short_or_too_long(iban):
    longer = f"{iban[:4]}0{iban[4:]}"
    assert fault_of(iban[:-1]) == "LENGTH"
    assert fault_of(longer) == ("LENGTH" if len(longer) <= 34 else "FORMAT")


def test_every_structure_says_the_length_and_the_characters_of_an_iban():
    for country, (length, body) in iban_structures().items():
        pieces = re.findall(r"(\[[^\]]+\])\{(\d+)\}", body)
        assert body == "".join(f"{characters}{{{count}}}" for characters, count in pieces), country
        assert 4 + sum(int(count) for _, count in pieces) == length, country
        assert {characters for characters, _ in pieces} <= {"[0-9]", "[A-Z]", "[A-Z0-9]"}, country


def test_every_country_that_publishes_an_example_has_a_structure_of_its_length():
    structures = iban_structures()
    assert {iban[:2] for iban in PUBLISHED} <= set(structures)
    for iban in PUBLISHED:
        assert structures[iban[:2]][0] == len(iban)


@pytest.mark.parametrize(
    ("iban", "fault"),
    [
        ("8.93E+19", "SCIENTIFIC"),
        ("8,93E+19", "SCIENTIFIC"),
        ("893E19", "SCIENTIFIC"),
        ("", "FORMAT"),
        ("GB", "FORMAT"),
        ("GB29", "FORMAT"),
        ("gb29NWBK60161331926819", "FORMAT"),
        ("GB29 NWBK 6016 1331 9268 19", "FORMAT"),
        ("GB29-NWBK-60161331926819", "FORMAT"),
        ("GBX9NWBK60161331926819", "FORMAT"),
        ("2GB9NWBK60161331926819", "FORMAT"),
        ("GB29NWBK60161331926819\n", "FORMAT"),
        ("GB\u0662\u0669NWBK60161331926819", "FORMAT"),
        ("\uff27\uff22\uff12\uff19NWBK60161331926819", "FORMAT"),
        ("G\u041229NWBK60161331926819", "FORMAT"),
        ("D\u013089370400440532013000", "FORMAT"),
        ("MT84" + "A" * 31, "FORMAT"),
        ("ZZ29NWBK60161331926819", "COUNTRY"),
        ("US64SVBKUS6S3300958879", "COUNTRY"),
        ("GB29NWBK6016133192681", "LENGTH"),
        ("DE8937040044053201300", "LENGTH"),
        ("GB2900006016133192681O", "STRUCTURE"),
        ("DE8937040044053201300O", "STRUCTURE"),
        ("GB28NWBK60161331926819", "CHECKSUM"),
        ("DE98370400440532013000", "CHECKSUM"),
    ],
)
def test_first_broken_rule_names_the_fault(iban, fault):
    assert fault_of(iban) == fault


def test_check_digits_that_nobody_issues_are_wrong_though_the_remainder_fits():
    seen = set()
    for account in range(600):
        iban = iban_of("DE", f"37040044{account:010}")
        twin = {"97": "00", "98": "01", "02": "99"}.get(iban[2:4])
        if twin is not None:
            seen.add(twin)
            assert fault_of(iban) is None
            assert number_of(f"{iban[4:]}DE{twin}") % 97 == 1
            assert fault_of(f"DE{twin}{iban[4:]}") == "CHECKSUM"
    assert seen == {"00", "01", "99"}


@pytest.mark.parametrize("tail", ["ASD", "ZSD", "USD"])
def test_check_digits_of_a_long_iban_with_letters_are_computed_right(tail):
    assert fault_of(iban_of("SC", f"ZZZZ99999999999999999999{tail}")) is None


@pytest.mark.parametrize("text", ["0", "97", "98", "00000000000000000001", "Z" * 35, "9" * 35, "A1B2C3" * 5])
def test_remainder_is_that_of_the_whole_number(text):
    assert remainder_97(pl.Series([text])).item() == number_of(text) % 97


def test_every_value_has_its_own_fault_and_a_null_has_none():
    ibans = ["GB", None, "GB", PUBLISHED[0]]
    assert iban_faults(pl.Series(ibans, dtype=pl.String)).to_list() == ["FORMAT", None, "FORMAT", None]
    assert iban_faults(pl.Series([None], dtype=pl.String)).to_list() == [None]
    assert iban_faults(pl.Series([], dtype=pl.String)).to_list() == []


def test_a_column_that_is_cleaned_is_left_as_it_was():
    column = pl.Series(["gb 1", None, "GB2"])
    assert compact(column).to_list() == ["GB1", None, "GB2"]
    assert column.to_list() == ["gb 1", None, "GB2"]


@pytest.mark.parametrize("lei", LEIS)
def test_lei_with_check_digits_that_fit_is_valid(lei):
    assert number_of(lei) % 97 == 1
    assert lei_fault_of(lei) is None
    for position, character in enumerate(lei):
        if character.isdigit():
            changed = f"{lei[:position]}{(int(character) + 1) % 10}{lei[position + 1 :]}"
            assert lei_fault_of(changed) == "CHECKSUM", changed


@pytest.mark.parametrize(
    "change", [str.lower, lambda lei: lei[:-1], lambda lei: f"{lei}0", lambda lei: f"{lei}\n"]
)
def test_lei_of_another_form_is_not_valid(change):
    assert lei_fault_of(change(LEIS[0])) is not None


def test_lei_check_digits_that_nobody_issues_are_wrong_though_the_remainder_fits():
    twins = {"97": "00", "98": "01", "02": "99"}
    seen = set()
    for number in range(600):
        start = f"5299{number:014}"
        digits = f"{98 - number_of(f'{start}00') % 97:02}"
        if digits in twins:
            seen.add(digits)
            assert lei_fault_of(start + digits) is None
            assert lei_fault_of(start + twins[digits]) == "CHECKSUM"
    assert seen == set(twins)


@pytest.mark.parametrize(
    ("bic", "is_one"),
    [
        ("QUILDEFF", True),
        ("QUILDEFFXXX", True),
        ("QUILDEFF123", True),
        ("Q1ILDE2L", True),
        ("QUILDEF", False),
        ("QUILDEFFX", False),
        ("QUILDEFFXX", False),
        ("QUILDEFFXXXX", False),
        ("QUIL1EFF", False),
        ("quildeff", False),
        ("QUILDEFF\n", False),
        ("QUILD\u0401FF", False),
        ("", False),
    ],
)
def test_bic_has_eight_or_eleven_characters_with_a_country_in_them(bic, is_one):
    assert value_of(pl.col("code").str.contains(BIC), bic) is is_one


@pytest.mark.parametrize(
    ("bic", "padded"),
    [
        ("QUILDEFF", "QUILDEFFXXX"),
        ("QUILDEFF123", "QUILDEFF123"),
        ("QUILDEF", "QUILDEF"),
        ("QUILDEFFX", "QUILDEFFX"),
        (None, None),
    ],
)
def test_only_a_bic_of_eight_is_completed(bic, padded):
    assert bic11(pl.Series([bic], dtype=pl.String)).item() == padded


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("gb29 nwbk 6016 1331 9268 19", "GB29NWBK60161331926819"),
        ("gb29\u00a0nwbk\u202f6016\u20091331\t9268\n19", "GB29NWBK60161331926819"),
        ("GB29-NWBK", "GB29-NWBK"),
        ("d\u0131e", "d\u0131e"),
        ("stra\u00dfe", "stra\u00dfe"),
        ("\ufb01", "\ufb01"),
        ("\uff47\uff42", "\uff47\uff42"),
        ("  ", ""),
        (None, None),
    ],
)
def test_code_loses_white_space_and_case_but_is_never_turned_into_another(written, code):
    assert compact(pl.Series([written], dtype=pl.String)).item() == code
