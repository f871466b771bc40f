"""Row B21 of the fault table: refusals that are not the API's own, or not of this request."""

from pipeline.stages.ask.admission import TURNED_AWAY_IN_A_ROW_MAX

ALWAYS = {"html-400": 77, "client-invalid-400": 77, "431": 76, "foreign-id-400": 76}
"""What every question meets -> how the run ends."""
SENT_MAX = TURNED_AWAY_IN_A_ROW_MAX + 2


def test_a_refusal_that_is_not_the_apis_own_rejects_no_row(lab, a_trial, tell):
    rows = lab.uk_rows(150)
    seen = lab.try_out(**{name: a_trial(rows, (name,)) for name in ALWAYS})
    good = [
        name for name, one in seen.items()
        if one.status == ALWAYS[name] and len(one.sentences) == 1 and len(one.questions) <= SENT_MAX
        and not one.rejected
    ]  # fmt: skip
    most = max(len(one.questions) for one in seen.values())
    tell(
        "B21", "400 with a page, CLIENT_INVALID or another id, 431 to everything", tried=len(ALWAYS),
        survived=len(good),
        figure=f"{most} requests at most, exits {[one.status for one in seen.values()]}, "
        f"{sum(len(one.rejected) for one in seen.values())} rows rejected",
        goal=f"<= {SENT_MAX} requests, exits {[*ALWAYS.values()]}, 0 rejected",
    )  # fmt: skip


def test_a_refusal_that_belongs_to_no_request_costs_no_row(lab, a_trial, tell):
    rows, ibans = lab.uk_rows(60), lab.iban_rows(60)
    names = ("unasked-400", "doubled-echo")
    trials = {f"{name} cop": a_trial(rows, (name,)) for name in names}
    trials |= {f"{name} vop": a_trial(ibans, (name,), apis=("vop",)) for name in names}
    seen = lab.try_out(**trials)
    wrong = sum(one.codes() not in (lab.truth_of(rows), lab.truth_of(ibans)) for one in seen.values())
    tell(
        "B21", "an unsolicited 400 after each answer; the same id twice in a header", tried=len(trials),
        survived=len(trials) - wrong, figure=f"{wrong} runs without every answer", goal="0",
    )  # fmt: skip


def test_a_refusal_without_an_id_is_believed_on_a_connection_of_its_own(lab, a_trial, tell):
    rows = lab.uk_rows(40)
    bad = [f"no-id-400:account={row['sort_code']}{row['account_number']}" for row in rows[::4]]
    seen = lab.try_out(refused=a_trial(rows, bad))["refused"]
    is_good = seen.status == 0 and len(seen.rejected) == 10 and max(seen.attempts.values()) == 2
    tell(
        "B21", "gateway that echoes the id on 200 alone: 10 bad rows of 40", tried=10,
        survived=len(seen.rejected) if is_good else 0,
        figure=f"{max(seen.attempts.values())} requests a row at most, exit {seen.status}",
        goal="2, rejected once and for good",
    )  # fmt: skip
