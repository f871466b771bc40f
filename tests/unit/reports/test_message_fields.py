"""A payment format on a terminal: fields, facts, totals, and what is set aside."""

import pytest
from refusals import said

from pipeline.formats.message import difference_of, set_aside_of
from pipeline.reports.listings import CONTROLS_LISTED_MAX, print_columns
from pipeline.wording import Sentence
from schemas.columns import Column, ColumnsRead
from schemas.summary import StatedControl


def control(number, *, agrees=True):
    where, found = f"PmtInf[{number}]/NbOfTxs", "4" if agrees else "3"
    difference = None if agrees else difference_of(where, "4", found).recorded()
    return StatedControl(where=where, stated="4", found=found, agrees=agrees, difference=difference)


@pytest.fixture
def told():
    def build(*controls, **said):
        name = Column(
            header="CdtrAgt/FinInstnId/ClrSysMmbId",
            field="organisation_id_scheme",
            rule="pain.001 (ISO 20022 credit transfers)",
            others=[],
            values=["DE89370400440532013000", "FR7630003012340000482100733", "NL91ABNA0417164300"],
            row_count=1_234,
        )
        return ColumnsRead(
            file="pay.xml",
            columns=[name],
            format="pain.001 (ISO 20022 credit transfers)",
            row_count=1_300,
            facts={"version": "pain.001.001.03", "namespace": "", "name_chars_max": "70", "sealed": "yes"},
            controls=list(controls),
            control_count=said.pop("control_count", len(controls)),
            **said,
        )

    return build


@pytest.mark.parametrize("width", [80, 120])
def test_every_field_has_its_place_its_rows_and_its_values_whole(told, shown, width):
    text = shown(lambda console: print_columns(told(), console), width=width)

    title, payments = Sentence("formats.title_pain001"), Sentence("counted.payment", count=1300)
    assert said("terminal.fields_title", file="pay.xml", format=title, payments=payments) in text
    assert text.count(str(title)) == 1
    for part in ("organisation_id_scheme", "CdtrAgt/FinInstnId/ClrSysMmbId", "1,234", "NL91ABNA0417164300"):
        assert part in text
    assert max(map(len, text.splitlines())) <= width


def test_facts_are_words(told, shown):
    lines = shown(lambda console: print_columns(told(), console)).splitlines()
    facts = [
        line.split(maxsplit=1) for line in lines if line.startswith(("version", "namespace", "names", "sign"))
    ]
    assert [[name, fact.strip()] for name, fact in facts] == [
        ["version", "pain.001.001.03"],
        ["names", said("fact.at_most_chars", number=70)],
        ["signature", said("fact.signed")],
    ]


@pytest.mark.parametrize(
    ("controls", "sentence"),
    [
        ([control(1)], said("controls.agree", count=1)),
        ([control(1), control(2)], said("controls.agree", count=2)),
        ([control(1, agrees=False)], said("controls.only_one_differs")),
        ([control(1, agrees=False), control(2)], said("controls.differ", count=1, all=2)),
    ],
)
def test_control_totals_are_summed_up_in_a_sentence(told, shown, controls, sentence):
    text = shown(lambda console: print_columns(told(*controls), console))

    assert sentence in text
    assert ("differs" in text) is any(not one.agrees for one in controls)


def test_a_file_of_many_batches_fills_no_screen(told, shown):
    many = [control(number) for number in range(1, 101)]

    text = shown(lambda console: print_columns(told(*many, control_count=2_000), console))

    assert text.count("agrees") == CONTROLS_LISTED_MAX
    assert said("terminal.more_in_json", number=1980) in text


def test_what_is_set_aside_is_told(told, shown):
    aside = set_aside_of("direct debit", "17", [7])

    text = shown(lambda console: print_columns(told(set_aside=[aside]), console))

    code, line = Sentence("formats.of_code", code="17"), Sentence("formats.lines", count=1, lines=["7"])
    debit = Sentence("formats.direct_debit")
    assert said("formats.lines_not_checked", count=1, what=debit, code=code, lines=line) in text
