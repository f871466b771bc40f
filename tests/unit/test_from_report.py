"""What a bank reported is joined with the payments by ids, account and amount, and never guessed."""

from dataclasses import replace

import polars as pl
import pytest
from paymentfiles.pain001 import Batch, Payment, document
from paymentfiles.pain002 import Said, SaidOfBatch, report, zipped
from tables import for_each

from pipeline.errors import InputError
from pipeline.executors.from_report import ReceivedReport, report_of, reported_answers, reported_rows
from pipeline.formats import pain002
from pipeline.formats.pain001 import message_of, reading
from pipeline.frames import CHECKS

IBANS = ("DE89370400440532013000", "NL91ABNA0417164300", "FR1420041010050500013M02606")
ADA, BO, CY = (
    Payment(end_to_end_id=f"E-{at}", name=name, iban=IBANS[at], amount=f"{at + 1}.00")
    for at, name in enumerate(("Ada Quillon", "Bo Kestrel", "Cy Varga"))
)


def read(*batches):
    return message_of(pl.concat(reading.parse(document(batches))))


def reported(*documents):
    """Reports as `report_of` gives them, read in this process."""
    for at, data in enumerate(documents):
        said = pain002.reports_of(pl.concat(pain002.parse(data, ends=str(len(data)))))
        yield ReceivedReport(f"{at}.xml", data, str(at), said, 0)


def joined(message, *documents):
    """The code, name and report of each payment; and what is noted."""
    count = message.payments.height
    checks = pl.DataFrame(
        {"check": range(1, count + 1), "name": message.payments["name"]},
        schema_overrides={"check": pl.UInt32},
    )
    absent = [pl.lit(None, kind).alias(name) for name, kind in CHECKS.items() if name not in checks.columns]
    checks = checks.with_columns(absent).select(list(CHECKS))
    found = reported_rows(message, list(reported(*documents)))
    answers = reported_answers(checks, message.locations["row"], found.verdicts)
    assert answers["check"].to_list() == checks["check"].to_list()
    return answers, found.notes


def codes(message, *documents):
    return joined(message, *documents)[0]["code"].to_list()


def said(*payments, **of_batch):
    return report((SaidOfBatch(payments, **of_batch),))


ONE = read(Batch((ADA,)))
TWO = read(Batch((ADA, BO)))
TWINS = read(Batch((ADA, replace(ADA, name="Ada Q."))))
OF_ADA = Said("E-0", account=IBANS[0], amount="1.00")


@for_each(
    ("message", "documents", "expected"),
    [
        # Final statuses, and what is none.
        (ONE, [said(OF_ADA)], ["MTCH"]),
        (ONE, [said(replace(OF_ADA, status="RVMC", names=("Ada ", "Quill")))], ["CMTC"]),
        (ONE, [said(replace(OF_ADA, status="RVNM"))], ["NMTC"]),
        (ONE, [said(replace(OF_ADA, status="RVNA"))], ["NOAP"]),
        (ONE, [said(replace(OF_ADA, status="PDNG"))], ["PDNG"]),
        (ONE, [said(replace(OF_ADA, status="RVNC"))], ["RVNC"]),
        (ONE, [said(replace(OF_ADA, status="ACCP"), status="RCVC")], ["REPORT_STATUS"]),
        (ONE, [said(replace(OF_ADA, status=None))], ["REPORT_STATUS"]),
        (ONE, [said()], ["NOT_IN_REPORT"]),
        (TWO, [said(OF_ADA)], ["MTCH", "NOT_IN_REPORT"]),
        # What confirms it.
        (ONE, [said(Said("E-0"))], ["MTCH"]),
        (ONE, [said(replace(OF_ADA, amount="1.0"))], ["MTCH"]),
        (ONE, [said(replace(OF_ADA, account="DE89 3704 0044 0532 0130 00"))], ["MTCH"]),
        (ONE, [said(replace(OF_ADA, account=IBANS[1]))], ["REPORT_DIFFERS"]),
        (ONE, [said(replace(OF_ADA, name="Mallory Other"))], ["REPORT_DIFFERS"]),
        (ONE, [said(replace(OF_ADA, name=f" {ADA.name.upper()}. "))], ["MTCH"]),
        (ONE, [said(replace(OF_ADA, amount="1.01"))], ["REPORT_DIFFERS"]),
        (ONE, [said(replace(OF_ADA, amount="one"))], ["REPORT_DIFFERS"]),
        (ONE, [said(replace(OF_ADA, currency="USD"))], ["REPORT_DIFFERS"]),
        (ONE, [said(OF_ADA, replace(OF_ADA, account=IBANS[1]))], ["REPORT_DIFFERS"]),
        (ONE, [said(replace(OF_ADA, end_to_end_id="E-9"))], ["NOT_IN_REPORT"]),
        (ONE, [said(OF_ADA, id="BATCH-9")], ["NOT_IN_REPORT"]),
        (ONE, [said(replace(OF_ADA, instruction_id="I-1"))], ["NOT_IN_REPORT"]),
        (ONE, [said(replace(OF_ADA, instruction_id="NOTPROVIDED"))], ["MTCH"]),
        (ONE, [said(replace(OF_ADA, end_to_end_id=None))], ["NOT_IN_REPORT"]),
        # Two that fit.
        (TWINS, [said(OF_ADA)], ["REPORT_AMBIGUOUS"] * 2),
        (TWINS, [said(OF_ADA, OF_ADA)], ["REPORT_AMBIGUOUS"] * 2),
        (read(Batch((ADA,)), Batch((ADA,))), [said(OF_ADA)], ["REPORT_AMBIGUOUS"] * 2),
        (read(Batch((ADA,)), Batch((ADA,), id="B-2")), [said(OF_ADA)], ["MTCH", "NOT_IN_REPORT"]),
        (read(Batch((ADA,)), Batch((ADA,), id="B-2")), [said(OF_ADA, id=None)], ["REPORT_AMBIGUOUS"] * 2),
        (read(Batch((ADA, replace(BO, end_to_end_id="E-0")))), [said(OF_ADA)], ["MTCH", "NOT_IN_REPORT"]),
        (
            read(Batch((ADA, replace(BO, end_to_end_id="E-0")))),
            [said(replace(OF_ADA, account=IBANS[2]))],
            ["REPORT_DIFFERS"] * 2,
        ),
        # Several reports.
        (ONE, [said(replace(OF_ADA, status="PDNG")), said(OF_ADA)], ["MTCH"]),
        (ONE, [said(OF_ADA), said(replace(OF_ADA, status="RVNC"))], ["MTCH"]),
        (ONE, [said(OF_ADA), said(replace(OF_ADA, status="RVNM"))], ["REPORT_DIFFERS"]),
        (ONE, [said(OF_ADA), said(OF_ADA)], ["MTCH"]),
        (
            ONE,
            [said(replace(OF_ADA, status="RVMC", names=(name,))) for name in ("Ada A.", "Ada B.")],
            ["REPORT_DIFFERS"],
        ),
        (TWO, [said(OF_ADA), said(Said("E-1", "RVNM"))], ["MTCH", "NMTC"]),
    ],
)
def test_each_payment_gets_what_is_said_of_it_and_of_no_other(message, documents, expected):
    assert codes(message, *documents) == expected


BATCHES = read(Batch((ADA, BO)), Batch((CY,), id="B-2"))


@for_each(
    ("documents", "expected"),
    [
        # A message that matches as a whole, by one number at least that is right.
        ([report((), status="RCVC", count="3")], ["MTCH"] * 3),
        ([report((), status="RCVC", count="3", sum="6.00")], ["MTCH"] * 3),
        ([report((), status="RCVC", counted=(("RCVC", "3"),))], ["MTCH"] * 3),
        ([report((), status="RCVC", counted=(("RCVC", "3"), ("RVNM", "0")))], ["MTCH"] * 3),
        ([report((), status="RCVC")], ["NOT_IN_REPORT"] * 3),
        ([report((), status="RCVC", count="2")], ["NOT_IN_REPORT"] * 3),
        ([report((), status="RCVC", count="three")], ["NOT_IN_REPORT"] * 3),
        ([report((), status="RCVC", count="3", sum="6.01")], ["NOT_IN_REPORT"] * 3),
        ([report((), status="RCVC", count="3", counted=(("RCVC", "2"),))], ["NOT_IN_REPORT"] * 3),
        ([report((), status="RCVC", counted=(("RCVC", "3"), ("RVNM", "1")))], ["NOT_IN_REPORT"] * 3),
        ([report((), status="RVCM", count="3")], ["NOT_IN_REPORT"] * 3),
        ([report((), status="PDNG", count="3")], ["NOT_IN_REPORT"] * 3),
        # A batch, and statuses in it or beside it.
        ([report((SaidOfBatch(status="RCVC", count="2"),))], ["MTCH", "MTCH", "NOT_IN_REPORT"]),
        ([report((SaidOfBatch(status="RCVC", count="3"),))], ["NOT_IN_REPORT"] * 3),
        (
            [report((SaidOfBatch((Said("E-0", "RVNM"),), status="RCVC", count="2"),))],
            ["NMTC", "NOT_IN_REPORT", "NOT_IN_REPORT"],
        ),
        (
            [report((SaidOfBatch((Said("E-0", "RVNM"),)),), status="RCVC", count="3")],
            ["NMTC", "NOT_IN_REPORT", "NOT_IN_REPORT"],
        ),
        ([report((SaidOfBatch(status="RVCM"),), status="RCVC", count="3")], ["NOT_IN_REPORT"] * 3),
        (
            [report((SaidOfBatch((Said("E-0"),)),), status="RCVC", count="3")],
            ["MTCH"] * 3,
        ),
        # Another report says something else of a payment of the message.
        ([report((), status="RCVC", count="3"), said(Said("E-1", "RVNM"))], ["REPORT_DIFFERS"] * 3),
        ([report((), status="RCVC", count="3"), report((), status="RVNM")], ["REPORT_DIFFERS"] * 3),
        (
            [report((), status="RCVC", count="3"), report((SaidOfBatch(status="RVNM", id="B-2"),))],
            ["REPORT_DIFFERS"] * 3,
        ),
        ([report((), status="PDNG"), report((), status="RCVC", count="3")], ["MTCH"] * 3),
        (
            [
                report((SaidOfBatch((Said("E-0", "PDNG"),)),), status="PDNG"),
                report((), status="RCVC", count="3"),
            ],
            ["MTCH"] * 3,
        ),
        (
            [report((SaidOfBatch(status="RCVC", count="2"),)), said(Said("E-1", "RVNM"))],
            ["REPORT_DIFFERS", "REPORT_DIFFERS", "NOT_IN_REPORT"],
        ),
        # Two blocks for one batch, a batch of another size, and a message that says more than is left.
        (
            [report((SaidOfBatch(status="RCVC", count="2"), SaidOfBatch(status="RVNM")))],
            ["NOT_IN_REPORT"] * 3,
        ),
        (
            [report((SaidOfBatch(status="RCVC", count="2"), SaidOfBatch((Said("E-1", "RVNM"),))))],
            ["REPORT_DIFFERS", "REPORT_DIFFERS", "NOT_IN_REPORT"],
        ),
        (
            [report((SaidOfBatch(id="B-2", count="7"),), status="RCVC", count="3")],
            ["NOT_IN_REPORT"] * 3,
        ),
        (
            [report((SaidOfBatch(status="RCVC", count="2"),), counted=(("RVNM", "3"),))],
            ["NOT_IN_REPORT"] * 3,
        ),
        (
            [report((SaidOfBatch(status="RCVC", count="2"),), counted=(("RCVC", "2"), ("RVNM", "1")))],
            ["MTCH", "MTCH", "NOT_IN_REPORT"],
        ),
        ([report((), status="RCVC", counted=(("RCVC", "3"), ("RVNM", "-1")))], ["NOT_IN_REPORT"] * 3),
    ],
)
def test_a_level_that_matches_answers_its_payments_only_if_nothing_contradicts_it(documents, expected):
    assert codes(BATCHES, *documents) == expected


BO_DIFFERS = Said("E-1", "RVNM", name="Bo Kestrel", account=IBANS[1])
THREE = read(Batch((ADA, BO, CY)))
LEFT_OUT = ["MTCH", "NMTC", "MTCH"]
ONLY_BO = ["NOT_IN_REPORT", "NMTC", "NOT_IN_REPORT"]


def counted(*listed, matches=2, others=1, **of_message):
    """A report that lists what differs, and only counts the matches, as the German banks specify it."""
    counts = (("RCVC", str(matches)), ("RVNM", str(others)), ("RVMC", "0"))
    return report((SaidOfBatch(listed),), counted=counts, **of_message)


@for_each(
    ("message", "documents", "expected"),
    [
        (THREE, [counted(BO_DIFFERS)], LEFT_OUT),
        (THREE, [counted(BO_DIFFERS, count="3", sum="6.00", status=None)], LEFT_OUT),
        (THREE, [counted(replace(BO_DIFFERS, status="PDNG"), status="PDNG")], ["MTCH", "PDNG", "MTCH"]),
        (THREE, [counted(BO_DIFFERS, Said("E-0", account=IBANS[0]))], LEFT_OUT),
        # The report lists its batches, but omits one or only counts it.
        (
            BATCHES,
            [
                report(
                    (SaidOfBatch((BO_DIFFERS,), count="2", counted=(("RCVC", "1"), ("RVNM", "1"))),),
                    count="3",
                    counted=(("RCVC", "2"), ("RVNM", "1")),
                )
            ],
            LEFT_OUT,
        ),
        (
            BATCHES,
            [report((SaidOfBatch((BO_DIFFERS,), counted=(("RCVC", "1"), ("RVNM", "1"))),))],
            ["MTCH", "NMTC", "NOT_IN_REPORT"],
        ),
        (
            BATCHES,
            [report((SaidOfBatch((BO_DIFFERS,)), SaidOfBatch(id="B-2", counted=(("RCVC", "1"),))))],
            ["NOT_IN_REPORT", "NMTC", "MTCH"],
        ),
        # The counts do not fit the file, the list, or each other.
        (THREE, [report((SaidOfBatch((BO_DIFFERS,)),), count="3")], ONLY_BO),
        (THREE, [counted(BO_DIFFERS, matches=3)], ONLY_BO),
        (THREE, [counted(BO_DIFFERS, matches=1)], ONLY_BO),
        (THREE, [counted(BO_DIFFERS, matches=1, others=2)], ONLY_BO),
        (THREE, [counted(BO_DIFFERS, BO_DIFFERS, matches=1, others=2)], ONLY_BO),
        (THREE, [counted(BO_DIFFERS, count="4")], ONLY_BO),
        (THREE, [counted(BO_DIFFERS, sum="7.00")], ONLY_BO),
        (THREE, [counted(BO_DIFFERS, status="RCVC")], ONLY_BO),
        (THREE, [counted(others=0, matches=3)], ["NOT_IN_REPORT"] * 3),
        (
            BATCHES,
            [
                report(
                    (SaidOfBatch((BO_DIFFERS,), counted=(("RCVC", "0"), ("RVNM", "2"))),),
                    counted=(("RCVC", "2"), ("RVNM", "1")),
                )
            ],
            ONLY_BO,
        ),
        (
            BATCHES,
            [
                report(
                    (SaidOfBatch((BO_DIFFERS,), counted=(("RCVC", "1"), ("RVNM", "1"))),),
                    counted=(("RVNM", "3"),),
                )
            ],
            ONLY_BO,
        ),
        # Which payment differs is not known for sure, so neither is which ones match.
        (THREE, [counted(replace(BO_DIFFERS, end_to_end_id="E-9"))], ["NOT_IN_REPORT"] * 3),
        (
            THREE,
            [counted(replace(BO_DIFFERS, name="Mallory Other"))],
            ["NOT_IN_REPORT", "REPORT_DIFFERS", "NOT_IN_REPORT"],
        ),
        (
            read(Batch((ADA, replace(ADA, name="Ada Q."), CY))),
            [counted(Said("E-0", "RVNM"))],
            ["REPORT_AMBIGUOUS", "REPORT_AMBIGUOUS", "NOT_IN_REPORT"],
        ),
        # A match of the list is a payment that the file does not have: of another file, or changed since.
        (THREE, [counted(BO_DIFFERS, Said("E-9"))], ONLY_BO),
        (THREE, [report((SaidOfBatch((Said("E-9"),)),), status="RCVC", count="3")], ["NOT_IN_REPORT"] * 3),
        (
            THREE,
            [counted(BO_DIFFERS, Said("E-0", account=IBANS[2]))],
            ["REPORT_DIFFERS", "NMTC", "NOT_IN_REPORT"],
        ),
        # Several reports: the same once more, an earlier one that is pending, and contradictions.
        (THREE, [counted(BO_DIFFERS), counted(BO_DIFFERS, report_id="VOP-2")], LEFT_OUT),
        (THREE, [counted(replace(BO_DIFFERS, status="PDNG"), status="PDNG"), counted(BO_DIFFERS)], LEFT_OUT),
        (
            THREE,
            [counted(BO_DIFFERS), said(Said("E-2", "RVNM"))],
            ["REPORT_DIFFERS", "NMTC", "REPORT_DIFFERS"],
        ),
        (
            THREE,
            [counted(BO_DIFFERS), said(Said("E-9", "RVNM"))],
            ["REPORT_DIFFERS", "NMTC", "REPORT_DIFFERS"],
        ),
        (
            THREE,
            [counted(BO_DIFFERS), report((SaidOfBatch((Said("E-1"),)),), status="RCVC")],
            ["MTCH", "REPORT_DIFFERS", "MTCH"],
        ),
    ],
)
def test_matches_that_are_counted_and_not_listed_are_told_by_the_figures_alone(message, documents, expected):
    assert codes(message, *documents) == expected


def test_a_batch_with_the_id_of_its_message_is_not_taken_for_it():
    message = read(Batch((ADA, BO), id="MESSAGE-1"), Batch((CY,), id="B-2"))
    matching = SaidOfBatch(id="MESSAGE-1", status="RCVC", count="2")

    answers, notes = joined(message, report((matching, SaidOfBatch((Said("E-2", "RVNM"),), id="B-2"))))

    assert (answers["code"].to_list(), notes) == (["MTCH", "MTCH", "NMTC"], ())


def test_batches_that_share_an_id_are_not_answered_as_one():
    message = read(Batch((ADA, BO)), Batch((CY,)))

    assert codes(message, report((SaidOfBatch(status="RCVC", count="2"),))) == ["NOT_IN_REPORT"] * 3


@for_each(
    ("names", "expected"),
    [
        (("Bo Kestrel Trading",), "Bo Kestrel Trading"),
        (("Bo Kest", "rel"), "Bo Kestrel"),
        (("Bo ", "Kestrel "), "Bo Kestrel"),
        (('"Bo Kestrel',), "Bo Kestrel"),
        (('"Bo" Kestrel',), '"Bo" Kestrel'),
        (("\u201cBo Kestrel",), "Bo Kestrel"),
        (("RVMC The name nearly matches. ", "Bo Kestrel"), None),
        (("RVMCor Ltd",), "RVMCor Ltd"),
        (("",), None),
        (("\u200b\u00a0",), None),
        ((), None),
    ],
)
def test_the_name_at_the_bank_is_joined_without_what_the_bank_puts_before_it(names, expected):
    answers, _ = joined(ONE, said(replace(OF_ADA, status="RVMC", names=names)))

    assert answers.select("code", "matched_name").row(0) == ("CMTC", expected)


def test_additional_information_on_other_statuses_is_no_name():
    answers, _ = joined(ONE, said(replace(OF_ADA, status="RVNM", names=("RVNM: see the terms",))))

    assert answers["matched_name"].to_list() == [None]


@for_each(
    ("created", "expected"),
    [
        ("2026-11-27T10:30:00+01:00", "2026-11-27T09:30:00Z"),
        ("2026-11-27T09:30:00.125Z", "2026-11-27T09:30:00Z"),
        ("2026-11-27T09:30:00", "2026-11-27T09:30:00"),
        ("yesterday", None),
        ("9999-12-31T23:59:59-14:00", None),
    ],
)
def test_the_time_of_a_report_is_utc_where_it_has_a_zone(created, expected):
    answers, _ = joined(ONE, report((SaidOfBatch((OF_ADA,)),), created=created))

    assert answers.select("request_id", "time").row(0) == ("VOP-1", expected)


@for_each(
    ("document", "key"),
    [
        (report((SaidOfBatch((OF_ADA,), counted=(("RCVC", "2"),)),)), "executors.report_counts_differ"),
        (report((SaidOfBatch((OF_ADA,)),), counted=(("RVNM", "1"),)), "executors.report_counts_differ"),
        (report((SaidOfBatch((OF_ADA,)),), count="7"), "executors.report_of_part"),
        (report((SaidOfBatch((OF_ADA,), count="7"),)), "executors.report_of_part"),
        (said(OF_ADA, replace(OF_ADA, end_to_end_id="E-9")), "executors.statuses_unplaced"),
    ],
)
def test_what_a_report_says_of_itself_and_is_not_so_is_noted(document, key):
    _, notes = joined(ONE, document)

    assert [note.key for note in notes] == [key]


@for_each(
    ("message", "whole"),
    [
        (
            ONE,
            report(
                (SaidOfBatch((OF_ADA,), status="RCVC", count="1", counted=(("RCVC", "1"), ("RVNM", "0"))),),
                count="1",
                counted=(("RCVC", "1"),),
            ),
        ),
        (
            BATCHES,
            report(
                (SaidOfBatch((), status="RCVC", count="2"), SaidOfBatch((Said("E-2"),), id="B-2")),
                counted=(("RCVC", "3"),),
            ),
        ),
    ],
)
def test_a_report_that_adds_up_has_no_note(message, whole):
    assert joined(message, whole)[1] == ()


@for_each(
    ("data", "key"),
    [
        (report((SaidOfBatch((OF_ADA,)),), message_id="OTHER"), "executors.report_on_other"),
        (report((SaidOfBatch((OF_ADA,)),), message_id=None), "executors.report_on_other"),
        (said(replace(OF_ADA, status="RJCT")).replace(b"RVCM", b"ACTC"), "executors.payment_status_report"),
        *(
            (form, "executors.report_not_xml")
            for form in (
                b"%PDF-1.7 1 0 obj",
                b"E2E ID;Request IBAN;Name Match\nE-0;DE89;MTCH\n",
                b'\xef\xbb\xbf{"results": []}',
                "E2E ID;Name Match\n".encode("utf-16"),
                zipped(said(OF_ADA), b"%PDF-1.7"),
            )
        ),
        # The file is of 2026-11-22T02:40:00, and an earlier file had the same MsgId.
        (report((SaidOfBatch((OF_ADA,)),), created="2026-11-21T02:39:59"), "executors.report_before_file"),
        (
            report((), status="RCVC", count="1", created="0001-01-01T00:00:00+14:00"),
            "executors.report_before_file",
        ),
        *(
            (
                report((SaidOfBatch((OF_ADA,)),), of_file=f"2026-11-22T{time}"),
                "executors.report_on_other_time",
            )
            for time in ("02:42:00", "09:11:00Z")
        ),
    ],
)
def test_a_report_on_something_else_is_refused(data, key):
    with pytest.raises(InputError) as refused:
        report_of(data, [ONE], where="report.xml")

    assert refused.value.reason.key == key


@pytest.mark.parametrize(
    "times",
    [
        *({"created": time} for time in ("2026-11-21T02:40:00", "2026-11-21T16:00:00Z", "yesterday", "")),
        # The same time in another zone, without seconds, with a fraction of them, unreadable.
        *({"of_file": f"2026-11-{time}"} for time in ("22T02:40:00", "22T03:40:00+01:00", "21T21:10", "x")),
        {"of_file": "2026-11-22T02:40:00.123"},
    ],
)
def test_a_report_of_any_other_time_is_read(times):
    of_ada = report((SaidOfBatch((OF_ADA,)),), **times)

    assert report_of(of_ada, [ONE], where="report.xml").content.transactions.height == 1


def test_as_many_statuses_as_payments_that_all_look_alike_cost_no_more_than_others():
    alike = 5_000
    message = read(Batch((replace(ADA, end_to_end_id="NOTPROVIDED"),) * alike))
    one = Said("NOTPROVIDED", account=IBANS[0], amount="1.00")

    assert set(codes(message, said(*(one,) * alike))) == {"REPORT_AMBIGUOUS"}
