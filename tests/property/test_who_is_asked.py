"""Whatever stands beside the payee's columns, nobody else is asked about: a refusal is right, no guess."""

import polars as pl
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import InputError
from pipeline.headers.columns import read_columns

NAMES = ["Ada Quillon", "Bo Marrow", "Cy Ostrava"]
IBANS = ["DE89370400440532013000", "FR1420041010050500013M02606", "NL91ABNA0417164300"]
OTHERS = ["Dee Lindqvist", "Eli Brandt", "Fay Okafor"]
FIRMS = ["Acme Joinery Ltd", "Brill Roofing Ltd", "Cole Textiles Ltd"]
OUR_IBAN = "GB33BUKB20201555555555"

EXPLICIT = [
    "Account holder",
    "Beneficiary name",
    "Payee",
    "Recipient name",
    "Kontoinhaber",
    "Name des Empfängers",
    "Titulaire du compte",
    "Naam begunstigde",
    "Nazwa odbiorcy",
    "Saajan nimi",
]
ACCOUNTS = [
    "IBAN",
    "Beneficiary IBAN",
    "IBAN des Empfängers",
    "Bank account IBAN",
    "Recipient account",
    "Account number",
]
BESIDE = {
    "contact": ["Contact person", "Contact name", "Ansprechpartner", "Emergency contact"],
    "relative": ["Father's name", "Husband name", "Guardian", "Nominee", "Mother's maiden name"],
    "company": ["Company", "Employer", "Firma", "Organisation name"],
    "our account": ["Debit account", "From IBAN", "Auftraggeber IBAN", "Originating account number"],
    "our name": ["Debtor name", "Auftraggeber", "Ordering party name"],
    "bank": ["Bank name", "Name of bank"],
    "approver": ["Approved by", "Account manager"],
    "list": ["Employee name", "Supplier", "Customer name", "Member name"],
    "nobody knows whom": ["Zorblex name", "Curator", "Name of the zorblex"],
}
CELLS = {
    "contact": OTHERS,
    "relative": OTHERS,
    "company": FIRMS,
    "our account": [OUR_IBAN] * 3,
    "our name": ["Our Own Works Ltd"] * 3,
    "bank": ["Aurora Bank", "Nova Bank", "Meridian Bank"],
    "approver": ["Gus Approver", "Hal Approver", "Ivy Approver"],
    "list": OTHERS,
    "nobody knows whom": OTHERS,
}
SPELLINGS = [str, str.upper, str.lower, lambda header: header.replace(" ", "_"), lambda header: f"{header}:"]


@st.composite
def files(draw):
    """Columns in any order and spelling: a payee and an account, and anything that is neither."""
    columns = [(draw(st.sampled_from(EXPLICIT)), NAMES), (draw(st.sampled_from(ACCOUNTS)), IBANS)]
    kinds = draw(st.lists(st.sampled_from(sorted(BESIDE)), unique=True))
    columns += [(draw(st.sampled_from(BESIDE[kind])), CELLS[kind]) for kind in kinds]
    spelled = {draw(st.sampled_from(SPELLINGS))(header): cells for header, cells in columns}
    headers = draw(st.permutations(list(spelled)))
    return pl.DataFrame({header: spelled[header] for header in headers})


@examples(400)
@given(files())
def test_only_the_payee_is_ever_asked_about(cells):
    sources = read_columns(cells, {}, where="x.csv").sources
    assert [cells[header].to_list() for [header] in sources["name"]] == [NAMES]
    account = sources.get("iban") or sources["account_number"]
    assert [cells[header].to_list() for [header] in account] == [IBANS]


@examples(200)
@given(files(), st.randoms(use_true_random=False))
def test_a_payee_that_is_missing_in_some_rows_is_never_replaced_by_a_stranger(cells, chance):
    holder = next(header for header in cells.columns if cells[header].to_list() == NAMES)
    missing = chance.randrange(3)
    names = [None if row == missing else name for row, name in enumerate(NAMES)]
    try:
        sources = read_columns(cells.with_columns(pl.Series(holder, names)), {}, where="x.csv").sources
    except InputError:
        return
    strangers = [header for kind in ("contact", "our name", "bank", "approver") for header in BESIDE[kind]]
    folded = {header.casefold().replace(" ", "_").rstrip(":") for header in strangers}
    read = {header.casefold().replace(" ", "_").rstrip(":") for parts in sources["name"] for header in parts}
    assert not read & folded
