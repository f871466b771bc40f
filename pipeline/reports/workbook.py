"""Write the workbook: the results of a run for people who decide in a spreadsheet.

Text is always written as text: account numbers keep their zeros, and a name that starts like a formula stays
a name. `formats.excel.decisions` reads the columns Decision and Reason back. The library writes sheets,
styles and headers; `sheets.rows_xml` writes the rows.
"""

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from math import ceil
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import polars as pl
import xlsxwriter
from xlsxwriter.format import Format
from xlsxwriter.worksheet import Worksheet

from pipeline.files.atomic import write_atomically
from pipeline.formats.excel.decisions import DECISION, ROW, RUN_ID
from pipeline.reports.changes import beside_rows
from pipeline.reports.choices import Policy, RowSpan, offered, policy_lines, write_lists
from pipeline.reports.groups import ListedRows
from pipeline.reports.sheets import (
    ALL,
    CHANGED,
    DIGITS_MAX,
    LINE_POINTS,
    REVIEWS,
    ReportSheet,
    SheetColumn,
    Styles,
    amount_as_text,
    fitted,
    header_in_words,
    rows_xml,
    shown,
)
from pipeline.reports.wording import (
    CONTROLS_SHOWN_MAX,
    SIMULATED,
    controls_in_words,
    facts_in_words,
    in_words,
    position_pattern,
    say,
    visible,
)
from pipeline.rules.row_positions import position_texts
from pipeline.rules.totals import control_totals, plain
from schemas.changes import Change
from schemas.folder import REPORT_XLSX
from schemas.summary import Money, Summary

ALL_ROWS_MAX = 50_000  # with more, a spreadsheet would be slow, so the sheet All only points to the outcomes
REVIEW_ROWS_MAX = 10_000  # most rows in every other sheet, largest amounts first; readers need no more

BANK_HEADERS = ("Bank", "Answers", "Match", "Close", "No match", "Not possible", "Matches, %")
LAST_RUN = "Last run, %"
_CODE_HEADERS = ("Code", "Rows", "What to do", "Outcome", "What it means")
_POLICY_HEADERS = ("Policy for", "Rows", "It says", "Decisions", "What that means")
_SENTENCES = (_CODE_HEADERS[-1], _POLICY_HEADERS[-1])
_Cell = str | int | list[Money]
_HEADER_LINE = 2
_FROZEN_COLUMNS = 4
_MEANING_WIDTH, _MEANING_CHARS = 70, 74
"""Width of the sentence column in Summary, in digits and in letters, which are narrower."""
_NUMBERS = (ROW, "Amount", "Rows", "To look at")
_DIMENSION = re.compile(rb"<dimension [^>]*>")
"""The size that the library declares for a sheet, which programs do not need."""
_COMPRESSION = 1
"""Compression level, 1 to 9. At 20,000 rows it takes a third of the processor time of the usual 6, for a
quarter more bytes.
"""
_OPTIONS = {
    "in_memory": True,
    **dict.fromkeys(("strings_to_formulas", "strings_to_urls", "strings_to_numbers"), False),
}


def write_workbook(summary: Summary, listed: ListedRows, folder: Path, *, outcome_name: str) -> Path:
    """Write `report.xlsx`, without the rows beyond its limits; same errors as `write_atomically`."""
    is_all = listed.sums is None
    assert not is_all or listed.rows.height == summary.input.row_count
    path = folder / REPORT_XLSX
    empty = io.BytesIO()
    with xlsxwriter.Workbook(empty, _OPTIONS) as book:
        finished = datetime.fromisoformat(summary.finished)
        book.set_properties({"title": say("sheet.document"), "created": finished.replace(tzinfo=None)})
        writer = _Writer(book, summary, Policy(listed.policy, listed.warned, summary.profile))
        places = summary.input.positions
        rows = listed.rows.with_columns(position_texts(listed.rows["row"], places, position_pattern(places)))
        writer.write(shown(rows), listed.changes, outcome_name, is_all=is_all)
    with write_atomically(path) as file:
        # Through memory: closing a ZIP that a full disk cut off would raise another error.
        file.write(_filled(empty, writer.rows).getbuffer())
    return path


def _filled(empty: io.BytesIO, rows: Sequence[Iterable[bytes]]) -> io.BytesIO:
    """Insert the rows of the sheets, in order, below their existing rows."""
    filled = io.BytesIO()
    parts = {f"xl/worksheets/sheet{number}.xml": lines for number, lines in enumerate(rows, start=1)}
    with ZipFile(empty) as source, ZipFile(filled, "w", ZIP_DEFLATED, compresslevel=_COMPRESSION) as target:
        for part in source.namelist():
            head, end, tail = source.read(part).partition(b"</sheetData>")
            with target.open(part, "w") as written:
                written.write(_DIMENSION.sub(b"", head) if parts.get(part) else head)
                written.writelines(parts.get(part, ()))
                written.write(end + tail)
    return filled


class _Writer:
    """A workbook being written: its styles, its sheets, and `rows` to insert into each at the end."""

    def __init__(self, book: xlsxwriter.Workbook, summary: Summary, policy: Policy) -> None:
        self.rows: list[Iterable[bytes]] = []
        self._book = book
        self._summary = summary
        self._policy = policy

        def style(**changes: str | int) -> Format:
            return book.add_format({"font_name": "Calibri", "font_size": 11, "valign": "top", **changes})

        line: dict[str, str | int] = {"bottom": 1, "bottom_color": "#E2E8F0"}
        self._text = style(**line, num_format="@", align="left", indent=1)
        self._wrapped = style(**line, num_format="@", align="left", indent=1, text_wrap=True)
        self._cents, self._mills = (style(**line, num_format=f"#,##0.{'0' * count}") for count in (2, 3))
        self._long_amount = style(**line, num_format="@", align="right")
        self._count = style(**line, num_format="#,##0")
        self._title = style(bold=True, font_size=13, valign="vcenter")
        self._warning = style(bold=True, font_color="#FFFFFF", bg_color="#B45309", valign="vcenter", indent=1)
        header: dict[str, str | int] = {"bold": True, "valign": "vcenter", "text_wrap": True}
        header |= {"font_color": "#FFFFFF", "bg_color": "#1F3A4D"}
        self._header = style(**header, align="left", indent=1)
        self._number_header = style(**header, align="right")
        self._label = style(font_color="#52616B", align="left", indent=1)
        self._fact = style(num_format="@")
        self._number_fact = style(num_format="#,##0", align="left")
        to_fill_in: dict[str, str | int] = {"num_format": "@", "bg_color": "#FFF8E1"}
        to_fill_in |= {"border": 1, "border_color": "#E5D9B6"}
        self._input, self._wrapped_input = style(**to_fill_in), style(**to_fill_in, text_wrap=True)

    def write(
        self, rows: pl.DataFrame, changes: Sequence[Change], outcome_name: str, *, is_all: bool
    ) -> None:
        """Write every sheet; unless `is_all`, the sheet All only points to the outcome file."""
        self._write_summary()
        if len(self._summary.batches) > 1:
            self._write_batches()
        if self._summary.compares_banks:
            self._write_banks()
        sheets: list[tuple[ReportSheet, pl.DataFrame, str]] = []
        if changes:
            changed = beside_rows(changes).join(rows, on="row", how="left", maintain_order="left")
            sheets.append((CHANGED, changed, _titled(CHANGED, changed.height)))
        for sheet in REVIEWS:
            chosen = rows.filter(sheet.which).sort("amount", "row", descending=[True, False], nulls_last=True)
            largest = chosen.head(REVIEW_ROWS_MAX)
            count = chosen.height if is_all else _count_of(sheet, self._summary)
            sheets.append((sheet, largest, _titled(sheet, count, largest.height)))
        if is_all and rows.height <= ALL_ROWS_MAX:
            sheets.append((ALL, rows, _titled(ALL, rows.height)))
        else:
            named = {"sheet": header_in_words(ALL.name), "outcome_file": outcome_name}
            count = self._summary.input.row_count
            sheets.append((ALL, rows.clear(), say("sheet.rows_in_outcome_file", count=count, **named)))
        choices = offered([rows for _, rows, _ in sheets], self._policy)
        for written, spans in zip(sheets, choices, strict=True):
            self._write_rows(*written, spans)

    def _write_rows(
        self, sheet: ReportSheet, rows: pl.DataFrame, title: str, choices: Sequence[RowSpan]
    ) -> None:
        columns = fitted(sheet.columns, rows)
        widths = [column.width for column in columns]
        page = self._page(header_in_words(sheet.name), title, widths, _FROZEN_COLUMNS)
        page.set_tab_color(sheet.colour)
        self._write_headers(page, _HEADER_LINE, [column.header for column in columns])
        page.set_row(_HEADER_LINE, 2 * LINE_POINTS + 4)
        last = _HEADER_LINE + max(rows.height, 1)
        page.print_area(0, 0, last, sum(column.is_printed for column in columns) - 1)
        page.autofilter(_HEADER_LINE, 0, last, len(columns) - 1)
        decision = next(index for index, column in enumerate(columns) if column.header == DECISION)
        if not rows.is_empty():
            write_lists(page, decision, choices, first_line=_HEADER_LINE + 1)
            self.rows[-1] = rows_xml(rows, columns, self._styles(), first=_HEADER_LINE + 2)

    def _styles(self) -> Styles:
        amounts = self._cents, self._mills, self._long_amount
        styles = (self._text, self._wrapped, self._count, *amounts, self._input, self._wrapped_input)
        return Styles(*(style._get_xf_index() for style in styles))  # noqa: SLF001 (there is no other way)

    def _write_amount(self, page: Worksheet, line: int, column: int, amount: Decimal) -> None:
        """Write an amount as a number from its decimal text, or as text if a number cannot hold it."""
        shortest = plain(amount)
        if len(shortest.as_tuple().digits) > DIGITS_MAX:
            page.write_string(line, column, amount_as_text(shortest), self._long_amount)
            return
        # The library writes a Decimal digit by digit, without floats.
        has_mills = shortest.as_tuple().exponent == -3
        page.write_number(line, column, shortest, self._mills if has_mills else self._cents)

    def _write_headers(self, page: Worksheet, line: int, headers: Sequence[str]) -> None:
        page.set_row(line, 20)
        for column, header in enumerate(headers):
            style = self._number_header if header in _NUMBERS else self._header
            page.write_string(line, column, header_in_words(header), style)

    def _page(self, name: str, title: str, widths: Sequence[int], frozen: int | None = None) -> Worksheet:
        """Add a sheet with its title, and a notice if answers are simulated.

        With `frozen` columns, the headers below stay in view and are printed on each page.
        """
        page = self._book.add_worksheet(name)
        self.rows.append(())
        for column, width in enumerate(widths):
            page.set_column(column, column, width)
        page.set_landscape()
        page.set_paper(9)  # A4
        page.fit_to_pages(1, 0)
        page.set_margins(left=0.3, right=0.3, top=0.4, bottom=0.6)
        page.set_footer("&L&F · &A&RPage &P of &N")
        if frozen is not None:
            page.freeze_panes(_HEADER_LINE + 1, frozen)
            page.repeat_rows(0, _HEADER_LINE)
        page.set_row(0, 24)
        page.write_string(0, 0, title, self._title)
        if self._summary.simulated:
            page.set_row(1, 20)
            page.write_string(1, 0, in_words(SIMULATED), self._warning)
            for column in range(1, len(widths)):
                page.write_blank(1, column, None, self._warning)
        return page

    def _write_summary(self) -> None:
        summary = self._summary
        title = say("sheet.title", file=_printable(summary.input.name))
        page = self._page(say("sheet.summary"), title, [27, 11, 25, 14, _MEANING_WIDTH])
        page.hide_gridlines(2)
        page.repeat_rows(0, 1)
        line = _HEADER_LINE + 1
        page.write_string(line, 0, say("sheet.payments"), self._label)
        page.write_number(line, 1, summary.input.row_count, self._number_fact)
        facts = [
            (say("sheet.environment"), summary.environment.value),
            (say("sheet.profile"), _printable(summary.profile)),
            (say("sheet.finished"), summary.finished),
            (say("sheet.sha_256"), summary.input.sha256),
            (header_in_words(RUN_ID), summary.run_id),
            (say("sheet.written_by"), f"payee-precheck {summary.tool_version}"),
        ]
        differs = say("sheet.differs")
        facts += [
            (differs if row.agrees is False else say("sheet.no_payment"), _printable(in_words(row.sentence)))
            for row in summary.input.not_payments
        ]
        file = summary.input
        named = facts_in_words(file.facts)
        facts += [(name[:1].upper() + name[1:], _printable(fact)) for name, fact in named]
        if file.control_count:
            facts.append((say("sheet.totals"), controls_in_words(file.controls, file.control_count)))
        set_aside = [aside.sentence for aside in file.set_aside]
        facts += [(say("sheet.not_checked"), _printable(in_words(sentence))) for sentence in set_aside]
        differing = [control.difference for control in file.controls if control.difference]
        facts += [(differs, _printable(in_words(sentence))) for sentence in differing[:CONTROLS_SHOWN_MAX]]
        if more := len(differing[CONTROLS_SHOWN_MAX:]):
            facts.append((differs, say("page.more_totals_differ", count=more)))
        if summary.next_step:
            facts.append((say("sheet.not_complete"), _printable(in_words(summary.next_step))))
        for label, fact in facts:
            line += 1
            page.write_string(line, 0, label, self._label)
            page.write_string(line, 1, fact, self._fact)
        line = self._write_table(page, line + 2, ("Outcome", "Rows", "Amount", "Currency"), self._outcomes())
        codes = (
            (one.code, one.row_count, say(f"action.{one.action}"), say(f"outcome.{one.outcome}"), one.reason)
            for one in summary.codes
        )
        line = self._write_table(page, line + 2, _CODE_HEADERS, codes)
        # How the policy treats these rows, the possible decisions, and how to change the policy.
        if found := policy_lines(summary, self._policy):
            policy = ((one.key, one.row_count, one.verdict, ", ".join(one.words), one.why) for one in found)
            self._write_table(page, line + 2, _POLICY_HEADERS, policy)
        else:
            page.write_string(line + 2, 0, say("sheet.policy_unknown"), self._label)

    def _outcomes(self) -> Iterator[tuple[_Cell, ...]]:
        for one in self._summary.outcomes:
            if one.row_count:
                yield say(f"outcome.{one.outcome}"), one.row_count, one.totals
        yield say("sheet.file"), self._summary.input.row_count, control_totals(self._summary.outcomes)

    def _write_batches(self) -> None:
        batches, count = self._summary.batches, self._summary.batch_count
        key = "sheet.batches_title" if count == len(batches) else "sheet.batches_title_first"
        title = say(key, count=count, shown=len(batches))
        page = self._page(say("sheet.batches"), title, [40, 22, 11, 13, 25, 14], 0)
        rows = (
            (one.batch or "", one.location, one.row_count, one.to_look_at_count, one.totals)
            for one in batches
        )
        headers = ("Batch", "Place", "Rows", "To look at", "Amount", "Currency")
        self._write_table(page, _HEADER_LINE, headers, rows)

    def _write_banks(self) -> None:
        """Write a sheet with a line for each responding bank, and its share of matches in the last run."""
        banks, compared = self._summary.banks, self._summary.compared
        before = {} if compared is None else {bank.bank: bank.match_percent for bank in compared.banks}
        title = say("sheet.banks_title", count=self._summary.bank_count)
        page = self._page(say("sheet.banks"), title, [16, 11, 11, 11, 11, 14, 13, 14], 0)
        kinds = {**dict.fromkeys((*BANK_HEADERS, LAST_RUN), pl.Int64), BANK_HEADERS[0]: pl.String}
        lines = [(*one.model_dump().values(), one.match_percent, before.get(one.bank)) for one in banks]
        headers = (*BANK_HEADERS, LAST_RUN) if before else BANK_HEADERS
        self._write_headers(page, _HEADER_LINE, headers)
        columns = [SheetColumn(header, header, 0) for header in headers]
        rows = pl.DataFrame(lines, kinds, orient="row")
        self.rows[-1] = rows_xml(rows, columns, self._styles(), first=_HEADER_LINE + 2)

    def _write_table(
        self, page: Worksheet, line: int, headers: Sequence[str], rows: Iterable[Sequence[_Cell]]
    ) -> int:
        """Write headers, and below them a row of cells each; return the number of the last line.

        A last cell of amounts takes two columns, and a line for each currency.
        """
        self._write_headers(page, line, headers)
        for cells in rows:
            line += 1
            last = line
            for column, cell in enumerate(cells):
                match cell:
                    case str():
                        text, is_sentence = _printable(cell), headers[column] in _SENTENCES
                        if is_sentence:
                            page.set_row(line, LINE_POINTS * ceil(len(text) / _MEANING_CHARS))
                        page.write_string(line, column, text, self._wrapped if is_sentence else self._text)
                    case int():
                        page.write_number(line, column, cell, self._count)
                    case list():
                        last = self._write_money(page, line, column, cell)
            line = last
        return line

    def _write_money(self, page: Worksheet, line: int, column: int, totals: Sequence[Money]) -> int:
        """Write amounts and their currencies, one per line; return the last line's number."""
        for number, money in enumerate(totals):
            if number:
                line += 1
                for blank in range(column):
                    page.write_blank(line, blank, None, self._text)
            self._write_amount(page, line, column, money.amount)
            page.write_string(line, column + 1, _printable(money.currency or say("sheet.none")), self._text)
        return line


def _count_of(sheet: ReportSheet, summary: Summary) -> int:
    """Return how many rows of a run belong to a sheet, by their codes."""
    codes = [(code.outcome.value, code.action.value, code.row_count) for code in summary.codes]
    columns = {"check_outcome": pl.String, "check_action": pl.String, "count": pl.Int64}
    return int(pl.DataFrame(codes, columns, orient="row").filter(sheet.which)["count"].sum())


def _titled(sheet: ReportSheet, count: int, shown_count: int | None = None) -> str:
    """Return the first line of a sheet: its number of rows, and how many it shows if fewer."""
    name, title = header_in_words(sheet.name), say(sheet.title)
    key = "sheet.titled" if shown_count in (None, count) else "sheet.titled_largest"
    return say(key, sheet=name, count=count, title=title, shown=shown_count)


def _printable(text: str) -> str:
    """Make outside text harmless: the library would treat `<r>` to `</r>` as its own markup."""
    return visible(text) + (" " if text.endswith("</r>") else "")
