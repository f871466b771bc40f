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
_CERTIFICATE_STATUSES = frozenset({495, 496})  # nginx and others: client certificate wrong or missing

_ADDRESS = frozenset({404, 405, 410, *range(300, 400)})
_WRONG_CREDENTIALS = {
    401: Sentence("transport.client_not_authorised"),
    403: Sentence("transport.no_permission_for_api"),
    407: Sentence("transport.proxy_wants_credentials", status=407),
}
_MEANINGS = {
    406: Sentence("transport.means_no_json"),
    421: Sentence("transport.means_another_host"),
    451: Sentence("transport.means_blocked"),
}


def turned_away(response: httpx.Response) -> PrecheckError:
    """Return the error that ends a run if every request gets this reply."""
    status, page = response.status_code, response.content[:_READ_BYTES_MAX]
    if status in _ADDRESS:
        return ConfigurationError(Sentence("transport.no_api_at_address", status=status))
    if status in _WRONG_CREDENTIALS:
        return CredentialsError(_WRONG_CREDENTIALS[status])
    if status in _CERTIFICATE_STATUSES or _CERTIFICATE.search(page):
        return CredentialsError(Sentence("transport.http_certificate_refused", status=status))
    if status == 431 or _HEADERS.search(page):
        return ProtocolError(Sentence("transport.headers_too_large", status=status))
    meaning = _MEANINGS.get(status, Sentence("transport.means_intermediary_refused"))
    return ProtocolError(Sentence("transport.http_turned_away", status=status, meaning=meaning))


def client_invalid(status: int) -> CredentialsError:
    """Return the error that ends a run if every request is refused as CLIENT_INVALID."""
    return CredentialsError(Sentence("transport.client_invalid", status=status))
