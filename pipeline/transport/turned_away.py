"""Explain a refusal from its status and the words on its page.

Gateways, load balancers, firewalls and proxies in front of an API have their own forms of answers: nginx
refuses a client certificate, and also headers that are too long, with 400 and a page.
"""

import re

import httpx

from pipeline.errors import ConfigurationError, CredentialsError, PrecheckError, ProtocolError
from pipeline.wording import Sentence

_READ_BYTES_MAX = 4096
_CERTIFICATE = re.compile(rb"(ssl|tls|client|x\.?509)[ -]certificate|certificate[ -]required", re.IGNORECASE)
_HEADERS = re.compile(
    rb"request header|header (fields|or cookie)|headers? (is |are )?too large", re.IGNORECASE
)
_CERTIFICATE_STATUSES = frozenset({495, 496})
"""Statuses of nginx and others: the client certificate is wrong or missing."""

_ADDRESS = frozenset({404, 405, 410, *range(300, 400)})
_MEANINGS = {
    406: Sentence("transport.means_no_json"),
    421: Sentence("transport.means_another_host"),
    451: Sentence("transport.means_blocked"),
}


def turned_away(response: httpx.Response) -> PrecheckError:
    """Return the error that ends a run if every request gets this reply."""
    status = response.status_code
    if status in _ADDRESS:
        return ConfigurationError(Sentence("transport.server_http_there", status=status))
    if (refused := _refused_credentials(response)) is not None:
        return CredentialsError(refused)
    if status == 431 or _HEADERS.search(_beginning(response)):
        return ProtocolError(Sentence("transport.headers_too_large", status=status))
    meaning = _MEANINGS.get(status, Sentence("transport.means_in_between"))
    return ProtocolError(Sentence("transport.http_turned_away", status=status, meaning=meaning))


def _refused_credentials(response: httpx.Response) -> Sentence | None:
    """Say what is wrong with our credentials or certificate, if the reply is about them."""
    match response.status_code:
        case 401:
            return Sentence("transport.server_http_client")
        case 403:
            return Sentence("transport.server_http_these")
        case 407 as status:
            return Sentence("transport.proxy_wants_credentials", status=status)
        case status if status in _CERTIFICATE_STATUSES or _CERTIFICATE.search(_beginning(response)):
            return Sentence("transport.http_certificate", status=status)
        case _:
            return None


def _beginning(response: httpx.Response) -> bytes:
    """Return the beginning of a page, which states the subject."""
    return response.content[:_READ_BYTES_MAX]


def client_invalid(status: int) -> CredentialsError:
    """Return the error that ends a run if every request is refused as CLIENT_INVALID."""
    return CredentialsError(Sentence("transport.client_invalid", status=status))
