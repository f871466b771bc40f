"""Read and compare the parts of a data set, and plan its buckets, before any question is asked."""

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID, uuid5

import polars as pl

from pipeline.config.profiles import Chosen
from pipeline.errors import InputError
from pipeline.executors.datasets import steps
from pipeline.executors.datasets.engines import Engine, watched
from pipeline.files.plain import real_path
from pipeline.formats.message import CONTROLS_MAX
from pipeline.formats.registry import format_named
from pipeline.frames import CHANGES
from pipeline.headers.parties import payee_id_header
from pipeline.jobs.comparing import (
    Compared,
    ComparedRun,
    ComparisonRequest,
    CurrentRun,
    compare_with_earlier,
    rows_in_pieces,
)
from pipeline.jobs.prepare import VERSION, assumed_types, country_of, rules_day
from pipeline.rules.enumeration import ROWS_NAMED_MAX, ManyNames
from pipeline.runs.data_set import DataPart, DataSet, places_in
from pipeline.runs.request import DataSetJob, RunObserver, SetStep
from pipeline.runs.work_folder import PartFiles, write_frame
from pipeline.stages.validate import Routes
from pipeline.wording import PLACE, Sentence
from schemas.cop import AccountType
from schemas.data_set import BucketPlanned, PartRead
from schemas.outcomes import ApiName
from schemas.summary import ROWS_LISTED_MAX, BankCode, BankWarning, CurrencySources, ModulusUsed, RouteCount

_FOLDERS = UUID("6f0c0f5e-2f5b-5d5e-9b6c-2a54c3a0d1b7")
_BUCKETS_MIN, _BUCKETS_MAX = 4, 1_000
_ROWS_MAX = 4_000_000_000  # row numbers have 32 bits
_HEADERS_NAMED_MAX = 5


class PlannedSet(NamedTuple):
    """A data set, read and planned."""

    parts: Sequence[tuple[DataPart, PartRead]]  # all parts, in order
    rows: steps.UsableRows  # rows of the usable parts
    buckets: Sequence[BucketPlanned]

    @property
    def usable(self) -> list[tuple[DataPart, PartRead]]:
        """The parts that can be used."""
        return [(part, read) for part, read in self.parts if read.problem is None]

    @property
    def unusable(self) -> set[int]:
        """The numbers of unusable parts."""
        return {part.number for part, read in self.parts if read.problem is not None}

    @property
    def many_names(self) -> ManyNames:
        """Payments that try many names on one account."""
        return ManyNames(
            sorted(row for bucket in self.buckets for row in bucket.many_names_rows)[:ROWS_NAMED_MAX],
            sum(bucket.many_names_count for bucket in self.buckets),
            sum(bucket.many_names_account_count for bucket in self.buckets),
        )

    @property
    def routes(self) -> list[RouteCount]:
        """Numbers of rows by route."""
        found = Counter[tuple[ApiName, str, str | None]]()
        for route in (route for _, read in self.usable for route in read.routes):
            found[route.api, route.reason, route.bic_source] += route.row_count
        return [
            RouteCount(api=api, reason=reason, bic_source=source, row_count=count)
            for (api, reason, source), count in found.items()
        ]

    @property
    def modulus(self) -> ModulusUsed | None:
        """The modulus tables that were used."""
        used = [bucket.modulus for bucket in self.buckets if bucket.modulus is not None]
        if not used:
            return None
        return used[0].model_copy(update={"uncovered_count": sum(bucket.uncovered_count for bucket in used)})

    def facts(self, default: AccountType) -> dict[str, Any]:
        """Return the fields that `InputFile` and `Forecast` share; `default` is the assumed account type."""
        parts = self.usable
        sources, assumed_count = Counter[str](), sum(read.assumed_type_count for _, read in parts)
        for _, read in parts:
            sources.update(read.currency_sources.model_dump())
        not_payments = [
            row.model_copy(
                update={"sentence": in_part(Sentence.of_data(row.sentence.sentence), part).recorded()}
            )
            for part, read in parts
            for row in read.not_payments
        ]
        controls = [
            control.model_copy(
                update={"difference": in_part(Sentence.of_data(control.difference.sentence), part).recorded()}
            )
            for part, read in parts
            for control in read.controls
            if control.difference is not None
        ]
        shared = [note for note in parts[0][1].notes if all(note in read.notes for _, read in parts)]
        own = [
            in_part(Sentence.of_data(note.sentence), part).recorded()
            for part, read in parts
            for note in read.notes
            if note not in shared
        ]
        assumed = [note.recorded() for note in assumed_types(assumed_count, default)]
        return {
            "not_payments": not_payments[:ROWS_LISTED_MAX],
            "controls": controls[:CONTROLS_MAX],
            "set_aside": [aside for _, read in parts for aside in read.set_aside],
            "notes": [*shared, *own[:ROWS_LISTED_MAX], *assumed],
            "currency_sources": CurrencySources(**sources),
            "bank_warnings": _bank_warnings(parts),
        }


def _bank_warnings(parts: Sequence[tuple[DataPart, PartRead]]) -> list[BankWarning]:
    """Return one warning for each rule of banks: its first place, and the number of all."""
    found: dict[BankCode, BankWarning] = {}
    for part, warning in ((part, warning) for part, read in parts for warning in read.bank_warnings):
        first = found.setdefault(
            warning.code, warning.model_copy(update={"path": f"{part.name} {warning.path}", "place_count": 0})
        )
        count = first.place_count + warning.place_count
        said = Sentence.of_data(first.sentence.sentence).having(path=first.path, count=count).recorded()
        found[warning.code] = first.model_copy(update={"place_count": count, "sentence": said})
    return [found[code] for code in BankCode if code in found]


def in_part(sentence: Sentence, part: DataPart) -> Sentence:
    """Return a sentence about a part, with the name of the part."""
    return Sentence("footer.in_part", part=part.name, sentence=sentence)


def task_of(job: DataSetJob, data: DataSet, chosen: Chosen, there: Routes, today: date) -> steps.SetTask:
    """Return the settings that all tasks share; their work folder is only for these settings."""
    check, modulus = job.check, there.modulus
    bucket_bytes = format_named(data.outcome_format).BUCKET_BYTES
    bucket_count = max(_BUCKETS_MIN, min(_BUCKETS_MAX, data.byte_count // bucket_bytes + 1))
    settings = {
        "parts": data.sha256,
        "out": str(real_path(check.out)),
        "profile": chosen.fingerprint,
        "mapping": dict(check.mapping),
        "encoding": check.encoding,
        "country": country_of(check, chosen),
        "modulus": None
        if modulus is None
        else [modulus.tables.weights_sha256, modulus.tables.substitutions_sha256, modulus.is_old],
        "versions": [VERSION, steps.POLARS],
    }
    name = uuid5(_FOLDERS, json.dumps(settings, sort_keys=True))
    files = PartFiles(real_path(job.work) / str(name))
    read_so = data.format, dict(check.mapping), check.encoding
    country, rules_on = country_of(check, chosen), rules_day(chosen, today)
    return steps.SetTask(files, there, *read_so, bucket_count, country, rules_on)


def plan_parts(data: DataSet, shared: steps.SetTask, at_work: Engine, watch: RunObserver) -> PlannedSet:
    """Read every part (InputError: none is usable), then plan every bucket; report progress to `watch`."""
    tasks = [steps.PartTask(shared, part) for part in data.parts]
    reads = watched(at_work.each(steps.read_part, tasks), watch, SetStep.READ, len(tasks))
    found = {task.part.number: read for task, read in reads}
    parts = _compared([(part, found[part.number]) for part in data.parts])
    rows = _rows([(part, read) for part, read in parts if read.problem is None], data.path.name)
    _forget_other_rows(shared, rows)
    buckets = [steps.BucketTask(shared, bucket, rows) for bucket in range(shared.bucket_count)]
    plans = watched(at_work.each(steps.plan_bucket, buckets), watch, SetStep.PLANNED, len(buckets))
    planned = {task.bucket: of_bucket for task, of_bucket in plans}
    return PlannedSet(parts, rows, [planned[bucket] for bucket in range(shared.bucket_count)])


def compare_parts(
    wanted: ComparisonRequest,
    subject: CurrentRun,
    shared: steps.SetTask,
    planned: PlannedSet,
    *,
    now: datetime,
) -> ComparedRun | None:
    """Compare a data set with earlier runs, and pass the changes on to its parts."""

    def rows() -> Compared:
        has_ids = payee_id_header(planned.usable[0][1].headers) is not None
        row_count = sum(planned.rows.counts) if has_ids else None
        return rows_in_pieces(partial(steps.accepted_rows, shared, planned.rows), row_count)

    found = compare_with_earlier(wanted, subject, rows, now=now, spool=shared.files.root)
    changes = {} if found is None else steps.by_part(found.changes, planned.rows)
    for part in planned.rows.parts:
        write_frame(changes.get(part, pl.DataFrame(schema=CHANGES)), shared.files.frame("changes", part))
    return found


def _compared(parts: Sequence[tuple[DataPart, PartRead]]) -> list[tuple[DataPart, PartRead]]:
    """Return the parts; those whose columns differ from the first usable part get a problem."""
    first = next(((part, read) for part, read in parts if read.problem is None), None)
    if first is None:
        raise InputError(Sentence("jobs.part_unusable", problem=parts[0][1].problem))
    compared, before = [], _Columns({}, set())
    for part, read in parts:
        found = _like(part, read, first, before)
        if found.problem is None:
            filled = {f"{PLACE}{number}" for number in range(1, len(read.headers) + 1)} - set(read.blank)
            before = _Columns({**read.decision, **before.decision}, before.filled | filled)
        compared.append((part, found))
    return compared


class _Columns(NamedTuple):
    decision: Mapping[str, str]  # how each column was read, decided by a part with cells in it
    filled: set[str]  # columns with cells in any part, by position


def _like(part: DataPart, read: PartRead, like: tuple[DataPart, PartRead], before: _Columns) -> PartRead:
    """Return the part with its findings, or with a problem if its columns differ from earlier parts."""
    first, as_read = like
    if read.problem is not None:
        return read
    if read.headers != as_read.headers:
        return PartRead(
            problem=Sentence(
                "jobs.part_columns_differ",
                part=part.name,
                first=first.name,
                differences=_differences(read.headers, as_read.headers),
            ).recorded()
        )
    fields = {
        field
        for field, columns in before.decision.items()
        if _filled(columns, read.blank) != _filled(read.decision.get(field, ""), read.blank)
    }
    fields |= {
        field
        for field, columns in read.decision.items()
        if field not in before.decision and before.filled & set(re.split(r"[|+]", columns))
    }
    if fields:
        return PartRead(
            problem=Sentence("jobs.part_read_differently", part=part.name, fields=sorted(fields)).recorded()
        )
    return read


def _filled(columns: str, blank: Collection[str]) -> list[str]:
    """Return a field's columns that have cells, in `--map` notation."""
    return [one for one in columns.split("|") if one and not set(one.split("+")) <= set(blank)]


def _differences(headers: Sequence[str], others: Sequence[str]) -> list[Sentence]:
    lacks = [header for header in others if header not in headers][:_HEADERS_NAMED_MAX]
    has = [header for header in headers if header not in others][:_HEADERS_NAMED_MAX]
    found = [Sentence("jobs.without_headers", headers=lacks)] if lacks else []
    found += [Sentence("jobs.with_headers", headers=has)] if has else []
    return found or [Sentence("jobs.in_another_order")]


def _rows(usable: Sequence[tuple[DataPart, PartRead]], where: str) -> steps.UsableRows:
    counts = [read.row_count for _, read in usable]
    if sum(counts) > _ROWS_MAX:
        raise InputError(Sentence("jobs.data_set_too_large", where=where, rows_max=_ROWS_MAX))
    return steps.UsableRows(
        [part.number for part, _ in usable], counts, places_in([part for part, _ in usable], counts)
    )


def _forget_other_rows(shared: steps.SetTask, rows: steps.UsableRows) -> None:
    """Discard the plans of all buckets if the set of usable parts has changed."""
    path, content = shared.files.root / "rows.json", json.dumps([rows.parts, rows.counts])
    if path.exists() and path.read_text("ascii") == content:
        return
    for bucket in range(shared.bucket_count):
        shared.files.done("planned", bucket).unlink(missing_ok=True)
    path.write_text(content, "ascii")
