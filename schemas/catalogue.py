"""The documents by name, for `precheck schema`."""

import json

from pydantic import BaseModel

from schemas.columns import ColumnsRead, KnownFormats
from schemas.cop import NameVerificationRequest, NameVerificationResponse
from schemas.desk import AuditEntry, CheckProgress, DeskFile, RowsDecided
from schemas.forecast import Forecast
from schemas.manifest import Manifest, Verification
from schemas.notification import Notification
from schemas.outcomes import OutcomeColumns
from schemas.payments import Payment
from schemas.problem import Problem
from schemas.review import Approvals, Fix, Split
from schemas.shared import LedgerStatus, SharedRunRecord, WorkRecord
from schemas.story import Story
from schemas.summary import Summary
from schemas.token import TokenRequest, TokenResponse
from schemas.vop import GatewayRequest, StandardRequest, VerificationOfPayeeResponse

_DOCUMENTS: dict[str, type[BaseModel]] = {
    "payment": Payment,
    "outcome": OutcomeColumns,
    "columns": ColumnsRead,
    "formats": KnownFormats,
    "summary": Summary,
    "forecast": Forecast,
    "manifest": Manifest,
    "story": Story,
    "approvals": Approvals,
    "fix": Fix,
    "split": Split,
    "verification": Verification,
    "notification": Notification,
    "store": SharedRunRecord,
    "work": WorkRecord,
    "status": LedgerStatus,
    "desk-file": DeskFile,
    "desk-decision": RowsDecided,
    "desk-audit": AuditEntry,
    "desk-progress": CheckProgress,
    "cop-request": NameVerificationRequest,
    "cop-response": NameVerificationResponse,
    "vop-gateway-request": GatewayRequest,
    "vop-standard-request": StandardRequest,
    "vop-response": VerificationOfPayeeResponse,
    "problem": Problem,
    "token-request": TokenRequest,
    "token-response": TokenResponse,
}


def names() -> tuple[str, ...]:
    """Return the names of documents that have a schema."""
    return tuple(_DOCUMENTS)


def json_schema(name: str) -> str:
    """Return the indented JSON Schema of a document; an unknown name is a bug in the caller (KeyError)."""
    return json.dumps(_DOCUMENTS[name].model_json_schema(by_alias=True), indent=2)
