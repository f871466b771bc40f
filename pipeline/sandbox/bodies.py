"""How the body of a request arrives: when it is asked for, whole, and in time."""

import asyncio

from aiohttp import HttpVersion11, web
from aiohttp.http_exceptions import HttpProcessingError

from pipeline.sandbox.problems import Refusal, expectation_failed, format_error, too_slow

BODY_BYTES_MAX = 64 * 1024


async def read_body(request: web.BaseRequest, wait_max_s: float) -> bytes:
    """The whole body; a client that waits for it (`Expect: 100-continue`) gets a 100.

    Args:
        request: whose headers are in order.
        wait_max_s: how long the body may take.

    Raises:
        ProblemError: 400 for a body that is too long or no body of HTTP/1.1, 408 for a slow one, 417 for
            another expectation.
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
    """Answer an expectation, RFC 9110, section 10.1.1; HTTP/1.0 knows none."""
    expectation = request.headers.get("Expect")
    if expectation is None or request.version < HttpVersion11:
        return
    if expectation.lower() != "100-continue":
        raise expectation_failed()
    await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    # What counts as sent begins with the answer itself.
    request.writer.output_size = 0
