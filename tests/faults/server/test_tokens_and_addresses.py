"""Rows B14 to B16 of the fault table: the token endpoint, the environment, addresses that are not safe."""

import socket
import threading
from contextlib import contextmanager

SURE_STOPS = {
    "token-down": (75, 6),
    "token-500": (75, 3),
    "token-page": (76, 1),
    "token-of-another-type": (76, 1),
    "token-missing": (76, 1),
    "token-forged": (77, 2),
}
"""Fault -> the exit, and the token calls at most; a GET that is closed on is sent twice by aiohttp."""
STOPS_OF_A_MINUTE = {"token-silent": (75, 6)}
"""Those that take three deadlines of 10 s."""


@contextmanager
def listener():
    """A server that takes no connection but counts how many came: a list with one item for each."""
    came, is_over = [], threading.Event()

    def accept():
        while not is_over.is_set():
            try:
                connection, _ = server.accept()
            except TimeoutError:
                continue
            came.append(connection.recv(1000))
            connection.close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield server.getsockname()[1], came
        finally:
            is_over.set()
            thread.join()


def test_without_a_token_no_row_is_sent(lab, a_trial, is_long, tell):
    rows = lab.uk_rows(20)
    stops = {**SURE_STOPS, **(STOPS_OF_A_MINUTE if is_long else {})}
    seen = lab.try_out(**{name: a_trial(rows, (name,), changes={"in_flight_max": 4}) for name in stops})
    answered = sum(len([call for call in one.questions if call["status"] != 401]) for one in seen.values())
    good = [
        name
        for name, (status, calls_max) in stops.items()
        if seen[name].status == status and len(seen[name].token_calls) <= calls_max and seen[name].sentences
    ]
    unsent = [name for name in good if name == "token-forged" or not seen[name].questions]
    calls = max(len(one.token_calls) for one in seen.values())
    tell(
        "B14", "token endpoint down, 500, HTML, wrong type, no token, forged", tried=len(stops),
        survived=len(unsent) if not answered else 0,
        figure=f"{calls} token calls at most, {answered} rows answered, "
        f"exits {[one.status for one in seen.values()]}",
        goal="<= 25 calls, 0 rows, exit 75 where it can pass",
    )  # fmt: skip


def test_a_strange_life_of_a_token_costs_no_storm_of_calls(lab, a_trial, tell):
    rows = lab.uk_rows(200)
    names = ("token-slow", "token-without-life", "token-of-no-life")
    changes = {"rate_per_s": 50, "in_flight_max": 16}
    seen = lab.try_out(**{name: a_trial(rows, (name,), changes=changes) for name in names})
    most = max(len(one.token_calls) for one in seen.values())
    # A token of no life is used for 5 s, and the run takes about as long.
    right = [one for one in seen.values() if one.codes() == lab.truth_of(rows) and len(one.token_calls) <= 3]
    tell(
        "B14", "token slow, without expires_in, with expires_in 0", tried=len(names), survived=len(right),
        figure=f"{most} token calls for {len(rows)} rows", goal="1, or one in 5 s",
    )  # fmt: skip


def test_the_environment_leads_no_request_astray(lab, a_trial, tmp_path, tell):
    rows = lab.uk_rows(20)
    keys, netrc = tmp_path / "tls_secrets.txt", tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login canary password canary\n")
    netrc.chmod(0o600)
    with listener() as (port, came):
        proxy = f"http://127.0.0.1:{port}"
        names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
        environment = {
            **dict.fromkeys(names, proxy),
            "NO_PROXY": "",
            "SSLKEYLOGFILE": str(keys),
            "SSL_CERT_FILE": str(netrc),
            "NETRC": str(netrc),
        }
        seen = lab.try_out(led=a_trial(rows, environment=environment))["led"]
    # The ssl module writes a heading into the file for whoever makes a default context, used or not.
    logged = keys.read_text().splitlines() if keys.exists() else []
    secrets = [line for line in logged if not line.startswith("#")]
    is_good = seen.codes() == lab.truth_of(rows) and not came and not secrets
    tell(
        "B15", "proxies, SSLKEYLOGFILE, SSL_CERT_FILE, netrc", tried=len(rows),
        survived=len(rows) if is_good else 0,
        figure=f"{len(came)} connections to the proxy, {len(secrets)} TLS secrets on disk", goal="0, 0",
    )  # fmt: skip


def test_an_address_that_is_not_plain_https_is_never_used(lab, a_trial, tell):
    with listener() as (port, came), lab.served("server") as sandbox:
        host = f"127.0.0.1:{port}"
        addresses = {
            "base_url": (f"http://{host}", f"https://user@{host}", f"https://{host}/?a=b", f"ftp://{host}"),
            "token_url": (f"http://{host}/token", f"https://user:word@{host}/token", f"https://{host}/t?a=b"),
        }
        cases = [{key: value} for key, values in addresses.items() for value in values]
        seen = lab.several(
            lambda number: lab.attempt(
                f"case-{number}", a_trial(lab.uk_rows(5), changes=cases[number]), sandbox
            ),
            range(len(cases)),
        )
        calls = len(sandbox.calls())
    refused = [one for one in seen if one.status == 78 and len(one.sentences) == 1]
    tell(
        "B16", "http, user, query in base_url and token_url", tried=len(cases),
        survived=len(refused) if not came and not calls else 0,
        figure=f"{len(came)} connections, {calls} calls", goal="0, exit 78",
    )  # fmt: skip
