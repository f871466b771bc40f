"""What a header means by its words alone."""

from time import process_time

import pytest
from tables import for_each

from pipeline.headers.meaning import Rank, Side, What, meaning

FIELDS_BY_HEADER = {
    "name": """
        Payee; Beneficiary; Beneficiary Name; Beneficiary Account Name; Recipient;
        RecipientName; RECIPIENT_NAME;
        Account Name; account-name; AccountHolderName; Name; Creditor_Name; Destination Name;
        Payee Name; Nm; NAME1;
        NAME 1; AGNAME1; EMPFÄNGER; INHABER; EMPFÄNGER/ABSENDER - NAME; KNDNAME; Request Name; Full Name;
        Employee Name; Staff Name; Supplier; Supplier Name; Vendor Name; Customer Name; Zahlungsempfänger;
        Begünstigter; Bénéficiaire; Nom; Naam begunstigde; Nombre del beneficiario; Nome beneficiario;
        Nazwa odbiorcy; Mottagarens namn; Modtagers navn; Mottakers navn; Saajan nimi; Jméno příjemce;
        Kedvezményezett neve; Nume beneficiar; Όνομα δικαιούχου; Name des Zahlungsempfängers; Kontoinhaber;
        Titulaire du compte; Intestatario; Rekeninghouder; Titular de la cuenta; Posiadacz
        rachunku; payee's name
    """,
    "sort_code": """
        Sort Code; sort_code; SortCode; sortCode; sort-code; Destination Sort Code; Beneficiary Sort Code;
        beneficiary_sort_code; Bank sort; Bank Account Sort Code; Sort code or Routing number;
        Payee sort code;
        Payment sort code; Sort Code (6 digits)
    """,
    "account_number": """
        Account Number; Account; account_no; AccountNumber; account-number; Beneficiary Account
        Number; A/C No;
        beneficiary_account; Destination Account Number; bank_account_number; Acc No;
        KONTONUMMER; KONTO-NUMMER;
        KONTONR; AGKTO; KTONUMMER; EMPFÄNGER/ABSENDER - KONTONUMMER; KNDKONTONR; KONTO; Recipient Account;
        Beneficiary Account No; Numer rachunku odbiorcy; Saajan tilinumero; Číslo účtu příjemce;
        Tegenrekening;
        Sort Code and Account Number; Sort Code Account No; Supplier account; Account (8 digits)
    """,
    "iban": """
        IBAN; iban; Iban; AccountIban; Beneficiary IBAN; Request IBAN; creditor_account_IBAN;
        IBAN Empfänger;
        IBAN des Begünstigten; IBAN des Empfängers; Bank Account IBAN; IBAN du bénéficiaire;
        IBAN number; IBAN No
    """,
    "bic": """
        BIC; Bic; bic_code; AccountSwift; swift; creditor_agent_BIC; SWIFT Code; BIC/SWIFT;
        Beneficiary BIC
    """,
    "amount": """
        Amount; amount_pounds; SendValue; payment_amount; InstdAmt; Value; BETRAG; BETRAG (EUR);
        Amount (GBP);
        Net pay; Montant; Importe; Importo; Bedrag; Valor; Kwota; Belopp; Beløb; Beløp; Määrä;
        Částka; Összeg;
        Sumă; Ποσό
    """,
    "currency": """
        Currency; CurrencyCode; WÄHRUNG; WAEHRUNG; BTGWAEHR; BETRAG - WÄHRUNG; WKZ; VK-WÄHRUNG;
        Ccy; Devise; Moneda;
        Waluta; Měna; Deviza; Νόμισμα
    """,
    "reference": """
        Reference; Beneficiary Reference; RecipientReference; paymentReference; label;
        remittance_information;
        Ustrd; Text for creditor; Customer Reference; VWZ; VERWENDUNGSZWECK; ZWECK1;
        UMSATZBESCHREIBUNG; Motif;
        Concepto; Causale; Omschrijving; Tytuł przelewu; Meddelande; Viesti; Közlemény
    """,
    "payment_id": """
        E2E ID; EndToEndId; payment_id; transaction-id; custom_id; Payment ID; Employee No;
        Payroll No
    """,
    "account_type": """
        account_type; accountType; Account type (1=Personal 2=Business); BeneficiaryType; recipientType;
        person or business; Payee Type
    """,
    "secondary_reference": "Roll Number; Secondary Reference; Building Society Roll Number",
    "lei": "LEI; Legal Entity Identifier",
    "organisation_bic": "AnyBIC; Organisation BIC",
    "organisation_id": "Beneficiary ORG ID; Org ID",
    What.GIVEN: """
        First Name; Forename; fname; Vorname; Prénom; Voornaam; Imię; Förnamn; Fornavn; Etunimi;
        Keresztnév
    """,
    What.MIDDLE: "Middle Name; Tussenvoegsel",
    What.FAMILY: """
        Last Name; Surname; lname; Nachname; Apellidos; Cognome; Achternaam; Nazwisko;
        Efternamn; Příjmení
    """,
    What.COMPANY: """
        Company; CompanyName; company_name; Firma; Raison sociale; Ragione sociale; Organisation
        Name
    """,
    What.SECOND: "Name 2; NAME2; Beneficiary name 2",
    What.NEVER: """
        Contact Name; contactName; Emergency contact; Approver; Bank name; Next of kin;
        Ansprechpartner
    """,
    What.PARENT: "Parent name; Parent",
    What.BALANCE: "Balance; Saldo; Solde; Saldo nach Buchung; Kontostand",
    What.BOOKED: "Buchungstag; Booking date; Posting date; Date opération",
    What.MANDATE: "Mandate ID; Mandatsreferenz; Mandate date; RUM",
    What.COLLECTION: "Collection date",
    What.SEQUENCE: "Sequence type; SeqTp",
    What.CREDITOR_ID: "Creditor identifier; Gläubiger-ID; Creditor ID",
    What.CHOICE: "amountCurrency; sourceCurrency; targetCurrency; Payment Currency; Payout Currency",
    None: """
        Details; code; number; identifier; id; BLZ; bank code; InstrId; Beneficiary email; Payee
        ID; Vendor code;
        Nominal account; GL account; Payment date; Address 1; Credit; Intermediary BIC; Gross pay
    """,
}


def each():
    for what, headers in FIELDS_BY_HEADER.items():
        for header in headers.split(";"):
            if words := header.split():
                yield what, " ".join(words)


@for_each(("what", "header"), list(each()))
def test_a_header_means_what_its_words_say(what, header):
    assert meaning(header).what == what


@pytest.mark.parametrize(
    "change",
    [str.upper, str.lower, lambda header: header.replace(" ", "_"), lambda header: f" {header} *"],
    ids=["upper", "lower", "underscores", "marks"],
)
@pytest.mark.parametrize(
    "header", ["Beneficiary Account Number", "IBAN des Empfängers", "Numéro de compte du bénéficiaire"]
)
def test_case_and_marks_do_not_change_a_meaning(change, header):
    assert meaning(change(header)) == meaning(header)


def test_a_long_text_is_no_header_and_costs_nothing():
    began = process_time()
    for text in ("name" * 8_000, "A" * 60_000, "payee name " * 5_000, "(name) " * 9_000):
        assert meaning(text).what is None
    assert process_time() - began < 1.0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Empfänger", "Empfanger"),
        ("Empfänger", "Empfaenger"),
        ("Prénom", "Prenom"),
        ("Währung", "Waehrung"),
        ("Beløb", "Belob"),
        ("Płatność ID", "Platnosc ID"),
        ("Beneficiaries", "Beneficiary"),
        ("Empfänger Name", "Name Empfänger"),
        ("Account Number of the Beneficiary", "Beneficiary's account number"),
        ("beneficiaryaccountnumber", "Beneficiary Account Number"),
        ("Zahlungsempfänger*in", "Zahlungsempfänger"),
        ("Tagespflegeperson", "Person"),
        ("Kreditorenname", "Kreditor"),
        ("Stipendist", "Stipendista"),
        ("kierowcom", "kierowca"),
    ],
)
def test_accents_plurals_order_and_compounds_do_not_change_a_meaning(one, other):
    assert meaning(one)[:4] == meaning(other)[:4]


@pytest.mark.parametrize(
    "header",
    [
        "Debit account",
        "From account",
        "Source account",
        "Originating Account Number",
        "Debtor IBAN",
        "Our account",
        "Own IBAN",
        "Auftraggeber IBAN",
        "Absender Kontonummer",
        "IBAN donneur d'ordre",
        "Cuenta de cargo",
        "Rekening opdrachtgever",
        "Rachunek nadawcy",
        "Payer account",
        "Debit account holder",
        "Debtor name",
    ],
)
def test_a_column_of_our_side_is_known_as_one(header):
    assert meaning(header).side is Side.OURS


@pytest.mark.parametrize(
    ("header", "rank"),
    [
        ("Account holder", Rank.HOLDER),
        ("Account holder (if different)", Rank.HOLDER),
        ("Bank account name", Rank.HOLDER),
        ("Name on account", Rank.HOLDER),
        ("Kontoinhaber", Rank.HOLDER),
        ("Beneficiary", Rank.PAYEE),
        ("Name des Empfängers", Rank.PAYEE),
        ("Employee name", Rank.SUBJECT),
        ("Full name", Rank.SUBJECT),
        ("Name", Rank.PLAIN),
        ("Surname", Rank.PART),
        ("Company", Rank.COMPANY),
    ],
)
def test_a_name_has_the_rank_of_its_words(header, rank):
    assert meaning(header).rank is rank


SIDES_BY_HEADER = {
    ("name", Side.PAYEE): """
        Betalningsmottagarens namn; Förmånstagare; Beløbsmodtager; Begunstiget; Beløpsmottaker;
        Maksunsaajan nimi; Maksun saaja; Remit-To Name; Second Party Name
    """,
    ("account_number", Side.PAYEE): """
        Betalningsmottagarens kontonummer; Beløbsmodtagers kontonummer; Maksunsaajan tilinumero;
        Naar rekening; Cont creditat; Remit-to Bank Account; Account to be credited
    """,
    (
        "iban",
        Side.PAYEE,
    ): "Beløbsmodtagers IBAN; IBAN-ul beneficiarului; ΙΒΑΝ δικαιούχου; Account holder IBAN",  # noqa: RUF001
    (
        "name",
        Side.OURS,
    ): "Betalarens namn; Megbízó neve; Kezdeményező neve; First Party Name; Debiting account name",
    ("account_number", Side.OURS): """
        Účet odesílatele; Megbízó számlaszáma; Kezdeményező számlaszáma; Cont debitat; Funding account;
        Account to be debited; Disbursement Bank Account
    """,
    ("name", Side.UNSAID): """
        Lönemottagare; Löntagarens namn; Lønmodtagers navn; Medarbejderens navn; Lønnsmottaker;
        Palkansaajan nimi; Asiakkaan nimi; Hyresvärdens namn; Elevens namn; Kontoinnehavarens namn;
        Tilinhaltijan nimi;
        Jméno majitele účtu; Numele titularului contului; Name Shown on the Account; Příjmení a jméno
    """,
    (What.FAMILY, Side.UNSAID): "Släktnamn; Családi név",
    (What.PREFERRED, Side.UNSAID): "Tilltalsnamn; Kutsumanimi; Rufname; Preferred name",
    (What.USER, Side.UNSAID): "Username; accountant_name; Käyttäjä",
    ("account_number", Side.UNSAID): "Pankkitilitieto; Tilinro; Bankovní spojení",
    ("iban", Side.UNSAID): "ΙΒΑΝ",  # noqa: RUF001 (Greek on purpose)
    (What.MANDATE, Side.UNSAID): "Machtigingsnummer; Ondertekendatum",
}
"""Words of the thinner languages, and words that stand as genitives there."""


@for_each(
    ("what", "side", "header"),
    [(*key, header.strip()) for key, headers in SIDES_BY_HEADER.items() for header in headers.split(";")],
)
def test_a_header_of_any_language_says_what_it_is_and_whose(what, side, header):
    assert (meaning(header).what, meaning(header).side) == (what, side)


@pytest.mark.parametrize(
    "header", ["Citizen", "Anns", "Edens", "Anes", "Openness", "Supplies", "Training", "Rechnungsempfänger"]
)
def test_an_ending_makes_no_word_of_another(header):
    assert meaning(header).what is None


@pytest.mark.parametrize(
    ("header", "currency"),
    [
        ("Amount (GBP)", "GBP"),
        ("Betrag (EUR)", "EUR"),
        ("amount_pounds", "GBP"),
        ("Amount £", "GBP"),
        ("Amount", None),
    ],
)
def test_the_header_of_an_amount_may_give_its_currency(header, currency):
    assert meaning(header).currency == currency


def test_what_was_tried_as_a_header_is_not_kept_for_ever():
    for number in range(5_000):
        meaning(f"Payee in line {number}")
    assert meaning.cache_info().currsize < 5_000
