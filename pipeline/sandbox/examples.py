"""The dummy accounts as questions and answers: for the server's description, the terminal and the docs."""

from collections.abc import Iterator
from typing import Any

from pipeline.sandbox.accounts import IBAN_ACCOUNTS, DummyAnswer, describe_accounts
from pipeline.sandbox.configuration import REQUESTING_BIC
from pipeline.wording import Sentence, SurfaceKind, rendered
from schemas.outcomes import ApiName

Json = dict[str, Any]

MATCHED = "MATCHED"
"""Shown as the code of a full match of Confirmation of Payee, which has no code."""

COLUMNS = ("api", "account", "account type", "name or identification", "answer", "matched name")
_HEADS = {
    "account": "story.account",
    "account type": "field.account_type",
    "name or identification": "sandbox.name_or_identification",
    "answer": "sandbox.answer",
    "matched name": "story.name_at_the_bank",
}

_BICS = {account.iban: account.bic for account in IBAN_ACCOUNTS}


def question_examples(api: ApiName) -> Json:
    """An example request for each outcome, named after the outcome."""
    return {name: {"summary": name, "value": _question(api, known)} for name, known in _of_each_code(api)}


def answer_examples(api: ApiName) -> Json:
    """The answers to these requests, under the same names."""
    return {name: {"summary": name, "value": _answer(known)} for name, known in _of_each_code(api)}


def account_rows() -> list[tuple[str, ...]]:
    """Every dummy account with its answer, in the columns of COLUMNS."""
    return [
        (
            "CoP" if known.api is ApiName.COP else "VoP",
            known.account,
            known.account_type.value if known.account_type else "",
            known.asked,
            known.code,
            known.matched_name or "",
        )
        for known in describe_accounts()
    ]


def account_lines() -> Iterator[str]:
    """The rows as columns of text, with the matched name on a line below."""
    heads = [rendered(Sentence(_HEADS.get(column, "header.api")), SurfaceKind.COMMAND) for column in COLUMNS]
    rows = [heads, *account_rows()]
    narrow = [(api, f"{account} {kind}".strip(), asked, code) for api, account, kind, asked, code, _ in rows]
    widths = [max(map(len, column)) for column in zip(*narrow, strict=True)]
    for row, (*_, matched_name) in zip(narrow, rows, strict=True):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        if matched_name:
            yield f"{'':{widths[0] + widths[1] + 4}}  {matched_name}"


def _of_each_code(api: ApiName) -> Iterator[tuple[str, DummyAnswer]]:
    """The first dummy account for each code, by name and by identification."""
    seen = set()
    for known in describe_accounts():
        if (known.api is ApiName.COP) is not (api is ApiName.COP):
            continue
        kind = " by identification" if _identification(known) else ""
        of_type = f" {known.account_type.value}" if known.account_type else ""
        name = f"{known.code}{of_type}{kind}"
        if name not in seen:
            seen.add(name)
            yield name, known


def _question(api: ApiName, known: DummyAnswer) -> Json:
    if known.account_type is not None:
        data = {
            "schemeName": "SortCodeAccountNumber",
            "accountType": known.account_type.value,
            "identification": known.account,
            "name": known.asked,
        }
        return {"data": data}
    identification = _identification(known)
    party = (
        {"identification": {"organisationId": identification}} if identification else {"name": known.asked}
    )
    question: Json = {"party": party, "partyAccount": {"iban": known.account}}
    if api is ApiName.VOP_STANDARD:
        question["partyAgent"] = {"financialInstitutionId": {"bicfi": _BICS[known.account]}}
        question["requestingAgent"] = {"financialInstitutionId": {"bicfi": REQUESTING_BIC}}
    return question


def _identification(known: DummyAnswer) -> Json | None:
    """The organisationId of a question by identification; None if it asks by name."""
    kind, _, value = known.asked.partition(" ")
    if known.api is ApiName.COP or not value:
        return None
    if kind == "LEI":
        return {"lei": value}
    if kind == "BIC":
        return {"anyBIC": value}
    return {"others": [{"identification": value, "schemeNameCode": kind}]} if kind == "TXID" else None


def _answer(known: DummyAnswer) -> Json:
    if known.account_type is not None:
        report: Json = {"matched": known.code == MATCHED}
        if known.code != MATCHED:
            report["reasonCode"] = known.code
        if known.matched_name is not None:
            report["name"] = known.matched_name
        return {"data": {"verificationReport": report}}
    if _identification(known):
        return {"partyIdMatch": known.code}
    name = {} if known.matched_name is None else {"matchedName": known.matched_name}
    return {"partyNameMatch": known.code, **name}
