"""What every peer needs: the rows of a file, a token, and the request of one row."""

import csv
import json
import ssl
import uuid
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import Request, urlopen

PATH = "/copgateway/v1.0/confirmation-payee/name-verification"


def rows(file):
    with Path(file).open(newline="", encoding="utf-8") as source:
        return list(csv.DictReader(source))


def token(server):
    """One token, which outlives the run."""
    form = {"grant_type": "client_credentials", "client_id": server["client_id"], "scope": server["scope"]}
    body = urlencode(form | {"client_secret": server["client_secret"]}).encode()
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    request = Request(server["token_url"], body, headers, method="GET")
    with urlopen(request, context=ssl.create_default_context(cafile=server["ca_file"])) as response:
        return json.load(response)["access_token"]


def headers(access_token):
    now = datetime.now(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00")
    return {
        "Authorization": f"Bearer {access_token}",
        "x-fapi-interaction-id": str(uuid.uuid4()),
        "X-Request-Timestamp": now + "Z",
    }


def body(row):
    return {
        "data": {
            "schemeName": "SortCodeAccountNumber",
            "accountType": row["account_type"] or "Personal",
            "identification": row["sort_code"] + row["account_number"],
            "name": row["name"],
            **({"secondaryIdentification": row["secondary_reference"]} if row["secondary_reference"] else {}),
        }
    }


def outcome(status, answer):
    if status != 200:
        return answer["code"]
    report = answer["data"]["verificationReport"]
    return "match" if report["matched"] else report["reasonCode"]


def write(file, checked):
    """The rows with their outcomes, as they came."""
    with Path(file).open("w", newline="", encoding="utf-8") as target:
        writer = csv.DictWriter(target, [*checked[0][0], "outcome"])
        writer.writeheader()
        writer.writerows(row | {"outcome": found} for row, found in checked)
