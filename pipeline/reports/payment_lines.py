"""Write payments as lines of the page's table. It may have thousands; a template takes five times as long.

All texts of a line are escaped together before markup is added, so that none can be forgotten.
"""

import re
from collections.abc import Iterable, Sequence

from markupsafe import Markup, escape

from pipeline.reports.differences import Piece
from pipeline.reports.groups import Row
from pipeline.reports.wording import in_words, say
from schemas.outcomes import Outcome

ID_CHARS_MAX = 35
"""Maximum length of an ID that stays on one line, as in payment messages."""
AMOUNT_CHARS_MAX = 20
"""Maximum length of an amount that stays on one line: hundreds of billions with three decimals."""

# Never in texts: `groups.shown` removes control characters.
_BETWEEN, _MARK, _MARK_END = "\0", "\1", "\2"
_WORD_END = re.compile("[_/.:-]")
_AFTER_A_SIGN = re.compile("(?<=[_/.:])")
"""The position after a sign where an ID may break; browsers break after hyphens anyway."""


def payment_lines(rows: Iterable[Row]) -> Markup:
    """Return the lines of the table on the page, in row order."""
    names = {outcome: say(f"outcome.{outcome}") for outcome in Outcome}
    return Markup("".join(_line(row, names[row.outcome]) for row in rows))  # noqa: S704 (each line escapes its texts)


def breakable(text: str) -> Markup:
    """Return a code or ID as text that may break across lines only after a sign."""
    return Markup(_breakable(str(escape(text))))  # noqa: S704 (escaped here)


def _breakable(escaped: str) -> str:
    return _AFTER_A_SIGN.sub("<wbr>", escaped)


def _line(row: Row, outcome: str) -> str:
    (
        place,
        batch,
        supplied,
        payment_id,
        matched,
        sentence,
        account,
        amount,
        currency,
        code,
        outcome,
        reason,
    ) = _escaped(
        row.place,
        row.batch,
        _marked(row.names.supplied),
        row.payment_id,
        _marked(row.names.matched),
        " ".join(map(in_words, row.names.sentences)),
        row.account,
        row.amount,
        row.currency,
        row.code,
        outcome,
        row.reason,
    )
    place = f" <small>{_breakable(place)}</small>" if place else ""
    batch = f" <small>{_breakable(batch)}</small>" if batch else ""
    kind_of_id = "endless" if _endless(row.payment_id, ID_CHARS_MAX) else "id"
    kind_of_amount = " class=endless" if _endless(row.amount, AMOUNT_CHARS_MAX) else ""
    return (
        f'<tr class="{row.outcome}" data-rank="{row.amount_rank}">'
        f'<th scope="row"><b>{row.number}</b>{place}{batch}</th>'
        f'<td><bdi>{supplied}</bdi> <small class="{kind_of_id}">{_breakable(payment_id)}</small></td>'
        f"<td><bdi>{matched}</bdi> <small>{sentence}</small></td>"
        f"<td><span>{account}</span></td>"
        f"<td><span{kind_of_amount}>{amount}</span> <small>{currency}</small></td>"
        f"<td><b>{_breakable(code)}</b> <i>{outcome}</i> <small>{reason}</small></td></tr>\n"
    )


def _escaped(*texts: str) -> list[str]:
    """Return the texts as markup, with their differences highlighted."""
    escaped = str(escape(_BETWEEN.join(texts)))
    return escaped.replace(_MARK, "<mark>").replace(_MARK_END, "</mark>").split(_BETWEEN)


def _marked(pieces: Sequence[Piece]) -> str:
    return "".join(f"{_MARK}{piece.text}{_MARK_END}" if piece.marked else piece.text for piece in pieces)


def _endless(text: str, chars_max: int) -> bool:
    """True if a word of an ID or an amount is too long to show in one piece.

    >>> _endless("PAYROLL-2026/0001", 8), _endless("PAYROLLS2026", 8)
    (False, True)
    """
    return len(text) > chars_max and max(map(len, _WORD_END.split(text))) > chars_max
