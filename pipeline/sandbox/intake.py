"""Read a request's body, and check headers and question against the rules.

Source: API reference, "Request headers" and the field tables of "Resources and their fields". A broken rule
is answered with 400 FORMAT_ERROR, whose detail names the header or the member, never its value.
"""

import asyncio
import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import TypeVar

from aiohttp import HttpVersion11, web
from aiohttp.http_exceptions import HttpProcessingError
from multidict import MultiMapping
from pydantic import BaseModel, ValidationError

from pipeline.sandbox import iban
from pipeline.sandbox.problems import (
    EXPECTATION_FAILED,
    ProblemError,
    Refusal,
    format_error,
    shown_member,
    too_slow,
)
from schemas import strict
from schemas.cop import NameVerificationRequest
from schemas.vop import GatewayRequest, StandardRequest

UUID_PATTERN = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
TIMESTAMP_PATTERN = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z"
_UUID = re.compile(UUID_PATTERN)
_TIMESTAMP = re.compile(TIMESTAMP_PATTERN)

_CHARSET = re.compile(r';\s*charset\s*=\s*"?([^";\s]*)', re.IGNORECASE)

AnyQuestion = TypeVar("AnyQuestion", bound=BaseModel)


def correlation_id(headers: MultiMapping[str], header: str) -> str | None:
    """Return the correlation id to echo; None if it is missing, repeated or not a UUID."""
    values = headers.getall(header, [])
    return values[0] if len(values) == 1 and _UUID.fullmatch(values[0]) else None


def one_value(headers: MultiMapping[str], header: str, refusal: Refusal) -> str | None:
    """Return the value of a header, or None if missing; 400 if repeated, because the value is ambiguous."""
    values = headers.getall(header, [])
    if len(values) > 1:
        raise format_error(f"header {header}: stands {len(values)} times", refusal)
    return values[0] if values else None


def check_headers(
    headers: MultiMapping[str], correlation_header: str, *, now_s: float, clock_skew_max_s: float
) -> None:
    """Check the headers (ProblemError 400: names the first bad one); the timestamp may be off by the skew."""
    one_value(headers, correlation_header, Refusal.CORRELATION_ID)
    if correlation_id(headers, correlation_header) is None:
        detail = f"header {correlation_header}: missing, or not a UUID"
        raise format_error(detail, Refusal.CORRELATION_ID)
    stamp = _time_of(one_value(headers, "X-Request-Timestamp", Refusal.TIMESTAMP) or "")
    if stamp is None:
        detail = "header X-Request-Timestamp: missing, or not of the form YYYY-MM-DDThh:mm:ss.sssZ"
        raise format_error(detail, Refusal.TIMESTAMP)
    if abs(stamp - now_s) > clock_skew_max_s:
        detail = (
            f"header X-Request-Timestamp: more than {clock_skew_max_s:g} seconds from the time of this server"
        )
        raise format_error(detail, Refusal.TIMESTAMP)
    check_body_headers(headers, "application/json")


def check_body_headers(headers: MultiMapping[str], content_type: str) -> None:
    """Check the headers about the body: type, charset, no encoding; 400 for the first bad one."""
    stated = one_value(headers, "Content-Type", Refusal.CONTENT_TYPE) or ""
    if stated != content_type:
        if stated.partition(";")[0].strip().lower() != content_type:
            raise format_error(f"header Content-Type: must be {content_type}", Refusal.CONTENT_TYPE)
        if any(charset.lower() not in {"utf-8", "utf8"} for charset in _CHARSET.findall(stated)):
            raise format_error("header Content-Type: the charset must be utf-8", Refusal.CONTENT_TYPE)
    if "Content-Encoding" in headers:
        detail = "header Content-Encoding: an encoded body is not accepted"
        raise format_error(detail, Refusal.CONTENT_ENCODING)


def read_question(model: type[AnyQuestion], body: bytes) -> AnyQuestion:
    """Parse a body strictly as a question; 400 naming each invalid member."""
    try:
        question = strict.parse(model, body)
    except ValidationError as error:
        raise _unfit("; ".join(_explain(error))) from None
    except ValueError as error:
        raise _unfit(str(error)) from None
    if b"null" in body and _holds_null(json.loads(body)):
        raise _unfit("body: a member that is absent must be left out, not null")
    _check_beyond_the_model(question)
    return question


def _check_beyond_the_model(question: BaseModel) -> None:
    # Our model has a default for this fixed value, but a request must contain it.
    if isinstance(question, NameVerificationRequest) and "scheme_name" not in question.data.model_fields_set:
        raise _unfit("data.schemeName: Field required")
    if isinstance(question, GatewayRequest) and not iban.is_valid(question.party_account.iban):
        raise _unfit("partyAccount.iban: wrong length for its country, or wrong check digits")
    if isinstance(question, GatewayRequest) and not _is_lei_right(question):
        raise _unfit("party.identification.organisationId.lei: wrong check digits")
    if not isinstance(question, StandardRequest):
        return
    # The reference does not say whether agents are required; this server needs them for routing.
    if question.party_agent is None:
        raise _unfit("partyAgent: required to route the request")
    if question.requesting_agent is None:
        raise _unfit("requestingAgent: required to route the request")


def _is_lei_right(question: GatewayRequest) -> bool:
    identification = question.party.identification
    organisation = identification.organisation_id if identification else None
    lei = organisation.lei if organisation else None
    return lei is None or iban.has_right_check_digits(lei)


def _holds_null(value: object) -> bool:
    if isinstance(value, dict):
        return any(_holds_null(member) for member in value.values())
    if isinstance(value, list):
        return any(_holds_null(item) for item in value)
    return value is None


def _unfit(detail: str) -> ProblemError:
    return format_error(detail, Refusal.DOCUMENT)


def _time_of(value: str) -> float | None:
    """Parse a timestamp into seconds since the epoch; None if it is invalid."""
    if not _TIMESTAMP.fullmatch(value):
        return None
    try:
        return datetime.fromisoformat(value).timestamp()
    except ValueError:
        return None


def _explain(error: ValidationError) -> Iterator[str]:
    for part in error.errors(include_input=False, include_url=False, include_context=False):
        steps = (str(step) if isinstance(step, int) else shown_member(step) for step in part["loc"])
        yield f"{'.'.join(steps) or 'body'}: {part['msg']}"


BODY_BYTES_MAX = 64 * 1024


async def read_body(request: web.BaseRequest, wait_max_s: float) -> bytes:
    """Read the whole body; send 100 first if the client expects that (`Expect: 100-continue`).

    ProblemError: 400 if it is too long or malformed, 408 if it is too slow, 417 for any other expectation.
    """
    await _continue(request)
    try:
        async with asyncio.timeout(wait_max_s):
            return await request.read()
    except TimeoutError:
        raise too_slow("body", wait_max_s) from None
    except web.HTTPRequestEntityTooLarge:
        raise format_error(f"body: longer than {BODY_BYTES_MAX} bytes", Refusal.DOCUMENT) from None
    except (HttpProcessingError, web.RequestPayloadError):
        raise format_error("body: not well-formed HTTP/1.1", Refusal.HTTP) from None


async def _continue(request: web.BaseRequest) -> None:
    """Answer an expectation (RFC 9110, section 10.1.1); HTTP/1.0 has none."""
    expectation = request.headers.get("Expect")
    if expectation is None or request.version < HttpVersion11:
        return
    if expectation.lower() != "100-continue":
        detail = "header Expect: nothing but 100-continue is known"
        raise ProblemError(417, EXPECTATION_FAILED, detail, refusal=Refusal.EXPECTATION)
    await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    # The 100 does not count as bytes of the answer.
    request.writer.output_size = 0
