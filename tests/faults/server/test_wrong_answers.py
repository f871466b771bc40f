"""Rows B7 to B13 of the fault table: answers that must not be believed, and what else a reply can want."""

import json
import random
import uuid

from httpx import Response

from pipeline.apis import ContractBreachError, cop, vop
from pipeline.sandbox.accounts import UK_ACCOUNTS, describe_accounts
from pipeline.sandbox.faults.catalogue import SECTIONS
from pipeline.stages.ask.judge import BREACHES_MIN
from schemas.outcomes import ApiName

MEGABYTE = 1_000_000
RSS_GROWTH_MAX_BYTES = 5 * MEGABYTE
ONE_AT_A_TIME = {"in_flight_max": 1}
FUZZED_COUNT, FUZZED_COUNT_LONG = 100_000, 1_000_000


def faults_in(section, api):
    """Names of the faults of one section that can befall an API."""
    return [fault.name for fault in dict(SECTIONS)[section] if fault.befalls(api)]


def account_of(row):
    return row["iban"] if "iban" in row else row["sort_code"] + row["account_number"]


def befallen(trial, rows, names, **changes):
    """A trial in which every other row has a fault, so that no server looks broken for good."""
    faults = [f"{name}:account={account_of(row)}" for name, row in zip(names, rows[::2], strict=False)]
    return trial(rows[: 2 * len(names)], faults, changes=ONE_AT_A_TIME, **changes)


def believed(seen, names, truth):
    """Rows with a fault that have an answer, and rows without one that have not the true one."""
    rows = seen.rows
    bad, good = rows[::2], rows[1::2]
    assert len(rows) == 2 * len(names)
    accepted = [row for row in bad if (row["check_outcome"], row["check_code"]) != ("unanswered", "CONTRACT")]
    missing = [row for row in good if (row["check_outcome"], row["check_code"]) != truth[row["payment_id"]]]
    return accepted + missing


def test_a_huge_reply_is_neither_kept_nor_unpacked(lab, a_trial, tell):
    rows = lab.uk_rows(9)  # with one repetition each, too few to end the run
    names = ("oversized-body", "gzip-body", "gzip-bomb", "header-bomb")
    trials = {name: a_trial(rows, (name,), changes={"in_flight_max": 4}) for name in names}
    seen = lab.try_out(clean=a_trial(rows), again=a_trial(rows), **trials)
    base = max(seen["clean"].peak_bytes, seen["again"].peak_bytes)
    growth = max(seen[name].peak_bytes for name in names) - base
    good = [name for name in names if not seen[name].wrong(lab.truth_of(rows)) and seen[name].status == 75]
    is_small = growth < RSS_GROWTH_MAX_BYTES
    tell(
        "B7", "4 MiB body, unwanted gzip, gzip bomb, 200 KiB header", tried=len(names),
        survived=len(good) if is_small else 0,
        figure=f"memory {growth / MEGABYTE:+.1f} MB against a run without faults",
        goal=f"< {RSS_GROWTH_MAX_BYTES // MEGABYTE} MB, accepted 0",
    )  # fmt: skip


def test_a_server_whose_every_answer_is_unreadable_ends_the_run(lab, a_trial, tell):
    names = ("oversized-body", "gzip-body")
    rows = lab.uk_rows(60)
    seen = lab.try_out(**{name: a_trial(rows, (name,), changes={"in_flight_max": 4}) for name in names})
    most = max(len(one.questions) for one in seen.values())
    good = [one for one in seen.values() if one.status == 76 and not one.wrong(lab.truth_of(rows))]
    tell(
        "B7", "every answer compressed, or 4 MiB", tried=len(names),
        survived=len(good) if most <= BREACHES_MIN + 4 else 0,
        figure=f"{most} requests at most for 60 rows, exits {[one.status for one in seen.values()]}",
        goal="<= 24 requests, exit 76, accepted 0",
    )  # fmt: skip


def test_json_that_two_readers_could_read_differently_is_no_answer(lab, a_trial, tell):
    names = ["duplicate-keys", "not-a-number", "deep-nesting", "not-json", "empty-body", "two-documents"]
    rows, ibans = lab.uk_rows(2 * len(names)), lab.iban_rows(2 * len(names))
    seen = lab.try_out(cop=befallen(a_trial, rows, names), vop=befallen(a_trial, ibans, names, apis=("vop",)))
    wrong = [row for one in seen.values() for row in believed(one, names, lab.truth_of([*rows, *ibans]))]
    tell(
        "B8", "doubled keys, NaN, depth, no JSON", tried=2 * len(names), survived=2 * len(names) - len(wrong),
        figure=f"{len(wrong)} believed", goal="0",
    )  # fmt: skip


def test_no_mutation_of_a_body_becomes_a_match(check_of, is_long, tell):
    chance = random.Random(20301)
    request_id = str(uuid.UUID(int=7, version=4))
    count = FUZZED_COUNT_LONG if is_long else FUZZED_COUNT
    false_ones = accepted_count = 0
    for number in range(count):
        api, check, header, bodies = subjects(check_of)[number % 2]
        body = mutated(chance, bodies) if chance.random() < 0.5 else assembled(chance, api)
        headers = {"content-type": "application/json", header: request_id}
        try:
            reading = api.read(Response(200, headers=headers, content=body), check, request_id)
        except ContractBreachError:
            continue
        accepted_count += 1
        false_ones += (reading.code, reading.matched_name) not in allowed(api, body)
    tell(
        "B8", "fuzzed bodies", tried=count, survived=count - false_ones,
        figure=f"{false_ones} false, {accepted_count:,} well-formed", goal="0 false",
    )  # fmt: skip


def subjects(check_of):
    uk = check_of()
    payee = check_of(api=ApiName.VOP_GATEWAY, account="NL27RABO0384210070")
    return (
        (cop.API, uk, "x-fapi-interaction-id", (
            b'{"data":{"verificationReport":{"matched":false,"reasonCode":"ANNM"}}}',
            b'{"data":{"verificationReport":{"matched":false,"reasonCode":"MBAM","name":"Ada Quillon"}}}',
            b'{"data":{"verificationReport":{"matched":true}}}',
        )),
        (vop.GATEWAY, payee, "x-request-id", (
            b'{"partyNameMatch":"NMTC"}',
            b'{"partyNameMatch":"CMTC","matchedName":"Ada Quillon"}',
            b'{"partyNameMatch":"MTCH"}',
        )),
    )  # fmt: skip


def mutated(chance, bodies):
    """One body with a few bytes changed, or a piece of another one put in."""
    body = bytearray(chance.choice(bodies))
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(body) + 1)
        match chance.randrange(3):
            case 0:
                body[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                del body[at : at + chance.randint(1, 4)]
            case _:
                other = chance.choice(bodies)
                start = chance.randrange(len(other))
                body[at:at] = other[start : start + chance.randint(1, 30)]
    return bytes(body)


VALUES = (
    "true",
    "false",
    "null",
    "1",
    "0",
    "NaN",
    '"true"',
    '""',
    '" "',
    '"MTCH"',
    '"NMTC"',
    '"CMTC"',
    '"ANNM"',
)
VALUES += ('"MBAM"', '"mtch"', '"Ada Quillon"', "{}", "[]", '["MTCH"]', '{"matched":true}')
MEMBERS = {
    "cop": ("matched", "reasonCode", "name", "Matched", "reason_code", "score"),
    "vop_gateway": (
        "partyNameMatch",
        "partyIdMatch",
        "matchedName",
        "PartyNameMatch",
        "party_name_match",
        "score",
    ),
}


def assembled(chance, api):
    """A body put together from members and values that are near the right ones, some of them twice."""
    names = chance.choices(MEMBERS[api.name], (6, 6, 6, 1, 1, 1), k=chance.randint(0, 4))
    members = ",".join(f'"{name}":{chance.choice(VALUES)}' for name in names)
    if api is cop.API:
        return f'{{"data":{{"verificationReport":{{{members}}}}}}}'.encode()
    return f"{{{members}}}".encode()


def allowed(api, body):
    """What may be read from a body, decided by another reader: by hand, key by key."""

    def once(pairs):
        assert len(dict(pairs)) == len(pairs), "a doubled key was accepted"
        return dict(pairs)

    def named(name):
        return None if isinstance(name, str) and not name.strip() else name

    document = json.loads(body, object_pairs_hook=once)
    if api is cop.API:
        said = document["data"]["verificationReport"]
        matched, code, name = said["matched"], said.get("reasonCode"), named(said.get("name"))
        if matched is True:
            return {("MTCH", None)} if code is None and name is None else set()
        close = code in {"MBAM", "BAMM", "PAMM"}
        return {(code, name)} if matched is False and code and close == (name is not None) else set()
    code, name = document["partyNameMatch"], named(document.get("matchedName"))
    is_known = code in {"MTCH", "CMTC", "NMTC", "NOAP"} and document.get("partyIdMatch") is None
    return {(code, name)} if is_known and (code == "CMTC") == (name is not None) else set()


def test_an_answer_that_contradicts_itself_is_no_answer(lab, a_trial, tell):
    uk_names = faults_in("Contradictions", ApiName.COP)
    iban_names = faults_in("Contradictions", ApiName.VOP_GATEWAY)
    rows, ibans = lab.uk_rows(2 * len(uk_names)), lab.iban_rows(2 * len(iban_names))
    seen = lab.try_out(
        cop=befallen(a_trial, rows, uk_names), vop=befallen(a_trial, ibans, iban_names, apis=("vop",))
    )
    truth = lab.truth_of([*rows, *ibans])
    wrong = believed(seen["cop"], uk_names, truth) + believed(seen["vop"], iban_names, truth)
    tried = len(uk_names) + len(iban_names)
    tell(
        "B9", "contradictions of the outcome tables", tried=tried, survived=tried - len(wrong),
        figure=f"{len(wrong)} believed", goal="0",
    )  # fmt: skip


def test_no_row_gets_the_answer_of_another(lab, a_trial, tell):
    asked = [answer for answer in describe_accounts() if answer.api is ApiName.COP]
    rows = [
        {
            "payment_id": f"UK-{number}", "name": answer.asked, "account_type": answer.account_type.value,
            "sort_code": answer.account[:6], "account_number": answer.account[6:], "amount": "1.00",
        }
        for number, answer in enumerate(asked)
    ]  # fmt: skip
    assert len({answer.code for answer in asked}) >= 7
    one = f"account={UK_ACCOUNTS[0].identification},first=1"

    def trial(*faults, **changes):
        return a_trial(rows, faults, role="sandbox", changes=changes, served=("--latency", "0.05"))

    seen = lab.try_out(
        clean=trial(),
        once=trial("swapped-answers:after=6,for=2"),
        always=trial("swapped-answers"),
        missing=trial(f"missing-echo:{one},probability=0.3,seed=4", in_flight_max=1),
        wrong=trial("wrong-echo"),
    )
    truth = seen["clean"].codes()
    misattributed = sum(len(each.wrong(truth)) for each in seen.values())
    ends = {name: each.status for name, each in seen.items()}
    goal = {"clean": 0, "once": 0, "always": 76, "missing": 0, "wrong": 76}
    right = [name for name in ends if ends[name] == goal[name]]
    met = sum(len(each.met("swapped-answers", "missing-echo", "wrong-echo")) for each in seen.values())
    tell(
        "B10", "swapped answers, missing and wrong echo", tried=len(ends),
        survived=len(right) if not misattributed else 0,
        figure=f"{met} such replies, {misattributed} rows misattributed, exits {[*ends.values()]}",
        goal=f"0, exits {[*goal.values()]}",
    )  # fmt: skip


def test_a_page_is_no_answer(lab, a_trial, tell):
    names = ("html-page", "no-content-type")
    rows = lab.uk_rows(40)
    seen = lab.try_out(**{name: a_trial(rows, (name,)) for name in names})
    accepted = sum(len(one.wrong(lab.truth_of(rows))) for one in seen.values())
    ended = [one for one in seen.values() if one.status == 76]
    tell(
        "B11", "login page with 200, no content type", tried=len(names),
        survived=len(ended) if not accepted else 0,
        figure=f"{accepted} accepted, exits {[one.status for one in seen.values()]}", goal="0, exit 76",
    )  # fmt: skip


def test_no_redirect_is_followed(lab, a_trial, tell):
    names = ("redirect-307", "redirect-302")
    seen = lab.try_out(**{name: a_trial(lab.uk_rows(40), (name,)) for name in names})
    elsewhere = [call for one in seen.values() for call in one.calls if call["path"].startswith("/elsewhere")]
    ended = [one for one in seen.values() if one.status == 78]
    tell(
        "B12", "redirect to another port", tried=len(names), survived=len(ended) if not elsewhere else 0,
        figure=f"{len(elsewhere)} requests there, exits {[one.status for one in seen.values()]}",
        goal="0, exit 78",
    )  # fmt: skip


def test_no_cookie_is_kept(lab, a_trial, tell):
    rows = lab.uk_rows(100)
    seen = lab.try_out(cookie=a_trial(rows, ("set-cookie",), changes={"in_flight_max": 4}))["cookie"]
    sent = [call for call in seen.calls if call["cookie"]]
    is_good = seen.codes() == lab.truth_of(rows) and not sent
    tell(
        "B13", "Set-Cookie on every answer", tried=len(rows), survived=len(rows) if is_good else 0,
        figure=f"{len(sent)} cookies sent in {len(seen.calls)} requests", goal="0",
    )  # fmt: skip
