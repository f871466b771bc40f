"""Rows A9, B4, B14, B22 and B23 of the fault table: stamps, pauses, handshakes, an API away, a proxy."""

import ssl
import subprocess
from collections import Counter
from pathlib import Path
from shutil import which

import pytest
from proxies import TINYPROXY, port_of, tinyproxy

STAMPS = ("stamp-18-hours-ago", "stamp-next-summer", "stamp-year-1", "stamp-year-9999")
KEY_FILES = ("client_certificate", "client_key", "client_key_password_file")
CAP = 10
PAUSE_S = 2.0
GRACE_S = 0.3  # for what is on the way while a reply travels back


def test_one_odd_stamp_moves_no_cap(lab, a_trial, tell):
    rows = lab.uk_rows(25)

    def try_stamp(name):
        """Three runs on one cap; the second reply has the odd stamp."""
        with lab.served(f"server-{name}", "--fault", f"{name}:after=1,for=1") as sandbox:
            trial = a_trial(rows, changes={"daily_cap": CAP})
            runs = [lab.attempt(f"desk-{name}", trial, sandbox) for _ in range(3)]
        return runs[-1]

    seen = dict(zip(STAMPS, lab.several(try_stamp, STAMPS), strict=True))
    spent = {name: len(one.questions) for name, one in seen.items()}
    good = [name for name, one in seen.items() if one.status == 75 and spent[name] == CAP and one.met(name)]
    tell(
        "A9", "one stamp of 18 hours ago, next summer, year 1, 9999, at a cap", tried=len(STAMPS),
        survived=len(good),
        figure=f"{max(spent.values())} requests at a cap of {CAP} in three runs, exits "
        f"{[one.status for one in seen.values()]}",
        goal=f"{CAP} requests, exit 75",
    )  # fmt: skip


def test_a_clock_that_is_days_off_ends_a_run_with_a_cap(lab, a_trial, tell):
    changes = {"daily_cap": 50, "in_flight_max": 1}
    seen = lab.try_out(days=a_trial(lab.uk_rows(25), ("clock-days-ahead",), changes=changes))["days"]
    is_good = seen.status == 78 and len(seen.questions) == 3 and not seen.wrong(lab.truth)
    tell(
        "A9", "server's clock two days ahead, at a cap", tried=1, survived=int(is_good),
        figure=f"exit {seen.status} after {len(seen.questions)} requests",
        goal="exit 78 after 3, answers kept",
    )  # fmt: skip


def test_the_token_endpoint_is_asked_for_nothing_while_it_wants_to_be_left_alone(lab, a_trial, tell):
    rows = lab.uk_rows(10)
    names = ("token-503-seconds", "token-429-date")
    seen = lab.try_out(**{name: a_trial(rows, (f"{name}:for=1",)) for name in names})
    waits = [two["monotonic"] - one["monotonic"] for one, two, *_ in (s.token_calls for s in seen.values())]
    good = [one for one in seen.values() if one.codes() == lab.truth_of(rows) and len(one.token_calls) == 2]
    early = [wait_s for wait_s in waits if wait_s < PAUSE_S - 1]  # a date is in whole seconds
    tell(
        "B14", "429 and 503 with Retry-After from the token endpoint", tried=len(names),
        survived=len(good) if not early else 0,
        figure=f"asked again after {min(waits):.1f} s at the earliest",
        goal=f"{PAUSE_S:g} s, then every row answered",
    )  # fmt: skip


def test_a_hiccup_of_the_token_endpoint_costs_no_run(lab, a_trial, tell):
    rows = lab.uk_rows(10)
    faults = ("token-401:for=1", "token-later:for=2", "token-life-as-text", "token-of-endless-life")
    seen = lab.try_out(**{name.partition(":")[0]: a_trial(rows, (name,)) for name in faults})
    good = [one for one in seen.values() if one.status == 0 and one.codes() == lab.truth_of(rows)]
    most = max(len(one.token_calls) for one in seen.values())
    tell(
        "B14", "token endpoint: one 401, temporarily_unavailable, a life as text, of 401 digits",
        tried=len(faults), survived=len(good), figure=f"{most} token calls at most",
        goal="<= 3, every row answered",
    )  # fmt: skip


def test_other_forms_of_retry_after_are_kept_or_bounded(lab, a_trial, tell):
    rows = lab.uk_rows(40)
    names = ("503-doubled", "503-year-9999999999")
    seen = lab.try_out(**{name: a_trial(rows, (f"{name}:after=5,for=1",)) for name in names})
    [asked] = seen["503-doubled"].met("503-doubled")
    answered = asked["monotonic"] + asked.get("took_s", 0)
    inside = len(seen["503-doubled"].within(answered + GRACE_S, answered + PAUSE_S - 0.1))
    good = [one for one in seen.values() if one.codes() == lab.truth_of(rows)]
    tell(
        "B4", "Retry-After twice; of the year 9999999999", tried=len(names),
        survived=len(good) if not inside else 0, figure=f"{inside} sends inside the window",
        goal="0, every row answered",
    )  # fmt: skip


def test_a_server_that_closes_in_the_handshake_is_an_outage(lab, a_trial, tell):
    seen = lab.try_out(closed=a_trial(lab.uk_rows(5), ("close-in-handshake",)))["closed"]
    is_good = seen.status == 75 and not seen.calls and len(seen.sentences) == 1
    tell(
        "B22", "server that closes in the TLS handshake", tried=1, survived=int(is_good),
        figure=f"exit {seen.status}, {len(seen.calls)} calls", goal="exit 75 after three tries, 0 calls",
    )  # fmt: skip


def test_a_certificate_that_is_asked_for_late_is_presented(lab, a_trial, tell):
    rows = lab.iban_rows(40)
    seen = lab.try_out(late=a_trial(rows, ("late-client-certificate",), apis=("standard",)))["late"]
    outcomes = Counter(outcome for outcome, _ in seen.codes().values())
    answered = len(rows) - outcomes["unanswered"] - outcomes["deferred"]
    tell(
        "B22", "client certificate that is asked for after the handshake", tried=len(rows),
        survived=answered if seen.status == 0 else 0, figure=f"exit {seen.status}, {answered} rows answered",
        goal="exit 0, every row answered",
    )  # fmt: skip


AWAY = {"close-in-handshake": 75, "token-down": 75, "token-401": 77}


def test_the_other_api_is_asked_whatever_is_out_of_reach(lab, a_trial, tell):
    uk, ibans = lab.uk_rows(6), lab.iban_rows(6)

    class Beside(a_trial):
        """CoP at a sandbox with a fault, VoP at one without."""

        def sections(self, sandbox):
            return {**super().sections(sandbox), "vop": healthy.section("production", "vop")}

    def try_fault(name):
        with lab.served(f"server-{name}", "--fault", name) as sandbox:
            return lab.attempt(f"desk-{name}", Beside([*uk, *ibans]), sandbox)

    with lab.served("healthy") as healthy:
        seen = dict(zip(AWAY, lab.several(try_fault, AWAY), strict=True))
    truth = lab.truth_of(ibans)
    good = [
        name for name, one in seen.items()
        if one.status == AWAY[name] and truth.items() <= one.codes().items()
        and {one.codes()[row["payment_id"]][0] for row in uk} == {"deferred"}
    ]  # fmt: skip
    tell(
        "B22", "one API closed in the handshake, without a token, refused one", tried=len(AWAY),
        survived=len(good),
        figure=f"{len(good) * len(ibans)} of {len(AWAY) * len(ibans)} rows of the other API answered, exits "
        f"{[one.status for one in seen.values()]}",
        goal=f"all, exits {[*AWAY.values()]}",
    )  # fmt: skip


@pytest.mark.skipif(which("openssl") is None, reason="no openssl")
def test_certificates_and_keys_in_unusual_forms_work_or_are_named(lab, a_trial, tmp_path, tell):
    rows = lab.iban_rows(5)
    with lab.served("server", "--client-certificate-required") as sandbox:
        files = {name: sandbox.section("production-standard", "vop")[name] for name in KEY_FILES}
        chain, leaf, old = (tmp_path / name for name in ("chain.pem", "leaf.pem", "old.key"))
        authority = (sandbox.folder / "qwac_ca.pem").read_bytes()
        chain.write_bytes(authority + Path(files["client_certificate"]).read_bytes())
        leaf.write_text(ssl.get_server_certificate(("127.0.0.1", port_of(sandbox))))
        phrase = Path(files["client_key_password_file"]).read_text().strip()
        cipher = ("-v1", "PBE-MD5-DES", "-provider", "legacy", "-provider", "default")
        words = ("-in", files["client_key"], "-passin", f"pass:{phrase}", "-passout", f"pass:{phrase}")
        subprocess.run(
            ["openssl", "pkcs8", "-topk8", *cipher, *words, "-out", old], check=True, capture_output=True
        )
        old.chmod(0o600)
        tried = {
            "chain in another order": {"client_certificate": str(chain)},
            "ca_file with the server's certificate alone": {"ca_file": str(leaf)},
            "key under an old cipher": {"client_key": str(old)},
        }
        trials = {name: a_trial(rows, apis=("standard",), changes=changes) for name, changes in tried.items()}
        seen = {name: lab.attempt(name, trial, sandbox) for name, trial in trials.items()}
    *works, named = seen.values()
    good = [one for one in works if one.status == 0 and one.codes() == lab.truth_of(rows)]
    is_named = named.status == 78 and "an old cipher" in named.err and "passphrase" not in named.err
    tell(
        "B22", "certificate chain in another order, partial chain, key under an old cipher", tried=len(tried),
        survived=len(good) + is_named, figure=f"exits {[one.status for one in seen.values()]}",
        goal="every row answered for two; 78 naming the cipher for one",
    )  # fmt: skip


def test_the_cause_is_in_the_identity_providers_words(lab, a_trial, tell):
    def try_fault(name):
        with lab.served(f"server-{name}", "--fault", name) as sandbox:
            seen = lab.attempt(f"desk-{name}", a_trial(lab.uk_rows(5)), sandbox)
            return seen, lab.consult(seen)

    (refused, refused_doctor), (later, later_doctor) = map(try_fault, ("token-401", "token-later"))
    said = {
        "run, invalid_client": (refused.status, refused.err),
        "doctor, invalid_client": refused_doctor,
        "run, temporarily_unavailable": (later.status, later.err),
        "doctor, temporarily_unavailable": later_doctor,
    }
    expected = {"invalid_client": 77, "temporarily_unavailable": 75}
    good = [
        name for name, (status, words) in said.items()
        if (word := name.partition(", ")[2]) in words and "AADSTS" in words and status == expected[word]
    ]  # fmt: skip
    tell(
        "B14", "the identity provider's own error in run and doctor", tried=len(said), survived=len(good),
        figure=f"exits {[status for status, _ in said.values()]}; not named: "
        f"{', '.join(said.keys() - set(good)) or 'none'}",
        goal="its error and number named, 77 or 75",
    )  # fmt: skip


@pytest.mark.skipif(TINYPROXY is None, reason="no tinyproxy")
def test_a_proxy_is_the_only_way_out(lab, a_trial, tmp_path, tell):
    rows, environment = lab.uk_rows(5), {"LOGIN": "us:hush"}
    expected = {"through it": 0, "wrong password": 77, "forbidden": 78, "away": 75}
    seen, tunnels = {}, 0
    with lab.served("server") as sandbox:
        for name, allowed in {"through it": port_of(sandbox), "wrong password": 1, "forbidden": 1}.items():
            folder = tmp_path / name.replace(" ", "-")
            folder.mkdir()
            login = {"LOGIN": "us:wrong"} if name == "wrong password" else environment
            with tinyproxy(folder, allowed) as (port, log):
                keys = {"proxy_url": f"http://127.0.0.1:{port}", "proxy_credentials_env": "LOGIN"}
                trial = a_trial(rows, changes=keys, environment=login)
                seen[name] = lab.attempt(f"desk-{name}", trial, sandbox)
                tunnels += log().count("CONNECT 127.0.0.1") if name == "through it" else 0
        seen["away"] = lab.attempt("desk-away", trial, sandbox)
        calls = len(sandbox.questions())
    good = [name for name, one in seen.items() if one.status == expected[name] and "hush" not in one.err]
    tell(
        "B23", "a proxy as the only way out: through it, wrong password, forbidden, away",
        tried=len(expected), survived=len(good) if calls == len(rows) and tunnels >= 3 else 0,
        figure=f"{tunnels} tunnels, {calls} rows asked, exits {[one.status for one in seen.values()]}",
        goal=f"all through it, exits {[*expected.values()]}",
    )  # fmt: skip
