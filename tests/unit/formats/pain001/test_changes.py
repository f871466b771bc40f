"""What is written is the file as it was, but for what was to change: seen by another XML parser."""

import re
from dataclasses import replace
from decimal import Decimal
from itertools import chain

import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from paymentfiles.pain001 import DIALECTS, UTF_16, Batch, Dialect, Payment, document
from refusals import says

from pipeline.formats import pain001
from pipeline.formats.edits import Edit, edited, in_order, require_undone
from pipeline.formats.pain001 import reading
from pipeline.wording import Sentence

IBAN = "NL91ABNA0417164300"
PAYMENTS = st.builds(
    Payment,
    end_to_end_id=st.sampled_from(["E2E-1", "NOTPROVIDED"]),
    name=st.sampled_from([None, "", "A", "Ada Quillon", "Müller & <Söhne>", "Łukasz", "N" * 140]),
    iban=st.just(IBAN),
    amount=st.integers(0, 10**7).map(lambda cents: f"{Decimal(cents) / 100:.2f}"),
    supplement=st.booleans(),
    comment=st.sampled_from([None, " pays Ada ", " <CdtTrfTxInf> "]),
)
TOTALS = st.sampled_from(["", None])
BATCHES = st.lists(
    st.builds(
        Batch,
        st.lists(PAYMENTS, min_size=1, max_size=4).map(tuple),
        id=st.sampled_from(["BATCH-1", "B" * 34, "B" * 33 + "-R", "B&B", None]),
        method=st.just("TRF"),
        count=TOTALS,
        sum=TOTALS,
        comment=st.sampled_from([None, " the mill "]),
    ),
    min_size=1,
    max_size=4,
).map(tuple)
FILES = st.tuples(BATCHES, st.sampled_from(list(DIALECTS.values())), TOTALS, TOTALS)


def read(data):
    return pain001.message_of(pl.concat(list(reading.parse(data))))


def undoing(data, edits):
    """The edits that make of the changed file what it was."""
    shift = 0
    for start, end, text in in_order(edits):
        yield Edit(start + shift, start + shift + len(text), data[start:end])
        shift += len(text) - (end - start)


def changed(data, edits):
    """The changed file, undone by the program and by hand."""
    written = b"".join(edited(data, edits))
    require_undone(written, data, edits)
    assert b"".join(edited(written, undoing(data, edits))) == data
    rest, at = b"", 0
    for start, end, _ in edits:
        assert at <= start <= end
        rest, at = rest + data[at:start], end
    assert len(written) == len(rest + data[at:]) + sum(len(edit.text) for edit in edits)
    return written


def tree_of(data):
    return etree.fromstring(data, etree.XMLParser(resolve_entities=False, strip_cdata=True))


def local(element):
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def texts_of(root):
    """All elements, comments and instructions with their texts, in order; not the blanks between them."""
    return [
        (
            str(node.tag),
            dict(node.attrib) if isinstance(node.tag, str) else {},
            (node.text or "") if len(node) == 0 else (node.text or "").strip(),
            (node.tail or "").strip(),
        )
        for node in root.iter()
    ]


def with_what_stands_before(element):
    yield element
    before = element.getprevious()
    while before is not None and not isinstance(before.tag, str):
        yield before
        before = before.getprevious()


def remove(element):
    for node in list(with_what_stands_before(element)):
        node.getparent().remove(node)


def amounts_of(element):
    return [Decimal(node.text) for node in element.iter() if local(node) == "InstdAmt"]


def payments_of(root):
    return [
        node for node in root.iter() if local(node) == "CdtTrfTxInf" and local(node.getparent()) == "PmtInf"
    ]


def without(root, keep, written):
    """The original as it should have been changed; ids are taken from what was written, and looked at."""
    for payment, stays in zip(payments_of(root), keep, strict=True):
        if not stays:
            remove(payment)
    for batch in [node for node in root.iter() if local(node) == "PmtInf"]:
        if not any(local(node) == "CdtTrfTxInf" for node in batch):
            remove(batch)
    ids = iter([node.text for node in written.iter() if local(node) in {"MsgId", "PmtInfId"}])
    for node in list(root.iter()):
        if local(node) in {"NbOfTxs", "CtrlSum"}:
            level = node.getparent()
            amounts = amounts_of(level.getparent() if local(level) == "GrpHdr" else level)
            node.text = str(len(amounts)) if local(node) == "NbOfTxs" else f"{sum(amounts):.2f}"
        if local(node) in {"MsgId", "PmtInfId"}:
            new = next(ids)
            assert len(new) <= 35
            assert new.endswith("-R")
            assert new.startswith(node.text[:25])
            node.text = new
    return root


@examples(60)
@given(FILES, st.data())
def test_payments_are_removed_and_nothing_else_is_changed(file, choice):
    batches, dialect, count, total = file
    data = document(batches, dialect, count=count, sum=total)
    message = read(data)
    height = message.payments.height
    keep = choice.draw(st.lists(st.booleans(), min_size=height, max_size=height).filter(any))
    released = changed(data, pain001.kept(data, message, pl.Series(keep), "release"))
    again = read(released)
    assert again.payments.rows() == [
        row for row, stays in zip(message.payments.rows(), keep, strict=True) if stays
    ]
    assert again.difference is None
    assert texts_of(tree_of(released)) == texts_of(without(tree_of(data), keep, tree_of(released)))
    if not all(keep):
        stay = pl.Series([not stays for stays in keep])
        held = changed(data, pain001.kept(data, message, stay, "hold"))
        pieces = [bytes_of(released, again), bytes_of(held, read(held))]
        assert sorted(chain(*pieces)) == sorted(bytes_of(data, message))


def bytes_of(data, message):
    return [data[start:end] for start, end in message.locations.select("element", "end").iter_rows()]


@examples(60)
@given(FILES, st.data())
def test_names_are_changed_and_nothing_else_is(file, choice):
    batches, dialect, count, total = file
    data = document(batches, dialect, count=count, sum=total)
    message = read(data)
    named = [payment.name is not None for batch in batches for payment in batch.payments]
    new_names = st.sampled_from(["Grace Marrow", "Grüße & <Co> ]]>", "Ελλάς", "x" * 70])
    names = {
        row: choice.draw(new_names)
        for row, has_name in enumerate(named, start=1)
        if has_name and choice.draw(st.booleans())
    }
    assert all(pain001.name_obstacle(message, row, name) is None for row, name in names.items())
    written = changed(data, pain001.renamed(data, message, names))
    expected, root = tree_of(data), tree_of(written)
    payments = payments_of(expected)
    for row, name in names.items():
        next(node for node in payments[row - 1].iter() if local(node) == "Nm").text = name
    assert texts_of(root) == texts_of(expected)
    again = read(written)
    assert again.payments["name"].to_list() == [
        names.get(row, name) for row, name in enumerate(message.payments["name"], start=1)
    ]
    assert again.payments.drop("name").equals(message.payments.drop("name"))


@pytest.mark.parametrize("dialect", [*DIALECTS.values()], ids=DIALECTS)
def test_a_comment_that_names_a_payee_goes_with_the_payment(dialect):
    payments = tuple(
        Payment(name=f"Payee {letter}", iban=IBAN, comment=f" to {letter} ") for letter in "ABCD"
    )
    data = document((Batch(payments[:2], comment=" one "), Batch(payments[2:], comment=" two ")), dialect)
    message = read(data)
    written = changed(data, pain001.kept(data, message, pl.Series([False, True, False, False]), "release"))
    comments = re.findall(r"<!--(.*?)-->", written.decode(dialect.encoding))
    assert comments == [" one ", " to B "]


HAND_MADE = b"""<?xml version='1.0'?>
<!-- before -->
<Document><CstmrCdtTrfInitn><GrpHdr><MsgId>M1</MsgId><NbOfTxs> 3 </NbOfTxs><CtrlSum>6</CtrlSum></GrpHdr>
<!-- P1 --><PmtInf note='>'><PmtInfId>P1</PmtInfId><PmtMtd>TRF</PmtMtd>
 <NbOfTxs>2</NbOfTxs><Odd a="/>"/><!-- to a -->
<CdtTrfTxInf ><Amt><InstdAmt Ccy='EUR'>1.25</InstdAmt></Amt><Cdtr><Nm x='"/>'/></Cdtr></CdtTrfTxInf
  ><Strange/><?to b?><CdtTrfTxInf>
 <Amt><InstdAmt>2.25</InstdAmt></Amt><Cdtr><Nm><!-- x -->B</Nm></Cdtr></CdtTrfTxInf>
 <!-- left --> </PmtInf><?p2?>
<PmtInf><PmtInfId>P2</PmtInfId><CdtTrfTxInf><Amt><InstdAmt>2.5</InstdAmt></Amt></CdtTrfTxInf></PmtInf>
<SplmtryData/></CstmrCdtTrfInitn></Document><!-- after -->"""


@pytest.mark.parametrize(
    ("keep", "gone", "counts", "total"),
    [
        ((False, True, True), [b"<!-- to a -->", b"1.25", b"<Nm x="], [b"2", b"1"], b"4.75"),
        ((True, False, True), [b"<?to b?>", b"2.25"], [b"2", b"1"], b"3.75"),
        ((True, True, False), [b"<?p2?>", b"P2", b"2.5<"], [b"2", b"2"], b"3.5"),
        ((False, False, True), [b"P1", b"Odd", b"Strange", b"left", b"to b"], [b"1"], b"2.5"),
    ],
)
def test_a_file_full_of_oddities_is_cut_where_it_should_be(keep, gone, counts, total):
    data = HAND_MADE
    written = changed(data, pain001.kept(data, read(data), pl.Series(keep), "release"))
    assert not [text for text in gone if text in written]
    assert re.findall(rb"<NbOfTxs>(.*?)<", written) == counts
    assert re.findall(rb"<CtrlSum>(.*?)<", written) == [total]
    assert b"<MsgId>M1-R<" in written
    assert b"<!-- before -->" in written
    assert b"<SplmtryData/>" in written
    tree_of(written)
    if keep[:2] != (False, False):
        assert b"<!-- left --> </PmtInf>" in written


def test_a_name_without_content_gets_one():
    data = HAND_MADE
    message = read(data)
    written = changed(data, pain001.renamed(data, message, {1: "Ada", 2: "Bob"}))
    assert b"""<Nm x='"/>'>Ada</Nm>""" in written
    assert b"<Nm>Bob</Nm>" in written
    assert read(written).payments["name"].to_list() == ["Ada", "Bob", None]


def test_new_ids_fit_and_differ():
    ids = ["B" * 35, "B" * 34 + "C", "A", "A-R", "B" * 33]
    batches = tuple(Batch((Payment(iban=IBAN),), id=id_) for id_ in ids)
    data = document(batches, message_id="M" * 35)
    message = read(data)
    keep = pl.Series([True] * 5)
    again = read(changed(data, pain001.kept(data, message, keep, "hold")))
    new = again.levels["id"].to_list()
    assert all(len(id_) <= 35 and id_.endswith("-H") for id_ in new)
    assert len(set(new)) == 6
    assert new[3:] == ["A-H", "A-R-H", "B" * 33 + "-H"]
    assert re.fullmatch(r"M{26}-[0-9a-f]{6}-H", new[0])
    assert again.payments.equals(message.payments)


def test_nothing_is_written_where_nothing_is_to_change():
    data = document((Batch((Payment(iban=IBAN),)),))
    assert b"".join(edited(data, pain001.renamed(data, read(data), {}))) == data


NO_UTF_16 = Sentence("pain001.encoding_not_editable", encoding="UTF-16")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (document((Batch((Payment(iban=IBAN),)),), UTF_16), NO_UTF_16),
        (document((Batch((Payment(iban=IBAN),)),), replace(UTF_16, declaration=False)), NO_UTF_16),
        (
            document((Batch((Payment(iban=IBAN),)),), count="2"),
            Sentence("formats.control_differs", stated="2", where="GrpHdr/NbOfTxs", found="1"),
        ),
        (
            document((Batch((Payment(iban=IBAN),)),)).replace(
                b"</Document>", b'<s:Signature xmlns:s="http://www.w3.org/2000/09/xmldsig#"/></Document>'
            ),
            Sentence("pain001.is_signed"),
        ),
        (
            document((Batch((Payment(iban=IBAN),)),)).replace(
                b"</PmtInf>", b"<SplmtryData><Envlp><FileHash>1</FileHash></Envlp></SplmtryData></PmtInf>"
            ),
            Sentence("pain001.is_signed"),
        ),
    ],
)
def test_what_must_not_be_changed_is_not(data, why):
    message = read(data)
    assert message.payments.height == 1
    says(pain001.obstacle(message), why, file="formats.the_file")
    with pytest.raises(AssertionError):
        pain001.kept(data, message, pl.Series([True]), "release")
    with pytest.raises(AssertionError):
        pain001.renamed(data, message, {1: "Ada"})


@pytest.mark.parametrize(
    ("dialect", "payment", "name", "why"),
    [
        (
            Dialect("pain.001.003.03"),
            Payment(),
            "x" * 71,
            Sentence("pain001.new_name_too_long", chars_max=70, version="pain.001.003.03"),
        ),
        (Dialect(), Payment(), "x" * 141, Sentence("pain001.new_name_too_long", chars_max=140)),
        (Dialect(), Payment(), "Ada\nQuillon", Sentence("pain001.new_name_not_in_xml")),
        (Dialect(), Payment(), "Ada\ufffe", Sentence("pain001.new_name_not_in_xml")),
        (Dialect(), Payment(), "Ada\ud800", Sentence("pain001.new_name_not_in_xml")),
        (Dialect(), Payment(name=None), "Ada", Sentence("pain001.no_element_for_name")),
    ],
)
def test_a_name_that_the_file_cannot_hold_is_told(dialect, payment, name, why):
    message = read(document((Batch((replace(payment, iban=IBAN),)),), dialect))
    says(pain001.name_obstacle(message, 1, name), why)


@settings(deadline=None)
@given(st.binary(min_size=1, max_size=60), st.data())
def test_a_file_that_differs_in_more_than_its_edits_is_found(data, choice):
    size = len(data)
    cuts = sorted(
        choice.draw(st.lists(st.integers(0, size), max_size=6).map(lambda at: at[: len(at) // 2 * 2]))
    )
    edits = [
        Edit(start, end, choice.draw(st.binary(max_size=5)))
        for start, end in zip(cuts[::2], cuts[1::2], strict=True)
    ]
    written = b"".join(edited(data, edits))
    require_undone(written, data, edits)
    kept_at = [at for at in range(size) if not any(edit.start <= at < edit.end for edit in edits)]
    wrong_texts = {
        b"".join(
            edited(data, [Edit(start, end, text + b"x"), *(each for each in edits if each.start >= end)])
        )
        for start, end, text in edits[:1]
    }
    for wrong in ({written + b"x", written[:-1]} | wrong_texts) - {written}:
        with pytest.raises(AssertionError):
            require_undone(wrong, data, edits)
    if kept_at:
        at = choice.draw(st.sampled_from(kept_at))
        other = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        with pytest.raises(AssertionError):
            require_undone(b"".join(edited(other, edits)), data, edits)
