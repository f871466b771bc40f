"""Rows B1 to B6 of the fault table: a server that refuses, fails, asks for a pause, or breaks off.

The truth is what the same server answers without faults: no row may ever have another answer.
"""

import sqlite3
from contextlib import closing
from datetime import datetime

from pipeline.stages.ask.admission import ALIKE_MAX
from pipeline.stages.ask.judge import REFUSALS_IN_A_ROW_LATER_MAX

GRACE_S = 0.3  # for what is on the way while a reply travels back
CONNECT_MAX_S = 0.3  # for a new connection


def account_of(row):
    return row["iban"] if "iban" in row else row["sort_code"] + row["account_number"]


def given_up_after_s(seen):
    """Seconds from the first request to the last failure, read from the ledger."""
    [ledger] = seen.desk.folder.glob("*/ledger.db")
    with closing(sqlite3.connect(f"{ledger.as_uri()}?mode=ro", uri=True)) as connection:
        query = "SELECT min(intent.time), max(failure.time) FROM failure JOIN intent ON id = failure.intent"
        first, last = map(datetime.fromisoformat, connection.execute(query).fetchone())
    return (last - first).total_seconds()


def on(faults, rows):
    """The faults, each on the account of one row."""
    return tuple(f"{fault}:account={account_of(row)}" for fault, row in zip(faults, rows, strict=False))


def test_a_refused_question_is_asked_once(lab, a_trial, tell):
    rows = lab.uk_rows(40)
    bad = rows[::2]
    seen = lab.try_out(refused=a_trial(rows, on(["400"] * len(bad), bad)))["refused"]
    good = [row for row in bad if seen.codes().get(row["payment_id"]) == ("rejected", "FORMAT_ERROR")]
    others = {row["payment_id"]: seen.codes().get(row["payment_id"]) for row in rows[1::2]}
    most = max(seen.attempts.values())
    is_good = most == 1 and others == lab.truth_of(rows[1::2]) and seen.status == 0
    tell(
        "B1", "400 FORMAT_ERROR on every other row", tried=len(bad), survived=len(good) if is_good else 0,
        figure=f"{most} attempt a row, exit {seen.status}", goal="1 attempt a row",
    )  # fmt: skip


def test_a_server_that_refuses_every_question_is_soon_left_alone(lab, a_trial, tell):
    rows, good_max, in_flight_max = lab.uk_rows(200), 10, 4
    changes = {"in_flight_max": in_flight_max}
    sent_max = good_max + REFUSALS_IN_A_ROW_LATER_MAX + 1 + in_flight_max
    words = "--fault", f"400:after={good_max},for={REFUSALS_IN_A_ROW_LATER_MAX + 1}"
    with lab.served("server", *words) as sandbox:
        stopped = lab.attempt("desk", a_trial(rows, changes=changes), sandbox)
        finished = lab.attempt("desk", a_trial(rows, changes=changes), sandbox)
    sent = len(stopped.questions)
    answered_again = [question for question, times in finished.attempts.items() if times > 1]
    refused = [name for name, code in finished.codes().items() if code == ("rejected", "FORMAT_ERROR")]
    is_good = (stopped.status, finished.status, len(stopped.sentences)) == (76, 0, 1)
    is_good = (
        is_good and not finished.wrong(lab.truth_of(rows)) and len(refused) == REFUSALS_IN_A_ROW_LATER_MAX
    )
    tell(
        "B1", "400 FORMAT_ERROR on every row", tried=1,
        survived=int(is_good and sent <= sent_max and len(answered_again) <= 1),
        figure=f"{sent} requests, exit {stopped.status}, then {finished.status}",
        goal=f"<= {sent_max} requests, exit 76, answers kept",
    )  # fmt: skip


def test_a_revoked_token_costs_one_new_token_however_many_are_in_flight(lab, a_trial, tell):
    rows = lab.uk_rows(300)
    trial = a_trial(
        rows,
        ("tokens-revoked:after=50,for=1",),
        changes={"rate_per_s": 2000, "in_flight_max": 200},
        served=("--latency", "0.3"),
    )
    seen = lab.try_out(revoked=trial)["revoked"]
    refused = sum(call["status"] == 401 for call in seen.questions)
    is_good = seen.codes() == lab.truth_of(rows) and len(seen.token_calls) == 2 and seen.status == 0
    tell(
        "B2", "token revoked under load", tried=refused, survived=refused if is_good else 0,
        figure=f"{refused} times 401, {len(seen.token_calls) - 1} new token, exit {seen.status}",
        goal="1 new token, every row answered",
    )  # fmt: skip


def test_401_to_every_question_ends_the_run(lab, a_trial, tell):
    rows = lab.uk_rows(200)
    trials = lab.try_out(
        always=a_trial(rows, ("401",), changes={"in_flight_max": 8}),
        once=a_trial(rows[:20], ("401:after=5,for=1",)),
    )
    always, once = trials["always"], trials["once"]
    # Five that a new token did not help; and one more, where it was not the first that renewed it.
    ended_well = always.status == 77 and len(always.attempts) <= ALIKE_MAX + 1
    ended_well = ended_well and len(always.questions) <= ALIKE_MAX + 2 and len(always.token_calls) <= 2
    went_on = once.status == 0 and once.codes() == lab.truth_of(rows[:20]) and len(once.token_calls) == 2
    tell(
        "B2", "401 always, 401 once", tried=2, survived=ended_well + went_on,
        figure=f"always: exit {always.status}, {len(always.questions)} requests; once: exit {once.status}",
        goal=f"always: exit 77, <= {ALIKE_MAX + 2} requests; once: goes on",
    )  # fmt: skip


def test_a_failing_server_is_asked_three_times_at_most(lab, a_trial, tell):
    rows = lab.uk_rows(48)
    names = ("500", "502", "503", "504", "problem-without-members", "problem-not-json", "problem-as-page")
    names += ("problem-with-unknown-code", "problem-that-says-match")
    bad = rows[::5][: len(names)]
    passing = [f"{fault},first=2" for fault in on(names, bad)]
    trials = lab.try_out(passing=a_trial(rows, passing), lasting=a_trial(rows, on(names, bad)))
    truth = lab.truth_of(rows)
    most = max(max(seen.attempts.values()) for seen in trials.values())
    asked_again = trials["passing"].codes() == truth and trials["passing"].status == 0
    lasting = trials["lasting"].codes()
    given_up = [row for row in bad if lasting.get(row["payment_id"], ("",))[0] == "unanswered"]
    others_fine = all(lasting.get(name) == code for name, code in truth.items() if name not in {
        row["payment_id"] for row in bad
    })  # fmt: skip
    survived = (len(bad) if asked_again else 0) + (len(given_up) if others_fine else 0)
    tell(
        "B3", "5xx twice, then an answer; 5xx always", tried=2 * len(bad),
        survived=survived if most <= 3 else 0,
        figure=f"{most} attempts a row at most, {trials['lasting'].status} at the end",
        goal="3 at most, exit 75",
    )  # fmt: skip


def test_a_total_outage_costs_hardly_more_than_a_call_a_row(lab, a_trial, tell):
    rows = lab.uk_rows(300)
    seen = lab.try_out(down=a_trial(rows, ("outage",)))["down"]
    amplification = len(seen.questions) / len(rows)
    is_good = seen.status == 75 and amplification <= 1.1 and seen.is_sound(lab.truth_of(rows))
    tell(
        "B3", "total outage", tried=len(rows), survived=len(rows) if is_good else 0,
        figure=f"{amplification:.2f} calls a row, exit {seen.status}", goal="<= 1.1 calls a row, exit 75",
    )  # fmt: skip


def test_rows_go_on_by_themselves_when_the_server_recovers(lab, a_trial, tell):
    rows = lab.uk_rows(300)
    # Five probes in 9 s, the fourth of them after the outage.
    changes = {"rate_per_s": 100, "in_flight_max": 16, "probe_wait_s": 0.3}
    trial = a_trial(rows, ("outage:after=0.5s,for=3s",), changes=changes)
    seen = lab.try_out(passing=trial)["passing"]
    amplification = len(seen.questions) / len(rows)
    right = [name for name, code in lab.truth_of(rows).items() if seen.codes().get(name) == code]
    tell(
        "B3", "outage of 3 s within a run", tried=len(rows),
        survived=len(right) if amplification <= 1.1 else 0,
        figure=f"{len(right)} answered, {amplification:.2f} calls a row, exit {seen.status}",
        goal="100 % answered, <= 1.1 calls a row",
    )  # fmt: skip


def test_running_again_finishes_what_an_outage_left(lab, a_trial, tell):
    rows, runs_max = lab.uk_rows(300), 10
    trial = a_trial(rows, changes={"probe_wait_s": 0.05, "in_flight_max": 16})
    runs = []
    with lab.served("server", "--fault", "outage:after=0.5s,for=6s") as sandbox:
        while not runs or (runs[-1].status == 75 and len(runs) < runs_max):
            runs.append(lab.attempt("desk", trial, sandbox))
    last = runs[-1]
    amplification = len(last.questions) / len(rows) / len(runs)
    right = [name for name, code in lab.truth_of(rows).items() if last.codes().get(name) == code]
    is_good = last.status == 0 and amplification <= 1.1
    tell(
        "B3", "outage that outlasts the run", tried=len(rows), survived=len(right) if is_good else 0,
        figure=f"all answered by run {len(runs)}, {amplification:.2f} calls a row and run",
        goal="100 % answered by running again",
    )  # fmt: skip


def test_nothing_is_sent_while_the_server_asks_for_silence(lab, a_trial, tell):
    rows = lab.uk_rows(60)
    names = ("429-seconds", "429-date", "503-seconds", "503-date")
    changes = {"rate_per_s": 50, "in_flight_max": 4}
    trials = {name: a_trial(rows, (f"{name}:after=10,for=1",), changes=changes) for name in names}
    seen = lab.try_out(**trials)
    inside = 0
    for name, one in seen.items():
        [asked] = one.met(name)
        inside += len(one.within(asked["monotonic"] + GRACE_S, asked["monotonic"] + 2.0))
    good = [one for one in seen.values() if one.codes() == lab.truth_of(rows) and one.status == 0]
    tell(
        "B4", "429 and 503 with Retry-After, seconds and date", tried=len(names),
        survived=len(good) if not inside else 0, figure=f"{inside} sends inside the windows", goal="0",
    )  # fmt: skip


def test_a_pause_of_a_day_is_for_a_later_run(lab, a_trial, tell):
    rows = lab.uk_rows(60)
    trial = a_trial(rows, ("429-hours:after=10,for=1",), changes={"rate_per_s": 50, "in_flight_max": 4})
    seen = lab.try_out(hours=trial)["hours"]
    [asked] = seen.met("429-hours")
    after = seen.within(asked["monotonic"] + GRACE_S, float("inf"))
    is_good = seen.status == 75 and not after and seen.is_sound(lab.truth_of(rows))
    tell(
        "B4", "429 with Retry-After of a day", tried=1, survived=int(is_good),
        figure=f"{len(after)} sends after it, exit {seen.status}", goal="0 sends, exit 75",
    )  # fmt: skip


def test_a_broken_connection_is_never_an_answer(lab, a_trial, tell):
    rows = lab.uk_rows(60)
    names = ("reset-before-headers", "reset-after-headers", "truncated-body", "closed-without-answer") * 3
    bad = rows[::4][: len(names)]
    passing = [f"{fault},first=1" for fault in on(names, bad)]
    seen = lab.try_out(passing=a_trial(rows, passing), lasting=a_trial(rows, on(names, bad)))
    truth = lab.truth_of(rows)
    wrong = sum(len(one.wrong(truth)) for one in seen.values())
    lasting = seen["lasting"].codes()
    lost = [row for row in bad if lasting.get(row["payment_id"]) == ("unanswered", "NETWORK")]
    survived = (len(bad) if seen["passing"].codes() == truth else 0) + len(lost)
    tell(
        "B5", "reset, close and truncation, once and always", tried=2 * len(bad),
        survived=survived if not wrong else 0, figure=f"{wrong} rows with a wrong answer", goal="0",
    )  # fmt: skip


def test_a_dripping_answer_ends_at_the_deadline(lab, a_trial, tell):
    rows = lab.iban_rows(12)
    names = ("silence", "slow-body", "slow-headers")
    deadline_s, attempts_max, backoff_max_s = 5.5, 2, 0.5
    changes = {"response_margin_s": 0.5, "attempts_max": attempts_max}
    slow = rows[1 : 1 + len(names)]  # after one that lets the others follow
    others = [row for row in rows if row not in slow]
    seen = lab.try_out(slow=a_trial(rows, on(names, slow), apis=("vop",), changes=changes))["slow"]
    questions = {call["question"] for call in seen.met(*names)}
    times = [
        sorted(call["monotonic"] for call in seen.questions if call["question"] == question)
        for question in questions
    ]
    longest_s = max(later - earlier for earlier, later, *_ in times)
    all_s = given_up_after_s(seen)
    bound_s = attempts_max * deadline_s + backoff_max_s
    truth = lab.truth_of(rows)
    quick = all(seen.codes().get(row["payment_id"]) == truth[row["payment_id"]] for row in others)
    late = [row for row in slow if seen.codes().get(row["payment_id"]) == ("unanswered", "DEADLINE")]
    is_in_time = (
        longest_s <= deadline_s + backoff_max_s + CONNECT_MAX_S
        and all_s <= bound_s + attempts_max * CONNECT_MAX_S
    )
    tell(
        "B6", "silence, slow body, slow headers", tried=len(names),
        survived=len(late) if is_in_time and quick else 0,
        figure=f"asked again after {longest_s:.1f} s, given up {all_s:.1f} s after the first was asked",
        goal=f"deadline {deadline_s} s, row <= {bound_s:g} s",
    )  # fmt: skip
