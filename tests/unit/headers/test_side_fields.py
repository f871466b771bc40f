"""Fields that never refuse a file, and files that hold no payments."""

import polars as pl
import pytest
from refusals import refused
from tables import for_each

from pipeline.errors import InputError
from pipeline.headers.columns import read_columns
from pipeline.headers.meaning import UNKNOWN, meaning
from pipeline.wording import Sentence

PAYMENTS = {
    "Payee": ["Ada Quillon", "Bo Marrow"],
    "IBAN": ["DE89370400440532013000", "FR1420041010050500013M02606"],
}


def columns_of(columns, mapping=None):
    return read_columns(pl.DataFrame({**PAYMENTS, **columns}), mapping or {}, where="x.csv")


@pytest.mark.parametrize(
    ("field", "columns", "header"),
    [
        ("reference", {"Our reference": ["a", "b"], "Payment reference": ["c", "d"]}, "Payment reference"),
        ("amount", {"Value": ["1.00", "2.00"], "Payment amount": ["3.00", "4.00"]}, "Payment amount"),
        ("payment_id", {"Employee No": ["1", "2"], "Payment ID": ["3", "4"]}, "Payment ID"),
        ("currency", {"Payment currency": ["USD", "USD"], "Currency": ["EUR", "EUR"]}, "Currency"),
        ("currency", {"Payment currency": ["INR", "INR"]}, "Payment currency"),
        ("currency", {"Valuta": ["2026-01-01", "2026-01-02"], "Währung": ["EUR", "EUR"]}, "Währung"),
        (
            "account_type",
            {"Account type": ["Current", "Savings"], "Payee type": ["Individual", "Business"]},
            "Payee type",
        ),
        ("bic", {"BIC": ["a", "b"], "Beneficiary BIC": ["c", "d"]}, "Beneficiary BIC"),
    ],
)
def test_of_two_columns_for_a_side_field_the_more_explicit_is_read_and_the_other_kept(field, columns, header):
    read = columns_of(columns)
    assert read.sources[field] == ((header,),)


@pytest.mark.parametrize("header", ["Rent", "Refund", "REFUNDS"])
def test_what_is_paid_is_the_amount_where_its_cells_are_amounts(header):
    assert columns_of({header: ["412.50", "1,020"]}).sources["amount"] == ((header,),)
    assert columns_of({header: ["£412.50", "£1,020.00"]}).sources["amount"] == ((header,),)
    assert "amount" not in columns_of({header: ["1", "2"]}).sources, "numbers of refunds"
    assert "amount" not in columns_of({header: ["yes", "no"]}).sources
    beside = columns_of({header: ["412.50", "99.00"], "Amount": ["1.00", "2.00"]})
    assert beside.sources["amount"] == (("Amount",),)


def test_a_choice_between_two_columns_is_told():
    read = columns_of({"Our reference": ["a", "b"], "Payment reference": ["c", "d"]})
    assert read.notes == (
        Sentence(
            "headers.kept_beside",
            read='"Payment reference"', field=Sentence("field.reference"), kept='"Our reference"',
        ),
    )  # fmt: skip


def test_two_bics_that_differ_are_both_left():
    read = columns_of({"BIC": ["a", "b"], "SWIFT": ["c", "d"]})
    assert "bic" not in read.sources
    assert read.notes[0] == Sentence("headers.neither_is_the_bic", one='"BIC"', other='"SWIFT"')


def test_two_secondary_references_that_differ_are_refused():
    with refused(InputError, "headers.either_could_be", "headers.the_field"):
        columns_of({"Roll number": ["a", "b"], "Secondary reference": ["c", "d"]})


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (["source", "source"], "sourceCurrency"),
        (["target", "target"], "targetCurrency"),
        (["source", "target"], None),
    ],
)
def test_a_choice_of_currency_is_no_currency(choice, expected):
    read = columns_of(
        {"amountCurrency": choice, "sourceCurrency": ["GBP", "GBP"], "targetCurrency": ["EUR", "EUR"]}
    )
    assert read.sources.get("currency") == (((expected,),) if expected else None)


def test_the_header_of_the_amount_gives_the_currency():
    assert columns_of({"Amount (GBP)": ["1.00", "2.00"]}).currency == "GBP"
    assert columns_of({"Amount": ["1.00", "2.00"]}).currency is None


@pytest.mark.parametrize(
    "columns",
    [
        {"Balance": ["100.00", "90.00"]},
        {"Saldo nach Buchung": ["100,00", "90,00"]},
        {"Direction": ["in", "out"], "Amount": ["10.00", "-5.00"]},
        {"Debet/Credit": ["Debet", "Credit"], "Bedrag": ["10,00", "5,00"]},
        {"Soll/Haben": ["+", "-"], "Betrag": ["10,00", "5,00"]},
        {"Debit": ["1.190,00", None], "Credit": [None, "4.500,50"]},
        {"Debit amount": ["10.00", None], "Credit amount": [" ", "(5.00)"]},
        {"Mandate ID": ["M1", "M2"], "Collection date": ["2026-01-01", "2026-01-01"]},
        {"Mandate ID": ["M1", "M2"], "Mandate date": ["2026-01-01", "2026-01-01"]},
        {"Mandatsreferenz": ["M1", "M2"], "Gläubiger-ID": ["DE98ZZZ09999999999", "DE98ZZZ09999999999"]},
    ],
)
def test_a_statement_or_a_direct_debit_is_refused_unless_the_user_insists(columns):
    with refused(InputError, "headers.give_payments_or_name_columns"):
        columns_of(columns)
    assert columns_of(columns, {"name": "Payee", "iban": "IBAN"}).sources["iban"] == (("IBAN",),)


def test_a_booking_date_with_both_signs_and_no_payee_is_a_statement():
    columns = {
        "Buchungstag": ["01.01.2026", "02.01.2026"],
        "Betrag": ["-5,00", "10,00"],
        "Name": ["Ada", "Bo"],
        "IBAN": PAYMENTS["IBAN"],
    }
    with refused(InputError, "headers.statement_of_both_signs"):
        read_columns(pl.DataFrame(columns), {}, where="x.csv")


@pytest.mark.parametrize(
    "columns",
    [
        {"Balance": [None, ""]},
        {"Mandate ID": [None, None], "Mandate date": [None, None]},
        {"Creditor ID": ["10417", "10418"], "Mandat": ["M1", "M2"]},
        {"Fälligkeit": ["01.12.2026", "02.12.2026"], "Sequenz": ["1", "2"]},
        {"Direction": ["BUY", "SELL"], "Amount": ["10.00", "5.00"]},
        {"Dr/Cr": ["C", "C"], "Amount": ["10.00", "5.00"]},
        {"D/K": ["K", None], "Suma": ["10.00", "5.00"]},
        {"DD Reference": ["D1", "D2"], "Amount": ["10.00", "5.00"]},
        {"Membership No": ["1", "2"], "Amount": ["10.00", "5.00"]},
        {"N° mandat": ["M1", "M2"], "Betrag": ["1,00", "2,00"]},
        {"Bank mandate": ["received", "received"], "Betrag": ["1,00", "2,00"]},
        {"mandat_beginn": ["2021-11-01", "2022-11-01"], "Betrag": ["1,00", "2,00"]},
        {"Value date": ["2026-01-01", "2026-01-01"], "Amount": ["1.00", "2.00"]},
        {"Balance due": ["1.00", "2.00"]},
        {"Debit": ["1.00", "2.00"], "Credit": [None, None]},
        {"Debit amount": ["1.00", "2.00"], "Credit amount": ["1.10", "2.20"]},
        {"Debit": ["X", None], "Credit": [None, "X"]},
        {"Balance Total": ["1.00", "2.00"]},
    ],
)
def test_an_empty_column_or_a_single_cue_refuses_nothing(columns):
    assert columns_of(columns).sources["name"] == (("Payee",),)


@pytest.mark.parametrize(
    "columns",
    [
        {"Mandat gültig seit": ["2024-01-02", "2024-01-02"], "Offene Beträge (€)": ["1,00", "2,00"]},
        {"mandat_vom": ["2021-03-01", "2020-01-01"]},
        {"directDebitDate": ["2026-12-01", "2026-12-03"]},
        {"Zustimmung SEPA": ["ja", "ja"]},
        {"Zahlungsmethode": ["Lastschrift", "SEPA-Lastschrift"]},
        {"Paid by": ["Direct Debit", "DD"]},
    ],
)
def test_one_sure_sign_of_direct_debits_refuses_the_file(columns):
    with refused(InputError, "headers.direct_debits"):
        columns_of(columns)
    assert columns_of({header: [None, None] for header in columns}), "an empty column is no sign"


def test_who_owes_something_is_not_paid_without_an_amount_unless_it_is_staff():
    for header in (
        *("Jahresbeitrag", "Membership type", "previous_membership_expiry", "Mahnstufe", "Type d'adhésion"),
        *("Vrsta članstva", "Typ členství", "Tagsági díj", "lidgeld", "üyelik tipi", "členské príspevky"),
    ):
        with refused(InputError, "headers.list_of_payers", columns=[f'"{header}"']):
            columns_of({header: ["96.00", "48.00"]})
        for beside in ({"Refund amount": ["5.00", "6.00"]}, {"Employee No": ["7", "8"]}):
            assert columns_of({header: ["96.00", "48.00"], **beside}).sources["iban"] == (("IBAN",),)


@pytest.mark.parametrize(
    "header", ["Dividende", "Beitragserstattung", "Strike pay", "Zwrot składki", "Tagdíj-visszatérítés"]
)
def test_members_who_get_dividends_refunds_or_the_like_in_every_row_are_paid(header):
    dues = {"Jahresbeitrag": ["9,00", "9,00"]}
    for columns in ({f"{header} Jahresbeitrag": ["€ 5,00", "6,00"]}, {**dues, header: ["5", "6"]}):
        assert columns_of(columns).sources["iban"] == (("IBAN",),)
    with refused(InputError, "headers.list_of_payers"):
        columns_of({**dues, header: ["5,00", "0,00"]})


def test_a_list_of_customers_and_suppliers_is_paid_only_by_its_amounts():
    kinds = {"Category": ["Debitor", "Kreditor"]}
    with refused(InputError, "headers.customers_and_suppliers", columns=['"Category"']):
        columns_of(kinds)
    for beside in ({"Amount": ["5.00", "6.00"]}, {"Category": ["Supplier", "Supplier"]}):
        assert columns_of({**kinds, **beside}).sources["name"] == (("Payee",),)
    with refused(InputError, "headers.customers_and_suppliers", columns=['"cliente"', '"fornitore_id"']):
        columns_of({"cliente": ["Hotel Lago", None], "fornitore_id": [None, "7"]})
    assert columns_of({"Customer no": ["4", "5"], "Supplier no": ["7", None]}), "a number at the supplier's"
    with refused(InputError, "headers.customers_and_suppliers", columns=['"Client Type"']):
        columns_of({"Client Type": ["Buyer", "Supplier"]})


def list_of(columns):
    return read_columns(pl.DataFrame(columns), {}, where="x.csv").sources["name"]


IBANS = ["DE89370400440532013000", "DE02120300000000202051", "DE02500105170137075030"]


OF_PAYERS = {  # who pays -> other columns; the first says what these people are charged
    "Client name": ["Monthly fee", "Joined"],
    "Tenant": ["Monthly Rent", "Deposit held", "Lease end"],
    "Tenant name": ["Rent due", "Due date"],
    "Donor name": ["Pledge frequency", "Donation"],
    "Subscriber": ["MRR", "Renewal date"],
    "Customer": ["Billing cycle", "Price"],
    "Customer name": ["Days overdue", "Amount due"],
    "Mieter": ["Kaltmiete", "Nebenkosten"],
    "Spender": ["Zuwendungsbestätigung", "Spendenbetrag"],
    "Kunde": ["Abrechnungszyklus", "Preis"],
    "Locataire": ["Loyer HC", "Charges", "Total quittance"],
    "Donateur": ["Reçu fiscal", "Montant du don"],
    "Huurder": ["Huurprijs", "Servicekosten"],
    "Inquilino": ["Renta mensual", "Fianza"],
    "Nombre del socio": ["Cuota mensual", "Fecha de alta"],
    "Nome socio": ["Quota annuale", "Scadenza"],
    "Conduttore": ["Canone mensile", "Spese"],
}


@for_each("payer", sorted(OF_PAYERS))
def test_a_list_of_what_people_are_charged_asks_nothing(payer):
    first, *more = OF_PAYERS[payer]
    columns = {payer: ["Ada Quillon", "Bo Marrow", "Cid Okonjo"], "IBAN": IBANS}
    charges = {header: ["96.00", "48.00", "12.00"] for header in (first, *more)}
    with refused(InputError, "headers.list_of_payers", columns=[f'"{payer}"', f'"{first}"']):
        list_of(columns | charges)
    assert list_of(columns | dict.fromkeys(charges, [None] * 3)), "empty columns are no sign"


@pytest.mark.parametrize(
    "columns",
    [
        {"Tenant": "name", "Monthly Rent": "850.00", "Deposit refund": "850.00"},
        {"Tenant": "name", "Monthly rent": "850.00", "Housing benefit": "410.00"},
        {"Mieter": "name", "Kaltmiete": "640,00", "Guthaben": "37,20"},
        {"Customer": "name", "Billing cycle": "monthly", "Refund amount": "14.99"},
        {"Socio": "name", "Cuota mensual": "29,90", "Devolución": "29,90"},
        {"Huurder": "name", "Huurprijs": "720,00", "Terug te betalen": "720,00"},
        {"Consultant": "name", "Client": "Quillon Ltd", "Monthly fee": "900.00"},
        {"Landlord": "name", "Tenant": "Zoe Thornwood", "Monthly rent": "850.00"},
        {"Supplier": "name", "Days overdue": "3", "Amount": "850.00"},
    ],
)
def test_people_who_are_charged_and_paid_or_others_beside_them_are_read(columns):
    names = ["Ada Quillon", "Bo Marrow", "Cid Okonjo"]
    cells = {header: names if cell == "name" else [cell] * 3 for header, cell in columns.items()}
    [payee, *_] = columns
    assert list_of(cells | {"IBAN": IBANS}) == ((payee,),)


@pytest.mark.parametrize(
    "labels",
    [
        ["PCC Current", "PCC Restoration", "PCC Deposit"],
        ["Main account", "Our account", "Petty cash"],
        ["Girokonto", "Geschäftskonto", "Tagesgeld"],
        ["Betaalrekening", "Spaarrekening", "Gezamenlijke rekening"],
        ["Compte courant", "Livret A", "Compte épargne"],
        ["Käyttötili", "Säästötili", "Yritystili"],
    ],
)
def test_labels_of_accounts_without_amounts_are_a_list_of_ones_own_accounts(labels):
    with refused(InputError, "headers.own_accounts", column='"Name"'):
        list_of({"Name": labels, "IBAN": IBANS})
    assert list_of({"Name": labels, "IBAN": IBANS, "Amount": ["5", "6", "7"]}) == (("Name",),)
    people = ["Ute Grabowski", "Jonas Brückner", "Silke Jürgens"]
    assert list_of({"Account holder": people, "Name": labels, "IBAN": IBANS}), "the labels are the payees'"
    assert list_of({"Name": [*people[:2], labels[0]], "IBAN": IBANS}) == (("Name",),), "most are people"


def test_one_account_beside_different_payees_is_the_payers_unless_it_is_marked_as_theirs():
    names, own = ["Ute Grabowski", "Jonas Brückner", "Silke Jürgens"], [IBANS[0]] * 3
    for beside in ({}, {"Betrag": ["5,00", "6,00", "7,00"]}):
        with refused(InputError, "headers.only_own_account", column='"Kontonummer"'):
            list_of({"Lieferant": names, "Kontonummer": own, **beside})
    assert list_of({"Lieferant": names, "Kontonummer": IBANS}) == (("Lieferant",),)
    assert list_of({"Lieferant": names, "Empfängerkonto": own}) == (("Lieferant",),), "they share an account"
    assert list_of({"Lieferant": [*names[:2], names[0]], "Kontonummer": own}) == (("Lieferant",),)
    lender = {"Lender": ["Ada Quillon"] * 3, "Lender IBAN": own}
    assert list_of({"Borrower": names, **lender}) == (("Lender",),), "it is the lender's"
    assert list_of({"Lieferant": names[:2], "Kontonummer": own[:2]}) == (("Lieferant",),), "two may share it"


@pytest.mark.parametrize(
    ("name", "account"),
    [
        ("Your name", "What is your IBAN?"),
        ("Ihr Name", "Bitte IBAN angeben"),
        ("Votre nom", "Veuillez indiquer votre IBAN"),
        ("Uw naam", "Uw rekeningnummer"),
        ("Partner", "Bančni račun partnerja"),
        ("Namn", "Personal Bank Konto Nummer"),
    ],
)
def test_headers_that_address_who_fills_in_a_form_name_the_payee(name, account):
    people = ["Ute Grabowski", "Jonas Brückner", "Silke Jürgens"]
    columns = {name: people, account: IBANS, "Amount": ["5", "6", "7"]}
    assert read_columns(pl.DataFrame(columns), {}, where="x.csv").sources["iban"] == ((account,),)
    assert list_of(columns) == ((name,),)
    marked = {"Payee": people[::-1], "Payee IBAN": IBANS[::-1]}
    assert list_of({**columns, **marked}) == (("Payee",),), "columns marked for the payee go first"


@pytest.mark.parametrize(
    "header",
    [
        "invoice_footer",
        "nextInvoiceNumber",
        "Rechnungsfußzeile",
        "Pied de page facture",
        "accounts_office_ref",
    ],
)
def test_settings_of_ones_own_companies_are_paid_only_by_amounts(header):
    with refused(InputError, "headers.own_settings", columns=[f'"{header}"']):
        columns_of({header: ["7", "8"]})
    for beside in ({header: [None, None]}, {header: ["7", "8"], "Amount": ["5.00", "6.00"]}):
        assert columns_of(beside).sources["name"] == (("Payee",),)


def test_accounts_of_one_holder_without_amounts_are_ones_own():
    def read(**columns):
        rows = {"IBAN": [*PAYMENTS["IBAN"], "NL91ABNA0417164300"], "Account holder": ["Ada Quillon"] * 3}
        return read_columns(pl.DataFrame({**rows, **columns}), {}, where="x.csv")

    with refused(
        InputError,
        "headers.own_accounts",
        column='"Account holder"',
        columns=[("name", "Account holder"), ("iban", "IBAN")],
    ):
        read()
    assert read(Amount=["1.00", "2.00", "3.00"]).sources["name"] == (("Account holder",),)
    assert read(**{"Account holder": ["Ada Quillon", "Ada Quillon", "Bo Marrow"]})


@pytest.mark.parametrize("header", ["VAT amount", "pdv_iznos", "Montant TVA", "Discount (EUR)"])
def test_a_tax_or_a_discount_is_no_amount(header):
    assert "amount" not in columns_of({header: ["25.00", "10.00"]}).sources
    assert columns_of({"Session amount": ["25.00", "10.00"]}).sources["amount"] == (("Session amount",),)


def test_ways_to_pay_of_both_kinds_are_payments():
    assert columns_of({"Paid by": ["Direct debit", "BACS"]}).sources["name"] == (("Payee",),)


@pytest.mark.parametrize(
    "header",
    [
        *("Amount (pence)", "Betrag in Cent", "Beløb (øre)", "Amount, minor units", "amount_cents"),
        *("Total pence", "Importe en céntimos", "Montant (centimes)", "kwota_grosze"),
    ],
)
def test_whole_numbers_under_a_header_of_hundredths_are_amounts_and_that_is_said(header):
    read = columns_of({header: ["48250", "9900"]})
    assert read.sources["amount"] == ((header,),)
    assert read.is_in_hundredths
    assert read.notes == (Sentence("headers.amount_in_hundredths", column=f'"{header}"'),)


def test_a_column_that_says_yes_or_no_is_no_amount():
    assert "amount" not in columns_of({"Te betalen": ["ja", "nee"]}).sources
    assert columns_of({"Te betalen": ["1.00", None]}).sources["amount"] == (("Te betalen",),)


@pytest.mark.parametrize("cells", [["482.50", "99"], ["48,250", "9,900"], ["£482", "£99"]])
def test_a_header_of_hundredths_above_other_cells_is_not_read_as_amounts(cells):
    assert "amount" not in columns_of({"Amount (pence)": cells}).sources


@pytest.mark.parametrize(
    "unit", ["(p)", "[£'000]", "(£000s)", "(k€)", "(TEUR)", "(in Tsd. EUR)", "(en milliers)"]
)
def test_amounts_in_a_unit_that_only_their_reader_knows_are_not_read(unit):
    assert meaning(f"Amount {unit}") == UNKNOWN
    assert meaning(f"amount {unit.upper()}").what is None
    assert meaning("Amount (EUR)").what == meaning("Amount (max. 10)").what == "amount"


def test_an_amount_in_the_main_unit_goes_before_the_same_in_hundredths():
    read = columns_of({"Amount (pence)": ["48250", "9900"], "Amount (£)": ["482.50", "99.00"]})
    assert read.sources["amount"] == (("Amount (£)",),)
    assert not read.is_in_hundredths
    assert "hundredths" not in " ".join(map(str, read.notes))


@pytest.mark.parametrize("header", ["Invoice number", "Rechnungs-Nr.", "Fakturanr", "N° facture"])
def test_the_number_of_an_invoice_is_the_reference_unless_there_is_one(header):
    assert columns_of({header: ["1", "2"]}).sources["reference"] == ((header,),)
    beside = columns_of({header: ["1", "2"], "Reference": ["a", "b"]})
    assert beside.sources["reference"] == (("Reference",),)


@pytest.mark.parametrize("header", ["SalarioLiquido", "Nettolohn", "Salario neto", "Stipendio netto"])
def test_what_somebody_earns_net_is_the_amount(header):
    assert columns_of({header: ["1765,40", "1540,12"]}).sources["amount"] == ((header,),)


@pytest.mark.parametrize(
    "columns",
    [
        {"Typ": ["Príjem", "Výdavok", "Výdavok"]},
        {"Kind": ["Income", "Expense", "Income"]},
        {"dc": ["D", "C", "D"]},
        {"Amount": ["-1.00", "2.00", "-3.00"]},
    ],
)
def test_money_that_went_both_ways_is_a_statement(columns):
    rows = {header: [*cells, cells[0]] for header, cells in PAYMENTS.items()}
    with refused(InputError, {"headers.bank_statement", "headers.statement_of_both_signs"}):
        read_columns(pl.DataFrame({**rows, **columns}), {}, where="x.csv")


@pytest.mark.parametrize(
    ("columns", "look"),
    [
        ({"Descrizione": ["Bonifico ricevuto", "Commissioni"]}, "headers.bank_statement"),
        ({"Buchungstext": ["Zahlungseingang RE 7", "Zahlungseingang RE 8"]}, "headers.bank_statement"),
        (
            {"Deposit": ["500.00", "400.00"], "APR": ["9.9", "9.9"], "Amount": ["1.00", "2.00"]},
            "headers.purchases_on_credit",
        ),
        (
            {"Anzahlung": ["500,00", "400,00"], "Monatsrate": ["20,00", "30,00"]},
            "headers.purchases_on_credit",
        ),
        ({"Order status": ["Payment received", "Payment received"]}, None),
        ({"Reference": ["Rent received late", "INV 7"]}, None),
        ({"Deposit": ["500.00", "400.00"], "Rent": ["50.00", "40.00"]}, None),
    ],
)
def test_money_that_customers_paid_or_owe_is_not_paid_to_them(columns, look):
    if look is None:
        assert columns_of(columns).sources["name"] == (("Payee",),)
    else:
        with refused(InputError, look):
            columns_of(columns)


@pytest.mark.parametrize(
    ("columns", "header"),
    [
        ({"Net": ["10.00", "20.00"], "VAT": ["2.00", "4.00"], "Gross": ["12.00", "24.00"]}, "Gross"),
        ({"netto": ["10,00", "20,00"], "MwSt-Satz": ["19 %", "7"], "brutto": ["11,90", "21,40"]}, "brutto"),
        ({"Amount": ["10.00", "20.00"], "VAT number": ["GB1", "GB2"], "Paid": ["11.00", "22.00"]}, "Amount"),
        ({"Gross": ["12.00", "24.00"], "Tax": ["2.00", "4.00"], "Net": ["10.00", "20.00"]}, "Net"),
        ({"Total": ["12.00", "24.00"], "A pagar": ["10.00", "20.00"]}, "A pagar"),
    ],
)
def test_the_amount_with_vat_is_paid(columns, header):
    assert columns_of(columns).sources["amount"] == ((header,),)


def test_what_is_owed_to_suppliers_is_no_balance_of_a_statement():
    columns = {
        "Fornecedor": ["Ada Quillon Lda", "Bo Marrow Lda"],
        "IBAN": ["DE89370400440532013000", "FR1420041010050500013M02606"],
        "Saldo (€)": ["246.00", "331.12"],
    }
    assert read_columns(pl.DataFrame(columns), {}, where="x.csv").sources["name"] == (("Fornecedor",),)
    for dates in ({"Data": ["2026-11-01", "2026-11-02"]}, {"Data valor": ["2026-11-01", "2026-11-02"]}):
        with refused(InputError, "headers.bank_statement"):
            read_columns(pl.DataFrame({**columns, **dates}), {}, where="x.csv")


def test_a_credit_note_among_payments_is_no_statement():
    rows = {header: [*cells, cells[0]] for header, cells in PAYMENTS.items()}
    read = read_columns(pl.DataFrame({**rows, "Amount": ["1.00", "2.00", "-3.00"]}), {}, where="x.csv")
    assert read.sources["amount"] == (("Amount",),)


@pytest.mark.parametrize("header", ["Account Title", "Organizátor", "Sælger", "Title of account"])
def test_more_words_for_who_is_paid(header):
    read = read_columns(
        pl.DataFrame({header: PAYMENTS["Payee"], "IBAN": PAYMENTS["IBAN"]}), {}, where="x.csv"
    )
    assert read.sources["name"] == ((header,),)


@pytest.mark.parametrize(
    "header",
    ["Session fee (EUR)", "Auszahlung EUR", "Nettobezug", "Montant remboursé", "Net OMR", "Take-home pay"],
)
def test_an_amount_in_other_words_has_a_currency_or_a_word_for_amounts(header):
    assert columns_of({header: ["412.50", "1020.00"]}).sources["amount"] == ((header,),)


def test_of_two_amounts_in_other_words_none_is_read():
    two = {"Session fee (EUR)": ["412.50", "1020.00"], "Travel (EUR)": ["12.50", "20.00"]}
    assert "amount" not in columns_of(two).sources
