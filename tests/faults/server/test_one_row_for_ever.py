"""Rows B19 and B20 of the fault table: replies that come back for ever, to one question, to some, to all."""

import json
from itertools import pairwise

from pipeline.stages.ask.gate import PAUSES_MAX

TURNED_AWAY = {"401": 77, "403": 77, "404": 78, "redirect-307": 78}
"""Fault -> the exit of a run that never had an answer."""
BROKEN = {"wrong-echo": 76, "missing-echo": 76}
CODES = {"401": "HTTP_401", "403": "HTTP_403", "404": "HTTP_404", "redirect-307": "HTTP_307"}
QUICK = {"in_flight_max": 8, "rate_per_s": 200}
REQUESTS_MAX = 12
"""For one question and run."""


def code_of(fault):
    return CODES.get(fault, "CONTRACT")


def account_of(row):
    return row["sort_code"] + row["account_number"]


def left_behind(seen, rows):
    """Whether a run left every file, each true of the same moment."""
    folder = seen.desk.folder / "payments.precheck"
    verified = seen.desk("verify", folder)
    summary = json.loads((folder / "summary.json").read_text())
    counted = sum(total["row_count"] for total in summary["outcomes"])
    return len(seen.rows) == len(rows) == counted and verified.status == 0


def three_runs(lab, a_trial, name, fault, rows):
    """Three runs of one file, a fourth, and one that is told to ask again."""
    trial = a_trial(rows, changes=QUICK)
    with lab.served(f"{name}-server", "--fault", fault) as sandbox:
        runs = [lab.attempt(name, trial, sandbox) for _ in range(4)]
        desk, using = runs[-1].desk, runs[-1].using
        before = len(sandbox.questions())
        again = desk("run", "payments.csv", *using, "--retry-unanswered")
        asked_again = len(sandbox.questions()) - before
    return runs, again, asked_again


def test_a_reply_that_one_row_always_gets_holds_up_no_other(lab, a_trial, tell):
    rows = lab.uk_rows(40)
    truth = lab.truth_of(rows[1:])
    faults = [*TURNED_AWAY, *BROKEN]

    def attempts(fault):
        return three_runs(lab, a_trial, fault, f"{fault}:account={account_of(rows[0])}", rows)

    seen = dict(zip(faults, lab.several(attempts, faults), strict=True))
    good, most = [], 0
    for fault, (runs, again, asked_again) in seen.items():
        others = [{name: code for name, code in one.codes().items() if name in truth} for one in runs]
        first = rows[0]["payment_id"]
        told = [one.codes()[first] for one in runs] == [("unanswered", code_of(fault))] * 4
        sent = [len(one.questions) for one in runs]
        per_run = [sent[0] - 39, *(later - sooner for sooner, later in pairwise(sent))]
        most = max(most, *per_run)
        ends = [one.status for one in runs] == [75, 75, 76, 76] and again.status == 76
        is_whole = all(left_behind(one, rows) for one in runs) and "--retry-unanswered" in runs[2].out
        if told and ends and is_whole and others == [truth] * 4 and per_run[3] == 0 and asked_again:
            good.append(fault)
    tell(
        "B19", "one row is always refused or answered brokenly, three runs", tried=len(faults),
        survived=len(good) if most <= REQUESTS_MAX else 0,
        figure=f"{most} requests for it in a run at most; every other row answered; then 76, then 0 requests",
        goal=f"<= {REQUESTS_MAX}, every other row answered, 76 after three runs",
    )  # fmt: skip


def test_a_reply_that_one_row_in_twenty_gets_by_chance_ends_no_run(lab, a_trial, tell):
    rows = lab.uk_rows(300)
    truth = lab.truth_of(rows)
    faults = [*TURNED_AWAY, *BROKEN]
    trials = {fault: a_trial(rows, (f"{fault}:probability=0.05,seed=7",), changes=QUICK) for fault in faults}
    seen = lab.try_out(**trials)
    calls = max(len(one.questions) for one in seen.values()) / len(rows)
    good = [
        fault
        for fault, one in seen.items()
        if one.status in {0, 75} and not one.wrong(truth) and left_behind(one, rows)
        and sum(codes[0] != "unanswered" for codes in one.codes().values()) >= 0.9 * len(rows)
    ]  # fmt: skip
    tell(
        "B19", "one reply in twenty, for ever", tried=len(faults), survived=len(good) if calls <= 1.1 else 0,
        figure=f"{calls:.2f} calls a row at most, exits {[one.status for one in seen.values()]}",
        goal="<= 1.1 calls a row, no run ended, outcome files true",
    )  # fmt: skip


def test_a_reply_that_every_row_gets_ends_the_run_soon_with_its_files(lab, a_trial, tell):
    rows = lab.uk_rows(300)
    faults = {**TURNED_AWAY, **BROKEN}
    seen = lab.try_out(**{fault: a_trial(rows, (fault,), changes=QUICK) for fault in faults})
    most = max(len(one.questions) for fault, one in seen.items() if fault in TURNED_AWAY)
    good = [
        fault
        for fault, one in seen.items()
        if one.status == faults[fault] and left_behind(one, rows)
        and {codes[0] for codes in one.codes().values()} == {"unanswered", "deferred"}
    ]  # fmt: skip
    tell(
        "B19", "every reply, no answer ever before", tried=len(faults),
        survived=len(good) if most <= 7 else 0,
        figure=f"turned away: {most} requests at most; exits {[one.status for one in seen.values()]}",
        goal=f"<= 7 requests, exits {[*faults.values()]}, outcome files true",
    )  # fmt: skip


def test_credentials_that_are_revoked_within_a_run_leave_the_rest_to_a_later_one(lab, a_trial, tell):
    rows, answered = lab.uk_rows(300), 100
    seen = lab.try_out(revoked=a_trial(rows, (f"403:after={answered}",), changes=QUICK))["revoked"]
    after = len(seen.met("403"))
    left = [code for code in seen.codes().values() if code == ("deferred", "TURNED_AWAY")]
    is_good = seen.status == 75 and left_behind(seen, rows) and "403" in seen.err
    is_good = is_good and len(left) == len(rows) - answered - after
    after_max = 20 + QUICK["in_flight_max"] + 5
    tell(
        "B19", "permission withdrawn within a run", tried=1, survived=int(is_good and after <= after_max),
        figure=f"{after} requests after it, exit {seen.status}", goal=f"<= {after_max}, exit 75",
    )  # fmt: skip


def test_a_server_that_only_says_too_many_is_soon_left_alone(lab, a_trial, tell):
    rows = lab.uk_rows(122)
    quick = {"in_flight_max": 64, "rate_per_s": 200}
    caps = {"without": quick, "with": {**quick, "daily_cap": 300}}
    seen = lab.try_out(**{name: a_trial(rows, ("429-seconds",), changes=caps[name]) for name in caps})
    sent = {name: len(one.questions) for name, one in seen.items()}
    good = [
        name
        for name, one in seen.items()
        if one.status == 75 and sent[name] <= PAUSES_MAX + 1 and left_behind(one, rows)
        and set(one.codes().values()) == {("deferred", "SERVER_PAUSE")}
    ]  # fmt: skip
    tell(
        "B20", "429 with Retry-After to everything, with and without a cap", tried=len(caps),
        survived=len(good), figure=f"{[*sent.values()]} requests for {len(rows)} questions",
        goal=f"<= {PAUSES_MAX + 1}, exit 75",
    )  # fmt: skip


def test_a_server_that_takes_less_than_was_agreed_answers_every_row(lab, a_trial, tell):
    rows = lab.uk_rows(122)
    changes = {"in_flight_max": 64, "rate_per_s": 200, "daily_cap": 300}
    trial = a_trial(rows, changes=changes, served=("--rate-max", "5"))
    seen = lab.try_out(hurried=trial)["hurried"]
    sent = len(seen.questions)
    is_good = seen.status == 0 and seen.codes() == lab.truth_of(rows)
    most = 1.1 * len(rows) + 20 + changes["in_flight_max"]
    tell(
        "B20", "a server that takes 5 a second of 200", tried=len(rows),
        survived=len(rows) if is_good and sent <= most else 0,
        figure=f"{sent / len(rows):.2f} requests an answer, in {seen.took_s:.0f} s",
        goal="every row answered, within the retry budget",
    )  # fmt: skip
