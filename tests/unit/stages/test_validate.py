"""What can be said without a call: cleaning, routing, and what becomes of a payment."""

from datetime import date
from decimal import Decimal

import polars as pl
import pytest
from refusals import said

from pipeline.frames import ACCEPTED, PAYMENTS, REJECTS, WARNINGS, RouteReason
from pipeline.rules.modulus import Modulus
from pipeline.rules.modulus_tables import Method, ModulusTables, Range, WeightedSum
from pipeline.rules.warnings import ACROSS_ROWS
from pipeline.stages.validate import Routes, validate
from schemas.cop import AccountType
from schemas.outcomes import ApiName

UK = {"name": "Ada Quillon", "sort_code": "112233", "account_number": "12345678"}
GERMAN = "DE89370400440532013000"
BRITISH = "GB29NWBK60161331926819"
IBAN = {"name": "Quillon Mills BV", "iban": GERMAN}
LEI = "529900QUILLONMILLS66"
BOTH = Routes([ApiName.COP, ApiName.VOP_GATEWAY])
STANDARD = Routes([ApiName.COP, ApiName.VOP_STANDARD])


@pytest.fixture
def accept(payments_of):
    """Validate one row that must be accepted; give what is asked, without nulls."""

    def one(row, routes=BOTH):
        validated = validate(payments_of(row), routes)
        assert validated.rejects.height == 0, validated.rejects
        (accepted,) = validated.accepted.to_dicts()
        return {field: value for field, value in accepted.items() if value is not None}

    return one


@pytest.fixture
def codes(payments_of):
    def of(row, routes=BOTH):
        return validate(payments_of(row), routes).rejects["code"].to_list()

    return of


@pytest.fixture
def accept_each(payments_of):
    """Validate rows of one file that must be accepted; give of each what is asked, without nulls."""

    def each(rows, routes=BOTH):
        validated = validate(payments_of(*rows), routes)
        assert validated.rejects.height == 0, validated.rejects
        return [
            {field: value for field, value in accepted.items() if value is not None}
            for accepted in validated.accepted.to_dicts()
        ]

    return each


@pytest.fixture
def codes_of_each(payments_of):
    """Validate rows of one file; give the codes of the rules that each of them breaks."""

    def of(rows, routes=BOTH):
        payments = payments_of(*rows)
        rejects = validate(payments, routes).rejects
        return [rejects.filter(row=row)["code"].to_list() for row in payments["row"]]

    return of


@pytest.fixture
def warned_of_each(payments_of):
    """Validate rows of one file that must be accepted; give the fields and codes of the warnings of each.

    They are those that a row would have alone, without what is known of it only beside the others.
    """

    def of(rows, routes=BOTH):
        payments = payments_of(*rows)
        validated = validate(payments, routes)
        assert validated.rejects.height == 0, validated.rejects
        own = validated.warnings.filter(~pl.col("code").is_in(ACROSS_ROWS))
        return [own.filter(row=row).select("field", "code").rows() for row in payments["row"]]

    return of


# Shapes


@pytest.mark.parametrize("routes", [BOTH, STANDARD, Routes([])])
def test_no_payments_give_empty_frames_of_the_right_shape(payments_of, routes):
    *frames, assumed_type_count = validate(payments_of(), routes)
    assert [frame.schema for frame in frames] == [ACCEPTED, REJECTS, WARNINGS]
    assert [frame.height for frame in frames] == [0, 0, 0]
    assert assumed_type_count == 0


def test_frame_of_another_shape_is_a_mistake_of_ours(payments_of):
    with pytest.raises(AssertionError):
        validate(payments_of(UK).drop("lei"), BOTH)


def test_defect_that_no_rule_knows_is_a_mistake_of_ours_not_waved_through(payments_of):
    with pytest.raises(AssertionError):
        validate(payments_of({**UK, "defect": "ROW_ODD"}), BOTH)


def test_every_broken_rule_of_a_row_is_told_in_the_order_of_the_rules(payments_of):
    row = {"name": "=B7&\x00", "sort_code": "1", "account_number": "x", "amount": "?"}
    rejects = validate(payments_of(UK, row, {}), BOTH).rejects
    assert list(rejects.select("row", "code").iter_rows()) == [
        (2, "SORT_CODE_DAMAGED"),
        (2, "ACCOUNT_NUMBER_FORMAT"),
        (2, "CONTROL_CHARACTER"),
        (2, "NAME_FORMULA"),
        (2, "AMOUNT_FORMAT"),
        (3, "ACCOUNT_MISSING"),
        (3, "NAME_MISSING"),
    ]


def test_accepted_rows_keep_the_order_of_the_file(payments_of):
    rows = [UK if number % 3 else {**IBAN, "iban": None} for number in range(3000)]
    accepted = validate(payments_of(*rows), BOTH).accepted
    assert accepted["row"].to_list() == [number + 1 for number in range(3000) if number % 3]


@pytest.mark.nightly
def test_a_file_larger_than_what_is_judged_at_once_is_judged_as_one():
    count = 300_000
    payments = (
        pl.DataFrame({"row": range(1, count + 1)}, schema={"row": pl.UInt32})
        .with_columns(pl.lit(None, kind).alias(name) for name, kind in PAYMENTS.items() if name != "row")
        .with_columns(
            name=pl.format("Payee {}", "row"),
            sort_code=pl.when(pl.col("row") % 1000 == 0).then(pl.lit("1")).otherwise(pl.lit("112233")),
            account_number=pl.col("row").cast(pl.String).str.zfill(8),
            amount=pl.lit("5"),
        )
    )
    last = payments.tail(1).with_columns(row=pl.lit(count + 1, pl.UInt32), sort_code=pl.lit("112233"))
    again = last.with_columns(row=pl.lit(count + 2, pl.UInt32))
    accepted, rejects, warnings, *_ = validate(pl.concat([payments, last, again]), BOTH)
    bad = list(range(1000, count + 1, 1000))
    assert rejects["row"].to_list() == bad
    assert set(rejects["code"]) == {"SORT_CODE_DAMAGED"}
    assert accepted["row"].to_list() == sorted(set(range(1, count + 3)) - set(bad))
    assert warnings.select("row", "code").rows() == [(count + 2, "PAYMENT_REPEATED")]


def test_blank_row_is_told_once_and_not_for_each_missing_field(codes):
    assert codes({"defect": "ROW_BLANK"}) == ["ROW_BLANK"]


# Cleaning


def test_sort_code_may_be_written_with_hyphens_and_spaces(accept_each):
    cases = ["11-22-33", "11 22 33", "112233", "11\u00a022\u202f33", "1122-33"]
    assert [
        accepted["account"] for accepted in accept_each({**UK, "sort_code": sort_code} for sort_code in cases)
    ] == ["11223312345678"] * len(cases)


def test_leading_zeros_survive(accept):
    assert (
        accept({**UK, "sort_code": "00-11-22", "account_number": "00000012"})["account"] == "00112200000012"
    )


def test_sort_code_that_is_not_six_plain_digits_is_rejected_not_padded(codes_of_each):
    cases = [
        ("1234", "SORT_CODE_DAMAGED"),
        ("1.23E+05", "SORT_CODE_DAMAGED"),
        ("1,23E+05", "SORT_CODE_DAMAGED"),
        ("-", "SORT_CODE_FORMAT"),
        (" ", "SORT_CODE_FORMAT"),
        ("", "SORT_CODE_FORMAT"),
        ("11/22/33", "SORT_CODE_FORMAT"),
        ("112233.0", "SORT_CODE_DAMAGED"),
        ("\u0661\u0661\u0662\u0662\u0663\u0663", "SORT_CODE_FORMAT"),
        ("\uff11\uff11\uff12\uff12\uff13\uff13", "SORT_CODE_FORMAT"),
        ("11223O", "SORT_CODE_FORMAT"),
        ("11223\u00b3", "SORT_CODE_FORMAT"),
        ("11\u200b22\u200b33", "INVISIBLE_CHARACTER"),
    ]
    assert codes_of_each({**UK, "sort_code": sort_code} for sort_code, code in cases) == [
        [code] for sort_code, code in cases
    ]


def test_blank_sort_code_is_rejected_not_waved_through(codes):
    assert codes({**UK, "sort_code": None}) == ["SORT_CODE_MISSING"]


def test_account_number_that_is_not_eight_plain_digits_is_rejected_not_padded(codes_of_each):
    cases = [
        ("1", "ACCOUNT_NUMBER_DAMAGED"),
        ("1.23457E+07", "ACCOUNT_NUMBER_DAMAGED"),
        ("", "ACCOUNT_NUMBER_FORMAT"),
        ("1234-5678", "ACCOUNT_NUMBER_FORMAT"),
        ("12345678.0", "ACCOUNT_NUMBER_DAMAGED"),
        ("+12345678", "ACCOUNT_NUMBER_FORMAT"),
        ("\u06f1\u06f2\u06f3\u06f4\u06f5\u06f6\u06f7\u06f8", "ACCOUNT_NUMBER_FORMAT"),
    ]
    assert codes_of_each({**UK, "account_number": account_number} for account_number, code in cases) == [
        [code] for account_number, code in cases
    ]


def test_iban_may_be_written_in_groups_with_punctuation_a_label_and_small_letters(accept_each):
    cases = [
        *("de89 3704 0044 0532 0130 00", "DE89\u00a03704\u00a00044 0532013000", GERMAN, f"IBAN{GERMAN}"),
        *("DE89-3704-0044-0532-0130-00", "DE89.3704.0044.0532.0130.00", "DE89/3704/0044/0532013000"),
        *(
            f"IBAN: {GERMAN}",
            f"iban {GERMAN.lower()}",
            f"Iban:{GERMAN}",
            "IBAN: de89\u20113704 0044-0532.013000",
        ),
    ]
    assert [accepted["account"] for accepted in accept_each({**IBAN, "iban": iban} for iban in cases)] == [
        GERMAN
    ] * len(cases)


def test_letters_that_only_look_like_those_of_an_iban_are_rejected(codes_of_each):
    cases = ["D\u0130" + GERMAN[2:], "d\u0131" + GERMAN[2:], "\uff24\uff25" + GERMAN[2:], "KONTO" + GERMAN]
    assert codes_of_each({**IBAN, "iban": iban} for iban in cases) == [["IBAN_FORMAT"]] * len(cases)


def test_names_that_are_equal_after_composition_ask_the_same(accept):
    assert (
        accept({**UK, "name": "Zoe\u0308 Marrow"})["name"]
        == accept({**UK, "name": "Zo\u00eb Marrow"})["name"]
    )


def test_name_is_counted_after_composition(accept, codes):
    assert len(accept({**UK, "name": "e\u0301" * 140})["name"]) == 140
    assert codes({**UK, "name": "e\u0301" * 141}) == ["NAME_TOO_LONG"]
    assert accept({**UK, "name": "\U0001f3e6" * 140})["name"] == "\U0001f3e6" * 140


def test_name_of_white_space_is_a_missing_name(codes_of_each):
    cases = ["", " ", "\u00a0\u2003", "\u3000"]
    assert codes_of_each({**UK, "name": name} for name in cases) == [["NAME_MISSING"]] * len(cases)


INVISIBLE = (
    "\u034f\u115f\u180e\u200b\u200c\u200d\u2028\u2029\u202a\u202e\u2060\u2066\u2069\u3164"
    "\ufe0f\ufff9\U000e0041"
)


def test_invisible_character_is_rejected_wherever_it_stands_in_a_name(codes_of_each):
    places = [("Ada", "Quillon"), ("", "Ada Quillon"), ("Ada Quillon", "")]
    cases = [f"{before}{character}{after}" for character in INVISIBLE for before, after in places]
    # At an end, a line separator is white space like any other.
    expected = [[] if name.strip() == "Ada Quillon" else ["INVISIBLE_CHARACTER"] for name in cases]
    assert codes_of_each({**UK, "name": name} for name in cases) == expected


def test_control_character_inside_a_name_is_rejected(codes_of_each):
    cases = ["\x00", "\t", "\n", "\r", "\x1b", "\x7f", "\x85", "\x9b"]
    assert codes_of_each({**UK, "name": f"Ada{character}Quillon"} for character in cases) == [
        ["CONTROL_CHARACTER"]
    ] * len(cases)


def test_joiners_and_selectors_that_spell_a_name_are_sent(accept_each):
    cases = [
        "\u0639\u0644\u06cc\u200c\u0631\u0636\u0627",  # Persian
        "\u0dc1\u0dca\u200d\u0dbb\u0dd3",  # Sinhala
        "\u09b0\u200d\u09cd\u09af\u09be",  # Bengali
        "\u0d05\u0d35\u0d28\u0d4d\u200d",  # Malayalam, where a word may end with a joiner
        "Caf\u00e9 \U0001f469\u200d\U0001f373",
        "Love \u2764\ufe0f Ltd",
        "\u845b\U000e0100\u57ce",
    ]
    assert [accepted["name"] for accepted in accept_each({**UK, "name": name} for name in cases)] == list(
        cases
    )


def warned(payments_of, row, routes=BOTH):
    validated = validate(payments_of(row), routes)
    assert validated.rejects.height == 0, validated.rejects
    return [tuple(found) for found in validated.warnings.select("field", "code").iter_rows()]


def test_marks_that_carry_nothing_are_removed_and_told(accept_each, warned_of_each):
    cases = [
        *("Ada\u00ad Quillon", "\ufeffAda Quillon", "Ada Quillon\ufeff", "\u200eAda Quillon\u200f"),
        *(" \u061cAda Quillon ", "Ada Quil\u00adlon"),
    ]
    assert [accepted["name"] for accepted in accept_each({**UK, "name": name} for name in cases)] == [
        "Ada Quillon"
    ] * len(cases)
    assert warned_of_each({**UK, "name": name} for name in cases) == [[("name", "NAME_CLEANED")]] * len(cases)


def test_directional_mark_inside_a_name_is_rejected(codes_of_each):
    cases = ["\u200e", "\u200f", "\u061c"]
    assert codes_of_each({**UK, "name": f"Ada{mark}Quillon"} for mark in cases) == [
        ["INVISIBLE_CHARACTER"]
    ] * len(cases)


def test_name_is_sent_as_entered_whatever_a_spreadsheet_would_do_with_it(accept_each, warned_of_each):
    cases = [
        *("@Home Ltd", "+Plus Ltd", "-Minus Ltd", "=Objekt GmbH", "\uff20Home", "'t Hooft BV", "Quillon=1"),
        *("=Yahoo! Ltd", "+1 Media"),
    ]
    assert [
        accepted["name"] for accepted in accept_each({**UK, "name": f" {name}\u00a0"} for name in cases)
    ] == cases
    assert warned_of_each({**UK, "name": name} for name in cases) == [[]] * len(cases)


def test_text_that_is_written_as_a_formula_is_unwrapped_and_told(accept_each, warned_of_each):
    cases = [
        ('="Ada Quillon"', "Ada Quillon"),
        ('= " Ada Quillon "', "Ada Quillon"),
        ('="The ""Old"" Mill"', 'The "Old" Mill'),
        ('="@Home Ltd"', "@Home Ltd"),
    ]
    assert [
        accepted["name"] for accepted in accept_each({**UK, "name": written} for written, name in cases)
    ] == [name for written, name in cases]
    assert warned_of_each({**UK, "name": written} for written, name in cases) == [
        [("name", "NAME_CLEANED")]
    ] * len(cases)


def test_formula_in_the_place_of_a_name_is_a_lost_value(codes_of_each):
    cases = [
        *("=VLOOKUP(A2;Names;2)", "=b7", "=$B$7", " =B7", "=B7:C9", "='My Sheet'!B7", "=Sheet1!B7", "=-B7"),
        *('=B7&" "&C7', '="Mr "&B7', "=RC[-1]", "=Names[@Payee]", "=#REF!", "\uff1dB7", '="=B7"'),
        *("=cmd|' /C calc'!A0", "+cmd|' /C calc'!A0", "@SUM|x!A0"),
    ]
    assert codes_of_each({**UK, "name": name} for name in cases) == [["NAME_FORMULA"]] * len(cases)


def test_bare_sign_and_telephone_number_are_no_names(codes_of_each):
    cases = ["-", "+", "@", "=", "=5", "+44 20 7946 0000", "(020) 7946-0000", "00442079460000"]
    # What a workbook makes of a name: a fraction, a time, a truth value.
    cases += ["3.14", "0,5", "1899-12-31T10:20:00", "TRUE", "FALSE", "WAHR", "VRAI"]
    cases += [
        "ada@quillon.example",
        "https://quillon.example/ada",
        IBAN["iban"],
        "DE62 3704 0044 0532 0130 01",
    ]
    assert codes_of_each({**UK, "name": name} for name in cases) == [["NAME_NO_NAME"]] * len(cases)


def test_name_of_few_digits_is_one(codes_of_each):
    cases = ["3", "1822", "24 7", "7 Seven Ltd", "True", "True Ltd", "Ada TRUE", "Quillon @ Home"]
    assert codes_of_each({**UK, "name": name} for name in cases) == [[]] * len(cases)


def test_white_space_inside_a_name_is_asked_about_as_it_was_written(accept):
    assert accept({**UK, "name": " Ada  B.\u00a0Quillon "})["name"] == "Ada  B.\u00a0Quillon"


def test_account_type_may_be_said_in_other_words(accept_each):
    cases = [
        ("personal", "Personal"),
        ("PERSON", "Personal"),
        ("Individual", "Personal"),
        ("PRIVATE", "Personal"),
        ("Personal account", "Personal"),
        ("institution", "Business"),
        ("business", "Business"),
        ("Company", "Business"),
        ("ORGANISATION", "Business"),
    ]
    assert [
        accepted["account_type"]
        for accepted in accept_each({**UK, "account_type": written} for written, account_type in cases)
    ] == [account_type for written, account_type in cases]


def test_account_type_that_nobody_knows_is_rejected_not_defaulted(codes_of_each):
    cases = ["", "P", "1", "perso\u0144al", "joint"]
    assert codes_of_each({**UK, "account_type": written} for written in cases) == [["ACCOUNT_TYPE"]] * len(
        cases
    )


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("Personal Savings", "Personal"),
        ("Business Current", "Business"),
        ("Current - Business", "Business"),
        ("Privat", "Personal"),
        ("GESCHÄFT", "Business"),
        ("natürliche Person", "Personal"),
        ("Persona jurídica", "Business"),
        ("osoba fizyczna", "Personal"),
        ("Företagskonto", "Business"),
        ("Compte privé", "Personal"),
        ("Limited Company", "Business"),
        ("νομικό πρόσωπο", "Business"),
    ],
)
def test_account_types_are_read_in_the_languages_of_headers(accept, written, kind):
    assert accept({**UK, "account_type": written})["account_type"] == kind


def test_an_odd_account_type_beside_those_that_are_read_never_stops_the_file(codes_of_each):
    read = ("personal", "privat", "private", "business", "Business Current", "company", "firma", "individual")
    codes = codes_of_each({**UK, "account_type": written} for written in (*read, "Vendor"))
    assert codes == [[]] * len(read) + [["ACCOUNT_TYPE"]]


def test_an_odd_account_type_never_rejects_an_iban(codes_of_each):
    assert codes_of_each({**IBAN, "account_type": written} for written in ("Vendor", "P", "?")) == [[]] * 3


def test_words_and_names_of_banks_are_no_bics(accept, codes_of_each):
    for word in ("NOTPROVIDED", "Barclays", "COMMERZBANK", "notknown"):
        assert codes_of_each([{**IBAN, "bic": word}]) == [[]]
        assert accept({**IBAN, "bic": word}, STANDARD)["bic_source"] == "registry"


def test_what_stands_for_a_missing_name_is_none(codes_of_each, accept):
    cases = [
        "N/A",
        "n/a",
        ".",
        "?",
        "...",
        "TBC",
        "tbd",
        "unknown",
        "Unknown ",
        "none",
        "NaN",
        "Not provided",
    ]
    assert codes_of_each({**UK, "name": name} for name in cases) == [["NAME_MISSING"]] * len(cases)
    names = ["Na", "Nan", "Nil", "Nona", "Ana", "None Ltd", "N.A. Smith", "Null & Co"]
    assert codes_of_each({**UK, "name": name} for name in names) == [[]] * len(names)
    lei = "5493001KJTIIGC8Y1R12"
    assert accept({**IBAN, "name": "N/A", "lei": lei})["lei"] == lei


def test_words_in_the_place_of_an_account_are_no_second_account(codes_of_each):
    assert codes_of_each([{**UK, "iban": "see below"}, {**IBAN, "sort_code": "TBC"}]) == [
        ["IBAN_FORMAT"],
        ["SORT_CODE_FORMAT"],
    ]


def test_kind_of_product_is_no_account_type_and_the_default_applies_and_is_told(accept_each, warned_of_each):
    cases = [
        {"account_type": written}
        for written in (
            "Current",
            "SAVINGS",
            "checking",
            "Current Account",
            "Personal Business",
            "Private Limited",
            "Girokonto",
        )
    ]
    business = accept_each(
        ({**UK, **case} for case in cases), BOTH._replace(default_account_type=AccountType.BUSINESS)
    )
    assert [accepted["account_type"] for accepted in business] == ["Business"] * len(cases)
    told = [("account_type", "ACCOUNT_TYPE_DEFAULT")]
    assert warned_of_each({**UK, **case} for case in cases) == [told] * len(cases)
    assert warned_of_each({**IBAN, **case} for case in cases) == [[]] * len(cases)


def test_accepted_payments_whose_type_is_assumed_are_counted(payments_of):
    rows = [
        UK,
        {**UK, "account_type": "Savings"},
        {**UK, "account_type": "Privat"},
        IBAN,
        {**UK, "name": None},
    ]
    assert validate(payments_of(*rows), BOTH).assumed_type_count == 2


def test_missing_account_type_is_that_of_the_profile(accept):
    assert accept(UK)["account_type"] == "Personal"
    assert accept(UK, BOTH._replace(default_account_type=AccountType.BUSINESS))["account_type"] == "Business"


def test_amounts_and_currencies_are_read_as_people_write_them(accept):
    accepted = accept({**UK, "amount": "\u00a31,234.56", "currency": "gbp"})
    assert accepted["amount"] == Decimal("1234.56")
    assert accepted["currency"] == "GBP"


def test_negative_amount_in_any_notation_is_rejected_as_negative(codes_of_each):
    cases = ["-1.2345", "-5", "\u00a3-5", "5-", "(5)", "\u22125", "-1,234", "(\u00a35.00)", "-0.01"]
    assert [
        found
        for found in codes_of_each({**UK, "amount": amount} for amount in cases)
        if "AMOUNT_NEGATIVE" not in found
    ] == []
    assert [
        found
        for found in codes_of_each({**UK, "amount": amount} for amount in cases)
        if "AMOUNT_FORMAT" in found
    ] == []


def test_amount_of_zero_is_rejected_as_zero(codes_of_each):
    cases = ["0", "0.00", "-0", "-0.00", "(0)", "\u00a30", "0.000"]
    assert codes_of_each({**UK, "amount": amount} for amount in cases) == [["AMOUNT_ZERO"]] * len(cases)


def test_more_decimals_than_the_currency_has_are_rejected(codes_of_each):
    cases = [
        ("1.5", "JPY"),
        ("0.001", "GBP"),
        ("1.0050", "EUR"),
        ("12.3450", "USD"),
        ("\u00a31.0050", None),
        ("5.0010", None),
        ("1.2345 GBP", None),
        ("1.5005 BHD", None),
        ("1,2345", "EUR"),
        ("1.23456", None),
    ]
    assert codes_of_each({**UK, "amount": amount, "currency": currency} for amount, currency in cases) == [
        ["AMOUNT_DECIMALS"]
    ] * len(cases)


def test_decimals_that_the_currency_has_or_that_say_nothing_pass(codes_of_each):
    cases = [("1.00", "JPY"), ("1.2340", "BHD"), ("1.2300", "GBP"), ("7", "XAF"), ("5.10", "CLP")]
    expected = [["AMOUNT_DECIMALS"] if case == ("5.10", "CLP") else [] for case in cases]
    assert (
        codes_of_each({**UK, "amount": amount, "currency": currency} for amount, currency in cases)
        == expected
    )


@pytest.mark.parametrize("amount", ["US$40.00", "40 pounds", "1e5", "1234567890123456789"])
def test_what_is_no_amount_says_how_to_write_one_with_its_currency(payments_of, amount):
    [told] = validate(payments_of({**UK, "amount": amount}), BOTH).rejects.to_dicts()
    assert told["code"] == "AMOUNT_FORMAT"
    assert told["message"] == said("rule.amount_format")


def test_decimals_of_an_unknown_currency_are_not_judged(accept):
    assert accept({**IBAN, "amount": "1.2340"})["amount"] == Decimal("1.234")


def test_currency_of_no_payment_is_rejected(codes_of_each):
    cases = ["XXX", "XTS", "XAU", "ABC", "GBX", "DEM"]
    assert codes_of_each({**UK, "amount": "5", "currency": currency} for currency in cases) == [
        ["CURRENCY_UNKNOWN"]
    ] * len(cases)


def test_currency_is_found_in_the_cell_or_by_the_uk_account_and_never_guessed(accept_each):
    cases = [
        ({**UK, "amount": "5"}, "GBP"),
        ({**UK, "amount": "EUR 5"}, "EUR"),
        ({**UK, "amount": "5", "currency": "USD"}, "USD"),
        ({**IBAN, "amount": "5 \u20ac"}, "EUR"),
        ({**IBAN, "amount": "\u00a35"}, "GBP"),
        ({**IBAN, "amount": "5 chf"}, "CHF"),
        ({**IBAN, "amount": "5", "currency": "\u20ac"}, "EUR"),
        ({**IBAN, "amount": "5", "currency": "Euro"}, "EUR"),
        ({**IBAN, "amount": "5", "currency": "zł"}, "PLN"),
        ({**UK, "amount": "5", "currency": "Sterling"}, "GBP"),
        ({**IBAN, "amount": "5"}, None),
        ({**IBAN, "amount": "$5"}, None),
        ({**IBAN, "iban": BRITISH, "amount": "5"}, None),
    ]
    assert [accepted.get("currency") for accepted in accept_each(row for row, currency in cases)] == [
        currency for row, currency in cases
    ]


def test_what_is_no_amount_is_not_called_negative_too(codes_of_each):
    cases = ["-", "-x", "-1.2.3"]
    assert codes_of_each({**UK, "amount": amount} for amount in cases) == [["AMOUNT_FORMAT"]] * len(cases)


def test_currency_that_is_not_three_letters_is_rejected(codes_of_each):
    cases = ["", "GB", "GBPS", "$", "G\u0411P", "gb\u017f", "GB1"]
    assert codes_of_each({**UK, "currency": currency} for currency in cases) == [["CURRENCY_FORMAT"]] * len(
        cases
    )


def test_the_sign_of_another_currency_is_rejected(codes_of_each):
    cases = [
        ("£5.00", "EUR"),
        ("5,00 €", "gbp"),
        ("$3", "GBP"),
        ("$ 3.00", "EUR"),
        ("£1,234.00", "USD"),
        ("-€5", "CHF"),
        ("5 EUR", "GBP"),
        ("GBP5.00", "EUR"),
    ]
    assert [
        found
        for found in codes_of_each(
            {**UK, "amount": amount, "currency": currency} for amount, currency in cases
        )
        if "AMOUNT_CURRENCY" not in found
    ] == []


def test_a_sign_that_fits_or_stands_alone_is_accepted(codes_of_each):
    cases = [
        ("£5.00", "GBP"),
        ("£5.00", None),
        ("5 €", "EUR"),
        ("$3", "CAD"),
        ("$3", "USD"),
        ("£3", "GIP"),
        ("5.00", "EUR"),
    ]
    assert codes_of_each({**UK, "amount": amount, "currency": currency} for amount, currency in cases) == [
        []
    ] * len(cases)


# Routing


def test_sort_code_and_account_number_go_to_cop(accept):
    assert accept({**UK, "secondary_reference": " ROLL 7 "}) == {
        "row": 1,
        "api": "cop",
        "account": "11223312345678",
        "name": "Ada Quillon",
        "account_type": "Personal",
        "secondary_reference": "ROLL 7",
        "route_reason": RouteReason.SORT_CODE,
        "currency": "GBP",
    }


def test_iban_goes_to_vop_without_what_only_cop_sees(accept):
    row = {**IBAN, "account_type": "Business", "secondary_reference": "ROLL 7", "bic": "QUILDEFF"}
    assert accept(row) == {
        "row": 1,
        "api": "vop_gateway",
        "account": GERMAN,
        "name": "Quillon Mills BV",
        "route_reason": "IBAN",
    }


def test_british_iban_goes_to_cop_by_the_account_in_it(accept):
    accepted = accept({**IBAN, "iban": BRITISH})
    assert accepted["api"] == "cop"
    assert accepted["account"] == "60161331926819"
    assert accepted["account_type"] == "Personal"
    assert accepted["route_reason"].startswith("GB IBAN")


def test_british_iban_and_the_account_in_it_are_one_question(accept):
    iban = accept({"name": "Ada Quillon", "iban": BRITISH})
    account = accept({"name": "Ada Quillon", "sort_code": "601613", "account_number": "31926819"})
    for field in ("route_reason", "currency"):
        iban.pop(field, None)
        del account[field]
    assert iban == account


def test_british_iban_goes_to_vop_where_the_profile_says_so(accept):
    accepted = accept({**IBAN, "iban": BRITISH}, BOTH._replace(gb_iban_to="vop"))
    assert (accepted["api"], accepted["account"]) == ("vop_gateway", BRITISH)


@pytest.mark.parametrize(
    ("row", "routes"),
    [
        (UK, BOTH._replace(apis=[ApiName.VOP_GATEWAY])),
        (IBAN, BOTH._replace(apis=[ApiName.COP])),
        ({**IBAN, "iban": BRITISH}, BOTH._replace(apis=[ApiName.VOP_GATEWAY])),
        ({**IBAN, "iban": BRITISH}, BOTH._replace(apis=[ApiName.COP], gb_iban_to="vop")),
    ],
)
def test_row_for_an_api_that_the_profile_lacks_is_rejected_with_the_reason(codes, row, routes):
    assert codes(row, routes) == ["NO_API"]


def test_iban_beside_half_a_uk_account_is_ambiguous(codes_of_each):
    cases = [{"sort_code": "112233"}, {"account_number": "12345678"}]
    assert codes_of_each({**IBAN, **extra} for extra in cases) == [["ACCOUNT_AMBIGUOUS"]] * len(cases)


# Reach


def test_iban_from_a_country_that_the_profile_does_not_name_is_not_asked_about(codes, accept):
    near = BOTH._replace(vop_countries=("FR", "NL"))
    assert codes(IBAN, near) == ["OUT_OF_REACH"]
    assert accept(IBAN, BOTH._replace(vop_countries=("DE",)))["account"] == GERMAN
    assert accept(UK, near)["api"] == "cop"
    assert accept({**IBAN, "iban": BRITISH}, near)["api"] == "cop"
    assert codes({**IBAN, "iban": BRITISH}, near._replace(gb_iban_to="vop")) == ["OUT_OF_REACH"]


def test_broken_row_is_told_as_broken_whatever_the_reach(codes):
    near = BOTH._replace(vop_countries=("FR",), vop_names="latin")
    assert codes({**IBAN, "name": "\u0391\u03b4\u03b1\x00"}, near)[0] == "CONTROL_CHARACTER"
    assert codes({**IBAN, "name": "\u0391\u03b4\u03b1"}, near) == ["OUT_OF_REACH"]
    assert codes({**IBAN, "iban": GERMAN[:-1]}, near)[0] == "IBAN_LENGTH"


def test_name_outside_the_latin_letters_is_told_and_by_setting_not_asked(
    accept_each, codes_of_each, warned_of_each
):
    cases = ["\u0391\u03b4\u03b1", "\u0410\u0434\u0430", "\u5f20\u4f1f", "Ada \u05d0"]
    rows = [{**IBAN, "name": name} for name in cases]
    latin = BOTH._replace(vop_names="latin")
    assert [accepted["name"] for accepted in accept_each(rows)] == cases
    assert [told for told in warned_of_each(rows) if ("name", "NAME_NOT_LATIN") not in told] == []
    assert codes_of_each(rows, latin) == [["OUT_OF_ALPHABET"]] * len(cases)
    assert warned_of_each(({**UK, "name": name} for name in cases), latin) == [[]] * len(cases)


def test_latin_letters_with_accents_and_signs_are_carried(accept_each, warned_of_each):
    cases = ["Zo\u00eb M\u00fcller", "\u0141ukasz \u00d8stby", "O\u2019Neil & Co.", "D\u02bcArc"]
    assert [
        accepted["name"]
        for accepted in accept_each(
            ({**IBAN, "name": name} for name in cases), BOTH._replace(vop_names="latin")
        )
    ] == cases
    assert warned_of_each({**IBAN, "name": name} for name in cases) == [[]] * len(cases)


def test_bic_of_another_country_is_a_warning_and_stops_nothing(payments_of):
    assert warned(payments_of, {**IBAN, "bic": "QUILFRPP"}) == [("bic", "BIC_OTHER_COUNTRY")]
    assert warned(payments_of, {**IBAN, "bic": "QUILDEFF"}) == []
    french = "FR1420041010050500013M02606"
    assert warned(payments_of, {**IBAN, "iban": french, "bic": "QUILREPP"}) == []


# Identification


IDENTIFICATIONS = [
    {"lei": LEI},
    {"organisation_bic": "QUILDEFFXXX"},
    {"organisation_id": "HRB 1234", "organisation_id_scheme": "COID", "organisation_id_issuer": "Court"},
]


@pytest.mark.parametrize("identification", IDENTIFICATIONS)
def test_payee_without_a_name_is_asked_for_by_identification(accept, identification):
    accepted = accept({"iban": GERMAN, **identification})
    assert accepted.items() >= identification.items()
    assert "name" not in accepted


@pytest.mark.parametrize("identification", IDENTIFICATIONS)
def test_name_goes_before_an_identification_unless_the_profile_says_otherwise(accept, identification):
    row = {**IBAN, **identification}
    by_name = accept(row)
    assert by_name["name"] == "Quillon Mills BV"
    assert not set(identification) & set(by_name)
    by_identification = accept(row, BOTH._replace(ask_by="identification"))
    assert "name" not in by_identification
    assert by_identification.items() >= identification.items()


def test_payee_without_identification_is_asked_for_by_name_whatever_the_profile_prefers(accept):
    assert accept(IBAN, BOTH._replace(ask_by="identification"))["name"] == "Quillon Mills BV"


@pytest.mark.parametrize("row", [{**UK, "lei": LEI}, {"name": "Ada Quillon", "iban": BRITISH, "lei": LEI}])
def test_cop_is_asked_by_name_though_there_is_an_identification(accept, row):
    accepted = accept(row, BOTH._replace(ask_by="identification"))
    assert accepted["name"] == "Ada Quillon"
    assert "lei" not in accepted


def test_uk_account_with_an_identification_alone_is_rejected(codes):
    assert codes({**UK, "name": None, "lei": LEI}) == ["NAME_MISSING"]


def test_gb_iban_with_an_identification_alone_goes_to_vop(accept):
    accepted = accept({"iban": BRITISH, "lei": LEI}, BOTH)
    assert (accepted["api"], accepted["lei"]) == ("vop_gateway", LEI)


def test_identification_is_cleaned_like_other_codes(accept):
    row = {
        "iban": GERMAN,
        "lei": f" {LEI[:4].lower()}-{LEI[4:18]} {LEI[18:]} ",
        "organisation_bic": "quil deff",
    }
    accepted = accept({**row, "organisation_id": "7", "organisation_id_scheme": "txid"})
    assert accepted["lei"] == LEI
    assert accepted["organisation_bic"] == "QUILDEFFXXX"
    assert accepted["organisation_id_scheme"] == "TXID"


# VoP Standard


def test_responder_is_named_by_the_file_before_the_table_before_the_registry(accept):
    table = STANDARD._replace(bic_table={"DE37040044": "MARWDEFFXXX"})
    by_file = accept({**IBAN, "bic": "quildeff"}, table)
    assert (by_file["responder_bic"], by_file["bic_source"]) == ("QUILDEFFXXX", "file")
    by_table = accept(IBAN, table)
    assert (by_table["responder_bic"], by_table["bic_source"]) == ("MARWDEFFXXX", "table")
    by_registry = accept(IBAN, STANDARD)
    assert (by_registry["responder_bic"], by_registry["bic_source"]) == ("COBADEFFXXX", "registry")


def test_gateway_finds_the_responder_itself(accept):
    assert "responder_bic" not in accept({**IBAN, "bic": "QUILDEFF"}, BOTH)


def test_uk_rows_need_no_responder_under_a_standard_profile(accept):
    accepted = accept({**UK, "bic": "QUILGB2L"}, STANDARD)
    assert "responder_bic" not in accepted
    assert "bic_source" not in accepted


def test_reference_is_sent_only_where_the_profile_says_so_and_the_api_takes_it(accept):
    sending = STANDARD._replace(send_remittance=True)
    assert accept({**IBAN, "reference": "Invoice 12"}, sending)["remittance"] == "Invoice 12"
    assert "remittance" not in accept({**IBAN, "reference": "Invoice 12"}, STANDARD)
    assert "remittance" not in accept({**UK, "reference": "Invoice 12"}, sending)
    assert "remittance" not in accept(
        {**IBAN, "reference": "Invoice 12"}, BOTH._replace(send_remittance=True)
    )


@pytest.mark.parametrize("reference", ["7" * 141, "7\x007", "7\u200b7", "7\ufffd7"])
def test_reference_that_is_not_sent_may_be_anything(accept, reference):
    sending = STANDARD._replace(send_remittance=True)
    assert accept({**UK, "reference": reference}, sending)["api"] == "cop"
    assert accept({**IBAN, "reference": reference}, STANDARD)["api"] == "vop_standard"


# Repeated payments


@pytest.mark.parametrize("row", [{**UK, "amount": "5.00"}, {"iban": GERMAN, "lei": LEI, "amount": "5.00"}])
def test_same_payment_again_is_a_warning_and_stops_nothing(payments_of, row):
    validated = validate(payments_of(row, UK, row, row), BOTH)
    assert validated.accepted.height == 4
    repeated = said("rule.payment_repeated", row=said("places.rows", count=1, rows="1"))
    assert list(validated.warnings.select("row", "code", "message").iter_rows()) == [
        (row, "PAYMENT_REPEATED", repeated) for row in (3, 4)
    ]


def test_a_name_in_other_letters_or_with_other_gaps_is_the_same_payee(payments_of):
    row = {**UK, "amount": "5.00", "name": "Ada Quillon"}
    validated = validate(payments_of(row, {**row, "name": "ADA  QUILLON"}), BOTH)
    assert validated.warnings["code"].to_list() == ["PAYMENT_REPEATED"]


@pytest.mark.parametrize(
    "difference",
    [
        {"name": "Ada Quillon-Marrow"},
        {"account_number": "12345679"},
        {"amount": "5.01"},
        {"currency": "EUR"},
        {"reference": "Invoice 13"},
        {"secondary_reference": "ROLL 8"},
    ],
)
def test_payment_that_differs_in_one_respect_is_another(payments_of, difference):
    row = {
        **UK,
        "amount": "5.00",
        "currency": "GBP",
        "reference": "Invoice 12",
        "secondary_reference": "ROLL 7",
    }
    assert "PAYMENT_REPEATED" not in validate(payments_of(row, {**row, **difference}), BOTH).warnings["code"]


def test_same_amount_written_in_another_way_is_the_same_payment(payments_of):
    rows = ({**UK, "amount": "1,234.50"}, {**UK, "amount": "1234.5"})
    assert validate(payments_of(*rows), BOTH).warnings["row"].to_list() == [2]


def test_rows_without_an_amount_are_not_payments_that_could_be_repeated(payments_of):
    assert validate(payments_of(UK, UK), BOTH).warnings.height == 0


def test_rejected_row_is_not_counted_as_an_earlier_payment(payments_of):
    row = {**UK, "amount": "5.00"}
    validated = validate(payments_of({**row, "account_type": "?"}, row), BOTH)
    assert validated.warnings.height == 0


# The UK modulus check, by a table by which what ends in 0 passes

_LAST_DIGIT = WeightedSum(Method.MOD10, (0,) * 13 + (1,))
_TABLES = ModulusTables((Range(1, 899999, (_LAST_DIGIT,)),), {}, date(2030, 1, 1), "", "")
WITH_TABLES = BOTH._replace(modulus=Modulus(_TABLES, is_old=False))
WITH_OLD_TABLES = BOTH._replace(modulus=Modulus(_TABLES, is_old=True))
PASSING = {**UK, "account_number": "1234 5670"}
BRITISH_ROW = {"name": "Ada Quillon", "iban": BRITISH}


def test_account_that_passes_or_is_not_covered_is_asked_about(accept_each):
    cases = [PASSING, {**UK, "sort_code": "90-00-00"}]
    assert [accepted["api"] for accepted in accept_each(cases, WITH_TABLES)] == ["cop"] * len(cases)


def test_account_that_fails_is_rejected_and_without_tables_asked_about(accept_each, codes_of_each):
    cases = [{**UK, "sort_code": "11-22-33"}, BRITISH_ROW]
    assert codes_of_each(cases, WITH_TABLES) == [["MODULUS"]] * len(cases)
    assert [accepted["api"] for accepted in accept_each(cases)] == ["cop"] * len(cases)


def test_gb_iban_that_goes_to_vop_is_not_checked_by_its_digits(accept):
    assert accept(BRITISH_ROW, WITH_TABLES._replace(gb_iban_to="vop"))["api"] == "vop_gateway"


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ({**UK, "account_number": "1234567"}, "ACCOUNT_NUMBER_DAMAGED"),
        ({**UK, "sort_code": "11223", "account_number": "312345678"}, "SORT_CODE_DAMAGED"),
        ({**BRITISH_ROW, "iban": BRITISH.replace("GB29", "GB30")}, "IBAN_CHECK_DIGITS"),
    ],
)
def test_account_that_is_damaged_is_not_said_to_fail_as_well(codes, row, code):
    found = codes(row, WITH_TABLES)
    assert found[0] == code
    assert "MODULUS" not in found


def test_account_that_fails_by_old_tables_is_asked_about_with_a_warning(payments_of):
    validated = validate(payments_of(PASSING, UK, BRITISH_ROW, IBAN), WITH_OLD_TABLES)

    assert validated.rejects.height == 0
    assert list(validated.warnings.select("row", "field", "code").iter_rows()) == [
        (2, "account_number", "MODULUS_OLD_TABLES"),
        (3, "iban", "MODULUS_OLD_TABLES"),
    ]
