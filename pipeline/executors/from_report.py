"""The executor that reads the payer's bank's reports about payments instead of asking.

Ids of the payment file identify payments; account and amount, if present, must agree. Nothing is guessed:
rows stay unanswered if an entry fits several payments, or contradicts the file or another report.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, Self

import polars as pl

from pipeline.apis.registry import DECLARED
from pipeline.errors import InputError
from pipeline.files.compressed import UNPACKED_BYTES_MAX, sniff, unpacked_documents
from pipeline.files.confined import parse_confined
from pipeline.files.memory import refuse_too_large
from pipeline.files.plain import open_plain
from pipeline.formats import pain002
from pipeline.formats.message import Message
from pipeline.formats.pain002 import OF_VERIFICATION, PENDING, Status, StatusReports
from pipeline.formats.text_lines import start_of
from pipeline.frames import (
    ANSWERS,
    API,
    FINDINGS,
    Answers,
    AnswerState,
    Assignments,
    Bases,
    Changes,
    Checks,
    Findings,
    Outcomes,
    OwnCode,
    Payments,
    Questions,
    Rejects,
    Warnings,
)
from pipeline.rules.payee_names import is_name_as_sent
from pipeline.runs.ended import EndedRun
from pipeline.stages.compare import compare_with_bank
from pipeline.stages.plan import Plan, bases
from pipeline.stages.resolve import resolve
from pipeline.wording import Sentence
from schemas.changes import BankComparison
from schemas.outcomes import ApiName, Environment

MEMORY_PER_BYTE = 4
CODES = {
    Status.MATCH: "MTCH",
    Status.CLOSE_MATCH: "CMTC",
    Status.NO_MATCH: "NMTC",
    Status.NOT_APPLICABLE: "NOAP",
}
"""Final status in a report -> the code of the VoP APIs for the same result."""
_UNFINISHED = {PENDING: OwnCode.PDNG, Status.NOT_COMPLETED: OwnCode.RVNC}
_IDS = ("end_to_end_id", "instruction_id", "uetr")
_MONEY = pl.Decimal(38, 5)
_IS_MATCH = (pl.col("status") == Status.MATCH).fill_null(value=False)
_COUNT_MAX = 10**9
_CLOCKS, _ZONES, _MINUTE = timedelta(days=1), timedelta(minutes=15), timedelta(minutes=1)
_IDS_NAMED_MAX = 3
_QUOTES = ('"', "'", "\u201c", "\u201e")
_NO_NAME = rf"^({'|'.join(OF_VERIFICATION)})\b"  # text for people, as in the notes on a message
_DIGITS_OF_UK_ACCOUNT = r"^[0-9]{6}([0-9]{8})$"


class ReceivedReport(NamedTuple):
    """A file from the bank, after reading."""

    name: str  # its name as the user gave it
    data: bytes
    sha256: str
    content: StatusReports  # the reports on the given payment files
    other_count: int  # number of messages in it about other payment files

    def about(self, message: Message) -> Self:
        """Return what it says about one of the payment files."""
        return self._replace(content=_about(self.content, _own(self.content, message)))


def read_report(path: Path, messages: Sequence[Message]) -> ReceivedReport:
    """Read a report, perhaps packed (InputError: unreadable, no verification, or about other files)."""
    where = path.name
    try:
        with open_plain(path) as file:
            refuse_too_large(path.stat().st_size, per_byte=MEMORY_PER_BYTE, where=where)
            data = file.read()
    except (OSError, ValueError) as error:
        reason = error if isinstance(error, OSError) else Sentence("stages.not_file_name")
        raise InputError(Sentence("stages.file_unreadable", path=where, reason=reason)) from error
    return report_of(data, messages, where=where)


def report_of(data: bytes, messages: Sequence[Message], *, where: str) -> ReceivedReport:
    """Read a report from bytes; same errors as `read_report`."""
    compression = sniff(data[:64])
    documents = [data]
    if compression is not None:
        limit = min(UNPACKED_BYTES_MAX, len(data) * 200)
        documents = unpacked_documents(data, compression, where=where, unpacked_bytes_max=limit)
    if not all(start_of(document[:64]).lstrip()[:1] in ("", "<") for document in documents):
        raise InputError(Sentence("executors.report_not_xml", where=where))
    parts = parse_confined(
        pain002.__name__,
        b"".join(documents),
        where=where,
        what=Sentence("files.the_xml_file"),
        options={"ends": pain002.ends_of(documents)},
    )
    content = pain002.reports_of(parts)
    if content.levels["notes"].explode().eq(pain002.SIMULATED).any():
        raise InputError(Sentence("executors.simulated_report", where=where))
    statuses = pl.concat([content.transactions["status"], content.levels["status"]]).str.strip_chars()
    if not statuses.is_in(OF_VERIFICATION).any():
        found = statuses.drop_nulls().unique(maintain_order=True).head(5).to_list()
        raise InputError(Sentence("executors.payment_status_report", where=where, statuses=found))
    own = pl.concat([_own(content, message) for message in messages]).unique()
    if own.is_empty():
        raise InputError(
            _of_another(content, messages, where), advice=Sentence("advice.give_payment_file_of_report")
        )
    other_count = _heads(content).height - own.len()
    return ReceivedReport(where, data, sha256(data).hexdigest(), _about(content, own), other_count)


def _heads(content: StatusReports) -> pl.DataFrame:
    return content.levels.filter(pl.col("batch") == 0)


def _about(content: StatusReports, messages: pl.Series) -> StatusReports:
    if _heads(content)["message"].is_in(messages.implode()).all():
        return content
    is_own = pl.col("message").is_in(messages.implode())
    return StatusReports(content.transactions.filter(is_own), content.levels.filter(is_own))


def _named(content: StatusReports, message: Message) -> pl.DataFrame:
    return _heads(content).filter(pl.col("id") == pl.lit(message.levels["id"][0], pl.String))


def _own(content: StatusReports, message: Message) -> pl.Series:
    named, sent = _named(content, message), message.levels["created"][0]
    is_of_file = [
        not (_is_before(time, sent) or _is_of_other_time(of_file, sent))
        for time, of_file in named.select("created", "file_created").rows()
    ]
    return named["message"].filter(pl.Series(is_of_file, dtype=pl.Boolean))


def _of_another(content: StatusReports, messages: Sequence[Message], where: str) -> Sentence:
    """Say why a report is not about any of the payment files."""
    for message in messages:
        for time, of_file in _named(content, message).select("created", "file_created").head(1).rows():
            own_id, sent = message.levels["id"][0], message.levels["created"][0]
            others = {"where": where, "own": own_id, "sent": sent}
            if _is_of_other_time(of_file, sent):
                return Sentence("executors.report_on_other_time", time=of_file, **others)
            return Sentence("executors.report_before_file", time=time, **others)
    other = next(iter(_heads(content)["id"].drop_nulls()), "")
    own = ", ".join(message.levels["id"][0] or "" for message in messages[:_IDS_NAMED_MAX])
    return Sentence("executors.report_on_other", where=where, other=other[:35], own=own)


def _is_before(time: str | None, sent: str | None) -> bool:
    """True if a report was written before the file; a day is allowed for clocks and missing time zones."""
    later_by, _ = _between(time, sent)
    return later_by > _CLOCKS


def _is_of_other_time(stated: str | None, sent: str | None) -> bool:
    """True if a report states another creation time; banks may drop the seconds or change the zone."""
    later_by, has_zones = _between(stated, sent)
    if not has_zones and abs(later_by) < _CLOCKS:
        later_by = min(later_by % _ZONES, -later_by % _ZONES)
    return abs(later_by) >= _MINUTE


def _between(earlier: str | None, later: str | None) -> tuple[timedelta, bool]:
    """Return the time between two time stamps, none if one is unreadable, and whether both have a zone."""
    try:
        one, other = (datetime.fromisoformat((stamp or "").strip()) for stamp in (earlier, later))
    except ValueError:
        return timedelta(0), False
    has_zones = one.tzinfo is not None and other.tzinfo is not None
    if not has_zones:
        one, other = one.replace(tzinfo=UTC), other.replace(tzinfo=UTC)
    return other - one, has_zones


class ReportedRows(NamedTuple):
    """What the bank's reports say about the payments of a file."""

    verdicts: pl.DataFrame  # see `_verdicts`, with `report_id` and `created` of the report
    notes: tuple[Sentence, ...]  # what users must know about the reports
    unnamed_batches: tuple[str, ...]  # batches of the payment file with payments that no report names


def reported_rows(message: Message, reports: Sequence[ReceivedReport]) -> ReportedRows:
    """Match the entries of reports with the payments of a file."""
    payments, reports = _payments(message), [report.about(message) for report in reports]
    listed = [_transactions(report, number) for number, report in enumerate(reports)]
    transactions = pl.concat(listed).with_row_index("transaction")
    levels = pl.concat([_levels(report, number) for number, report in enumerate(reports)])
    joined = _joined(transactions, payments)
    sized = _sized(levels, joined.odd, payments)
    found, doubts = _of_levels(sized, payments, joined)
    verdicts = _verdicts(pl.concat([joined.found, found]), pl.concat([joined.doubts, doubts]))
    place = ["report", "message"]
    heads = levels.filter(pl.col("batch") == 0).select(*place, "report_id", "created")
    verdicts = verdicts.join(heads, on=place, how="left", maintain_order="left", nulls_equal=True).drop(place)
    unnamed = payments.filter(~pl.col("row").is_in(verdicts["row"].implode()))["batch_id"]
    batches = tuple(batch or "" for batch in unnamed.unique(maintain_order=True))
    notes = [*_notes_on_totals(sized, transactions)]
    if joined.unplaced_count:
        notes.append(Sentence("executors.statuses_unplaced", count=joined.unplaced_count))
    return ReportedRows(verdicts, tuple(notes), batches)


def notes_on_others(reports: Sequence[ReceivedReport]) -> tuple[Sentence, ...]:
    """Return a note on messages in the reports that are about other payment files, if there are any."""
    other_count = sum(report.other_count for report in reports)
    return (Sentence("executors.reports_on_others", count=other_count),) if other_count else ()


def reported_answers(checks: Checks, rows: pl.Series, verdicts: pl.DataFrame) -> Answers:
    """Return the answers to checks; `rows` are the rows of the checks, in their order."""
    mine = pl.DataFrame({"row": rows, "check": checks["check"], "by_name": checks["name"].is_not_null()})
    return _answers(mine.join(verdicts, on="row", how="left", maintain_order="left"))


class ComparedReports(NamedTuple):
    """A check compared with the bank's reports about the same payments."""

    changes: Changes  # only changes with the code BANK_DIFFERS
    comparison: BankComparison
    notes: tuple[Sentence, ...] = ()  # what users must know about the reports


def compared_with(
    message: Message, payments: Payments, outcomes: Outcomes, reports: Sequence[ReceivedReport]
) -> ComparedReports:
    """Compare the outcomes of a check with what reports say; a message may be one part of a data set.

    A report gives each payment its outcome on its own, without local rules.
    """
    before = int(payments["row"][0]) - 1 if payments.height else 0  # number of rows in earlier parts
    row = pl.col("row") - before
    checks = payments.select(row, "name", check=row, api=pl.lit(ApiName.BANK_REPORT, API))
    found = reported_rows(message, reports)
    questions = Questions(
        Bases(checks.select("check", "api", by_name=pl.col("name").is_not_null())),
        Assignments(checks.select("row", "check")),
    )
    nothing = pl.DataFrame(schema=FINDINGS)
    answers = reported_answers(Checks(checks), checks["row"], found.verdicts)
    reported = _resolved(Findings(Rejects(nothing), Warnings(nothing)), questions, answers)
    reported = Outcomes(reported.with_columns(pl.col("row") + before))
    return ComparedReports(*compare_with_bank(outcomes, reported), found.notes)


def outcomes_again(
    message: Message, findings: Findings, planned: Plan, reports: Sequence[ReceivedReport]
) -> Outcomes:
    """Return the outcomes of a payment file that reports answered."""
    (checks, assignments), found = planned, reported_rows(message, reports)
    answers = reported_answers(checks, rows_of_checks(checks, assignments), found.verdicts)
    return _resolved(findings, Questions(bases(checks), assignments), answers)


def rows_of_checks(checks: Checks, assignments: Assignments) -> pl.Series:
    """Return the row of each check; a bank reports on every payment, so each has one."""
    return checks.join(assignments, on="check", maintain_order="left")["row"]


def _resolved(findings: Findings, questions: Questions, answers: Answers) -> Outcomes:
    return resolve(findings, questions, answers, [DECLARED[ApiName.BANK_REPORT]], Environment.BANK).outcomes


def kept_reports(run: EndedRun, messages: Sequence[Message]) -> list[ReceivedReport]:
    """Read the reports in a run's folder again, from their copies (InputError: changed or deleted)."""
    try:
        kept = run.manifest.bank_reports
        return [report_of(run.content(used.name), messages, where=used.given_as) for used in kept]
    except OSError as error:
        raise InputError(Sentence("jobs.bank_report_unreadable", folder=run.folder, why=error)) from error


def _answers(mine: pl.DataFrame) -> Answers:
    code = pl.coalesce("doubt", "code", pl.lit(OwnCode.NOT_IN_REPORT.value))
    is_final = pl.col("doubt").is_null() & pl.col("is_final").fill_null(value=False)
    is_odd = is_final & (pl.col("code") == CODES[Status.CLOSE_MATCH]) & ~pl.col("by_name")
    is_final &= ~is_odd
    answered = pl.when(is_final)
    states = [pl.lit(state.value) for state in (AnswerState.ANSWERED, AnswerState.UNANSWERED)]
    frame = mine.select(
        "check",
        state=answered.then(states[0]).otherwise(states[1]),
        code=pl.when(is_odd).then(pl.lit(OwnCode.REPORT_STATUS.value)).otherwise(code),
        matched_name=answered.then("name"),
        request_id=answered.then("report_id"),
        time=answered.then("created"),
        attempts=pl.lit(0),
    )
    return Answers(frame.cast(pl.Schema(ANSWERS)))


def _payments(message: Message) -> pl.DataFrame:
    batch = message.locations["level"]
    columns = message.payments.select(
        account=_account(pl.coalesce("iban", "account_number")),
        amount=_money("amount"),
        currency=pl.col("currency"),
    )
    return columns.with_columns(
        message.locations["row"],
        batch.cast(pl.UInt32).alias("batch"),
        message.levels["id"].gather(batch).alias("batch_id"),
        *(message.ids[column] for column in _IDS),
        payee=message.payments["name"],
    )


def _account(written: pl.Expr) -> pl.Expr:
    """Normalise an account for comparison: a UK one without its sort code."""
    plain = written.str.replace_all(r"[\s-]", "").str.to_uppercase()
    return pl.coalesce(plain.str.extract(_DIGITS_OF_UK_ACCOUNT), plain)


def _money(column: str) -> pl.Expr:
    return pl.col(column).str.strip_chars().cast(_MONEY, strict=False)


def _transactions(report: ReceivedReport, number: int) -> pl.DataFrame:
    batches = report.content.levels.filter(pl.col("batch") > 0).select("message", "batch", batch_id="id")
    cleaned = report.content.transactions.with_columns(
        report=pl.lit(number, pl.UInt32),
        name=pl.when(pl.col("status") == Status.CLOSE_MATCH).then(_name()),
        account=_account(pl.col("account")).replace("", None),
        is_amount=pl.col("amount").is_not_null(),
        amount=_money("amount"),
    )
    return cleaned.join(batches, on=["message", "batch"], how="left", maintain_order="left")


def _name() -> pl.Expr:
    """Return the bank's name of the payee, without a quotation mark left open; None if it is a remark."""
    name = pl.col("name").str.strip_chars()
    for quote in _QUOTES:
        is_open = name.str.starts_with(quote) & (name.str.count_matches(quote, literal=True) == 1)
        name = pl.when(is_open).then(name.str.slice(1).str.strip_chars()).otherwise(name)
    return pl.when(name.str.contains(r"[^\pZ\pC]"), ~name.str.contains(_NO_NAME)).then(name)


def _levels(report: ReceivedReport, number: int) -> pl.DataFrame:
    """Return what a report says about the message and its batches, with its counts of statuses."""
    levels = report.content.levels.with_columns(pl.col("id", "status", "count", "sum").str.strip_chars())
    created = [_utc(time) for time in levels["created"]]
    return levels.with_columns(pl.Series("created", created, pl.String), report=pl.lit(number, pl.UInt32))


def _utc(time: str | None) -> str | None:
    """Return a time as in the outcome file; unchanged if it lacks a time zone, None if invalid."""
    try:
        read = datetime.fromisoformat(time or "")
        return time if read.tzinfo is None else f"{read.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (ValueError, OverflowError):
        return None


_FOUND = {
    "row": pl.UInt32(),
    "status": pl.String(),
    "name": pl.String(),
    "report": pl.UInt32(),
    "message": pl.UInt32(),
    "transaction": pl.UInt32(),  # index among all transactions; null if the batch or the message answers
}
_DOUBTS = {"row": pl.UInt32(), "doubt": pl.String(), "is_certain": pl.Boolean()}
"""Why a row stays unanswered; if not certain, an entry that names it exactly still wins."""


class _Joined(NamedTuple):
    found: pl.DataFrame  # `_FOUND`: transactions, each with the only payment that it fits
    odd: (
        pl.DataFrame
    )  # transactions that do not match, or whose payment is not known; with its row and amount
    doubts: pl.DataFrame  # `_DOUBTS`
    unplaced_count: int  # transactions whose ids fit no payment


def _joined(transactions: pl.DataFrame, payments: pl.DataFrame) -> _Joined:
    """Match transactions to payments by ids, account and amount; ambiguous ones are counted, not matched."""
    found, doubts, unplaced_count = [pl.DataFrame(schema=_FOUND)], [pl.DataFrame(schema=_DOUBTS)], 0
    several = [pl.Series(dtype=pl.UInt32)]
    keys = ("batch_id", *_IDS, "account", "amount", "currency")
    is_given = transactions.select("transaction", *(pl.col(key).is_not_null() for key in keys)).with_columns(
        transactions["is_amount"].alias("amount"),
        currency=transactions["currency"].is_not_null() & transactions["is_amount"],
    )
    for flags, places in is_given.group_by(keys, maintain_order=True):
        given = [key for key, flag in zip(keys, flags, strict=True) if flag]
        ids = [key for key in given if key in ("batch_id", *_IDS)]
        if not set(ids) & set(_IDS):
            unplaced_count += places.height
            continue
        is_all = places.height == transactions.height  # the usual file of a bank, which need not be copied
        some = transactions if is_all else transactions[places["transaction"]]
        some = some.select(*(column for column in _FOUND if column != "row"), *given)
        fits = _counted(some, payments, given)
        found.append(fits.filter(pl.col("count") == 1).select(list(_FOUND)))
        several.append(fits.filter(pl.col("count") > 1)["transaction"])
        doubts.append(_of_several(fits, payments, given, OwnCode.REPORT_AMBIGUOUS))
        others = _counted(fits.filter(pl.col("count") == 0).drop("row", "count"), payments, ids)
        unplaced_count += others.filter(pl.col("count") == 0).height
        doubts.append(_of_several(others, payments, ids, OwnCode.REPORT_DIFFERS))
        exactly = others.filter(pl.col("count") == 1)["row"]
        doubts.append(_doubts(exactly, OwnCode.REPORT_DIFFERS, certain=True))
    placed = pl.concat(found)
    renamed = _of_other_names(placed, transactions, payments)
    doubts.append(_doubts(renamed, OwnCode.REPORT_DIFFERS, certain=True))
    known = pl.concat([placed.filter(~pl.col("row").is_in(renamed.implode()))["transaction"], *several])
    marks = {"is_other": ~_IS_MATCH, "is_known": pl.col("transaction").is_in(known.implode())}
    odd = transactions.drop("amount").with_columns(**marks).filter(pl.col("is_other") | ~pl.col("is_known"))
    odd = odd.join(placed.select("transaction", "row"), on="transaction", how="left")
    odd = odd.join(payments.select("row", "amount"), on="row", how="left")
    return _Joined(placed, odd, pl.concat(doubts), unplaced_count)


def _of_other_names(found: pl.DataFrame, transactions: pl.DataFrame, payments: pl.DataFrame) -> pl.Series:
    """Return rows where a report verified a name other than the payment's."""
    reported = transactions["payee"].gather(found["transaction"])
    pairs = found.select("row", reported=reported.str.to_lowercase().str.strip_chars()).drop_nulls()
    pairs = pairs.join(payments.select("row", sent=pl.col("payee").str.to_lowercase()), on="row")
    unlike = pairs.filter(pl.col("sent") != pl.col("reported"))
    is_other = [not is_name_as_sent(sent, reported) for _, reported, sent in unlike.iter_rows()]
    return unlike.filter(pl.Series(is_other, dtype=pl.Boolean))["row"]


def _counted(some: pl.DataFrame, payments: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Return transactions with the `count` of equal payments and the first `row`; a hash saves memory."""
    if some.is_empty():
        return some.with_columns(row=pl.lit(None, pl.UInt32), count=pl.lit(0, pl.UInt32))
    hashed = pl.DataFrame({"hash": payments.select(keys).hash_rows()}).with_row_index("at")
    groups = hashed.group_by("hash").agg(pl.col("at").min(), pl.len().alias("count"))
    joined = some.with_columns(hash=some.select(keys).hash_rows()).join(
        groups, on="hash", how="left", maintain_order="left"
    )
    at = joined["at"]
    is_same = pl.all_horizontal(payments[key].gather(at) == joined[key] for key in keys)
    return joined.select(
        *some.columns,
        row=pl.when(is_same).then(payments["row"].gather(at)),
        count=pl.when(is_same).then("count").otherwise(0),
    )


def _of_several(
    counted: pl.DataFrame, payments: pl.DataFrame, keys: Sequence[str], code: OwnCode
) -> pl.DataFrame:
    """Return a doubt about each payment that shares a transaction with others."""
    several = counted.filter(pl.col("count") > 1).select(keys).unique()
    return _doubts(payments.join(several, on=keys, how="semi")["row"], code, certain=False)


def _doubts(rows: pl.Series, code: OwnCode, *, certain: bool) -> pl.DataFrame:
    return pl.DataFrame({"row": rows}, schema={"row": pl.UInt32}).with_columns(
        doubt=pl.lit(code.value), is_certain=pl.lit(certain)
    )


def _of_levels(
    levels: pl.DataFrame, payments: pl.DataFrame, joined: _Joined
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return `_FOUND` for the payments that a batch or a message reports as matches without listing them.

    It may list those that do not match, and only count the others; its figures must agree with the file.
    A contradiction by another report that is not pending gives a doubt; one by its own report gives nothing.
    """
    of_file, is_batch = ["report", "message"], pl.col("is_batch")
    is_final = ~pl.col("status").is_in([*_UNFINISHED]).fill_null(value=False)
    others, bad = joined.odd.filter("is_other"), levels.filter("is_odd", ~pl.col("is_listed"))
    elsewhere = levels.filter(~is_batch, "is_odd").group_by(of_file).agg(others=_others().clip(1).max())
    answering = levels.filter("is_listed", _as_stated())
    of_batch = (
        answering.join(bad.filter(is_batch), on=[*of_file, "id"], how="anti")
        .join(elsewhere, on=of_file, how="left")
        .filter(pl.col("others").fill_null(0) - pl.col("listed") <= payments.height - pl.col("row_count"))
    )
    not_of_message = pl.concat([bad, levels.filter("is_unlike")]).filter(is_batch)
    of_message = answering.filter(~is_batch).join(not_of_message, on=of_file, how="anti")
    rows, place = payments.select("row", "batch_id", number="batch"), ["level", "is_batch", *of_file, "batch"]
    by_batch = rows.join(of_batch.select("number", *place), on="number")
    answered = pl.concat([by_batch, rows.join(of_message.select(place), how="cross")])
    listed = _also_of_message(others.select("row", *of_file, "batch"))
    answered = answered.join(listed, on=["row", *of_file, "batch"], how="anti")
    of_rows = joined.found.filter(~_IS_MATCH, is_final)["row"]
    unplaced = others.filter(is_final, pl.col("row").is_null())["batch_id"]
    against = pl.concat([unplaced, bad.filter(is_final, is_batch)["id"]]).drop_nulls()
    is_denied = (
        pl.col("level").is_in(answered.filter(pl.col("row").is_in(of_rows.implode()))["level"].implode())
        | pl.col("batch_id").is_in(against.implode()).fill_null(value=False)
        | (~is_batch & (unplaced.len() + bad.filter(is_final).height > 0))
    )
    doubted = answered.filter(is_denied)["row"].unique()
    doubts = _doubts(doubted, OwnCode.REPORT_DIFFERS, certain=False)
    doubts = doubts.with_columns(is_certain=pl.col("row").is_in(of_rows.implode()))
    matches = answered.filter(~is_denied).with_columns(
        pl.lit(Status.MATCH.value).alias("status"),
        **{key: pl.lit(None, _FOUND[key]) for key in ("name", "transaction")},
    )
    return matches.select(list(_FOUND)), doubts


def _sized(levels: pl.DataFrame, odd: pl.DataFrame, payments: pl.DataFrame) -> pl.DataFrame:
    """Return levels with the size of their part of the file, and what they list.

    `listed`: how many payments they list that do not match; `is_odd`: some do not; `is_listed`: all of those
    are listed, each with a payment of its own, and nothing that is listed is unknown.
    """
    amount, status, listed = pl.col("amount"), pl.col("status"), pl.col("listed")
    size = {"row_count": pl.len().cast(pl.Int64), "row_sum": pl.when(~amount.has_nulls()).then(amount.sum())}
    first, is_one = pl.col("batch").first(), pl.col("batch").n_unique() == 1
    batches = payments.group_by(id="batch_id").agg(number=pl.when(is_one).then(first), **size)
    whole = payments.select(id=pl.lit(None, pl.String), number=pl.lit(None, pl.UInt32), **size)
    sizes = pl.concat([batches.drop_nulls(["id", "number"]), whole])
    is_other, place, listing = pl.col("is_other"), ["report", "message", "batch"], _also_of_message(odd)
    tally = listing.group_by(place).agg(
        listed=is_other.sum().cast(pl.Int64),
        placed=pl.col("row").filter(is_other).drop_nulls().n_unique(),
        listed_sum=amount.filter(is_other).sum(),
        is_known=pl.col("is_known").all(),
    )
    is_match, is_batch = status == Status.MATCH, pl.col("batch") > 0
    fits = pl.when(is_match).then(listed == 0).otherwise(status.is_null() | (listed > 0))
    is_counted = (pl.col("counted").list.len().fill_null(0) == 0) | (_others() == listed)
    is_all = (pl.col("placed") == listed) & pl.col("is_known").fill_null(value=True) & is_counted & fits
    stated = pl.col("count").cast(pl.Int64, strict=False)
    return (
        levels.with_row_index("level")
        .with_columns(is_batch=is_batch, batch_id=pl.when(is_batch).then(pl.col("id").fill_null("\0")))
        .join(sizes, left_on="batch_id", right_on="id", how="left", maintain_order="left", nulls_equal=True)
        .drop("batch_id")
        .join(tally, on=place, how="left", maintain_order="left")
        .with_columns(pl.col("listed", "placed", "listed_sum").fill_null(0))
        .with_columns(
            is_odd=(status.is_not_null() & ~is_match) | (_others() > 0),
            is_listed=is_all,
            is_unlike=pl.col("count").is_not_null() & stated.ne_missing(pl.col("row_count")),
        )
    )


def _also_of_message(listed: pl.DataFrame) -> pl.DataFrame:
    """Return transactions as listed by their batch, and again by their message, whose batch is 0."""
    return pl.concat([listed, listed.with_columns(batch=pl.lit(0, pl.UInt32))])


def _of_match(field: str) -> pl.Expr:
    """A field of a level's count of matches; null if there is no such count."""
    matches = pl.element().struct.field("status").str.strip_chars() == Status.MATCH
    return pl.col("counted").list.eval(pl.element().filter(matches).struct.field(field)).list.first()


def _others() -> pl.Expr:
    """How many payments a level's counts report with a status other than match; an invalid count is 1."""
    is_other = (pl.element().struct.field("status").str.strip_chars() != Status.MATCH).fill_null(value=True)
    count = pl.element().struct.field("count").str.strip_chars().cast(pl.Int64, strict=False)
    number = pl.when(count.is_between(0, _COUNT_MAX)).then(count).otherwise(1)
    return pl.col("counted").list.eval(number.filter(is_other)).list.sum().fill_null(0)


def _as_stated() -> pl.Expr:
    """True if a level states how many payments match, and its numbers and sums agree with the file."""
    figures = [
        (pl.col("count"), pl.Int64(), pl.col("row_count")),
        (_of_match("count"), pl.Int64(), pl.col("row_count") - pl.col("listed")),
        (pl.col("sum"), _MONEY, pl.col("row_sum")),
        (_of_match("sum"), _MONEY, pl.col("row_sum") - pl.col("listed_sum")),
    ]
    agrees = [each.is_null() | (each.cast(kind, strict=False) == own) for each, kind, own in figures]
    is_whole = (pl.col("status") == Status.MATCH) & pl.col("count").is_not_null()
    return (_of_match("count").is_not_null() | is_whole) & pl.all_horizontal(agrees)


def _verdicts(found: pl.DataFrame, doubts: pl.DataFrame) -> pl.DataFrame:
    """Return one row for each payment in a report: its `code`, whether that is final, and any `doubt`."""
    codes = {str(status): str(code) for status, code in (CODES | _UNFINISHED).items()}
    code, other = pl.col("status"), OwnCode.REPORT_STATUS.value
    code = code.replace_strict(codes, default=other, return_dtype=pl.String).alias("code")
    coded = found.sort("report", "transaction", nulls_last=False).with_columns(code)
    is_final = pl.col("code").is_in(list(CODES.values()))
    last, is_one = (
        pl.col("code", "name", "report", "message").last(),
        pl.struct("code", "name").n_unique() == 1,
    )
    final = coded.filter(is_final).group_by("row").agg(last, is_final=pl.lit(value=True), is_one=is_one)
    open_rows = coded.filter(~is_final).join(final, on="row", how="anti")
    unfinished = open_rows.group_by("row").agg(last, is_final=pl.lit(value=False), is_one=pl.lit(value=True))
    # The most serious doubt about a row comes first.
    order = doubts.sort("is_certain", "doubt", descending=[True, True])
    doubted = order.group_by("row").agg(pl.col("doubt", "is_certain").first())
    both = pl.concat([final, unfinished]).join(doubted, on="row", how="full", coalesce=True)
    stands = pl.col("is_certain") | ~pl.col("is_final").fill_null(value=False)
    doubt = pl.when(~pl.col("is_one")).then(pl.lit(OwnCode.REPORT_DIFFERS.value)).when(stands).then("doubt")
    return both.select("row", "code", "name", "report", "message", "is_final", doubt=doubt)


def _notes_on_totals(levels: pl.DataFrame, transactions: pl.DataFrame) -> Iterator[Sentence]:
    """Yield the first wrong figure of each kind in a report, about the report or the payment file."""
    key = ["report", "message", "batch"]
    found = _also_of_message(transactions.select(*key, "status")).group_by(*key, "status").len("found")
    counted = levels.explode("counted").drop_nulls("counted")
    counted = counted.select(*key, "id", "counted", most=pl.col("row_count") - pl.col("listed"))
    counted = counted.unnest("counted").with_columns(stated=pl.col("count").cast(pl.Int64, strict=False))
    both = counted.join(found, on=[*key, "status"], how="left", maintain_order="left")
    listed, stated = pl.col("found").fill_null(0).cast(pl.Int64), pl.col("stated")
    is_left_out = (pl.col("status") == Status.MATCH) & stated.is_between(
        listed, pl.col("most").fill_null(stated)
    )
    differs = both.filter(stated.ne_missing(listed), ~is_left_out.fill_null(value=False))
    for level, status, said, there in differs.select("id", "status", "count", listed).head(1).iter_rows():
        yield Sentence(
            "executors.report_counts_differ",
            count=differs.height, id=level or "", status=status or "", stated=said or "", found=str(there),
        )  # fmt: skip
    wrong = levels.drop_nulls("row_count").filter("is_unlike").select("id", "count", "row_count")
    for level, stated, size in wrong.head(1).iter_rows():
        yield Sentence("executors.report_of_part", id=level, stated=stated, found=str(size))
