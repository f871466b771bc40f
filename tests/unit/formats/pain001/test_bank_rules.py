"""What banks may refuse in a pain.001: one warning for each rule, with the first place."""

from datetime import date

import pytest

from pipeline.formats import pain001
from pipeline.formats.pain001.bank_rules import bank_warnings
from pipeline.formats.table import ReadingOptions
from pipeline.wording import Sentence
from tests.tables import for_each

TODAY = date(2026, 11, 20)
IBAN = "DE89370400440532013000"


def payment(
    number,
    *,
    name="Wren Harlow",
    address="",
    iban=IBAN,
    currency="EUR",
    remittance="Invoice 7",
    instruction=None,
    amount="10.00",
):
    ids = f"<InstrId>{instruction or number}</InstrId><EndToEndId>E{number}</EndToEndId>"
    return (
        f'<CdtTrfTxInf><PmtId>{ids}</PmtId><Amt><InstdAmt Ccy="{currency}">{amount}</InstdAmt></Amt>'
        f"<Cdtr><Nm>{name}</Nm>{address}</Cdtr><CdtrAcct><Id><IBAN>{iban}</IBAN></Id></CdtrAcct>"
        f"<RmtInf><Ustrd>{remittance}</Ustrd></RmtInf></CdtTrfTxInf>"
    )


def batch(
    *payments,
    name="B1",
    executed="<Dt>2026-11-20</Dt>",
    payer_address="",
    payer="FR1420041010050500013M02606",
):
    return (
        f"<PmtInf><PmtInfId>{name}</PmtInfId><PmtMtd>TRF</PmtMtd><ReqdExctnDt>{executed}</ReqdExctnDt>"
        f"<Dbtr><Nm>Payer</Nm>{payer_address}</Dbtr><DbtrAcct><Id><IBAN>{payer}</IBAN></Id></DbtrAcct>"
        f"{''.join(payments)}</PmtInf>"
    )


def message_of(*batches, version="09"):
    document = (
        f'<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pain.001.001.{version}"><CstmrCdtTrfInitn>'
        f"<GrpHdr><MsgId>M</MsgId></GrpHdr>{''.join(batches)}</CstmrCdtTrfInitn></Document>"
    )
    return pain001.read(document.encode(), ReadingOptions({}), where="payments.xml")


def found(message, today=TODAY):
    return [
        (warning.code, warning.path, warning.place_count, warning.value)
        for warning in bank_warnings(message, today)
    ]


def address(*lines, town="", country=""):
    town = f"<TwnNm>{town}</TwnNm>" if town else ""
    country = f"<Ctry>{country}</Ctry>" if country else ""
    return f"<PstlAdr>{town}{country}{''.join(f'<AdrLine>{line}</AdrLine>' for line in lines)}</PstlAdr>"


WHOLE = address("Mill Lane 4", "Floor 2", town="Bonn", country="DE")
TWO = (payment(1), payment(2))


@for_each(
    ("batches", "expected"),
    [
        ([batch(*TWO)], []),
        ([batch(*TWO, executed="2026-11-20", payer_address=WHOLE)], []),
        ([batch(payment(1, address=WHOLE), payment(2, address=address(town="Bonn", country="DE")))], []),
        ([batch(payment(1))], [("ONE_PAYMENT", "PmtInf[1]/CdtTrfTxInf[1]", 1, "1")]),
        ([batch(payment(1, currency="SEK"))], []),
        (
            [batch(*TWO), batch(*TWO)],
            [("ID_REPEATED", "PmtInf[2]/PmtInfId", 3, "B1")],
        ),
        (
            [batch(payment(1), payment(2, instruction="1"))],
            [("ID_REPEATED", "PmtInf[1]/CdtTrfTxInf[2]/PmtId/InstrId", 1, "1")],
        ),
        (
            [batch(*TWO, executed="<Dt>2026-11-19</Dt>")],
            [("EXECUTION_DATE", "PmtInf[1]/ReqdExctnDt", 1, "2026-11-19")],
        ),
        (
            [batch(*TWO, executed="<DtTm>2028-01-01T09:00:00</DtTm>")],
            [("EXECUTION_DATE", "PmtInf[1]/ReqdExctnDt", 1, "2028-01-01T09:00:00")],
        ),
        ([batch(*TWO, executed="<Dt>soon</Dt>")], []),
        (
            [batch(payment(1, address=address("a", "b", country="DE")), payment(2, address=address("a")))],
            [
                (
                    "ADDRESS_UNSTRUCTURED",
                    "PmtInf[1]/CdtTrfTxInf[1]/Cdtr/PstlAdr",
                    2,
                    "AdrLine: 2, TwnNm: -, Ctry: DE",
                )
            ],
        ),
        (
            [batch(*TWO, payer_address=address("a", "b", "c", town="Bonn", country="DE"))],
            [("ADDRESS_UNSTRUCTURED", "PmtInf[1]/Dbtr/PstlAdr", 1, "AdrLine: 3, TwnNm: +, Ctry: DE")],
        ),
        (
            [batch(payment(1, address=address("x" * 71, town="Bonn", country="DE")), payment(2))],
            [
                (
                    "ADDRESS_UNSTRUCTURED",
                    "PmtInf[1]/CdtTrfTxInf[1]/Cdtr/PstlAdr",
                    1,
                    "AdrLine: 1, TwnNm: +, Ctry: DE",
                )
            ],
        ),
        (
            [batch(payment(1, name="Käßer &amp; Söhne"), payment(2, remittance="7 €"), payer=IBAN)],
            [("CHARACTERS", "PmtInf[1]/CdtTrfTxInf[2]/RmtInf", 1, "€")],
        ),
        (
            [batch(payment(1, name="Käßer"), payment(2, name="Ł"))],
            [("CHARACTERS", "PmtInf[1]/CdtTrfTxInf[1]/Cdtr/Nm", 2, "ä ß")],
        ),
        ([batch(payment(1, name="Käßer", currency="SEK"), payment(2))], []),
    ],
)
def test_each_rule_gives_one_warning_with_its_first_place(batches, expected):
    assert found(message_of(*batches)) == expected


@for_each(
    ("version", "today", "count"),
    [("03", TODAY, 1), ("03", date(2025, 1, 1), 0), ("09", TODAY, 0)],
)
def test_a_retired_version_is_named_a_year_before(version, today, count):
    batches = batch(*TWO, executed=today.isoformat())
    assert [code for code, *_ in found(message_of(batches, version=version), today)] == [
        "VERSION_RETIRED"
    ] * count


@pytest.mark.parametrize(("executed", "count"), [("2026-11-13", 0), ("2026-11-14", 1), ("2026-11-15", 2)])
def test_addresses_are_judged_by_the_day_of_execution(executed, count):
    lines = address("Mill Lane 4", "Bonn")
    payments = payment(1, address=lines), payment(2, address=lines, currency="SEK")
    message = message_of(batch(*payments, executed=f"<Dt>{executed}</Dt>"))
    assert sum(places for _, _, places, _ in found(message, date(2026, 11, 1))) == count


def test_what_only_banks_judge_makes_no_payment_unreadable():
    twice = address("a", town="Bonn", country="DE").replace("<TwnNm>", "<TwnNm>Ulm</TwnNm><TwnNm>")
    message = message_of(batch(payment(1, address=twice), payment(2), payer_address=twice))
    assert message.defects.null_count() == 2
    assert message.locations["start"][0] == message.locations["element"][0]


def test_a_warning_says_place_value_mend_source_and_date():
    [warning] = bank_warnings(message_of(batch(payment(1))), TODAY)
    assert Sentence.of_document(warning.sentence) == Sentence(
        "bank.warning",
        count=1, code="ONE_PAYMENT", path="PmtInf[1]/CdtTrfTxInf[1]", value="1",
        why=Sentence("bank.one_payment"), source="Regulation (EU) 2024/886, Art. 5c(6), 2025-10-09",
    )  # fmt: skip


@for_each(
    ("changed", "expected"),
    [
        ({"name": "W" * 71}, [("TOO_LONG", "PmtInf[1]/CdtTrfTxInf[1]/Cdtr/Nm", 1, "71")]),
        ({"name": "W" * 70}, []),
        ({"remittance": "r" * 141}, [("TOO_LONG", "PmtInf[1]/CdtTrfTxInf[1]/RmtInf", 1, "141")]),
        ({"remittance": "r" * 140}, []),
        ({"amount": "1000000000.00"}, [("TOO_LONG", "PmtInf[1]/CdtTrfTxInf[1]/Amt", 1, "1000000000.00")]),
        ({"amount": "999999999.99"}, []),
        ({"name": "W" * 71, "currency": "GBP"}, []),
    ],
)
def test_what_is_longer_than_sepa_carries_is_said(changed, expected):
    assert found(message_of(batch(payment(1, **changed), payment(2)))) == expected
