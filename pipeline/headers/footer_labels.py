"""The labels of rows below the payments that are no payments: totals, counts, who prepared the file.

A whole cell must be such a label, with the figure that belongs to it where it has one. A payee can have a
name that starts like one, as Total Energies does.
"""

import re
import unicodedata
from enum import StrEnum
from functools import cache
from typing import NamedTuple


class LabelKind(StrEnum):
    """The meaning of a row that is no payment."""

    TOTAL = "total"
    SUBTOTAL = "subtotal"
    COUNT = "count"
    NOTE = "note"


class Label(NamedTuple):
    """A label, found in a cell."""

    kind: LabelKind
    words: str
    """As in the tables below."""
    figure: str | None
    """The number beside it in the same cell."""
    currency: str | None
    """As a code, where the cell names one."""


_PAID = {
    "of": (
        "payments",
        "payees",
        "beneficiaries",
        "transactions",
        "records",
        "rows",
        "items",
        "employees",
        "lines",
    ),
    "de": ("zahlungen", "überweisungen", "datensätze", "posten", "transaktionen", "buchungen", "mitarbeiter"),
    "fr": ("paiements", "virements", "lignes", "bénéficiaires", "opérations", "salariés"),
    "es": ("pagos", "transferencias", "registros", "operaciones", "beneficiarios"),
    "it": ("pagamenti", "bonifici", "righe", "operazioni", "beneficiari"),
    "nl": ("betalingen", "overboekingen", "regels", "transacties"),
    "pt": ("pagamentos", "transferências", "registos", "registros", "beneficiários"),
    "pl": ("płatności", "przelewów", "pozycji", "transakcji"),
    "sv": ("betalningar", "poster", "transaktioner"),
    "da": ("betalinger", "poster", "transaktioner", "overførsler"),
    "cs": ("plateb", "položek", "transakcí"),
    "ro": ("plăți", "tranzacții", "rânduri"),
}
"""What is counted, in a word."""

_TOTALS = (
    "total", "totals", "grand total", "total amount", "amount total", "sum", "sum total", "batch total",
    "file total", "control total", "control sum", "payment total", "total value", "total paid", "total due",
    "total net pay", "overall total", "total to pay", "total payable", "net total", "total net",
    "summe", "gesamt", "gesamtsumme", "gesamtbetrag", "endsumme", "summe gesamt", "betrag gesamt",
    "insgesamt", "summe der zahlungen", "summe aller zahlungen", "zahlungssumme",
    "totaux", "total général", "montant total", "somme", "total des paiements", "total des virements",
    "total à payer", "total net à payer",
    "totales", "total general", "importe total", "suma", "suma total", "monto total",
    "total a pagar",
    "totale", "totali", "totale generale", "importo totale", "somma", "totale complessivo",
    "totale da pagare",
    "totaal", "totalen", "totaalbedrag", "eindtotaal", "som", "totaal bedrag",
    "totaal te betalen",
    "totais", "total geral", "valor total", "soma", "montante total",
    "total a transferir", "total líquido",
    "razem", "łącznie", "ogółem", "kwota łączna", "suma całkowita",
    "razem do wypłaty", "razem do zapłaty",
    "summa", "totalt", "totalsumma", "totalt belopp", "slutsumma",
    "summa totalt", "summa att betala", "totalt att betala",
    "i alt", "ialt", "samlet beløb", "totalbeløb", "totalsum", "sum totalt", "sluttsum",
    "i alt at betale", "i alt til udbetaling", "sum å betale", "sum til utbetaling", "totalt å betale",
    "totalt utbetalt",
    "yhteensä", "loppusumma", "kokonaissumma", "summa yhteensä",
    "maksettava yhteensä", "maksut yhteensä", "yhteensä maksettava",
    "celkem", "součet", "celková částka", "celkový součet",
    "celkem k úhradě", "celkem k výplatě",
    "összesen", "végösszeg", "mindösszesen", "összesen fizetendő", "fizetendő összesen", "utalandó összesen",
    "suma totală", "valoare totală", "total de plată", "total plată", "total plăți",
    "σύνολο", "γενικό σύνολο", "συνολικό ποσό", "σύνολα",
    "σύνολο πληρωμών", "σύνολο πληρωμής", "συνολικό πληρωτέο",
)  # fmt: skip
_SUBTOTALS = (
    "subtotal", "sub total", "sub-total", "page total", "carried forward", "zwischensumme", "teilsumme",
    "übertrag", "sous-total", "sous total", "subtotale", "subtotaal", "suma częściowa", "delsumma",
    "delsum", "subtotal", "välisumma", "mezisoučet", "részösszeg", "μερικό σύνολο",
)  # fmt: skip
_COUNTS = (
    "count", "record count", "payment count", "transaction count", "row count", "anzahl", "nombre",
    "aantal",
    "antal", "antall", "liczba", "ilość", "počet", "lukumäärä", "maksujen määrä", "maksuja yhteensä",
    "antall betalinger", "antall poster", "antall transaksjoner", "tételek száma", "fizetések száma",
    "utalások száma", "αριθμός πληρωμών", "πλήθος πληρωμών", "αριθμός εγγραφών",
    *(f"{before} {paid}" for paid in _PAID["of"] for before in (
        "number of", "no of", "no. of", "count of", "total number of", "total no of", "total no. of", "total",
    )),
    *(f"{before} {paid}" for paid in _PAID["de"] for before in ("anzahl", "anzahl der")),
    *(f"{before} {paid}" for paid in _PAID["fr"] for before in ("nombre de", "nombre total de", "nb de")),
    *(f"{before} {paid}" for paid in _PAID["es"] for before in ("número de", "cantidad de", "total de")),
    *(f"{before} {paid}" for paid in _PAID["it"] for before in ("numero di", "numero", "totale")),
    *(f"aantal {paid}" for paid in _PAID["nl"]),
    *(f"{before} {paid}" for paid in _PAID["pt"] for before in ("número de", "quantidade de", "total de")),
    *(f"{before} {paid}" for paid in _PAID["pl"] for before in ("liczba", "ilość")),
    *(f"antal {paid}" for paid in (*_PAID["sv"], *_PAID["da"])),
    *(f"počet {paid}" for paid in _PAID["cs"]),
    *(f"{before} {paid}" for paid in _PAID["ro"] for before in ("număr de", "numărul de", "număr")),
)  # fmt: skip
_NOTES = (
    "prepared by", "approved by", "authorised by", "authorized by", "checked by", "reviewed by",
    "created by",
    "verified by", "signed by", "signed", "signature", "printed by", "printed on", "generated by",
    "generated on",
    "generated at", "exported by", "exported on", "exported from", "created on", "report generated",
    "run date",
    "print date", "prepared on", "approved on", "end of report", "end of file", "end of list", "end",
    "erstellt von", "erstellt am", "erstellt durch", "geprüft von", "geprüft durch", "genehmigt von",
    "freigegeben von", "freigegeben durch", "unterschrift", "gedruckt am", "ende der liste",
    "préparé par", "établi par", "approuvé par", "vérifié par", "validé par", "édité le", "imprimé le",
    "preparado por", "elaborado por", "aprobado por", "autorizado por", "revisado por", "firma",
    "firmado por",
    "preparato da", "redatto da", "approvato da", "autorizzato da", "stampato il",
    "opgesteld door", "goedgekeurd door", "gecontroleerd door", "opgemaakt door", "handtekening",
    "afgedrukt op",
    "aprovado por", "verificado por", "assinatura", "emitido por",
    "sporządził", "sporządziła", "sporządzono przez", "przygotował", "przygotowała", "zatwierdził",
    "zatwierdziła", "sprawdził", "podpis", "wydrukowano",
    "upprättad av", "godkänd av", "attesterad av", "underskrift", "utskriven",
    "udarbejdet af", "godkendt af", "attesteret af", "udskrevet",
    "utarbeidet av", "godkjent av", "attestert av", "signatur",
    "laatinut", "laatija", "hyväksynyt", "hyväksyjä", "tarkastanut", "allekirjoitus", "tulostettu",
    "vypracoval", "vypracovala", "schválil", "schválila", "vyhotovil", "vytištěno",
    "készítette", "jóváhagyta", "ellenőrizte", "aláírás", "nyomtatva",
    "întocmit de", "aprobat de", "verificat de", "întocmit", "aprobat", "verificat", "semnătura",
    "συντάχθηκε από", "εγκρίθηκε από", "ελέγχθηκε από", "υπογραφή",
)  # fmt: skip
_ALONE = (
    *("signed", "signature", "firma", "podpis", "end", "signatur"),
    *("întocmit", "aprobat", "verificat"),
)
"""Of the notes, those after which text may follow only behind a colon: a payee may start with such a word."""
_CURRENCIES = ("gbp", "eur", "usd", "chf", "sek", "nok", "dkk", "pln", "czk", "huf", "ron", "bgn", "isk")
_SIGNS = {"£": "GBP", "€": "EUR"}


def fold(text: str) -> str:
    """The form in which labels are compared: no case, no accents, single spaces, no ornaments.

    >>> fold(" *** Total général: ")
    'total general:'
    """
    plain = unicodedata.normalize("NFKD", text.casefold())
    without_marks = "".join(character for character in plain if not unicodedata.combining(character))
    return " ".join(without_marks.split()).strip("*=_#~- ")


def label_of(cell: str) -> Label | None:
    """The label that a whole cell is, if it is one.

    >>> label_of("Totals:"), label_of("Total Energies")
    (Label(kind=<Kind.TOTAL: 'total'>, words='totals', figure=None, currency=None), None)
    """
    if len(cell) > _CHARS_MAX:
        return None
    folded = fold(cell)
    if not folded.startswith(tuple(_spelling())):  # the patterns take time to build, and few cells need them
        return None
    for kind, pattern in _patterns().items():
        found = pattern.fullmatch(folded)
        if found is None:
            continue
        parts = found.groupdict()
        sign = next((parts[name] for name in ("code", "before", "after") if parts.get(name)), None)
        currency = None if sign is None else _SIGNS.get(sign, sign.upper())
        words = parts["words"] or parts["free"]
        return Label(kind, _spelling()[words], parts.get("figure"), currency)
    return None


_CHARS_MAX = 200


@cache
def _patterns() -> dict[LabelKind, re.Pattern[str]]:
    code = "|".join(_CURRENCIES)
    sign = rf"{code}|[£€$]"
    figure = r"(?P<figure>-?[0-9][0-9.,' ]*)"
    amount = rf"(?: ?\(?(?P<code>{code})\)?)? ?[:=]? ?(?:(?P<before>{sign})? ?{figure} ?(?P<after>{sign})?)?"
    counted = _any([word for words in _PAID.values() for word in words])
    freely = [note for note in _NOTES if note not in _ALONE]
    note = rf"(?P<words>{_any(_NOTES)})(?: ?[:=].*)?|(?P<free>{_any(freely)}) .*"
    return {
        LabelKind.COUNT: re.compile(rf"(?P<words>{_any(_COUNTS)}) ?[:=]? ?{figure}?"),
        LabelKind.SUBTOTAL: re.compile(rf"(?P<words>{_any(_SUBTOTALS)}){amount}"),
        LabelKind.TOTAL: re.compile(rf"(?P<words>{_any(_TOTALS)})(?: ?\([0-9]+ (?:{counted})\))?{amount}"),
        LabelKind.NOTE: re.compile(note),
    }


def _any(labels: tuple[str, ...] | list[str]) -> str:
    return "|".join(re.escape(fold(label)) for label in sorted(set(labels), key=len, reverse=True))


@cache
def _spelling() -> dict[str, str]:
    """Folded label -> how it is written."""
    return {fold(label): label for label in (*_NOTES, *_COUNTS, *_SUBTOTALS, *_TOTALS)}
