"""The metrics file, read by the official parser."""

from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client.parser import text_string_to_metric_families

from pipeline.reports.metrics import RunFigures, metrics_text, write_metrics
from pipeline.stores.sqlite.quota import QuotaUse

STARTED = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def summary(summary_of):
    return summary_of()


def figures(**changes):
    usual = {"version": "1.2.3", "started": STARTED, "finished": STARTED + timedelta(seconds=61.5)}
    return RunFigures(**usual, exit_status=0, **changes)


def samples(text):
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_rows_and_requests_are_those_of_the_summary(summary):
    found = samples(metrics_text(figures(summaries=[summary])))

    for total in summary.outcomes:
        assert found["precheck_rows", total.outcome.value] == total.row_count
    for call in summary.calls:
        assert found["precheck_requests", call.api.value] == call.request_count
        assert found["precheck_questions", call.api.value] == call.question_count
        assert found["precheck_answered_before", call.api.value] == call.answered_before_count
    assert found["precheck_files",] == 1


def test_pauses_are_counted_and_the_fewest_requests_in_flight_told(summary):
    assert "in_flight_least" not in metrics_text(figures(summaries=[summary]))
    slow = [
        summary.model_copy(
            update={
                "calls": [
                    call.model_copy(update={"pause_count": 3, "in_flight_least": least})
                    for call in summary.calls
                ]
            }
        )
        for least in (4.0, 0.5)
    ]

    found = samples(metrics_text(figures(summaries=[*slow, summary])))

    assert found["precheck_pauses", "cop"] == 6
    assert found["precheck_in_flight_least", "cop"] == 0.5


def test_several_files_are_added_up(summary):
    once, twice = (samples(metrics_text(figures(summaries=[summary] * count))) for count in (1, 2))

    assert twice["precheck_rows", "no_match"] == 2 * once["precheck_rows", "no_match"] > 0
    assert twice["precheck_requests", "cop"] == 2 * once["precheck_requests", "cop"] > 0


def test_a_run_that_came_to_nothing_has_times_and_status_and_claims_no_rows():
    found = samples(metrics_text(RunFigures("1.2.3", STARTED, STARTED + timedelta(seconds=2), 77)))

    assert found["precheck_exit_status",] == 77
    assert found["precheck_run_duration_seconds",] == 2
    assert found["precheck_start_timestamp_seconds",] == STARTED.timestamp()
    assert found["precheck_files",] == 0
    assert not any(name == "precheck_rows" for name, *_ in found)


def test_a_label_may_hold_any_text():
    scope = 'host:443|a"b\\c\nd'
    found = samples(
        metrics_text(figures(quotas=[QuotaUse(scope, None, 17, 50, closed=False, resets_at=STARTED)]))
    )
    assert found["precheck_quota_used_requests", scope] == 17
    assert found["precheck_quota_cap_requests", scope] == 50


def test_every_family_has_a_help_and_a_unit_of_the_base_kind(summary):
    text = metrics_text(
        figures(
            summaries=[summary],
            quotas=[QuotaUse("host", None, 1, 2, closed=False, resets_at=STARTED)],
        )
    )
    for family in text_string_to_metric_families(text):
        assert family.documentation.endswith(".")
        assert family.type == "gauge"
        assert not family.name.endswith(("_ms", "_s", "_total"))


def test_no_name_and_no_payment_id_is_in_the_file(summary):
    text = metrics_text(figures(summaries=[summary]))
    assert summary.attention
    for row in summary.attention:
        assert row.payment_id is None or row.payment_id not in text


@pytest.mark.parametrize("before", ["", "older"])
def test_the_file_is_whole_and_for_everybody_to_read(tmp_path, before):
    path = tmp_path / "precheck.prom"
    if before:
        path.write_text(before)
    write_metrics(path, metrics_text(figures()).encode())
    assert path.stat().st_mode & 0o777 == 0o644
    assert samples(path.read_text())["precheck_exit_status",] == 0
    assert [entry.name for entry in tmp_path.iterdir()] == ["precheck.prom"]
