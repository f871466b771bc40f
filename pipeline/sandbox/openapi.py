"""The OpenAPI document of the sandbox, generated from the models in `schemas`.

It describes this server, not the provider's. Schemas cannot express some rules (check digits, the scheme
directory), so even requests that fit the schema may get 400 or 401.
"""

import json
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from pipeline.sandbox.accounts import examples_of
from pipeline.sandbox.intake import TIMESTAMP_PATTERN, UUID_PATTERN
from pipeline.sandbox.settings import APIS, SCOPES, TOKEN_PATH, NameCheckApi
from schemas.cop import NameVerificationRequest, NameVerificationResponse
from schemas.outcomes import ApiName, Environment
from schemas.problem import Problem
from schemas.token import TokenRequest, TokenResponse
from schemas.vop import GatewayRequest, Party, StandardRequest, VerificationOfPayeeResponse

Json = dict[str, Any]

_MODELS: tuple[type[BaseModel], ...] = (
    NameVerificationRequest,
    NameVerificationResponse,
    GatewayRequest,
    StandardRequest,
    VerificationOfPayeeResponse,
    Problem,
    TokenRequest,
    TokenResponse,
)
_TITLES = {
    ApiName.COP: "Check a name against a UK sort code and account number",
    ApiName.VOP_GATEWAY: "Check a name or an identification against an IBAN",
    ApiName.VOP_STANDARD: "Check a name or an identification against an IBAN, naming both banks",
}
_PROBLEMS = {
    "400": "FORMAT_ERROR: the request is malformed or fails validation",
    "401": "CLIENT_INVALID: the requester is not authorised",
    "408": "The request took too long to arrive; not shown in the reference",
    "417": "An expectation other than 100-continue; not shown in the reference",
    "429": "A limit of this server is exceeded; not shown in the reference",
    "500": "SERVER_ERROR: a technical problem",
    "502": "SSL_ERROR: an invalid response from the responder",
    "504": "TIMEOUT_ERROR: no response from the responder in time",
}
_TOKEN_PROBLEMS = ("400", "401", "408", "417")
_TIMESTAMP: Json = {"type": "string", "pattern": f"^{TIMESTAMP_PATTERN}$", "format": "date-time"}
_STAMPED: Json = {"X-Response-Timestamp": {"schema": _TIMESTAMP, "required": True}}
_UUID: Json = {"type": "string", "pattern": f"^{UUID_PATTERN}$", "format": "uuid"}


def describe(url: str) -> bytes:
    """Return the document for a server at this URL, as JSON."""
    _, definitions = models_json_schema(
        [(model, "validation") for model in _MODELS], ref_template="#/components/schemas/{model}"
    )
    paths: Json = {TOKEN_PATH: {"get": _token("getToken"), "post": _token("postToken")}}
    for api in APIS:
        for role in api.roles:
            paths[f"/{role.value}{api.path}"] = {"post": _check(api, role)}
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "Sandbox of payee-precheck",
            "version": "1.0.0",
            "description": "Confirmation of Payee and Verification of Payee, simulated: every bank, "
            "account and name is invented.",
        },
        "servers": [{"url": url, "description": "This sandbox; each path names its role"}],
        "paths": paths,
        "components": {
            "schemas": _schemas(definitions["$defs"]),
            "securitySchemes": {
                "token": _oauth(url),
                "certificate": {
                    "type": "mutualTLS",
                    "description": "A qualified website authentication certificate under PSD2, of a "
                    "participant; see client.pem in the folder of the sandbox",
                },
            },
        },
    }
    return json.dumps(document).encode()


def _schemas(definitions: Json) -> Json:
    schemas = {name: _without_null(schema) for name, schema in definitions.items()}
    # The reference does not say whether these are required; this server needs them for routing.
    schemas[StandardRequest.__name__]["required"] += ["partyAgent", "requestingAgent"]
    schemas[Party.__name__]["anyOf"] = [{"required": ["name"]}, {"required": ["identification"]}]
    return schemas


def _oauth(url: str) -> Json:
    scopes = {scope: f"Access to the server of role {role.value}" for role, scope in SCOPES.items()}
    flow = {"tokenUrl": f"{url}{TOKEN_PATH}", "scopes": scopes}
    return {
        "type": "oauth2",
        "description": "The token endpoint takes GET with a form in the body, as in the reference, or POST",
        "flows": {"clientCredentials": flow},
    }


def _check(api: NameCheckApi, role: Environment) -> Json:
    is_cop = api.name is ApiName.COP
    answer = NameVerificationResponse if is_cop else VerificationOfPayeeResponse
    # Role sandbox alone has dummy accounts.
    examples = list(examples_of(api.name)) if role is Environment.SANDBOX else []
    questions = {name: {"summary": name, "value": question} for name, question, _ in examples}
    answers = {name: {"summary": name, "value": told} for name, _, told in examples}
    headers = ((api.correlation_header, _UUID), ("X-Request-Timestamp", _TIMESTAMP))
    return {
        "operationId": f"{api.name.value}_{role.value}",
        "summary": _TITLES[api.name],
        "security": [{"certificate": []} if api.name is ApiName.VOP_STANDARD else {"token": [SCOPES[role]]}],
        "parameters": [
            {"name": name, "in": "header", "required": True, "schema": schema} for name, schema in headers
        ],
        "requestBody": {"required": True, "content": _content("application/json", api.document, questions)},
        "responses": {
            "200": {
                "description": "What the responder says",
                "headers": {api.correlation_header: {"schema": _UUID, "required": True}, **_STAMPED},
                "content": _content("application/json", answer, answers),
            },
            **{status: _problem(status) for status in _PROBLEMS},
        },
    }


def _token(operation_id: str) -> Json:
    return {
        "operationId": operation_id,
        "summary": "Get an access token (OAuth 2.0 client credentials)",
        "security": [],
        "requestBody": {
            "required": True,
            "content": _content("application/x-www-form-urlencoded", TokenRequest),
        },
        "responses": {
            "200": {"description": "A token", "content": _content("application/json", TokenResponse)},
            **{status: _problem(status) for status in _TOKEN_PROBLEMS},
        },
    }


def _problem(status: str) -> Json:
    return {
        "description": _PROBLEMS[status],
        "headers": _STAMPED,
        "content": _content("application/json", Problem),
    }


def _content(content_type: str, model: type[BaseModel], examples: Json | None = None) -> Json:
    content: Json = {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}
    return {content_type: {**content, "examples": examples} if examples else content}


def _without_null(schema: Json) -> Json:
    """Remove null alternatives: absent members are omitted from requests and responses."""
    cleaned: Json = {}
    for key, value in schema.items():
        if key == "default" and value is None:
            continue
        cleaned[key] = _without_null(value) if isinstance(value, dict) else value
    alternatives = [_without_null(each) for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if len(alternatives) == 1:
        del cleaned["anyOf"]
        return {**alternatives[0], **cleaned}
    return cleaned
