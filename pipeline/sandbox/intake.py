"""The rules that a request must keep before anybody looks at its question.

Source: API reference, "Request headers" and the field tables of "Resources and their fields". Every
broken rule is 400 FORMAT_ERROR with a detail that names the header or the member, never its value.
"""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from pipeline.sandbox import iban
from pipeline.sandbox.problems import format_error
from schemas import strict
from schemas.cop import NameVerificationRequest
from schemas.vop import GatewayRequest, StandardRequest

BODY_BYTES_MAX = 64 * 1024

UUID_PATTERN = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
TIMESTAMP_PATTERN = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z"
_UUID = re.compile(UUID_PATTERN)
_TIMESTAMP = re.compile(TIMESTAMP_PATTERN)

AnyQuestion = TypeVar("AnyQuestion", bound=BaseModel)


def correlation_id(headers: Mapping[str, str], header: str) -> str | None:
    """The correlation id of a request; None where it is missing or no UUID, so cannot be echoed."""
    value = headers.get(header)
    return value if value is not None and _UUID.fullmatch(value) else None


def check_headers(headers: Mapping[str, str], correlation_header: str) -> None:
    """Hold every rule about headers.

    Raises:
        ProblemError: 400, naming the first header that breaks one.
    """
    if correlation_id(headers, correlation_header) is None:
        raise format_error(f"header {correlation_header}: missing, or not a UUID")
    if not _is_timestamp(headers.get("X-Request-Timestamp", "")):
        raise format_error("header X-Request-Timestamp: missing, or not of the form YYYY-MM-DDThh:mm:ss.sssZ")
    check_body_headers(headers, "application/json")


def check_body_headers(headers: Mapping[str, str], content_type: str) -> None:
    """Hold the rules about a body: its type, no encoding, a length within the cap.

    Raises:
        ProblemError: 400, naming the first header that breaks one.
    """
    stated = headers.get("Content-Type", "")
    if stated != content_type and stated.partition(";")[0].strip().lower() != content_type:
        raise format_error(f"header Content-Type: must be {content_type}")
    if "Content-Encoding" in headers:
        raise format_error("header Content-Encoding: an encoded body is not accepted")


def read_question(model: type[AnyQuestion], body: bytes) -> AnyQuestion:
    """Read a body as a question, strictly.

    Raises:
        ProblemError: 400, naming each member that breaks a rule.
    """
    try:
        question = strict.parse(model, body)
    except ValidationError as error:
        raise format_error("; ".join(_explain(error))) from None
    except ValueError as error:
        raise format_error(str(error)) from None
    if b"null" in body and _holds_null(json.loads(body)):
        raise format_error("body: a member that is absent must be left out, not null")
    _check_beyond_the_model(question)
    return question


def canonical(question: BaseModel) -> bytes:
    """The one spelling of a question, so that two requests can be told to ask the same."""
    return question.model_dump_json(by_alias=True, exclude_none=True).encode()


def _check_beyond_the_model(question: BaseModel) -> None:
    # The client's side of the model fills the one allowed value in; a request must carry it.
    if isinstance(question, NameVerificationRequest) and "scheme_name" not in question.data.model_fields_set:
        raise format_error("data.schemeName: Field required")
    if isinstance(question, GatewayRequest) and not iban.is_valid(question.party_account.iban):
        raise format_error("partyAccount.iban: wrong length for its country, or wrong check digits")
    if not isinstance(question, StandardRequest):
        return
    # Whether the agents are required is not shown; without them the service has nothing to route by.
    if question.party_agent is None:
        raise format_error("partyAgent: required to route the request")
    if question.requesting_agent is None:
        raise format_error("requestingAgent: required to route the request")


def _holds_null(value: object) -> bool:
    if isinstance(value, dict):
        return any(_holds_null(member) for member in value.values())
    if isinstance(value, list):
        return any(_holds_null(item) for item in value)
    return value is None


def _is_timestamp(value: str) -> bool:
    if not _TIMESTAMP.fullmatch(value):
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def _explain(error: ValidationError) -> list[str]:
    return [
        f"{'.'.join(str(step) for step in part['loc']) or 'body'}: {part['msg']}"
        for part in error.errors(include_input=False, include_url=False, include_context=False)
    ]
