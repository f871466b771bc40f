"""By which column the payer's own system knows its payees: an employee's number, a supplier's id."""

from collections.abc import Sequence

from pipeline.headers.spelling import fold

_WHO = (
    *("employee", "staff", "payroll", "personnel", "worker", "emp"),
    *("supplier", "vendor", "creditor", "payee", "beneficiary", "recipient"),
    *("customer", "client"),
)
"""Whose number it is, the surest first: beside a supplier's number, a customer's is often the payer's own."""
_WHICH = ("no", "number", "num", "nr", "id", "code")
_ELSEWHERE = (
    *("personalnummer", "personalnr", "lieferantennummer", "lieferantennr", "kreditorennummer"),
    *("matricule", "codesalarie", "numerosalarie", "codefournisseur", "numerofournisseur"),
    *("codigoempleado", "numeroempleado", "codigoproveedor", "personeelsnummer", "crediteurnummer"),
)
"""The same in German, French, Spanish and Dutch, folded."""
_RANKS = {
    **{f"{who}{which}": rank for rank, who in enumerate(_WHO) for which in _WHICH},
    **dict.fromkeys(_ELSEWHERE, 0),
}


def payee_id_header(headers: Sequence[str]) -> str | None:
    """The header of the column that distinguishes payees, or None where there is none.

    Where several could, the first in the order of `_WHO` is taken, and of two such the first in the file: it
    decides what is compared with an earlier file, and never who is asked about.

    >>> payee_id_header(["Name", "Employee No.", "Sort code"]), payee_id_header(["Name", "Payment id"])
    ('Employee No.', None)
    """
    known = [(_RANKS[fold(header)], at) for at, header in enumerate(headers) if fold(header) in _RANKS]
    return headers[min(known)[1]] if known else None
