"""A pain.001 -> frames, in one pass of the standard library's parser, a block of payments at a time.

The parser is the standard library's: nothing is fetched, no entity is defined, and no token is longer than
64 KiB, so that it costs what its length says. Beside the texts it tells where each element lies, so that a
change can be written into the bytes as they are.
"""

from collections.abc import Iterator, Mapping, Sequence
from xml.parsers import expat

import polars as pl

from pipeline.errors import InputError
from pipeline.formats.edits import Bytes
from pipeline.formats.pain001.elements import (
    CURRENCY_OF,
    INDEX,
    PASSED,
    REPEATABLE,
    SEARCHED_DEPTH,
    TEXTS,
    Element,
    Kind,
    tree,
)
from pipeline.formats.pain001.faults import TOO_DEEP, TOO_LONG, sentence_of
from pipeline.formats.pain001.fields import IDS, fields
from pipeline.formats.pain001.levels import FACTS, LEVELS, Levels, Said, is_seal, tag_end
from pipeline.formats.pain001.versions import encoding_of
from schemas.payments import FIELDS
from schemas.vop import SchemeCode

PLACES = {
    "start": pl.Int64(),  # the end of what stands before the payment, so that comments go with it
    "end": pl.Int64(),
    "element": pl.Int64(),  # the start of the payment itself
    "line": pl.Int64(),
    "batch": pl.Int64(),  # counted from 1; 0 where it is in none
    "name_start": pl.Int64(),  # of what is between the tags; null where there is no name
    "name_end": pl.Int64(),
}
PARTS = {
    **dict.fromkeys((*FIELDS, "defect", *IDS), pl.String()),
    **PLACES,
    "levels": pl.List(pl.Struct(LEVELS)),
    "facts": pl.List(pl.Struct(FACTS)),
}
"""The columns of what `parse` yields. The last row is no payment: it has the levels and the facts."""

TOKEN_BYTES_MAX = 64 * 1024
DEPTH_MAX = 32
_BLOCK_HEIGHT = 65_536
_NAME, _TWICE = INDEX["name"], INDEX["twice"]
_LEI = INDEX["lei"]
_ID, _SCHEME, _ISSUER = (INDEX[f"organisation_id{part}"] for part in ("", "_scheme", "_issuer"))
_OTHER_ID, _OTHER_SCHEME, _OTHER_ISSUER = (INDEX[f"other_{part}"] for part in ("id", "scheme", "issuer"))
_SCHEMES = frozenset(SchemeCode)


def parse(data: Bytes) -> Iterator[pl.DataFrame]:
    """Read a message; what `formats.confined` calls in its child.

    Returns:
        Parts of `PARTS`, in the order of the file.

    Raises:
        InputError: it is no credit transfer message, or not to be read safely or in one way only.
    """
    reader = _Reader(data)
    try:
        for _ in reader.steps():
            if len(reader.rows) >= _BLOCK_HEIGHT:
                yield reader.part()
    except expat.ExpatError as error:
        raise InputError(sentence_of(error, data, reader.parser.CurrentByteIndex)) from None
    yield reader.part()
    yield reader.last()


class _Reader:
    """The parser and what it has found since the last part."""

    def __init__(self, data: Bytes) -> None:
        self.data = data
        self.parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.buffer_size = TOKEN_BYTES_MAX
        parser.ordered_attributes = True
        if hasattr(parser, "SetReparseDeferralEnabled"):
            parser.SetReparseDeferralEnabled(False)  # what it guards against, the length of tokens does
        self.levels = Levels()
        self.rows: list[list[str | None]] = []
        self.spans: list[tuple[int | None, ...]] = []
        self.text: list[str] = []
        self.passed: set[str] = set()
        """The names of elements that are not read."""
        self.encoding = "utf-8"
        self.codec = "utf-8"
        self.message = (0, 0)
        self._guard()
        _follow(self)

    def steps(self) -> Iterator[None]:
        """Feed the parser, never further than the longest token reaches."""
        understood = fed = 0
        while fed < len(self.data):
            until = min(understood + TOKEN_BYTES_MAX, len(self.data))
            if until == fed:
                raise InputError(TOO_LONG.format(line=self.parser.CurrentLineNumber))
            self.parser.Parse(self.data[fed:until], False)
            fed, understood = until, self.parser.CurrentByteIndex
            self.limit_text()
            yield
        self.parser.Parse(b"", True)
        if not self.levels.facts:
            raise InputError("is XML, but holds no credit transfers (pain.001); give the payment file")

    def part(self) -> pl.DataFrame:
        """The payments since the last part."""
        texts = _columns(self.rows, dict.fromkeys(INDEX, pl.String()))
        places = _columns(self.spans, PLACES)
        self.rows.clear()
        self.spans.clear()
        nothing = (pl.lit(None, PARTS[column]).alias(column) for column in ("levels", "facts"))
        return pl.concat([fields(texts.select(TEXTS)), places], how="horizontal").with_columns(*nothing)

    def last(self) -> pl.DataFrame:
        """The row that is no payment."""
        levels = self.levels.whole(*self.message)
        facts = self.levels.facts | {"encoding": self.encoding}
        if any(map(is_seal, self.passed)):
            facts["sealed"] = "yes"
        whole = {
            "levels": [levels.to_struct()],
            "facts": [[{"name": name, "fact": fact} for name, fact in facts.items()]],
        }
        return pl.DataFrame({column: whole.get(column, [None]) for column in PARTS}, schema=PARTS)

    def limit_text(self) -> str:
        """The text of the element that is open.

        Raises:
            InputError: it is longer than any token.
        """
        if sum(map(len, self.text)) > TOKEN_BYTES_MAX:
            raise InputError(TOO_LONG.format(line=self.parser.CurrentLineNumber))
        return "".join(self.text)

    def after(self, tag: str) -> int:
        """Where the element ends whose end is being told; one without content has no end tag."""
        at = self.parser.CurrentByteIndex
        closing = b"</" + tag.encode(self.codec)
        return self.data.find(b">", at) + 1 if self.data[at : at + len(closing)] == closing else at

    def _guard(self) -> None:
        """Refuse what no payment file needs, and what a damaged byte may have swallowed."""
        parser, data = self.parser, self.data
        cdata_start = 0

        def declared(version: str, encoding: str | None, _standalone: int) -> None:
            if version != "1.0":
                raise InputError("is not XML 1.0, which alone is read; export it again")
            if encoding is not None:
                self.encoding = encoding_of(encoding)
                self.codec = self.encoding if self.encoding != "utf-16" else "utf-8"

        def doctype(*_: object) -> None:
            raise InputError("has a DOCTYPE, which payment files never need; remove it")

        def cdata_opened() -> None:
            nonlocal cdata_start
            cdata_start = parser.CurrentByteIndex

        def cdata_closed() -> None:
            refuse_swallowed(data[cdata_start + 1 : parser.CurrentByteIndex], b"<![CDATA[")

        def instructed(_target: str, text: str) -> None:
            refuse_swallowed(text.encode(), b"<?")

        def refuse_swallowed(inside: bytes, opening: bytes) -> None:
            if opening in inside:
                raise InputError(
                    f"is damaged before line {parser.CurrentLineNumber}: what begins with "
                    f"{opening.decode()} does not end; export it again"
                )

        parser.XmlDeclHandler = declared
        parser.StartDoctypeDeclHandler = doctype
        parser.StartCdataSectionHandler = cdata_opened
        parser.EndCdataSectionHandler = cdata_closed
        parser.ProcessingInstructionHandler = instructed

    def enter(self, state: Element, tag: str, attributes: Sequence[str], depth: int) -> Element:
        """The element that a tag leads to where it is met for the first time; kept for the next time.

        Raises:
            InputError: it is another message.
        """
        entered = state.get(tag.rpartition(":")[2], state.otherwise)
        if entered is state.otherwise:
            self.passed.add(tag)
        if state.kind is Kind.ENVELOPE and entered is state:
            self.levels.enveloped(tag, attributes)
            return state if depth < SEARCHED_DEPTH else PASSED
        state[tag] = entered
        return entered


def _follow(reader: _Reader) -> None:  # noqa: C901, PLR0915 - the inner loop, where a call costs as much as all else
    """Walk down and up the tree of elements with the parser, and write down what it finds."""
    parser, data, levels, text = reader.parser, reader.data, reader.levels, reader.text
    hear, forget, pass_by = text.append, text.clear, reader.passed.add
    state = tree()
    stack: list[Element] = []
    push, pop = stack.append, stack.pop
    blank: list[str | None] = [None] * len(INDEX)
    payment = blank
    name: tuple[int | None, int | None] = (None, None)
    leaf_start = element_start = line = 0
    message_start = batch_start = 0
    batches_from = payments_from = 0  # the end of what stands before the next one

    def start(tag: str, attributes: Sequence[str]) -> None:
        nonlocal state, leaf_start
        push(state)
        entered = state.get(tag)
        if entered is None:
            if state is PASSED:
                pass_by(tag)
                if len(stack) > DEPTH_MAX:
                    raise InputError(TOO_DEEP.format(depth=DEPTH_MAX, line=parser.CurrentLineNumber))
                return
            entered = reader.enter(state, tag, attributes, len(stack))
        state = entered
        if entered.column is not None:
            forget()
            parser.CharacterDataHandler = hear
            if entered.column == _NAME:
                leaf_start = parser.CurrentByteIndex
            elif attributes and entered.column in CURRENCY_OF:
                payment[CURRENCY_OF[entered.column]] = _currency(attributes)
        elif entered.kind:
            opened(entered.kind, tag, attributes)
        elif entered.told is not None:
            forget()
            parser.CharacterDataHandler = hear
            leaf_start = parser.CurrentByteIndex

    def opened(kind: Kind, tag: str, attributes: Sequence[str]) -> None:
        nonlocal payment, name, element_start, line, message_start, batch_start, batches_from, payments_from
        if kind is Kind.PAYMENT:
            payment, name = blank.copy(), (None, None)
            element_start, line = parser.CurrentByteIndex, parser.CurrentLineNumber
        elif kind is Kind.BATCH or kind is Kind.HEADER:
            levels.opened(kind)
            batch_start, payments_from = batches_from, tag_end(data, parser.CurrentByteIndex)
        elif kind is Kind.MESSAGE:
            levels.found(tag, attributes)
            message_start = parser.CurrentByteIndex
            batches_from = tag_end(data, message_start)

    def end(tag: str) -> None:
        nonlocal state, name
        column = state.column
        if column is not None:
            parser.CharacterDataHandler = None
            if payment[column] is None:
                payment[column] = text[0] if len(text) == 1 else reader.limit_text()
                if column == _NAME:
                    name = (tag_end(data, leaf_start), parser.CurrentByteIndex)
            elif column not in REPEATABLE:
                payment[_TWICE] = tag
        elif state.kind:
            closed(state.kind, tag)
        elif state.told is not None:
            told(state.told, tag)
        state = pop()

    def closed(kind: Kind, tag: str) -> None:
        nonlocal batches_from, payments_from
        if kind is Kind.PAYMENT:
            payment_end = reader.after(tag)
            reader.spans.append((payments_from, payment_end, element_start, line, levels.batch_count, *name))
            reader.rows.append(payment)
            payments_from = payment_end
        elif kind is Kind.IDENTIFICATION:
            _identify(payment)
        elif kind is Kind.MESSAGE:
            reader.message = (message_start, reader.after(tag))
        elif kind is Kind.SIBLING and stack[-1].kind is Kind.BATCH:
            payments_from = reader.after(tag)
        elif kind is not Kind.ENVELOPE:
            batches_from = reader.after(tag)
            if kind is Kind.BATCH:
                levels.closed(batch_start, batches_from)

    def told(what: str, tag: str) -> None:
        nonlocal payments_from
        parser.CharacterDataHandler = None
        said = Said(reader.limit_text().strip(), tag_end(data, leaf_start), parser.CurrentByteIndex)
        levels.says(what, said, line=parser.CurrentLineNumber)
        payments_from = reader.after(tag)

    parser.StartElementHandler = start
    parser.EndElementHandler = end


def _columns(rows: Sequence[Sequence[object]], schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Rows as a frame; by columns, which is faster."""
    columns = zip(*rows, strict=True) if rows else ([] for _ in schema)
    return pl.DataFrame(
        [pl.Series(name, values, kind) for (name, kind), values in zip(schema.items(), columns, strict=True)]
    )


def _currency(attributes: Sequence[str]) -> str | None:
    return dict(zip(attributes[::2], attributes[1::2], strict=True)).get("Ccy")


def _identify(payment: list[str | None]) -> None:
    """Take a further identification of the payee: a LEI, or the first of a scheme that can be asked about."""
    found, scheme, issuer = payment[_OTHER_ID], payment[_OTHER_SCHEME], payment[_OTHER_ISSUER]
    payment[_OTHER_ID] = payment[_OTHER_SCHEME] = payment[_OTHER_ISSUER] = None
    if scheme == "LEI" and payment[_LEI] is None:
        payment[_LEI] = found
    elif scheme in _SCHEMES and payment[_ID] is None:
        payment[_ID], payment[_SCHEME], payment[_ISSUER] = found, scheme, issuer
