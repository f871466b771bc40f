"""Report to a monitoring service that a run has begun, and how it ended; nothing about the file is sent.

The protocol of Healthchecks and similar services: GET URL/start, and GET URL/STATUS with the exit status, 0
for success. The service raises the alarm when a ping is missing, so a ping that fails is only reported.
"""

import ssl
from urllib.parse import urlsplit

import httpx

from pipeline.errors import IncompleteError
from pipeline.transport.exchange import HEADERS, once, plainly_https
from pipeline.transport.retry import NetworkFailure
from pipeline.wording import Sentence

PING_DEADLINE_S = 5.0


async def ping(url: str, word: str, *, context: ssl.SSLContext) -> None:
    """Send one ping.

    Args:
        url: https, the address of the job at the service, usually a secret.
        word: `start`, or the exit status.
        context: From `tls.client_context`.

    Raises:
        ConfigurationError: the address is not https, or has a user, a query or a fragment; as TlsError,
            its server is not trusted.
        IncompleteError: it was not accepted; of the address, the message has the host only.
    """
    request = httpx.Request("GET", f"{plainly_https(url, 'ping')}/{word}", headers=HEADERS)
    try:
        status = (await once(request, context=context, deadline_s=PING_DEADLINE_S)).status_code
    except NetworkFailure as failure:
        raise IncompleteError(
            Sentence("transport.no_answer", hostname=urlsplit(url).hostname, kind=failure.kind)
        ) from None
    if not 200 <= status < 300:
        raise IncompleteError(
            Sentence("transport.http_check_address", hostname=urlsplit(url).hostname, status=status)
        )
