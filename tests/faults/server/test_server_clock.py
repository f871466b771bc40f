"""Row A9 of the fault table: a server whose clock is not ours."""

import re

from pipeline.stages.ask.admission import ALIKE_MAX

STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
WRONG_BY = {"clock-ahead": "s behind the server's", "clock-behind": "s ahead of the server's"}
SLOWLY = {"rate_per_s": 50, "in_flight_max": 4}


def told(seen):
    """The lines that speak of a clock."""
    return [line for line in seen.err.splitlines() if "clock" in line]


def test_a_clock_that_is_off_is_told_once_and_costs_no_answer(lab, a_trial, tell):
    rows, ibans = lab.uk_rows(40), lab.iban_rows(40)
    clean = lab.try_out(right=a_trial(rows))["right"]
    trials = {
        f"{name} {api}": a_trial(of_api, (name,), apis=(api,))
        for name in WRONG_BY
        for api, of_api in {"cop": rows, "vop": ibans}.items()
    }
    seen = lab.try_out(**trials)
    truth = lab.truth_of([*rows, *ibans])
    good = [
        name
        for name, one in seen.items()
        if len(told(one)) == 1 and WRONG_BY[name.split()[0]] in told(one)[0]
        and re.search(r"\b(60\d|59\d) s ", told(one)[0])
        and one.status == 0 and not one.wrong(truth)
    ]  # fmt: skip
    tell(
        "A9", "server's clock 10 minutes ahead, behind", tried=len(trials),
        survived=len(good) if not told(clean) else 0,
        figure=f"{[len(told(one)) for one in seen.values()]} warnings, {len(told(clean))} without the fault",
        goal="1 each, 0 without, every row answered",
    )  # fmt: skip


def test_a_server_that_refuses_the_time_of_requests_ends_the_run(lab, a_trial, tell):
    rows, names = lab.uk_rows(200), ("timestamp-refused", "timestamp-refused-in-detail")
    seen = lab.try_out(**{name: a_trial(rows, (name,), changes=SLOWLY) for name in names})
    good = [
        name
        for name, one in seen.items()
        if one.status == 78 and len(one.sentences) == 1 and len(set(STAMP.findall(one.sentences[0]))) == 2
        and len(one.questions) == ALIKE_MAX
        and {codes[0] for codes in one.codes().values()} == {"unanswered", "deferred"}
    ]  # fmt: skip
    sent = [len(one.questions) for one in seen.values()]
    tell(
        "A9", "server refuses X-Request-Timestamp", tried=len(names), survived=len(good),
        figure=f"{sent} requests in all, exits {[one.status for one in seen.values()]}",
        goal=f"exit 78, {ALIKE_MAX} requests, one at a time, both times reported",
    )  # fmt: skip
