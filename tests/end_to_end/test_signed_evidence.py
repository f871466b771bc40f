"""The signature of a manifest: whose it is, and that whatever writes the manifest renews it or tells."""

import shutil
import stat
import subprocess

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from refusals import said
from signers import key_files

pytestmark = pytest.mark.usefixtures("in_this_process")

UK = {"account_type": "Personal", "sort_code": "00-11-22", "account_number": "00012345", "currency": "GBP"}
ROWS = [
    UK | {"payment_id": "P1", "name": "Avery Thornwood", "amount": "100.00"},
    UK | {"payment_id": "P2", "name": "Averi Thornwood", "amount": "25.50"},
]
PASSWORD = "a canary of a password"
NOT_SIGNED = "is no longer signed: manifest.json.sig was deleted"


@pytest.fixture
def keys(desk):
    return key_files(desk, "signing")


@pytest.fixture
def words(desk, sandbox):
    return "run", desk.payments(ROWS), *sandbox.using("sandbox"), "--quiet"


@pytest.fixture
def folder(desk, words, keys):
    """The folder of a finished run whose manifest is signed."""
    assert desk.ran(*words, "--sign-with", keys[0]).status == 0
    return desk.folder / "payments.precheck"


def test_an_auditor_sees_that_a_signed_folder_is_as_it_was_signed(desk, folder, keys):
    _, public = keys
    _, other = key_files(desk, "other")
    signature = folder / "manifest.json.sig"
    assert (len(signature.read_bytes()), stat.S_IMODE(signature.stat().st_mode)) == (64, 0o600)

    signed, unasked, by_other = (
        desk("verify", folder, *words) for words in (("--signed-by", public), (), ("--signed-by", other))
    )

    assert (signed.status, unasked.status, by_other.status) == (0, 0, 65)
    assert (
        "ok      signature: " + said("evidence.signed_by", manifest="manifest.json", path=public)
        in signed.out
    )
    assert said("evidence.signed_by") in signed.out
    assert (
        "ok      signature: " + said("evidence.signature_unverified", signature="manifest.json.sig")
        in unasked.out
    )
    assert (
        "PROBLEM signature: " + said("evidence.signed_by_another", path=other, manifest="manifest.json")
        in by_other.out
    )
    manifest = folder / "manifest.json"
    manifest.write_bytes(manifest.read_bytes() + b"\n")
    assert (
        "PROBLEM signature: " + said("evidence.signed_by_another", path=public)
        in desk("verify", folder, "--signed-by", public).out
    )
    signature.unlink()
    assert "PROBLEM signature: none" in desk("verify", folder, "--signed-by", public).out
    assert desk("verify", folder).status == 0


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_openssl_alone_makes_the_keys_and_verifies_the_signature(desk, words):
    def openssl(*arguments):
        done = subprocess.run(
            ["openssl", *arguments], cwd=desk.folder, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout

    assert openssl("genpkey", "-algorithm", "ed25519", "-out", "s.pem")[0] == 0
    assert openssl("pkey", "-in", "s.pem", "-pubout", "-out", "s.pub.pem")[0] == 0
    (desk.folder / "s.pem").chmod(0o600)
    assert desk(*words, "--sign-with", "s.pem").status == 0
    manifest = "payments.precheck/manifest.json"
    verify = ("pkeyutl", "-verify", "-pubin", "-inkey", "s.pub.pem", "-rawin", "-in", manifest)
    verify = (*verify, "-sigfile", f"{manifest}.sig")

    assert openssl(*verify) == (0, "Signature Verified Successfully\n")
    (desk.folder / manifest).write_bytes(b"{}")
    assert openssl(*verify)[0] == 1


def test_what_writes_the_manifest_anew_signs_it_with_the_key_or_says_that_it_is_not_signed(
    desk, folder, keys
):
    private, public = keys
    steps = [
        ("fix", folder, "--accept", "close_match", "--reason", "judged", "--allow-simulated"),
        ("split", folder, "--allow-simulated"),
        ("report", folder),
        ("purge", folder),
    ]
    for step in steps:
        signed = desk(*step, "--sign-with", private)
        assert (signed.status, NOT_SIGNED in signed.err) == (0, False), signed.err
        assert desk("verify", folder, "--signed-by", public).status == 0
        unsigned = desk(*step)
        assert (unsigned.status, NOT_SIGNED in unsigned.err) == (0, True), unsigned.err
        assert not (folder / "manifest.json.sig").exists()
        assert desk("report", folder, "--sign-with", private, "--adopt", "my own step").status == 0
        assert desk("verify", folder, "--signed-by", public).status == 0


def test_a_manifest_that_was_changed_or_signed_by_another_is_not_signed_over(desk, folder, keys):
    other, _ = key_files(desk, "other")
    manifest = folder / "manifest.json"

    def refused(key, *command):
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        ended = desk(command[0], folder, *command[1:], "--sign-with", key)
        assert {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".lock"} == {
            name: content for name, content in before.items() if name != ".lock"
        }
        return (
            ended.status == 65
            and "manifest.json.sig" + said("files.manifest_signature_invalid", manifest="manifest.json")
            in ended.err
        )

    for command in (("fix",), ("split", "--allow-simulated"), ("report",), ("purge",)):
        assert refused(other, *command), command
    manifest.write_bytes(manifest.read_bytes() + b"\n")
    for command in (("fix",), ("split", "--allow-simulated"), ("report",), ("purge",)):
        assert refused(keys[0], *command), command


def test_a_finished_run_stays_as_it_is_and_says_that_it_is_not_signed(desk, folder, words, keys):
    assert desk("report", folder).status == 0  # without the key
    manifest = (folder / "manifest.json").read_bytes()

    again = desk(*[word for word in words if word != "--quiet"], "--sign-with", keys[0])

    assert again.status == 0
    assert said("jobs.notice_not_signed") in again.err
    assert (folder / "manifest.json").read_bytes() == manifest


def test_the_profile_can_name_the_key_and_where_its_password_is(desk, sandbox):
    _, public = key_files(desk, "signing", password=PASSWORD)
    config = desk.configuration(name="precheck.toml", mine={"cop": sandbox.section("sandbox")})
    keys = '[profiles.mine]\nsign_with = "signing.pem"\nsign_with_password_env = "SIGNING_PASSWORD"\n'
    config.write_text(keys + config.read_text())
    words = ("run", desk.payments(ROWS), "--profile", "mine", "--quiet")

    none = desk(*words)
    wrong = desk(*words, SIGNING_PASSWORD="another")
    right = desk(*words, SIGNING_PASSWORD=PASSWORD)

    assert (none.status, wrong.status, right.status) == (78, 78, 0)
    assert said("sections.variable_not_set", variable="SIGNING_PASSWORD") in none.err
    assert said("files.key_password_wrong", password_from="sign_with_password_env") in wrong.err
    assert desk("verify", "payments.precheck", "--signed-by", public).status == 0
    assert desk("split", "payments.precheck", "--allow-simulated", SIGNING_PASSWORD=PASSWORD).status == 0
    assert desk("verify", "payments.precheck", "--signed-by", public).status == 0


def test_a_key_that_cannot_be_used_is_told_before_anything_is_asked(desk, sandbox, words):
    rsa, rsa_public = key_files(desk, "rsa", generate_private_key(65537, 2048))
    private, public = key_files(desk, "good")
    hidden, _ = key_files(desk, "hidden", password=PASSWORD)
    open_key, _ = key_files(desk, "open")
    open_key.chmod(0o644)
    before = sandbox.call_count

    refused = {key: desk(*words, "--sign-with", key) for key in (rsa, public, hidden, open_key, "no.pem")}

    assert {one.status for one in refused.values()} == {78}
    assert sandbox.call_count == before
    assert not (desk.folder / "payments.precheck").exists()
    sentences = {key: one.sentences[0] for key, one in refused.items()}
    assert said("files.not_an_ed25519_private_key") in sentences[rsa]
    assert said("files.key_readable_by_others") in sentences[open_key]
    assert said("files.private_key_encrypted", password_from="PRECHECK_SIGN_PASSWORD") in sentences[hidden]
    assert (
        said("files.private_key_unreadable", path="no.pem", why=said("system.enoent")) in sentences["no.pem"]
    )
    assert desk(*words, "--sign-with", hidden, PRECHECK_SIGN_PASSWORD=PASSWORD).status == 0
    folder = desk.folder / "payments.precheck"
    asked = [desk("verify", folder, "--signed-by", key) for key in (rsa_public, private, "no.pem")]
    assert {one.status for one in asked} == {78}
    assert said("files.not_an_ed25519_public_key") in asked[1].err


def test_a_public_key_from_the_folder_proves_nothing(desk, folder, keys):
    shutil.copy(keys[1], folder / "key.pem")
    (desk.folder / "link.pem").symlink_to(folder / "key.pem")

    refused = [desk("verify", folder, "--signed-by", key) for key in (folder / "key.pem", "link.pem")]

    assert [one.status for one in refused] == [2, 2]
    assert said("jobs.signer_key_inside_folder") + "; " + said("jobs.get_key_from_signer") in refused[0].err
