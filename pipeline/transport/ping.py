"""Report the start and the end of a run to a monitoring service, or post to a webhook.

Addresses are secrets, so messages name only their host. Pings are those of Healthchecks and similar services.
"""

import ssl

import httpx

from pipeline.errors import IncompleteError
from pipeline.transport.exchange import HEADERS, once, plainly_https
from pipeline.transport.retry import NetworkFailure
from pipeline.transport.tls import Keys
from pipeline.wording import Sentence

PING_DEADLINE_S = 5.0
PING_KEYS = Keys("--ping", "--ping-ca")


async def ping(url: str, word: str, *, context: ssl.SSLContext) -> None:
    """Send one ping: `start`, or the exit status (IncompleteError: not accepted; it names only the host).

    The address of the job at the service is usually a secret. ConfigurationError: see `plainly_https`; or, as
    TlsError, its server is not trusted.
    """
    request = httpx.Request("GET", f"{plainly_https(url, 'ping')}/{word}", headers=HEADERS)
    await _accepted(request, context=context, deadline_s=PING_DEADLINE_S, keys=PING_KEYS)


async def post(url: str, document: bytes, *, context: ssl.SSLContext, deadline_s: float, keys: Keys) -> None:
    """Post a JSON document to a webhook; same errors as `ping`, but the address may have a query."""
    address = plainly_https(url, "webhook", has_query=True)
    headers = {**HEADERS, "Content-Type": "application/json"}
    request = httpx.Request("POST", address, headers=headers, content=document)
    await _accepted(request, context=context, deadline_s=deadline_s, keys=keys)


async def _accepted(
    request: httpx.Request, *, context: ssl.SSLContext, deadline_s: float, keys: Keys
) -> None:
    host = request.url.host
    try:
        status = (await once(request, context=context, deadline_s=deadline_s, keys=keys)).status_code
    except NetworkFailure as failure:
        raise IncompleteError(Sentence("transport.no_answer", hostname=host, kind=failure.reason)) from None
    if not 200 <= status < 300:
        raise IncompleteError(Sentence("transport.ping_http_status", hostname=host, status=status))
