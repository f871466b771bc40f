"""The request by which a server tells, before any row is sent, whether it knows who we are.

In VoP Standard we are known by our certificate alone. TLS shows that it is genuine; whether the scheme's
participant directory lists its organisation is told by the first reply, which would be about a payee. So
the first request is an empty document, to which a server that knows us says 400, and any other 401.
Source: API reference, "VoP Standard: mutual TLS" and "Errors".
"""

import anyio.to_thread
import httpx

from pipeline.errors import CredentialsError
from pipeline.stages.ask.gate import Reply
from pipeline.stages.ask.values import Channel
from pipeline.transport import retry


async def introduce(channel: Channel, *, request_id: str, time: str) -> Reply | None:
    """Send a request that asks about nobody, within the pace and the daily cap.

    Args:
        channel: the way to the server; its turn is ours.
        request_id: a correlation id of its own.
        time: UTC with milliseconds, `YYYY-MM-DDThh:mm:ss.sssZ`.

    Returns:
        What came back, and it is no refusal of the client. None where nothing was sent: the token has
        told already whether we are known, or the day has no request left beside one for a row.

    Raises:
        CredentialsError: the server does not know us, or refused our certificate.
        TlsError: there is no trusted connection.
    """
    if channel.api.introduction is None:
        return None
    await channel.pace.slot()
    if channel.quota is not None and not await anyio.to_thread.run_sync(channel.quota.reserve, 1):
        return None
    request = channel.api.introduction(request_id, time)
    try:
        reply = await channel.sender.send(request, deadline_s=channel.deadline_s)
    except retry.NetworkFailure as failure:
        return failure
    if reply.status_code in {401, 403}:
        raise _unknown(channel, reply)
    return reply


def _unknown(channel: Channel, reply: httpx.Response) -> CredentialsError:
    return CredentialsError(
        f"{channel.api.name}: HTTP {reply.status_code}, the server does not accept the client certificate of "
        f"{channel.requester}; check client_certificate in the profile, and with the provider whether the "
        "participant directory lists this number"
    )
