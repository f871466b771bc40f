"""The model of a layout, built in or the user's own: its kinds of lines and the cells in them.

A user's layout is a `[layouts.NAME]` section of the configuration:

    [layouts.northgate]
    separator = ";"

    [[layouts.northgate.payments]]
    tags = { 1 = "P" }
    columns = { sort_code = 2, account_number = 3, name = 4, amount = 5 }
    currency = "GBP"

    [layouts.northgate.trailer]
    tags = { 1 = "T" }
    count = 2
    sum = 3
"""

import re
import tomllib
from collections.abc import Mapping
from enum import StrEnum
from importlib.resources import files
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter
from pydantic import model_validator as validator

from pipeline.errors import WrongValueError
from pipeline.wording import Sentence
from schemas.payments import FIELDS


class Shape(StrEnum):
    """A form of text that a cell can have."""

    SORT_CODE = "sort code"
    SORT_CODE_WITH_HYPHENS = "sort code with hyphens"
    ACCOUNT_NUMBER = "account number"
    UK_ACCOUNT = "sort code and account number"
    IBAN = "IBAN"
    BIC = "BIC"
    MONEY = "money"
    PENCE = "pence"
    CURRENCY = "currency"
    DATE = "yyyymmdd"
    DATE_OF_DAY_FIRST = "ddmmyyyy"
    DATE_WITH_SLASHES = "dd/mm/yyyy"
    DAY_OF_YEAR = "yyddd"
    NUMBER = "number"
    NAME = "name"
    CAPITALS = "capitals"
    YES_OR_NO = "Y or N"


_YEAR, _MONTH, _DAY = "(?:19|20)[0-9]{2}", "(?:0[1-9]|1[0-2])", "(?:0[1-9]|[12][0-9]|3[01])"

_PATTERNS: Mapping[Shape, str] = {
    Shape.SORT_CODE: "[0-9]{6}|[0-9]{2}([- ])[0-9]{2}\\1[0-9]{2}",
    Shape.SORT_CODE_WITH_HYPHENS: "[0-9]{2}-[0-9]{2}-[0-9]{2}",
    Shape.ACCOUNT_NUMBER: "[0-9]{8}",
    Shape.UK_ACCOUNT: "[0-9]{6}[- ]?[0-9]{8}",
    Shape.IBAN: "[A-Z]{2}[0-9]{2}[A-Z0-9 ]{11,40}",
    Shape.BIC: "[A-Z0-9]{4}[A-Z]{2}[A-Z0-9]{2}([A-Z0-9]{3})?",
    Shape.MONEY: "[0-9]{1,13}(\\.[0-9]{1,2})?",
    Shape.PENCE: "[0-9]{1,15}",
    Shape.CURRENCY: "[A-Z]{3}",
    Shape.DATE: f"{_YEAR}{_MONTH}{_DAY}",
    Shape.DATE_OF_DAY_FIRST: f"{_DAY}{_MONTH}{_YEAR}",
    Shape.DATE_WITH_SLASHES: f"{_DAY}/{_MONTH}/{_YEAR}|",  # optional
    Shape.DAY_OF_YEAR: "[0-9]{2}[0-3][0-9]{2}",
    Shape.NUMBER: "[0-9]{1,15}",
    Shape.NAME: ".*[^\\W\\d_].*",
    Shape.CAPITALS: "[^a-z]*[A-Z][^a-z]*",
    Shape.YES_OR_NO: "[YN]?",
}
_COMPILED: Mapping[Shape, re.Pattern[str]] = {shape: re.compile(text) for shape, text in _PATTERNS.items()}

OF_FIELD: Mapping[str, Shape] = {
    "sort_code": Shape.SORT_CODE,
    "account_number": Shape.ACCOUNT_NUMBER,
    "uk_account": Shape.UK_ACCOUNT,
    "iban": Shape.IBAN,
    "bic": Shape.BIC,
    "name": Shape.NAME,
    "currency": Shape.CURRENCY,
}
"""The shape of each field in any layout; the shape of amounts depends on the layout."""


def has_shape(cell: str, shape: Shape) -> bool:
    """True if the whole cell has this shape.

    >>> has_shape("12-34-56", Shape.SORT_CODE), has_shape("12-34 56", Shape.SORT_CODE)
    (True, False)
    """
    return _COMPILED[shape].fullmatch(cell) is not None


COLUMNS_MAX = 1_000
UK_ACCOUNT = "uk_account"  # a field for a sort code and an account number in one cell
_FIELDS = (*FIELDS, UK_ACCOUNT)
_ACCOUNTS = ({"iban"}, {"sort_code", "account_number"}, {UK_ACCOUNT})
_EVIDENCE_MIN = 2  # minimum number of fields that identify a layout; a single column could be anything


def _field(name: str) -> str:
    if name not in _FIELDS:
        raise WrongValueError(Sentence("layouts.no_such_field", fields=_FIELDS))
    return name


Position = Annotated[int, Field(ge=1, le=COLUMNS_MAX)]  # position of a cell in its line, from 1
Words = Annotated[
    tuple[Annotated[str, Field(min_length=1)], ...],
    BeforeValidator(lambda value: (value,) if isinstance(value, str) else value),  # one word, or several
    Field(min_length=1),
]
Widths = Annotated[
    tuple[Annotated[int, Field(ge=1, le=10_000)], ...], Field(min_length=1, max_length=COLUMNS_MAX)
]


class _Section(BaseModel):
    """An immutable section that refuses unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class LineKind(_Section):
    """One kind of line, and how to recognise it."""

    tags: dict[Position, Words] = Field(default_factory=dict)
    """Cell -> its text in every such line, or several possible texts."""
    shapes: dict[Position, Shape] = Field(default_factory=dict)  # cell -> the shape of its text
    widths: Widths | None = None  # widths of its cells, if not the same as in payments

    @property
    def positions(self) -> list[int]:
        """The cells that it mentions."""
        return [*self.tags, *self.shapes]


class SummaryLine(LineKind):
    """A header, a trailer, or a line before the payments of one batch."""

    count: Position | None = None  # the cell with the number of payments
    sum: Position | None = None  # the cell with the sum of payments, in the unit of amounts
    label: Position | None = None  # the cell that identifies a batch
    is_optional: bool = False

    @property
    def positions(self) -> list[int]:
        """The cells that it mentions."""
        totals = (place for place in (self.count, self.sum, self.label) if place is not None)
        return [*super().positions, *totals]


class OtherLine(LineKind):
    """A line that is reported and never checked."""

    what: Annotated[str, Field(min_length=1)]  # its name in words, singular: direct debit


class PaymentLine(LineKind):
    """A payment."""

    columns: dict[Annotated[str, AfterValidator(_field)], Position]  # field -> its cell
    currency: Annotated[str, Field(pattern="^[A-Z]{3}$")] | None = None
    """The currency of the amount, if no column states it."""
    code: Position | None = None  # the cell with the transaction code
    booked_by: tuple[Position, ...] = ()
    """The cells that group payments into a batch: the day, the payer's account."""
    cells_min: Position | None = None
    cells_max: Position | None = None
    """Number of cells; if not given, any number that includes the cells mentioned."""

    @property
    def positions(self) -> list[int]:
        """The cells that it mentions."""
        code = [] if self.code is None else [self.code]
        return [*super().positions, *self.columns.values(), *self.booked_by, *code]

    @validator(mode="after")
    def _is_payable(self) -> Self:
        if not any(account <= self.columns.keys() for account in _ACCOUNTS):
            raise WrongValueError(Sentence("layouts.no_account"))
        if "name" not in self.columns:
            raise WrongValueError(Sentence("layouts.no_payee"))
        return self


class BankLayout(_Section):
    """The layout of a file whose lines are cells without headers."""

    title: str = ""  # its title for people; by default its name
    separator: Literal[",", ";", "|", "\t"] | None = None
    widths: Widths | None = None  # the widths of a line's cells in characters, instead of a separator
    payments: Annotated[tuple[PaymentLine, ...], Field(min_length=1)]
    header: SummaryLine | None = None
    batch: SummaryLine | None = None  # the line before the payments of a batch
    trailer: SummaryLine | None = None
    others: tuple[OtherLine, ...] = ()
    amount_in: Literal["main", "minor"] = "main"  # the unit of amounts: pounds, or pence
    name_length_max: Annotated[int, Field(ge=1, le=140)] | None = None
    """The longest name that the bank accepts, in characters."""
    name_characters: Literal["any", "bacs"] = "any"
    unknown_total: str | None = None  # a total whose rule is unknown: the file is read but never changed

    @property
    def summaries(self) -> list[SummaryLine]:
        """The kinds of lines that may state totals."""
        return [each for each in (self.header, self.batch, self.trailer) if each is not None]

    @property
    def line_kinds(self) -> tuple[LineKind, ...]:
        """Every kind of line in the layout."""
        return (*self.payments, *self.others, *self.summaries)

    def widths_of(self, kind: LineKind) -> Widths | None:
        """Return the cell widths of such a line; None if a separator divides the cells."""
        return kind.widths or self.widths

    @property
    def name_room(self) -> int | None:
        """The longest name in characters: the bank's limit, or the width of the cell."""
        widths = ((self.widths_of(kind), kind.columns["name"]) for kind in self.payments)
        rooms = [of_line[place - 1] for of_line, place in widths if of_line is not None]
        return min(filter(None, [*rooms, self.name_length_max]), default=None)

    def shapes_of(self, kind: PaymentLine) -> dict[int, Shape]:
        """Return the shapes of a payment's cells: the layout's, else the fields'."""
        by_field = {**OF_FIELD, "amount": Shape.MONEY if self.amount_in == "main" else Shape.PENCE}
        derived = {place: by_field[field] for field, place in kind.columns.items() if field in by_field}
        return derived | kind.shapes

    @validator(mode="after")
    def _cuts_its_lines_one_way(self) -> Self:
        if (self.separator is None) == (self.widths is None):
            raise WrongValueError(Sentence("layouts.separator_or_widths"))
        for kind in self.line_kinds:
            widths = self.widths_of(kind)
            if kind.widths is not None and self.separator is not None:
                raise WrongValueError(Sentence("layouts.separator_and_widths"))
            last = max(kind.positions, default=1)
            if widths is not None and last > len(widths):
                sentence = Sentence("layouts.column_beyond_widths", column=last, width_count=len(widths))
                raise WrongValueError(sentence)
        return self

    @validator(mode="after")
    def _tells_its_lines_apart(self) -> Self:
        if len(self.payments) > 1 and not all(kind.tags for kind in self.payments):
            raise WrongValueError(Sentence("layouts.payments_without_tags"))
        if any(not kind.tags for kind in self.others) or (self.batch is not None and not self.batch.tags):
            raise WrongValueError(Sentence("layouts.lines_without_tags"))
        tags = [
            sorted((place, word) for place, words in kind.tags.items() for word in words)
            for kind in self.line_kinds
            if kind.tags
        ]
        if any(one == other for index, one in enumerate(tags) for other in tags[:index]):
            raise WrongValueError(Sentence("layouts.same_tags"))
        return self

    @validator(mode="after")
    def _can_add_up(self) -> Self:
        has_sum = any(each.sum is not None for each in self.summaries)
        if has_sum and not all("amount" in kind.columns for kind in self.payments):
            raise WrongValueError(Sentence("layouts.sum_without_amounts"))
        return self

    @validator(mode="after")
    def _is_recognisable(self) -> Self:
        header = len({*self.header.positions}) if self.header is not None else 0
        for kind in self.payments:
            if header + len({*kind.tags, *self.shapes_of(kind)}) < _EVIDENCE_MIN:
                raise WrongValueError(Sentence("layouts.recognised_by_one_column"))
        return self


LAYOUTS: Mapping[str, BankLayout] = TypeAdapter(dict[str, BankLayout]).validate_python(
    tomllib.loads((files(__package__) / "known.toml").read_text("utf-8"))
)
"""The built-in layouts."""


def why_never_changed(layout: BankLayout) -> Sentence | str | None:
    """Return why no changed copy can be written; for a user's layout, in the configuration's words."""
    is_ours = layout.unknown_total and layout in LAYOUTS.values()
    return Sentence("layouts.hash_total_rule_unknown") if is_ours else layout.unknown_total
