"""A response of a server that keeps the reference, but for what a test says."""

import json

import httpx
import pytest

REQUEST_ID = "3f2b8c1e-9d4a-4b6f-8e21-5a7c0d9e1f34"


@pytest.fixture(scope="session")
def request_id():
    return REQUEST_ID


@pytest.fixture(scope="session")
def response_of():
    """A document or the bytes of a body -> a response with status 200 to `REQUEST_ID`."""

    def build(body, *, status=200, **headers):
        usual = {
            "content-type": "application/json",
            "x-fapi-interaction-id": REQUEST_ID,
            "x-request-id": REQUEST_ID,
            "x-response-timestamp": "2030-01-02T03:04:05.678Z",
        }
        said = {name.replace("_", "-"): value for name, value in headers.items()}
        kept = {name: value for name, value in {**usual, **said}.items() if value is not None}
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return httpx.Response(status, headers=kept, content=content)

    return build
