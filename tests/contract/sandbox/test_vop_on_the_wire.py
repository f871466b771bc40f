"""The VoP Gateway and VoP Standard of the sandbox, row by row of the API reference."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives import serialization

from pipeline.sandbox.certificates import (
    CertificateFiles,
    Issuer,
    issue_client_certificate,
    load_client_issuer,
)
from pipeline.sandbox.faults.selection import parse

GATEWAY = "/sandbox/vopgateway/v1/payee-verifications"
STANDARD = "/sandbox/vop/v1/payee-verifications"
IBAN = "DE35370400440084210077"
NAME = "Cobaltree Instruments GmbH"
LEI = "SIMU0000000000000183"


def gateway(iban=IBAN, **party):
    return {"party": party or {"name": NAME}, "partyAccount": {"iban": iban}}


def identified(**organisation):
    return {"identification": {"organisationId": organisation}}


def agent(bic):
    return {"financialInstitutionId": {"bicfi": bic}}


def standard(responder="COBADEFFXXX", requester="TREZFRP0XXX", **changes):
    return {
        **gateway(),
        "partyAgent": agent(responder),
        "requestingAgent": agent(requester),
        **changes,
    }


def without(document, member):
    return {key: value for key, value in document.items() if key != member}


def member_context_with(sandbox, folder, issuer: Issuer, **defects):
    """A TLS context that presents a certificate with chosen defects."""
    now = datetime.now(UTC)
    validity = {"not_before": now - timedelta(days=2), "not_after": now + timedelta(days=2)}
    certificate, key = issue_client_certificate(issuer, **{**validity, **defects})
    path = folder / "own.pem"
    path.write_bytes(
        certificate.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return sandbox.context(certificate=path)


@pytest.mark.parametrize(
    ("document", "answer"),
    [
        (gateway(), {"partyNameMatch": "MTCH"}),
        (gateway(name="Cobaltree Instrument"), {"partyNameMatch": "CMTC", "matchedName": NAME}),
        (gateway(name="Driftmoor Textil GmbH"), {"partyNameMatch": "NMTC"}),
        (gateway("AT793400000004821007", name="Katrin Steinwalder"), {"partyNameMatch": "NOAP"}),
        (gateway("DE89370400440532013000", name=NAME), {"partyNameMatch": "NOAP"}),
        (gateway(**identified(lei=LEI)), {"partyIdMatch": "MTCH"}),
        (gateway(**identified(lei="SIMU0000000000000280")), {"partyIdMatch": "NMTC"}),
        (gateway(**identified(anyBIC="LANTNL20XXX")), {"partyIdMatch": "NOAP"}),
        (
            gateway(**identified(others=[{"identification": "DE000000117", "schemeNameCode": "TXID"}])),
            {"partyIdMatch": "MTCH"},
        ),
        (gateway(name=NAME, **identified(lei="SIMU0000000000000280")), {"partyNameMatch": "MTCH"}),
    ],
)
def test_a_dummy_account_has_its_known_answer(sandbox, token, document, answer):
    reply = sandbox.check(GATEWAY, document, token=token)
    assert (reply.status, reply.document) == (200, answer)


def test_the_reference_of_the_request_is_echoed(sandbox, token):
    reference = str(uuid.uuid4())
    reply = sandbox.check(GATEWAY, gateway(), token=token, X_Request_ID=reference)
    assert reply.headers["X-Request-ID"] == reference
    assert reply.headers["X-Response-Timestamp"].endswith("Z")
    assert "x-fapi-interaction-id" not in reply.headers


@pytest.mark.parametrize(
    ("document", "named"),
    [
        ({"party": {}, "partyAccount": {"iban": IBAN}}, "party"),
        ({"partyAccount": {"iban": IBAN}}, "party"),
        ({"party": {"name": NAME}}, "partyAccount"),
        (gateway("DE36370400440084210077"), "partyAccount.iban"),
        (gateway("DE3537040044008421007"), "partyAccount.iban"),
        (gateway(IBAN.lower()), "partyAccount.iban"),
        (gateway("GB" + "1" * 33), "partyAccount.iban"),
        (gateway(**identified(lei="SHORT")), "lei"),
        (gateway(**identified(anyBIC="LANTNL20")), "anyBIC"),
        (gateway(**identified(others=[{"schemeNameCode": "PASS"}])), "schemeNameCode"),
        ({**gateway(), "partyAgent": agent("COBADEFFXXX")}, "partyAgent"),
    ],
)
def test_a_gateway_request_that_breaks_a_rule_is_a_format_error(sandbox, token, document, named):
    reply = sandbox.check(GATEWAY, document, token=token)
    assert (reply.status, reply.document["code"]) == (400, "FORMAT_ERROR")
    assert named in reply.document["detail"]
    assert IBAN not in reply.document["detail"]


@pytest.mark.parametrize("header", ["X_Request_ID", "X_Request_Timestamp"])
def test_both_request_headers_are_required(sandbox, token, header):
    reply = sandbox.check(GATEWAY, gateway(), token=token, **{header: None})
    assert (reply.status, reply.document["code"]) == (400, "FORMAT_ERROR")


def test_the_gateway_takes_a_token_and_no_certificate(sandbox):
    reply = sandbox.check(GATEWAY, gateway(), context=sandbox.member_context())
    assert (reply.status, reply.document["code"]) == (401, "CLIENT_INVALID")


def test_standard_takes_a_certificate_and_no_token(sandbox, token):
    context = sandbox.member_context()
    assert sandbox.check(STANDARD, standard(), context=context).document == {"partyNameMatch": "MTCH"}
    reply = sandbox.check(STANDARD, standard(), token=token)
    assert (reply.status, reply.document["code"]) == (401, "CLIENT_INVALID")
    assert "no client certificate" in reply.document["detail"]


@pytest.mark.parametrize(("is_offered", "status"), [(True, 200), (False, 401)])
def test_a_certificate_may_be_asked_for_once_a_request_is_there(serving, tmp_path, is_offered, status):
    with serving(tmp_path / "late", faults=(parse("late-client-certificate"),)) as late:
        context = late.member_context()
        context.post_handshake_auth = is_offered
        assert late.check(STANDARD, standard(), context=context).status == status


def test_standard_routes_by_the_responder_that_the_request_names(sandbox):
    context = sandbox.member_context()
    reply = sandbox.check(STANDARD, standard(responder="SOGEFRPPXXX"), context=context)
    assert reply.document == {"partyNameMatch": "NOAP"}


def test_remittance_information_is_allowed(sandbox):
    document = standard(unstructuredRemittanceInformation=["Invoice 7"])
    assert sandbox.check(STANDARD, document, context=sandbox.member_context()).status == 200


@pytest.mark.parametrize(
    "document",
    [
        without(standard(), "partyAgent"),
        without(standard(), "requestingAgent"),
        standard(responder="COBADEFF"),
        standard(requester="nonsense"),
    ],
)
def test_standard_needs_both_banks(sandbox, document):
    reply = sandbox.check(STANDARD, document, context=sandbox.member_context())
    assert (reply.status, reply.document["code"]) == (400, "FORMAT_ERROR")


def test_the_requesting_bank_must_be_the_participant_of_the_certificate(sandbox):
    document = standard(requester="TREZDEF0XXX")
    reply = sandbox.check(STANDARD, document, context=sandbox.member_context())
    assert (reply.status, reply.document["code"]) == (401, "CLIENT_INVALID")
    assert "requestingAgent" in reply.document["detail"]


@pytest.mark.parametrize(
    ("defects", "told"),
    [
        ({"not_after": datetime.now(UTC) - timedelta(days=1)}, "expired"),
        ({"not_before": datetime.now(UTC) + timedelta(days=1)}, "not valid yet"),
        ({"is_qualified": False}, "PSD2"),
        ({"authorisation_number": "PSDFR-ACPR-12345"}, "directory"),
        ({"authorisation_number": "VATFR-123456789"}, "authorisation number"),
    ],
)
def test_a_certificate_that_will_not_do_is_a_401_that_says_why(sandbox, tmp_path, defects, told):
    issuer = load_client_issuer(CertificateFiles(sandbox.folder))
    context = member_context_with(sandbox, tmp_path, issuer, **defects)
    reply = sandbox.check(STANDARD, standard(), context=context)
    assert (reply.status, reply.document["code"]) == (401, "CLIENT_INVALID")
    assert told in reply.document["detail"]


def test_another_participant_asks_under_its_own_bic(sandbox, tmp_path):
    issuer = load_client_issuer(CertificateFiles(sandbox.folder))
    context = member_context_with(sandbox, tmp_path, issuer, authorisation_number="PSDDE-BAFIN-99998")
    assert sandbox.check(STANDARD, standard(requester="TREZDEF0MUC"), context=context).status == 200
    assert sandbox.check(STANDARD, standard(), context=context).status == 401
