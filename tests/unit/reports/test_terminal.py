"""The summary on a terminal: all of it, and nothing that a terminal would act on."""

from pathlib import Path

import pytest
from refusals import said

from pipeline.formats.message import difference_of
from pipeline.reports.terminal import ROWS_SHOWN_MAX, print_summary, render
from pipeline.reports.wording import CONTROLS_SHOWN_MAX, visible, warning_text, which_rows
from pipeline.wording import Sentence
from schemas.outcomes import Environment, Outcome
from schemas.row_positions import RowPositions
from schemas.summary import CurrencySources, OutcomeTotal, StatedControl, WarningCount
from tests.tables import for_each

HOSTILE = "[/ltd] [bold]Quillon[link=https://x] \x1b[31m\x9b2J\x07\u202e\u2028:boom:"


def test_summary_says_what_was_found(summary_of, shown):
    text = shown(render(summary_of()))
    for part in (
        "payroll.csv: 1,500 payments, production",
        "no match",
        "1,234.50 GBP",
        "ANNM",
        "Call the payee",
        said("terminal.needs_review", count=1500, row_count=1500),
        said("terminal.no_match_or_not_possible", count=1, which=""),
        "INV-1",
        said(
            "terminal.questions_and_requests",
            questions=Sentence("counted.distinct_question", count=1400),
            saved=Sentence("terminal.calls", count=100),
            sent=Sentence("counted.request", count=1395),
            before=Sentence("terminal.of_an_earlier_run", count=9),
        ),
        said("terminal.warned_rows", what=Sentence("warned.MIXED_SCRIPTS"), count=1, rows="7"),
        "Rows 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ...",
        "1,499 rows without",
    ):
        assert " ".join(part.split()) in " ".join(text.split())
    assert "...." not in text


def test_each_kind_of_warning_has_a_line_and_counts_its_rows(summary_of, shown):
    warnings = [
        WarningCount(code="PAYMENT_REPEATED", row_count=12, rows=list(range(1, 11))),
        WarningCount(code="MIXED_SCRIPTS", row_count=1, rows=[4]),
    ]
    text = shown(render(summary_of(warning_codes=warnings, warning_count=13)), width=120)
    lines = text.splitlines()
    repeated, mixed = Sentence("warned.PAYMENT_REPEATED"), Sentence("warned.MIXED_SCRIPTS")
    ten = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ..."
    assert said("terminal.warned_rows", what=repeated, count=12, rows=ten) in lines
    assert said("terminal.warned_rows", what=mixed, count=1, rows="4") in lines


@pytest.mark.parametrize("count", [1, 1200])
def test_accounts_that_the_modulus_tables_do_not_cover_are_counted(summary_of, shown, count):
    used = {"valid_from": "2030-01-01", "weights_sha256": "0", "substitutions_sha256": "0", "is_old": False}
    text = shown(render(summary_of(modulus={**used, "uncovered_count": count})))
    assert said("terminal.not_covered_by_modulus", count=count) in " ".join(text.split())
    assert "modulus" not in shown(render(summary_of(modulus={**used, "uncovered_count": 0})))
    assert "modulus" not in shown(render(summary_of()))


@pytest.mark.parametrize("is_old", [True, False])
def test_old_modulus_tables_are_told_also_where_no_account_fails(summary_of, shown, is_old):
    used = {
        "valid_from": "2030-01-01",
        "weights_sha256": "0",
        "substitutions_sha256": "0",
        "uncovered_count": 0,
    }
    text = " ".join(shown(render(summary_of(modulus={**used, "is_old": is_old}))).split())
    assert (said("terminal.old_modulus_tables") in text) == is_old


WAYS = {
    "given": Sentence("terminal.by_currency_column"),
    "beside_amount": Sentence("terminal.beside_amount"),
    "uk_account": Sentence("terminal.as_uk_account"),
    "unknown": Sentence("terminal.currency_unknown"),
}


def test_it_is_told_how_currencies_are_known_where_no_column_says_all(summary_of, shown):
    def told(**sources):
        summary = summary_of()
        source = summary.input.model_copy(update={"currency_sources": CurrencySources(**sources)})
        return " ".join(shown(render(summary.model_copy(update={"input": source}))).split())

    def ways(**counts):
        found = [Sentence("terminal.rows_by_source", count=counts[name], way=WAYS[name]) for name in counts]
        return said("terminal.currencies", told=found)

    for counts in ({"given": 2, "beside_amount": 1}, {"uk_account": 3, "unknown": 1}):
        assert ways(**counts) in told(**counts)
    assert "Currency:" not in told(given=4)


def test_outcome_without_rows_is_not_shown(summary_of, shown):
    assert "\nmatch" not in shown(render(summary_of()))


def test_simulated_answers_are_announced_loudly(summary_of, shown):
    simulated = summary_of(simulated=True, environment=Environment.SANDBOX)
    assert shown(render(simulated)).count("SIMULATED") == 2  # at the top, and where the eye ends up
    assert "SIMULATED" not in shown(render(summary_of()))


@pytest.mark.parametrize(
    ("counts", "is_told"),
    [
        ({Outcome.NOT_POSSIBLE: 2}, True),
        ({Outcome.NOT_POSSIBLE: 2, Outcome.REJECTED: 1, Outcome.MATCH: 0}, True),
        ({Outcome.NOT_POSSIBLE: 2, Outcome.MATCH: 1}, False),
        ({Outcome.REJECTED: 2}, False),
    ],
)
def test_who_tries_a_file_that_the_sandbox_does_not_know_is_led_to_a_rehearsal(
    summary_of, shown, counts, is_told
):
    outcomes = [OutcomeTotal(outcome=one, row_count=count, totals=[]) for one, count in counts.items()]
    simulated = summary_of(simulated=True, environment=Environment.SANDBOX, outcomes=outcomes)
    assert ("--rehearse" in shown(render(simulated))) is is_told


def test_incomplete_run_says_how_to_go_on(summary_of, shown):
    assert "run again tomorrow" in shown(render(summary_of(complete=False, next_step="run again tomorrow")))


@pytest.mark.parametrize("count", [ROWS_SHOWN_MAX, ROWS_SHOWN_MAX + 1])
def test_rows_that_are_not_shown_are_said_to_be_elsewhere(summary_of, attention_row, shown, count):
    text = shown(render(summary_of(attention=[attention_row(row=9000 + number) for number in range(count)])))
    assert sum(line.lstrip().startswith("90") for line in text.splitlines()) == ROWS_SHOWN_MAX
    largest = said("terminal.here_the_largest", number=ROWS_SHOWN_MAX)
    assert (largest in text) is (count > ROWS_SHOWN_MAX)


def test_amounts_and_currencies_may_be_missing(summary_of, attention_row, shown):
    rows = [attention_row(amount=None), attention_row(currency=None), attention_row(payment_id=None)]
    text = shown(render(summary_of(attention=rows, currency=None)))
    assert "(no currency)" in text
    assert "None" not in text


@pytest.mark.parametrize("markup", [True, False])
@pytest.mark.parametrize("color_system", [None, "truecolor"])
def test_text_of_the_file_is_shown_as_text_on_any_console(
    summary_of, attention_row, shown, markup, color_system
):
    rows = [attention_row(payment_id=HOSTILE, currency=HOSTILE, code="ANNM")]
    summary = summary_of(
        attention=rows, currency=HOSTILE, file_name=HOSTILE, reason=HOSTILE, next_step=HOSTILE, complete=False
    )
    options = {"markup": markup, "emoji": False, "color_system": color_system, "force_terminal": True}
    text = shown(render(summary), width=400, **options)
    assert text.count("[/ltd] [bold]") == 6
    assert "\x1b[31mQ" not in text
    for character in "\x9b\x07\u202e\u2028":
        assert character not in text
    if color_system is None:
        assert "\x1b[31m" not in text


def test_summary_is_readable_at_eighty_columns_without_colour(summary_of, shown):
    text = shown(render(summary_of()), width=80)
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "\x1b" not in text
    assert "1,234.50 GBP" in text


def test_end_says_where_the_files_are(summary_of, shown):
    def finish(console):
        print_summary(summary_of(), Path("payroll.precheck"), console, already_finished=False)

    text = shown(finish)
    assert said("terminal.outcomes_are_in", where="payroll.precheck") in text
    assert said("terminal.finished_already") not in " ".join(text.split())


@for_each(
    ("options", "left_out"),
    [
        ({"force_terminal": True, "height": 200}, 0),
        ({"force_terminal": True, "height": 26}, 1),
        ({"force_terminal": True, "height": 10}, 2),
        ({"height": 10}, 0),
    ],
)
def test_a_summary_that_does_not_fit_on_the_screen_leaves_out_meanings_then_rows(
    summary_of, shown, options, left_out
):
    text = shown(
        lambda console: print_summary(summary_of(), Path("x"), console, already_finished=False), **options
    )
    assert (said("todo.ask_payee") in " ".join(text.split())) is (left_out == 0)
    codes = said("terminal.codes_and_rows", codes=["ANNM 1,500"])
    assert (codes in " ".join(text.split())) is (left_out > 0)
    assert ("payment id" in text) is (left_out < 2)
    assert "1,234.50 GBP" in text


def test_end_names_the_working_directory_in_words(summary_of, shown):
    text = shown(lambda console: print_summary(summary_of(), Path(), console, already_finished=False))
    assert said("terminal.outcomes_are_in", where=Sentence("terminal.this_folder")) in text


@pytest.mark.parametrize(("columns", "is_told"), [({}, True), ({"Betrag": "amount"}, False)])
def test_file_without_amounts_is_told_so(summary_of, shown, columns, is_told):
    source = summary_of().input.model_copy(update={"columns": columns})
    text = " ".join(shown(render(summary_of(input=source))).split())
    assert (said("terminal.no_amount_column") in text) is is_told


def test_run_that_had_finished_says_that_nothing_was_sent(summary_of, shown):
    def again(console):
        print_summary(summary_of(), Path("x"), console, already_finished=True)

    time = "2030-01-02T03:04:05.678Z"
    assert said("terminal.finished_already", time=time) in " ".join(shown(again).split())


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("Ada Zo\u00eb \u0141uk\u00e1\u0161 \u30a2", "Ada Zo\u00eb \u0141uk\u00e1\u0161 \u30a2"),
        ("\x1b[31m", "\\x1b[31m"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\x9b\x85", "\\x9b\\x85"),
        ("\u202e\u200b\ufeff", "\\u202e\\u200b\\ufeff"),
        ("\u2028\u2029", "\\u2028\\u2029"),
        ("", ""),
    ],
)
def test_what_a_terminal_would_act_on_is_made_visible(text, seen):
    assert visible(text) == seen


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([2], "row 2"),
        ([2, 1200], "rows 2, 1200"),
        (range(1, 13), "rows 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more"),
    ],
)
def test_one_row_is_a_row_and_more_are_rows(rows, said):
    assert which_rows(rows) == said


def test_rows_are_named_with_their_places():
    places = RowPositions(unit="sheet row", stretches=[(1, 5, 1)])
    for rows, at in (([2], ["6"]), ([2, 4], ["6", "8"])):
        named = Sentence("places.rows", count=len(rows), rows=list(map(str, rows)))
        there = Sentence("places.sheet_rows", count=len(at), places=at)
        assert which_rows(rows, positions=places) == said("places.rows_at", rows=named, places=there)
    count = WarningCount(code="MIXED_SCRIPTS", row_count=12, rows=[1, 2], every_row=[1, 2])
    rows = f"1, 2, ...; {said('places.sheet_rows', count=2, places='5, 6')}, ..."
    mixed = Sentence("warned.MIXED_SCRIPTS")
    assert warning_text(count, places) == said("terminal.warned_rows", what=mixed, count=12, rows=rows)


def test_a_payment_of_a_pain_001_is_named_by_its_batch_and_its_number_there(summary_of, attention_row, shown):
    summary = summary_of(attention=[attention_row(row=20), attention_row(row=3)])
    places = RowPositions(unit="PmtInf", stretches=[(1, 1, 0), (18, 2, 0)])
    located = summary.input.model_copy(update={"positions": places})

    lines = shown(render(summary.model_copy(update={"input": located})), width=80).splitlines()

    [header] = [line.split() for line in lines if "PmtInf" in line and "row" in line]
    at = [header.index(name) for name in ("row", "PmtInf", "CdtTrfTxInf")]
    rows = [line.split() for line in lines if line.rstrip().endswith("INV-1")]
    assert [[row[column] for column in at] for row in rows] == [["20", "2", "3"], ["3", "1", "3"]]


def test_payments_of_many_batches_are_named_in_few_words():
    each_its_own = RowPositions(unit="PmtInf", stretches=[(row, row, 0) for row in range(1, 13)])
    assert which_rows(range(1, 12), positions=each_its_own) == (
        "rows 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 (PmtInf[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]/CdtTrfTxInf[1]) and 1 more"
    )


def test_of_many_totals_that_differ_the_first_are_told(summary_of, shown):
    controls = [
        StatedControl(
            where=f"PmtInf[{number}]/NbOfTxs",
            stated="2",
            found="1",
            agrees=False,
            difference=difference_of(f"PmtInf[{number}]/NbOfTxs", "2", "1").recorded(),
        )
        for number in range(1, 9)
    ]
    summary = summary_of()
    lying = summary.input.model_copy(update={"controls": controls, "control_count": 8})

    text = " ".join(shown(render(summary.model_copy(update={"input": lying}))).split())

    differing = [difference_of(f"PmtInf[{number}]/NbOfTxs", "2", "1") for number in range(1, 9)]
    told = [said("terminal.warning", sentence=difference) in text for difference in differing]
    assert told == [True] * CONTROLS_SHOWN_MAX + [False] * 3
    assert said("terminal.more_controls_differ", count=3) in text
