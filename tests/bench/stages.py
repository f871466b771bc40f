"""Every stage of a run on one file, on one core, with made-up answers in the place of the network's."""

import os
import sys
from pathlib import Path

if hasattr(os, "sched_setaffinity"):  # before polars starts a thread for every core that it sees
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import polars as pl
from answers import answered

from pipeline.apis import cop, vop
from pipeline.apis.registry import about_uk_accounts
from pipeline.rules.currencies import currency_sources
from pipeline.rules.enumeration import many_names, unknown_in_sequence, why_refused
from pipeline.stages.plan import bases, plan
from pipeline.stages.read import read
from pipeline.stages.resolve import resolve
from pipeline.stages.summarise import route_counts, summarise
from pipeline.stages.validate import Routes, validate
from pipeline.stages.write import write
from schemas.outcomes import ApiName, Environment
from schemas.summary import ApiCalls, InputFile


def main(file, folder):
    source = read(file, mapping={})
    routes, outcomes, warnings, calls = decided(source)
    folder.mkdir(exist_ok=True)
    write(source.original, outcomes, folder, format_name=source.outcome_format, dialect=source.dialect)
    header = {
        "tool_version": "0",
        "profile": "bench",
        "environment": Environment.SANDBOX,
        "started": "2026-01-01T00:00:00.000Z",
        "finished": "2026-01-01T00:00:01.000Z",
        "input": InputFile(
            name=file.name,
            sha256=source.sha256,
            byte_count=source.byte_count,
            row_count=source.payments.height,
            format=source.format,
            **source.dialect._asdict(),
            columns={},
            currency_sources=currency_sources(source.payments),
        ),
        "routes": routes,
        "next_step": "",
    }
    summarise(header, source.payments, outcomes, warnings, calls)


def decided(source):
    """From the payments to their outcomes; what is not needed again goes, as in `pipeline.jobs.check`."""
    routes, refusal, rejects, warnings, (checks, assignments) = planned(source)
    assert refusal is None, refusal
    answers = answered(checks)
    warnings = pl.concat([warnings, unknown_in_sequence(about_uk_accounts(checks), assignments, answers)])
    asked = bases(checks)
    del checks
    outcomes, _ = resolve(
        (rejects, warnings),
        (asked, assignments),
        answers,
        [cop.API, vop.GATEWAY],
        Environment.SANDBOX,
    )
    counts = asked.group_by("api", maintain_order=True).len().iter_rows()
    calls = [
        ApiCalls(api=ApiName(api), question_count=count, answered_before_count=0, request_count=count)
        for api, count in counts
    ]
    return routes, outcomes, warnings, calls


def planned(source):
    accepted, rejects, warnings, *_ = validate(source.payments, Routes([ApiName.COP, ApiName.VOP_GATEWAY]))
    refusal = why_refused(many_names(accepted, warnings), where="the file")
    return route_counts(accepted), refusal, rejects, warnings, plan(accepted)


main(Path(sys.argv[1]), Path(sys.argv[2]))
