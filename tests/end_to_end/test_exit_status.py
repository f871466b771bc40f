"""DESIGN, section 4: every exit status, each with one sentence that says what to do."""

import datetime as dt
import os
import re
import resource
import shutil

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from refusals import said
from tables import for_each

GOOD = {"name": "Avery Thornwood", "sort_code": "001122", "account_number": "00012345"}
IBAN = {"name": "Solène Montferrand", "iban": "FR7630003012340000482100733"}
NOW = dt.datetime.now(dt.UTC)
DAY = dt.timedelta(days=1)


def told(finished, status, *words):
    """The command ended with this status and one sentence, which says this."""
    assert finished.status == status, finished.err
    assert len(finished.sentences) == 1, finished.err
    assert not finished.out or said("terminal.outcomes_are_in") in finished.out
    for word in words:
        assert word in finished.err
    return True


@pytest.fixture
def using(desk, sandbox):
    """The words for a profile with one section, made from the sandbox's."""

    def words(profile="sandbox", api="cop", **changes):
        section = sandbox.section(profile, api, **changes)
        return "--config", desk.configuration(mine={api: section}), "--profile", "mine"

    return words


@pytest.fixture
def impostor(desk, misbehaving, using, network_payments):
    """Run 30 payments against a server that answers as the test says."""

    def run(handler, rows=30):
        with misbehaving(handler) as url:
            words = using("production", base_url=url, token_url=f"{url}/token", attempts_max=2)
            return desk("run", desk.payments(network_payments(rows)), *words)

    return run


def echo(request):
    return {"x-fapi-interaction-id": request.headers["x-fapi-interaction-id"]}


# 0, 1, 2


def test_0_every_row_is_decided_rejected_ones_included(desk, sandbox):
    file = desk.payments([GOOD, {**GOOD, "sort_code": "1122"}])

    assert desk("run", file, *sandbox.using("sandbox"), "--quiet").status == 0


def test_files_of_one_name_are_told_apart_however_quiet_the_command_is(desk, sandbox):
    for folder in ("jan", "feb", "mar"):
        (desk.folder / folder).mkdir()
    desk.payments([GOOD, {**GOOD, "sort_code": "112233"}], name="jan/pay.csv")
    desk.payments([GOOD], name="feb/pay.csv")
    desk.file("mar/pay.csv", "")
    files = [f"{folder}/pay.csv" for folder in ("jan", "feb", "mar")]

    words = (*files, *sandbox.using("sandbox"), "--out", "results", "--limit", "1", "--quiet")
    assert desk("run", *words).err.splitlines() == [
        "precheck: " + said("review.run_is_simulated", folder="jan/pay.csv"),
        "precheck: jan/pay.csv: " + said("executors.questions_left", count=1),
        "precheck: " + said("review.run_is_simulated", folder="feb/pay.csv"),
        "precheck: " + said("csv.file_empty", where="mar/pay.csv"),
    ]


@pytest.mark.nightly
def test_a_quiet_run_says_that_it_is_simulated_and_claims_no_answer_where_there_was_none(desk, sandbox):
    simulated = "precheck: " + said("review.run_is_simulated", folder="payments.csv")
    deferred = desk.payments([GOOD])
    lines = desk("run", deferred, *sandbox.using("sandbox"), "--limit", "0", "--quiet").err.splitlines()
    assert lines == [
        simulated,
        "precheck: payments.csv: " + said("executors.questions_left", count=1),
    ]

    rejected = desk.payments([{**GOOD, "sort_code": "1122"}])
    lines = desk("run", rejected, *sandbox.using("sandbox"), "--out", "other", "--quiet").err.splitlines()
    assert lines == [simulated]


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("--fail-on", "no_match"), 1),
        (("--fail-on", "close_match"), 0),
        pytest.param(("--fail-on", "close_match", "--fail-on", "rejected"), 1, marks=pytest.mark.nightly),
        pytest.param(("--limit", "1"), 75, marks=pytest.mark.nightly),
        (("--limit", "1", "--fail-on", "deferred"), 1),
        pytest.param(("--limit", "1", "--fail-on", "match"), 75, marks=pytest.mark.nightly),
    ],
)
def test_1_a_row_has_an_outcome_named_by_fail_on(desk, sandbox, words, status):
    file = desk.payments([GOOD, {**GOOD, "name": "Rowan Blackmere"}, {**GOOD, "sort_code": "1122"}])

    assert desk("run", file, *sandbox.using("sandbox"), *words, "--quiet").status == status


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("--fail-on", "warning"), 1),
        pytest.param(("--fail-on", "PAYMENT_REPEATED"), 1, marks=pytest.mark.nightly),
        pytest.param(("--fail-on", "MIXED_SCRIPTS"), 0, marks=pytest.mark.nightly),
        pytest.param(("--fail-on", "PAYMENT_REPEATED", "--limit", "0"), 75, marks=pytest.mark.nightly),
    ],
)
def test_1_a_row_has_a_warning_named_by_fail_on(desk, sandbox, words, status):
    file = desk.payments([{**GOOD, "amount": "5.00"}] * 2)

    assert desk("run", file, *sandbox.using("sandbox"), *words, "--quiet").status == status


@pytest.mark.parametrize(
    "words",
    [
        ("run",),
        ("run", "x.csv", "--nonsense"),
        ("run", "x.csv", "--fail-on", "nonsense"),
        ("run", "x.csv", "--limit", "-1"),
        ("run", "x.csv", "--format", "ods"),
        ("nonsense",),
    ],
    ids=" ".join,
)
def test_2_words_that_click_does_not_know(desk, words):
    finished = desk(*words)

    assert finished.status == 2
    assert "Error: " in finished.err


@pytest.mark.parametrize(
    "words",
    [("--map", "name"), ("--map", "nonsense=name"), ("--encoding", "nonsense")],
    ids=" ".join,
)
def test_2_words_that_do_not_fit(desk, sandbox, words):
    assert told(desk("run", desk.payments([GOOD]), *sandbox.using("sandbox"), *words), 2, words[1])


# 65


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.csv", b""),
        ("header.csv", b"name,iban\n"),
        ("columns.csv", b"colour,size\nred,9\n"),
        ("twice.csv", b"tenant,landlord,iban\nAda,Bo,FR7630003012340000482100733\n"),
        ("quote.csv", b'name,iban\n"Never closed,FR7630003012340000482100733\n'),
        ("latin.csv", "name,iban\nSolène,FR76\n".encode("cp1252")),
        ("odd.pdf", b"%PDF"),
        ("broken.parquet", b"PAR1 nothing PAR1"),
    ],
)
def test_65_the_input_file_cannot_be_used(desk, sandbox, name, content):
    (desk.folder / name).write_bytes(content)
    before = sandbox.call_count

    assert told(desk("run", name, *sandbox.using("sandbox")), 65, name)
    assert sandbox.call_count == before
    assert not (desk.folder / name).with_suffix(".precheck").exists()


def test_65_there_is_no_such_file(desk):
    assert told(desk("run", "nowhere.csv"), 65, "nowhere.csv")


# 73, 74


def test_73_the_folder_cannot_be_created(desk, sandbox):
    (desk.folder / "file").write_text("not a folder")
    before = sandbox.call_count

    finished = desk("run", desk.payments([GOOD]), *sandbox.using("sandbox"), "--out", "file/out")

    assert told(finished, 73, "another folder")
    assert sandbox.call_count == before


def test_73_a_symbolic_link_is_not_written_through(desk, sandbox):
    folder = desk.folder / "payments.precheck"
    folder.mkdir()
    victim = desk.folder / "victim.csv"
    victim.write_text("precious")
    (folder / "outcomes.csv").symlink_to(victim)

    assert told(desk("run", desk.payments([GOOD]), *sandbox.using("sandbox")), 73, "symbolic link")
    assert victim.read_text() == "precious"


@pytest.mark.usefixtures("in_this_process")
@for_each(
    ("words", "status", "advice"),
    [
        (("run", "payments.csv", "--out", "circle"), 73, "another folder"),
        (("run", "payments.csv", "--out", "circle/in"), 73, "another folder"),
        (("run", "circle"), 65, "check the path"),
        (("run", "payments.csv", "--compare-with", "circle"), 65, "restore it"),
        (("run", "payments.csv", "--reuse-from", "circle"), 65, "check the path"),
        (("run", "parts", "--work", "circle"), 73, "--work"),
        (("run", "parts", "--work", "payments.csv"), 73, "--work"),
        (("verify", "circle"), 65, "check the path"),
        (("desk", "--no-browser", "--port", "0", "--home", "circle"), 73, "check the path"),
        (("desk", "--no-browser", "--port", "0", "--home", "payments.csv/in"), 73, "check the path"),
        (("sandbox", "--port", "0", "--folder", "circle"), 73, "another path"),
    ],
)
def test_a_circle_of_links_or_a_file_where_a_folder_would_be_is_a_place_that_cannot_be_used(
    desk, words, status, advice
):
    payments = desk.payments([GOOD])
    (parts := desk.folder / "parts").mkdir(exist_ok=True)
    shutil.copy(payments, parts)
    if not (circle := desk.folder / "circle").is_symlink():
        circle.symlink_to("circle")
    assert told(desk(*words), status, advice)


def test_73_a_ledger_of_something_else_is_left_as_it_is(desk, sandbox):
    folder = desk.folder / "payments.precheck"
    folder.mkdir()
    (folder / "ledger.db").write_text("a diary")

    assert told(desk("run", desk.payments([GOOD]), *sandbox.using("sandbox")), 73, "ledger.db")
    assert (folder / "ledger.db").read_text() == "a diary"


def unreadable_decisions(folder, victim):
    (folder / "approvals.json").write_text("precious")


def pipe_of_decisions(folder, victim):
    os.mkfifo(folder / "approvals.json")


def strangers_lock(folder, victim):
    (folder / ".lock").write_text("precious")


def linked_lock(folder, victim):
    (folder / ".lock").unlink()
    (folder / ".lock").hardlink_to(victim)


def linked_outcomes(folder, victim):
    (folder / "outcomes.csv").unlink()
    (folder / "outcomes.csv").hardlink_to(victim)


@pytest.mark.parametrize(
    "make", [unreadable_decisions, pipe_of_decisions, strangers_lock, linked_lock, linked_outcomes]
)
@pytest.mark.parametrize("words", [(), pytest.param(("--fresh",), marks=pytest.mark.nightly)])
def test_73_what_is_not_ours_is_found_before_anything_is_asked(desk, sandbox, make, words):
    file = desk.payments([GOOD, {**GOOD, "name": "Rowan Blackmere"}])
    assert desk.ran("run", file, *sandbox.using("sandbox"), "--limit", "1").status == 75
    folder, victim = desk.folder / "payments.precheck", desk.file("victim", "precious")
    make(folder, victim)
    before, files = sandbox.call_count, {path.name for path in folder.iterdir()}

    finished = desk("run", file, *sandbox.using("sandbox"), *words)

    assert told(finished, 73, "choose another")
    assert sandbox.call_count == before
    assert {path.name for path in folder.iterdir()} == files
    for path in (victim, folder / ".lock", folder / "approvals.json"):
        assert not path.is_file() or path.read_text() in {"precious", ""}


def file_size_max(byte_count):
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (byte_count, byte_count))


@pytest.mark.parametrize(
    "byte_count",
    [
        pytest.param(4_000, id="create", marks=pytest.mark.nightly),
        pytest.param(30_000, id="record"),
        pytest.param(60_000, id="write", marks=pytest.mark.nightly),
    ],
)
def test_74_a_full_disk_ends_the_run_and_costs_no_answer(desk, sandbox, using, network_payments, byte_count):
    """A limit on the size of files stands for the disk: the kernel refuses the write in the same place."""
    row_count = 700 if byte_count == 60_000 else 200
    file = desk.payments(network_payments(row_count))
    words = ("run", file, *using("production", rate_per_s=2000))
    if byte_count == 60_000:  # the answers are on record, and the outcome file is what does not fit
        desk(*words)
        (desk.folder / "payments.precheck" / "outcomes.csv").unlink()
    before = sandbox.call_count

    with desk.start(*words, limits=file_size_max(byte_count)) as process:
        full = process.end()

    assert told(full, 74)
    left = {path.name for path in (desk.folder / "payments.precheck").iterdir()}
    assert "outcomes.csv" not in left
    assert not {name for name in left if name.endswith(".part")}
    assert desk(*words).status == 0
    assert len(desk.outcomes()) == row_count
    repeated = len(sandbox.questions(before)) - len({call["question"] for call in sandbox.questions(before)})
    assert repeated <= 64, "at most what was in flight"


# 75


def test_75_an_outage_leaves_rows_unanswered_and_says_how_to_go_on(impostor, desk):
    async def fail(request):
        return web.json_response({"code": "SERVER_ERROR", "status": 500}, status=500, headers=echo(request))

    finished = impostor(fail, rows=3)

    assert finished.status == 75
    assert said("executors.questions_left") in finished.out
    rows = desk.outcomes()
    assert {(row["check_outcome"], row["check_code"]) for row in rows} == {("unanswered", "SERVER_ERROR")}
    assert {row["check_attempts"] for row in rows} == {"2"}


@pytest.mark.nightly
def test_75_no_identity_provider_no_answers(desk, using):
    words = using(token_url="https://127.0.0.1:9/token")

    assert told(
        desk("run", desk.payments([GOOD]), *words), 75, "token endpoint", said("transport.token_no_answer")
    )


# 76


def test_76_answers_to_other_requests_end_the_run_and_count_for_nothing(impostor, desk):
    async def mix_up(request):
        wrong = {"x-fapi-interaction-id": "11111111-1111-4111-8111-111111111111"}
        return web.json_response({"data": {"verificationReport": {"matched": True}}}, headers=wrong)

    assert told(impostor(mix_up), 76, "cop", "correlation id")
    codes = {(row["check_outcome"], row["check_code"]) for row in desk.outcomes()}
    assert codes == {("unanswered", "CONTRACT"), ("deferred", "RUN_ENDED")}
    assert desk("verify", "payments.precheck").status == 0


def test_76_a_server_that_only_breaks_the_contract(impostor):
    async def login_page(request):
        return web.Response(text="<form>", content_type="text/html", headers=echo(request))

    assert told(impostor(login_page), 76, "application/json")


@pytest.mark.parametrize(
    "body",
    [
        '{"data":{"verificationReport":{"matched":true,"reasonCode":"ANNM"}}}',
        *(
            pytest.param(body, marks=pytest.mark.nightly)
            for body in (
                '{"data":{"verificationReport":{"matched":false,"matched":true}}}',
                '{"data":{"verificationReport":{"matched":"true"}}}',
                '{"data":{"verificationReport":{"matched":false,"reasonCode":"MBAM"}}}',
                '{"data":{"verificationReport":{"matched":false,"reasonCode":"FINE"}}}',
                '{"partyNameMatch":"MTCH"}',
            )
        ),
    ],
)
def test_a_contradiction_is_unanswered_and_never_a_match(impostor, desk, body):
    async def contradict(request):
        return web.Response(body=body, content_type="application/json", headers=echo(request))

    assert impostor(contradict, rows=2).status == 75

    rows = desk.outcomes()
    assert {(row["check_outcome"], row["check_code"]) for row in rows} == {("unanswered", "CONTRACT")}


# 77


def test_77_a_wrong_secret(desk, sandbox, using):
    secret = desk.folder / "secret"
    secret.touch(mode=0o600)
    secret.write_text("wrong-canary-secret")

    finished = desk("run", desk.payments([GOOD]), *using(client_secret_file=str(secret)))

    assert told(finished, 77, "client_id")
    assert "canary" not in finished.err


@pytest.mark.parametrize("status", [401, pytest.param(403, marks=pytest.mark.nightly)])
def test_77_the_server_refuses_the_client(impostor, status):
    calls = []

    async def refuse(request):
        calls.append(request.path)
        return web.json_response({"code": "CLIENT_INVALID"}, status=status, headers=echo(request))

    assert told(impostor(refuse), 77, f"HTTP {status}")
    assert len(calls) <= 10, "five questions, and tokens"


def pem(path, *, key=None, certificate=None):
    path.touch(mode=0o600)
    if key is not None:
        kinds = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        path.write_bytes(key.private_bytes(*kinds))
    else:
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return str(path)


def test_77_a_client_certificate_of_an_unknown_authority(desk, sandbox, using):
    key = ec.generate_private_key(ec.SECP256R1())
    number = x509.NameAttribute(NameOID.ORGANIZATION_IDENTIFIER, "PSDFR-ACPR-99999")
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "A stranger"), number])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - DAY)
        .not_valid_after(NOW + DAY)
        .sign(key, hashes.SHA256())
    )
    words = using(
        "sandbox-standard",
        "vop",
        client_certificate=pem(desk.folder / "me.pem", certificate=certificate),
        client_key=pem(desk.folder / "me.key", key=key),
        client_key_password_file=None,
    )
    before = sandbox.call_count

    assert told(desk("run", desk.payments([IBAN]), *words), 77, "client_certificate")
    assert sandbox.call_count == before + 1, "the first question goes alone, and is refused"


@pytest.mark.nightly
def test_77_a_requesting_bank_that_is_not_ours(desk, using):
    words = using("sandbox-standard", "vop", requesting_bic="ABCDGB2LXXX")

    assert told(desk("run", desk.payments([IBAN]), *words), 77, "401")


# 78


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"base_url": "http://127.0.0.1:9"}, "https://"),
        ({"base_url": "https://user:canary@127.0.0.1"}, "base_url"),
        ({"rate_per_sec": 5}, "rate_per_s"),
        ({"daily_cap": 0}, "daily_cap"),
        ({"client_secret_env": "ALSO"}, "exactly one"),
        ({"client_secret_file": "/nowhere/secret"}, "/nowhere/secret"),
        ({"client_secret_file": None, "client_secret_env": "UNSET_VARIABLE"}, "UNSET_VARIABLE"),
        ({"ca_file": "/nowhere/ca.pem"}, "/nowhere/ca.pem"),
        ({"ca_file": None}, "ca_file"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_78_a_configuration_that_cannot_be_used(desk, sandbox, using, changes, said):
    before = sandbox.call_count

    finished = desk("run", desk.payments([GOOD]), *using(**changes))

    assert told(finished, 78, said)
    assert "canary" not in finished.err
    assert sandbox.call_count == before


def test_78_a_secret_that_others_can_read(desk, using):
    secret = desk.folder / "secret"
    secret.write_text("canary")
    os.chmod(secret, 0o644)  # noqa: PTH101 (the rights are the point)

    finished = desk("run", desk.payments([GOOD]), *using(client_secret_file=str(secret)))

    assert told(finished, 78, "chmod 600")
    assert "canary" not in finished.err


@pytest.mark.parametrize(
    "words",
    [("--profile", "nowhere"), ("--config", "nowhere.toml"), ("--config", "nowhere.toml", "--profile", "x")],
    ids=" ".join,
)
def test_78_there_is_no_such_profile_or_file(desk, words):
    assert told(desk("run", desk.payments([GOOD]), *words), 78, said("config.no_such_configuration"))


def test_78_there_is_no_such_profile_in_the_file(desk, sandbox):
    finished = desk("run", desk.payments([GOOD]), *sandbox.using("prodution"))

    assert told(finished, 78, "prodution", "production-standard")


def test_78_a_redirect_is_not_followed(impostor):
    seen = []

    async def redirect(request):
        seen.append(request.path)
        return web.Response(status=307, headers={"Location": f"https://{request.host}/elsewhere"})

    assert told(impostor(redirect), 78, "307")
    assert "/elsewhere" not in seen


def test_78_a_server_of_another_authority(desk, sandbox, using):
    words = using(ca_file=str(sandbox.folder / "qwac_ca.pem"))

    finished = desk("run", desk.payments([GOOD]), *words)

    assert told(finished, 78, "not trusted")
    assert re.search(r"127\.0\.0\.1:\d+", finished.err)
