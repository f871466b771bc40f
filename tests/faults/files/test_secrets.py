"""Fault table E: secrets, names and accounts are where the contract puts them, and nowhere else."""

import contextlib
import json
import threading
from pathlib import Path

import polars as pl
import pytest

UK = {"name": "Ada Quillon", "sort_code": "010203", "account_number": "10000001", "amount": "1.00"}
PAYEE = "Canary Featherstonehaugh"
HELD = "Canary Heldname"
ACCOUNTS = ("87654321", "01020387654321", "FR7630003012340000482100733")
TOKEN, SECRET = "canary-token-5f1d", "canary-secret-77aa"
PRIVATE = [
    {**UK, "name": PAYEE, "account_number": ACCOUNTS[0]},
    {**UK, "name": f"{PAYEE} II", "account_number": ACCOUNTS[0], "account_type": "Business"},
    {"name": PAYEE, "iban": ACCOUNTS[2], "amount": "1"},
    {"name": f"{PAYEE}\x07", "iban": ACCOUNTS[2][:-1]},
    {**UK, "name": f"{PAYEE} III", "account_number": "8765432"},
]


def careless(reply, problem):
    """Servers that say more than they should, each by its own name."""

    async def close_match(request, _body):
        return reply(request, "MBAM" if "copgateway" in request.path else "CMTC", HELD)

    async def quotes(request, body):
        return problem(request, {"code": "FORMAT_ERROR", "status": 400, "detail": body.decode()}, 400)

    async def refuses(request, _body):
        said = {"code": "CLIENT_INVALID", "status": 401, "detail": request.headers.get("Authorization", "")}
        return problem(request, said, 401)

    async def invents(request, body):
        return problem(request, {"code": f"X_{body.decode()}", "status": 500, HELD: body.decode()}, 500)

    async def hangs_up(request, body):
        request.transport.abort()
        return problem(request, {})

    return {one.__name__: one for one in (close_match, quotes, refuses, invents, hangs_up)}


ENVIRONMENT = b"environment of a child: "


def seen_below(pid, stopped):
    """The command lines, then the environments, of every process below this one, while it lasts."""
    commands, environments = set(), set()
    own = b""
    while not stopped.is_set():
        if not own:  # the system has not yet put its words into the new image
            own = Path(f"/proc/{pid}/cmdline").read_bytes()
            continue
        pids = [pid]
        for parent in pids:
            with contextlib.suppress(OSError):
                children = Path(f"/proc/{parent}/task/{parent}/children").read_text()
                pids += [int(child) for child in children.split()]
        for process in pids:
            with contextlib.suppress(OSError):
                command = Path(f"/proc/{process}/cmdline").read_bytes()
                environment = Path(f"/proc/{process}/environ").read_bytes()
                commands.add(command)
                # A child that has not yet begun its own program is still the image of its parent.
                if command not in (b"", own) and process != pid:
                    environments.add(ENVIRONMENT + environment)
        stopped.wait(0.01)
    return b"".join([*commands, *environments])


def watched(desk, *words, **changes):
    """Run the command: its output, its errors, and what could be seen of it from outside."""
    stopped, seen = threading.Event(), []
    with desk.start(*words, **changes) as process:
        watcher = threading.Thread(target=lambda: seen.append(seen_below(process.pid, stopped)))
        watcher.start()
        finished = process.end()
        stopped.set()
        watcher.join()
    return finished.out.encode(), finished.err.encode(), seen[0]


@pytest.mark.parametrize("profile", ["production", "production-standard"])
def test_e6_secrets_and_e7_names_are_where_the_contract_puts_them_only(
    desk, bank, words, tell, reply, problem, everything, key_password, profile
):
    rows = PRIVATE if profile == "production" else [{**row, "bic": "SOGEFRPPXXX"} for row in PRIVATE[2:]]
    file = desk.payments(
        rows, header=("name", "sort_code", "account_number", "account_type", "iban", "bic", "amount")
    )
    parquet = desk.folder / "payments.parquet"
    pl.read_csv(file, infer_schema=False).write_parquet(parquet)
    secret = (
        {"client_secret_env": "CANARY_ENV", "client_secret_file": None}
        if profile == "production"
        else {"client_key_password_env": "CANARY_ENV", "client_key_password_file": None}
    )
    # The password of the key is the sandbox's own: the certificate must load.
    changes = {"CANARY_ENV": SECRET if profile == "production" else key_password}
    secrets = [canary.encode() for canary in (TOKEN, *changes.values())]
    private = [canary.encode() for canary in (PAYEE, "Featherstonehaugh", HELD, *ACCOUNTS)]
    secret_hits, name_hits, looked_at, saw_a_child, asked = [], [], 0, False, []
    for name, handler in careless(reply, problem).items():
        with bank(handler) as running:
            said = words(running, profile, attempts_max=2, **secret)
            inputs = {path for path in desk.folder.iterdir() if path.is_file()}
            for number, source in enumerate((file, parquet)):
                texts = watched(desk, "run", source, *said, "--out", f"{name}-{number}", "--json", **changes)
                saw_a_child |= ENVIRONMENT in texts[2]
                contents = [*enumerate(texts), *everything(*inputs).items()]
                looked_at += len(contents)
                for what, content in contents:
                    secret_hits += [(name, what) for canary in secrets if canary in content]
                    name_hits += [
                        (name, what) for canary in private if canary in content and not belongs(what, canary)
                    ]
            asked.append(len(running.bodies))
    assert all(asked), "a bank was asked nothing"
    assert saw_a_child, "no child process was seen"
    kind = "TLS key password" if "standard" in profile else "client secret, token"
    tell(
        "E6",
        f"canary: {kind}",
        tried=looked_at,
        survived=looked_at - len(secret_hits),
        figure=f"{len(secret_hits)} found in outputs, logs, processes, temporary files",
        goal="0",
    )
    tell(
        "E7",
        f"canary: names and accounts, {profile}",
        tried=looked_at,
        survived=looked_at - len(name_hits),
        figure=f"{len(name_hits)} found outside of the outcome files",
        goal="0",
    )


def test_e6_no_child_inherits_what_the_environment_holds(desk, network_payments, tell):
    """Whoever runs the command may have secrets of other programs in the environment."""
    parquet = desk.folder / "payments.parquet"
    pl.DataFrame(network_payments(40)).write_parquet(parquet)
    other = {"CANARY_CLOUD_KEY": SECRET, "PGPASSWORD": SECRET, "COP_CLIENT_SECRET": SECRET}
    out, err, seen = watched(desk, "run", parquet, "--out", "out", "--json", **other)
    environments = seen.split(ENVIRONMENT)[1:]
    parsers = [found for found in environments if b"MALLOC_ARENA_MAX" in found]
    leaking = [found for found in environments if SECRET.encode() in found]
    commands_hold_it = SECRET.encode() in seen.split(ENVIRONMENT)[0]
    assert json.loads(out)["complete"], err
    assert parsers, "the child that parses was not seen"
    assert len(environments) > len(parsers), "the embedded sandbox was not seen"
    tell(
        "E6",
        "environment of the parsing child and of the embedded sandbox",
        tried=len(environments),
        survived=(len(environments) - len(leaking)) * (not commands_hold_it),
        figure=f"{len(leaking)} of {len(environments)} hold a secret of the parent",
        goal="0",
    )


def belongs(what, canary):
    """Whether the contract puts this there: outcomes are the payments, the ledger has what banks said."""
    if not isinstance(what, Path):
        return False
    if what.name == "report.html":  # names it holds, but every account is masked
        return canary.decode() not in ACCOUNTS
    return what.name in ("outcomes.csv", "outcomes.parquet", "attention.csv") or (
        what.name == "ledger.db" and canary == HELD.encode()
    )
