"""Print the smaller tables on a terminal: plan, formats, columns, caps, shared ledger, `doctor` tests."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeline.reports.changes import WORDS, comparisons_in_words, counts_in_words, sides
from pipeline.reports.metrics import FileEnd
from pipeline.reports.terminal import outcome_table, rule_table, table_of, text_line
from pipeline.reports.wording import (
    SIMULATED,
    controls_in_words,
    counted,
    currency_sentences,
    difference_sentences,
    facts_in_words,
    in_words,
    not_payment_sentences,
    note_sentences,
    number,
    position_pattern,
    positions_in_words,
    price_text,
    say,
    sentence_of,
    visible,
    warning_text,
)
from pipeline.rules.totals import added_outcomes
from pipeline.wording import Moment, Sentence
from pipeline.wording.rows import rows_named
from schemas.changes import Change
from schemas.columns import Column, ColumnsRead, KnownFormat, KnownFormats
from schemas.forecast import ApiForecast, BrokenRule, Forecast
from schemas.row_positions import RowPositions
from schemas.shared import AccountUse, CapStatus, HolderStatus, LedgerStatus, RunStatus
from schemas.summary import Summary

REJECTS_SHOWN_MAX = 20
CHANGES_SHOWN_MAX = 10
_NO_PRICE = Sentence("terminal.no_price")
HEADER_WIDTH_MAX = 28  # width of the first column on a narrow terminal; longer headers wrap


def print_forecast(forecast: Forecast, console: Console) -> None:
    """Print the forecast of a check."""
    title = Sentence(
        "terminal.plan_title",
        name=forecast.input_name,
        payments=Sentence("counted.payment", count=forecast.row_count),
        accepted=forecast.accepted_count,
        rejected=forecast.rejected_count,
        unasked=Sentence("terminal.left_unasked", number=forecast.unasked_count)
        if forecast.unasked_count
        else "",
    )
    console.print(text_line(title, "bold"))
    print_changes(forecast, forecast.changes, console)
    if forecast.apis:
        console.print(_apis(forecast))
    saved = Sentence("terminal.calls_saved", count=forecast.saved_call_count)
    for sentence in (*_spared(forecast), saved, *_costs(forecast)):
        console.print(text_line(sentence))
    sentences: tuple[Sentence | str, ...] = (
        *(in_words(warning.sentence) for warning in forecast.bank_warnings),
        *note_sentences(forecast.notes),
        *(Sentence("terminal.totals_differ") for one in forecast.controls[:1] if not one.agrees),
        *not_payment_sentences(forecast.not_payments),
        *(aside.sentence for aside in forecast.set_aside),
        *difference_sentences(forecast.controls),
        *currency_sentences(forecast.currency_sources),
    )
    for line in sentences:
        console.print(text_line(line))
    if forecast.refusal:
        refused = Sentence("terminal.would_be_refused", why=in_words(forecast.refusal))
        console.print(text_line(refused, "bold yellow"))
    for count in forecast.warning_codes:
        console.print(Text(visible(warning_text(count, forecast.positions))))
    if forecast.rejects:
        console.print(_rejects(forecast, console.width))


def _apis(forecast: Forecast) -> Table:
    cost = [">cost"] if forecast.costs else []
    apis = table_of("API", ">rows", ">calls", *cost, "at most", "about")
    if cost:  # a wider last column must not cut off numbers
        apis.columns[-2].no_wrap, apis.columns[-2].overflow = False, "fold"
    for api in forecast.apis:
        apis.add_row(
            api.api.value,
            number(api.row_count),
            number(api.call_count),
            *([in_words(_NO_PRICE) if api.cost is None else price_text(api.cost)] if cost else []),
            in_words(
                Sentence(
                    "terminal.rate",
                    rate=f"{api.rate_per_s:g}",
                    cap=Sentence("terminal.a_day", number=api.daily_cap) if api.daily_cap else "",
                )
            ),
            _duration(api),
        )
    return apis


def _spared(forecast: Forecast) -> Iterator[Sentence]:
    """Yield sentences on questions that need not be asked, and why their number may be too high."""
    if before := sum(api.answered_before_count for api in forecast.apis):
        yield Sentence("terminal.saved_by_answers", count=before)
    if reused := sum(api.reused_count for api in forecast.apis):
        yield Sentence("terminal.saved_by_matches", count=reused)
    if forecast.why_uncounted:
        yield Sentence("terminal.not_counted", why=in_words(forecast.why_uncounted))
    if forecast.shared_ledger:
        yield Sentence("terminal.other_hosts_not_counted", ledger=forecast.shared_ledger)


def _costs(forecast: Forecast) -> Iterator[Sentence]:
    """Yield the cost of the calls and what it excludes; nothing if no price is known."""
    if not forecast.costs:
        return
    prices = [
        Sentence("terminal.price", api=api.api.value, price=price_text(api.price_per_call))
        for api in forecast.apis
        if api.price_per_call
    ]
    yield Sentence("terminal.cost", total=list(map(price_text, forecast.costs)), prices=prices)
    if unpriced := [api.api.value for api in forecast.apis if api.price_per_call is None]:
        yield Sentence("terminal.cost_without_apis", apis=unpriced)


def _rejects(forecast: Forecast, width: int) -> Table:
    """List broken rules: one line per row and rule if few, by kind if many."""
    if sum(kind.row_count for kind in forecast.broken_rules) <= REJECTS_SHOWN_MAX:
        texts = {kind.message: _rule_text(kind, forecast.positions) for kind in forecast.broken_rules}
        is_path = not position_pattern(forecast.positions)  # too long for its own column
        each = []
        for reject in forecast.rejects:
            place = positions_in_words([reject.row], forecast.positions)
            row, text = str(reject.row), texts.get(reject.message, reject.message)
            row, text = (row, f"{text} ({place})") if is_path else (f"{row}\n{place}", text)
            each.append((row.strip(), reject.field, reject.code, text.strip()))
        return rule_table(">row", each, width=width)
    kinds = []
    for kind in forecast.broken_rules:
        rows = rows_named(kind.rows, forecast.positions, row_count=kind.row_count)
        text = f"{_rule_text(kind, forecast.positions)}: {in_words(rows)}"
        kinds.append((number(kind.row_count), kind.field, kind.code, text))
    return rule_table(">rows", kinds, width=width)


def _rule_text(kind: BrokenRule, positions: RowPositions | None) -> str:
    return in_words(sentence_of(kind.sentence, positions)) if kind.sentence else kind.message


def print_columns(read: ColumnsRead, console: Console) -> None:
    """Print how the columns of a file are read, one per row, and the notes on them."""
    if read.format is not None:
        print_fields(read, console)
        return
    console.print(_columns_table(read.columns, has_room=console.width >= COLUMNS_WIDTH_MIN))
    if any(column.field is None for column in read.columns) and read.refusal is None:
        console.print(text_line(Sentence("terminal.columns_not_read")))
    for line in note_sentences(read.notes):
        console.print(Text(visible(line)))


def _columns_table(columns: Sequence[Column], *, has_room: bool) -> Table:
    """Lay out four columns if there is room; otherwise put the field of a column above its values."""
    table = table_of("header", "field", "why", "values") if has_room else table_of("header", "read as")
    for shown in table.columns:
        shown.no_wrap, shown.overflow = False, "fold"  # headers can be sentences; IBANs stay whole
    if has_room:
        table.columns[1].no_wrap = True
    else:
        table.columns[0].max_width = HEADER_WIDTH_MAX
    for column in columns:
        field = Text(column.field or "-", style="bold" if column.field else "dim")
        why = Text(visible(_why(column)), style="yellow" if column.disputed or column.map else "")
        values = Text(visible(values_in_short(column)), style="dim")
        if has_room:
            table.add_row(Text(visible(column.header)), field, why, values)
        else:
            lines = [Text("  ").join([field, why]), *([values] if values else [])]
            table.add_row(Text(visible(column.header)), Text("\n").join(lines))
    return table


def _why(column: Column) -> str:
    """Return the rule of a column, the rejected candidates and the `--map` that sets it."""
    values = {"rule": in_words(column.rule), "others": column.others}
    if column.disputed:
        why = Sentence("column.candidate_or" if column.others else "column.candidate", **values)
    else:
        key = "column.instead_of" if column.others else "column.of_format"
        why = Sentence(key, title=values["rule"], **values)
    return f"{in_words(why)}; --map {column.map}" if column.map else in_words(why)


def print_quota(
    uses: Sequence[tuple[str, int, int, datetime]], console: Console, *, shared: Sequence[Sentence] = ()
) -> None:
    """Print (scope, used, cap, next day) of each cap, and sentences about caps counted elsewhere."""
    for line in shared:
        console.print(text_line(line), soft_wrap=True)
    if not uses:
        if not shared:
            console.print(text_line(Sentence("terminal.no_cap_used")))
        return
    table = table_of("server and client", ">used", ">cap", "begins anew")
    for scope, used, cap, resets_at in uses:
        table.add_row(Text(visible(scope)), number(used), number(cap), f"{resets_at:%Y-%m-%d %H:%M} UTC")
    console.print(table)


def print_findings(
    findings: Iterable[tuple[Sentence | str, Sentence, bool | None]], console: Console
) -> None:
    """Print (what, finding, passed or None) of each test, one line each."""
    table = Table.grid(padding=(0, 1, 0, 0))
    for what, detail, well in findings:
        mark, text = Text(*_MARKS[well]), Text(f"{in_words(what)}: {visible(in_words(detail))}")
        if console.is_terminal:
            table.add_row(mark, text)
        else:
            console.print(mark + Text(" ") + text, soft_wrap=True)
    if console.is_terminal:
        console.print(table)


_MARKS = {None: ("-      ",), True: ("ok     ", "green"), False: ("PROBLEM", "bold red")}


def _duration(api: ApiForecast) -> str:
    days = counted(api.day_count, "day")
    if api.daily_cap is not None and api.used_count >= api.daily_cap and api.call_count:
        return say("terminal.days_from_tomorrow", days=days, cap=api.daily_cap)
    if api.day_count > 1:
        return say("terminal.days_some_used", days=days, used=api.used_count) if api.used_count else days
    seconds = round(api.duration_s)
    if seconds < 7200:
        return f"{seconds} s" if seconds < 120 else f"{number(seconds // 60)} min"
    return f"{number(seconds // 3600)} h {seconds % 3600 // 60} min"


def print_changes(result: Summary | Forecast, changes: Sequence[Change], console: Console) -> None:
    """Print the gravest changes, if a run or a plan compared the file."""
    if (compared := comparisons_in_words(result)) is None:
        return
    nothing = say("changes.nothing_changed") if result.compared is not None and result.compared.runs else ""
    what = counts_in_words(result.warning_codes) or nothing
    title = " ".join(filter(None, (compared, what)))
    console.print(Text(f"\n{visible(title)}", style="bold"))
    if not changes:
        return
    positions = result.positions if isinstance(result, Forecast) else result.input.positions
    where = [] if positions is None else [f">{positions.unit}"]
    table = table_of(">row", *where, ">amount", "what", "then", "now")
    for change in changes[:CHANGES_SHOWN_MAX]:
        amount = "" if change.amount is None else f"{number(change.amount)} {visible(change.currency or '')}"
        place = [] if positions is None else [str(positions.of(change.row))]
        what = in_words(WORDS[change.code])
        table.add_row(str(change.row), *place, Text(amount), what, *map(Text, sides(change)))
    console.print(table)


def print_files(ends: Collection[FileEnd], console: Console) -> None:
    """Print a line for each file and the outcomes of all rows; nothing if no file has ended."""
    if all(end.exit_code is None for end in ends):
        return
    console.print(Text(f"\n{say('terminal.files', files=counted(len(ends), 'file'))}", style="bold"))
    table = table_of(">rows", ">match", ">to look at", ">left", ">status", "file")
    for end in ends:
        status = "-" if end.exit_code is None else str(end.exit_code)
        style = "green" if end.exit_code == 0 else "yellow"
        cells = ("", "", "", "") if end.summary is None else _counts(end.summary)
        table.add_row(*cells, Text(status, style=style), Text(visible(end.name)))
    console.print(table)
    summaries = [end.summary for end in ends if end.summary is not None]
    if summaries:
        console.print()
        console.print(outcome_table(added_outcomes(summary.outcomes for summary in summaries)))
    if any(summary.simulated for summary in summaries):
        console.print()
        console.print(text_line(SIMULATED))


def _counts(summary: Summary) -> tuple[str, ...]:
    rows, left, to_look_at = summary.input.row_count, summary.undecided_count, summary.to_look_at_count
    return tuple(map(number, (rows, rows - left - to_look_at, to_look_at, left)))


COLUMNS_WIDTH_MIN = 110  # terminal width with room for header, field, sentence and IBAN next to each other
VALUE_CHARS_MAX = 34  # length of the longest IBAN
CONTROLS_LISTED_MAX = 20


def print_fields(read: ColumnsRead, console: Console) -> None:
    """Print the position of each field, the facts about the file, and whether its totals agree."""
    payments, spoken = counted(read.row_count or 0, "payment"), in_words(read.format or "")
    title = say("terminal.fields_title", file=read.file, format=spoken, payments=payments)
    console.print(Text(visible(title), style="bold"), "", sep="\n")
    console.print(_fields(read.columns, has_room=console.width >= COLUMNS_WIDTH_MIN))
    facts = Table.grid(padding=(0, 2, 0, 0))
    for name, fact in facts_in_words(read.facts):
        facts.add_row(Text(visible(name), style="dim"), Text(visible(fact)))
    console.print("", facts, sep="\n")
    parts: list[Text | Table] = [*_controls(read)] if read.controls else []
    lines = [*(aside.sentence for aside in read.set_aside), *note_sentences(read.notes)]
    for some in (parts, [*map(text_line, lines)]):
        for part in some and ["", *some]:
            console.print(part)


def values_in_short(column: Column) -> str:
    """Return the shown values of a column, each no longer than an IBAN."""
    return "; ".join(
        value if len(value) <= VALUE_CHARS_MAX else f"{value[: VALUE_CHARS_MAX - 1]}…"
        for value in column.values
    )


def _fields(columns: list[Column], *, has_room: bool) -> Table:
    """Lay out four columns if there is room; otherwise put the values below the position."""
    table = table_of("field", ">rows", "stands in")
    if has_room:
        table = table_of("field", "stands in", ">rows", "values")
    table.columns[-1].no_wrap, table.columns[-1].overflow = False, "fold"
    for column in columns:
        field = Text(column.field or "-", style="bold")
        where, values = Text(visible(column.header)), Text(visible(values_in_short(column)), style="dim")
        count = number(column.row_count or 0)
        if has_room:
            table.add_row(field, where, count, values)
        else:
            table.add_row(field, count, Text("\n").join([where, values]))
    return table


def _controls(read: ColumnsRead) -> Iterator[Text | Table]:
    """Yield the stated totals next to the actual ones; differing ones come first."""
    style = "green" if all(control.agrees for control in read.controls) else "bold yellow"
    yield Text(controls_in_words(read.controls, read.control_count), style=style)
    table = table_of("control total", ">the file says", ">there is", "")
    table.columns[0].no_wrap = False
    unknown = say("terminal.not_known")
    for one in read.controls[:CONTROLS_LISTED_MAX]:
        texts = (
            Text(visible(text)) for text in (in_words(one.where), one.stated or unknown, one.found or unknown)
        )
        verdict = Sentence("terminal.agrees" if one.agrees else "terminal.differs")
        table.add_row(*texts, text_line(verdict, "green" if one.agrees else "bold yellow"))
    yield table
    if (more := read.control_count - CONTROLS_LISTED_MAX) > 0:
        yield text_line(Sentence("terminal.more_in_json", number=more))


def print_formats(known: KnownFormats, console: Console, *, in_full: bool) -> None:
    """Print one format per row; in full, with how it is recognised."""
    table = table_of("format", "written as", "description")
    if in_full:
        table = table_of("format", "written as", "known by")
    for each in known.formats:
        name, written_as = Text(visible(each.name), style="bold"), Text(visible(each.written_as or "-"))
        table.add_row(name, written_as, Text(visible(_in_full(each) if in_full else in_words(each.title))))
    console.print(table)
    console.print(text_line(Sentence("formats.written_as_listed")))
    console.print(text_line(Sentence("formats.may_be_compressed", compressions=known.compressions)))
    if not in_full:
        console.print(text_line(Sentence("formats.all_shows_more")))


def _in_full(each: KnownFormat) -> str:
    title, known_by = (in_words(text) for text in (each.title, each.known_by))
    if each.why_not is None:
        return say("formats.in_full", title=title, known_by=known_by)
    why = in_words(each.why_not)
    return say("formats.never_changed", title=title, known_by=known_by, why=why)


def print_status(status: LedgerStatus, console: Console) -> None:
    """Print the open runs, the processes that ask, and the limits of each."""
    title = Sentence("status.title", ledger=status.ledger, time=Moment(status.time))
    console.print(text_line(title, "bold"), soft_wrap=True)
    for line in _status_lines(status):
        console.print(text_line(line), soft_wrap=True)


def _status_lines(status: LedgerStatus) -> Iterator[Sentence]:
    yield from map(_run, status.runs)
    if not status.runs:
        yield Sentence("status.no_run")
    yield from map(_holder, status.holders)
    if not status.holders:
        yield Sentence("status.no_process")
    for account in status.accounts:
        yield from _account(account)
    yield from map(_cap, status.caps)


def _run(run: RunStatus) -> Sentence:
    state = Sentence("status.no_process_asking")
    if run.open:
        chunks = Sentence("status.chunks", count=run.undone_chunk_count)
        state = Sentence("status.open", round=run.round, chunks=chunks, free_count=run.free_chunk_count)
    sentence = Sentence(
        "status.run",
        run=str(run.run),
        created=Moment(run.created),
        left_count=run.left_count,
        questions=Sentence("status.questions", count=run.question_count),
        answers=Sentence("status.answers", count=run.answer_count),
        requests=Sentence("counted.request", count=run.attempt_count),
        state=state,
    )
    if not run.reused_count:
        return sentence
    return Sentence("status.with_reused", sentence=sentence, count=run.reused_count)


def _holder(holder: HolderStatus) -> Sentence:
    who = Sentence("status.process", pid=holder.pid, host=holder.host, started=Moment(holder.started))
    if not holder.alive:
        return Sentence("status.process_gone", who=who, silent_s=holder.silent_s)
    left_s = holder.oldest_lease_s
    if left_s is None:
        return Sentence("status.process_idle", who=who, silent_s=holder.silent_s)
    return Sentence(
        "status.process_at_work" if left_s > 0 else "status.process_overdue",
        who=who,
        silent_s=holder.silent_s,
        chunks=Sentence("status.chunks", count=holder.chunk_count),
        questions=Sentence("status.questions", count=holder.question_count),
        lease_s=abs(left_s),
    )


def _account(account: AccountUse) -> Iterator[Sentence]:
    whose = f"{account.scope}, {account.api.value}"
    for share in account.shares:
        yield Sentence(
            "status.share",
            whose=whose,
            pid=share.pid,
            host=share.host,
            requests=Sentence("counted.request", count=share.requests),
            rate_per_s=share.rate_per_s,
            places=share.slots,
            in_flight_max=share.in_flight_max,
        )
    if account.paused_s:
        yield Sentence("status.paused", whose=whose, paused_s=account.paused_s)


def _cap(cap: CapStatus) -> Sentence:
    key = "status.cap_closed" if cap.closed else "status.cap"
    return Sentence(key, scope=cap.scope, used=cap.used, cap=cap.cap)
