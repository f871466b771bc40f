"""Who is paid: the ranks of names, what is never the payee, and when nobody can tell."""

import polars as pl
import pytest
from refusals import refused
from tables import for_each

from pipeline.errors import InputError
from pipeline.headers.columns import read_columns
from pipeline.wording import Sentence

IBANS = ["DE89370400440532013000", "FR1420041010050500013M02606"]
UK_OF = {
    whose: {f"{whose} sort code": ["123456"] * 2, f"{whose} a/c no": ["12345678", "2" * 8]}
    for whose in ("Tenant", "Carer's")
}
ADA, BO = "Ada Quillon", "Bo Marrow"
ACME, BRILL = "Acme Joinery Ltd", "Brill Roofing Ltd"


def sources_of(columns):
    return read_columns(pl.DataFrame({**columns, "IBAN": IBANS}), {}, where="x.csv").sources.get("name")


@for_each(
    ("columns", "sources"),
    [
        # The more explicit goes first, whatever stands beside it and in whatever order.
        ({"Supplier": [ACME, BRILL], "Account holder": [ADA, BO]}, [["Account holder"]]),
        ({"Name": [ACME, BRILL], "Payee": [ADA, BO]}, [["Payee"]]),
        ({"Customer name": [ACME, BRILL], "Refund to": [ADA, BO]}, [["Refund to"]]),
        ({"Name": [ACME, BRILL], "Employee name": [ADA, BO]}, [["Employee name"]]),
        ({"Beneficiary name": [ADA, BO], "Company": [ACME, BRILL]}, [["Beneficiary name"], ["Company"]][:1]),
        ({"Contact person": [ADA, BO], "Supplier": [ACME, BRILL]}, [["Supplier"]]),
        ({"Bank name": [ACME, BRILL], "Name": [ADA, BO]}, [["Name"]]),
        ({"Seller": ["The Fox", "Nightjar"], "Seller legal name": [ADA, BO]}, [["Seller legal name"]]),
        ({"Pupil": [ACME, BRILL], "Name on parent account": [ADA, BO]}, [["Name on parent account"]]),
        ({"Name": ["Lloyds Motors", "Raiffeisen Lagerhaus"]}, [["Name"]]),
        ({"Approver": [ACME, BRILL], "Username": ["x", "y"], "Name": [ADA, BO]}, [["Name"]]),
        # A shop that is the same in every row does not own the accounts of several people.
        (
            {"Retailer": [ACME, ACME], "First name": ["Ada", "Bo"], "Last name": ["Quillon", "Marrow"]},
            [["First name", "Last name"]],
        ),
        # An employer beside an employee is never the payee, not even where a name is missing.
        ({"Employer": [ACME, ACME], "Employee": [ADA, None]}, [["Employee"]]),
        ({"Company": [ACME, BRILL], "Employee name": [ADA, BO]}, [["Employee name"]]),
        (
            {
                "Company name": [ACME, BRILL],
                "Employee No": ["7", "8"],
                "Surname": ["Q", "M"],
                "First name": [ADA, BO],
            },
            [["First name", "Surname"]],
        ),
        # The same in every row where the payee differs: the payer.
        ({"Company": [ACME, ACME], "Supplier": [ADA, BO]}, [["Supplier"]]),
        ({"Account name": [ACME, ACME], "Payee": [ADA, BO]}, [["Payee"]]),
        ({"Company": [ACME, ACME], "Account name": [ADA, BO]}, [["Account name"]]),
        # Parts.
        ({"Surname": ["Quillon", "Marrow"], "First name": ["Ada", "Bo"]}, [["First name", "Surname"]]),
        (
            {"prenom_titulaire_compte": ["Ada", "Bo"], "nom_titulaire_compte": ["Quillon", "Marrow"]},
            [["prenom_titulaire_compte", "nom_titulaire_compte"]],
        ),
        (
            {"Holder first name": ["Ada", "Bo"], "Account holder name": [ADA, BO]},
            [["Account holder name"]],
        ),
        ({"Vorname": ["Ada", "Bo"], "Kontoinhaber": [BO, ADA]}, [["Kontoinhaber"]]),
        (
            {"Forename": ["Ada", "Bo"], "Middle name": ["B", None], "Surname": ["Q", "M"]},
            [["Forename", "Middle name", "Surname"]],
        ),
        ({"Vezetéknév": ["Kovács", "Nagy"], "Keresztnév": ["Anna", "Pál"]}, [["Vezetéknév", "Keresztnév"]]),
        (
            {"Voornaam": ["Daan", "Lies"], "Tussenvoegsel": ["van", None], "Achternaam": ["Berg", "Pol"]},
            [["Voornaam", "Tussenvoegsel", "Achternaam"]],
        ),
        ({"Name": ["Quillon", "Marrow"], "Vorname": ["Ada", "Bo"]}, [["Vorname", "Name"]]),
        ({"Nom": ["Quillon", "Marrow"], "Prénom": ["Ada", "Bo"]}, [["Prénom", "Nom"]]),
        ({"name": ["Ada", "Bo"], "lname": ["Quillon", "Marrow"]}, [["name", "lname"]]),
        ({"Name": [ADA, BO], "First name": ["Ada", "Bo"]}, [["Name"]]),
        (
            {
                "Beneficiary first name": ["Ada", "Bo"],
                "Beneficiary last name": ["Q", "M"],
                "Name": [ACME, BRILL],
            },
            [["Beneficiary first name", "Beneficiary last name"]],
        ),
        # Whichever is filled.
        (
            {"First name": ["Ada", None], "Last name": ["Q", None], "Company": [None, BRILL]},
            [["First name", "Last name"], ["Company"]],
        ),
        (
            {"Account holder (if different)": [None, BO], "Supplier": [ACME, BRILL]},
            [["Account holder (if different)"], ["Supplier"]],
        ),
        # What is empty is no candidate.
        ({"Account holder": [None, None], "Supplier": [ACME, BRILL]}, [["Supplier"]]),
        ({"Name": [ADA, BO], "Name 2": [None, " "]}, [["Name"]]),
        # Two that say the same in every row are one.
        ({"Payee": [ADA, BO], "Beneficiary": [ADA.upper(), f" {BO}"]}, [["Payee"], ["Beneficiary"]]),
        # An account name in another form of the same name.
        ({"Name": ["Acme Joinery", "Brill Roofing"], "Account Name": [ACME, BRILL]}, [["Account Name"]]),
        ({"Company": [ACME, BRILL]}, [["Company"]]),
        # A number or a code is no name, unless the header says so.
        ({"Kreditor": ["70001", "70002"], "Name 1": [ACME, BRILL]}, [["Name 1"]]),
        ({"Supplier": ["ACM001", "BRI-002"], "Supplier name": [ACME, BRILL]}, [["Supplier name"]]),
        ({"Payee": ["3M", "Brill Roofing"]}, [["Payee"]]),
        ({"Payee": ["a@example.org", "b@example.org"], "Name": [ADA, BO]}, [["Name"]]),
        ({"Account holder": ["Y", "N"], "Supplier": [ACME, BRILL]}, [["Supplier"]]),
        ({"Client name": [ACME, ACME], "Employee name": [ADA, BO]}, [["Employee name"]]),
        # Initials, and two family names.
        ({"Initials": ["A", "B."], "Surname": ["Quillon", "Marrow"]}, [["Initials", "Surname"]]),
        (
            {"Voorletters": ["A.B.", "C"], "Tussenvoegsel": ["van", None], "Achternaam": ["Berg", "Pol"]},
            [["Voorletters", "Tussenvoegsel", "Achternaam"]],
        ),
        ({"Initials": ["A", "B"], "Name": [ADA, BO]}, [["Name"]]),
        ({"Voorletters": ["A", "B"], "Naam": ["van den Berg", "Pol"]}, [["Voorletters", "Naam"]]),
        (
            {"Initials": ["A", "B"], "First name": ["Ada", "Bo"], "Last name": ["Q", "M"]},
            [["First name", "Last name"]],
        ),
        (
            {"Apellido 1": ["Quillon", "Marrow"], "Apellido 2": ["Ostra", None], "Nombre": ["Ada", "Bo"]},
            [["Nombre", "Apellido 1", "Apellido 2"]],
        ),
        (
            {"Nombre": ["Ada", "Bo"], "Primer apellido": ["Q", "M"], "Segundo apellido": ["Ostra", "Vale"]},
            [["Nombre", "Primer apellido", "Segundo apellido"]],
        ),
        (
            {"Payee first name": ["Ada", "Bo"], "Last name": ["Quillon", "Marrow"]},
            [["Payee first name", "Last name"]],
        ),
        # A column with a payee's or holder's header wins over unknown names, and over texts.
        ({"Zorblex name": [ACME, BRILL], "Beneficiary": [ADA, BO]}, [["Beneficiary"]]),
        ({"Zorblex": [ACME, None], "Account holder": [ADA, BO]}, [["Account holder"]]),
        ({"Zorblex": ["Kitchen fitting", "Roof repair"], "Name": [ADA, BO]}, [["Name"]]),
        ({"Zorblex bank": [ACME, BRILL], "Employee name": [ADA, BO]}, [["Employee name"]]),
        ({"Tenant": [ADA, BO], "Name": ["Rent", "Deposit"]}, [["Tenant"]]),
        # What has a name and is nobody, another form of the same name, and what is ours.
        ({"Project name": ["North Yard", "South Yard"], "Name": [ADA, BO]}, [["Name"]]),
        ({"Projektname": ["Neuer Hof", "Alter Hof"], "Name": [ADA, BO]}, [["Name"]]),
        (
            {"Zorblex name": ["Acme Joinery", "Brill Roofing"], "Account name": [ACME, BRILL]},
            [["Account name"]],
        ),
        ({"Zorblex name": [ACME, ACME], "Name": [ADA, BO]}, [["Name"]]),
        ({"Zorblex name": ["A-17", "B-18"], "Name": [ADA, BO]}, [["Name"]]),
        ({"Tenant": [ADA, BO], "Address": ["Rose Cottage", "High Street"]}, [["Tenant"]]),
        # Logins and short codes of those that another column names.
        ({"Supplier": ["qmarrow", "aquillon"], "Name": [ADA, BO]}, [["Name"]]),
        ({"Supplier": ["acmeltd", "brill"], "Company": [ACME, BRILL]}, [["Company"]]),
        ({"Supplier": ["ACMELTD", "BRILL"], "Supplier name": [ACME, BRILL]}, [["Supplier name"]]),
        ({"Supplier": ["Acme", "Brill"], "Name": [ADA, BO]}, [["Supplier"]]),
        (
            {"Supplier": ["acme", "brill"], "Name": ["ada quillon", "bo marrow"], "Payee": [ADA, BO]},
            [["Payee"]],
        ),
        # Both parts in one column.
        ({"Vorname Nachname": [ADA, BO]}, [["Vorname Nachname"]]),
        ({"Vor- und Nachname": [ADA, BO]}, [["Vor- und Nachname"]]),
        ({"Nombre y apellidos": [ADA, BO]}, [["Nombre y apellidos"]]),
        ({"Nom et prénom": [ADA, BO]}, [["Nom et prénom"]]),
        (
            {"Name of bank account holder": [ADA, BO], "Employee": [ACME, BRILL]},
            [["Name of bank account holder"]],
        ),
        ({"Payee name (from bank statement)": [ADA, BO]}, [["Payee name (from bank statement)"]]),
        # The name of a bank account goes before that of an account in the books.
        (
            {"Account Name": ["Acme (old)", "Brill (new)"], "Bank Account Name": [ACME, BRILL]},
            [["Bank Account Name"]],
        ),
        # Parts of a holder, and a holder's company where the holder is one.
        (
            {
                "First name of account holder": ["Ada", None],
                "Last name of account holder": ["Quillon", None],
                "Company of account holder": [None, BRILL],
                "Supplier": [BRILL, ACME],
            },
            [["First name of account holder", "Last name of account holder"], ["Company of account holder"]],
        ),
        # Who is paid instead of the supplier, where somebody is.
        (
            {"Abw. Zahlungsempfänger": [None, BO], "Name 1": [ACME, BRILL]},
            [["Abw. Zahlungsempfänger"], ["Name 1"]],
        ),
        (
            {"Alternative payee": [None, BO], "Vendor name": [ACME, BRILL]},
            [["Alternative payee"], ["Vendor name"]],
        ),
        ({"Remit-to name": [ADA, BO], "Supplier name": [ACME, BRILL]}, [["Remit-to name"]]),
        # Of several, one bank may be paid.
        ({"Name": [ADA, "Aurora Bank"]}, [["Name"]]),
        ({"Beneficiary": ["Aurora Bank", "Nova Bank AG"]}, [["Beneficiary"]]),
        ({"Name": ["Lucy Banks", "Bankside Joinery Ltd"]}, [["Name"]]),
        # Our own side is never asked about.
        ({"Debtor name": [ACME, BRILL], "Name": [ADA, BO]}, [["Name"]]),
        ({"Debit account holder": [ACME, BRILL], "Payee": [ADA, BO]}, [["Payee"]]),
        ({"Auftraggeber": [ACME, BRILL], "Empfänger": [ADA, BO]}, [["Empfänger"]]),
    ],
)
def test_the_payee_is_read_from_the_most_explicit_column(columns, sources):
    expected = tuple(tuple(parts) for parts in sources)
    assert sources_of(columns) == expected
    assert sources_of(dict(reversed(columns.items()))) in (expected, tuple(reversed(expected)))


@pytest.mark.parametrize(
    "columns",
    [
        {"Tenant": [ADA, BO], "Landlord": [ACME, BRILL]},
        {"Employee": [ADA, BO], "Supplier": [ACME, BRILL]},
        {"Pupil": [ADA, BO], "Parent name": [ACME, BRILL]},
        # A pupil's teacher makes the list none of employees, whose parents would not be paid.
        {"Student name": [ADA, BO], "Parent name": [ACME, BRILL], "Teacher": ["Cy Orme", "Cy Orme"]},
        {"First name": ["Ada", "Bo"], "Last name": ["Q", "M"], "Parent/Guardian name": [ACME, BRILL]},
        {"Firma": [ACME, BRILL], "Inhaber": [ADA, BO]},
        {"Account owner": [ADA, BO], "Supplier": [ACME, BRILL]},
        {"Name on account": [ACME, ACME], "Name": [ADA, BO]},
        {"Organisation": [ACME, ACME], "Curator": [ADA, BO]},
        {"Claimant": [ADA, BO], "Solicitor": [ACME, BRILL]},
        {"Supplier": [ADA, BO], "Company": [ACME, BRILL]},
        {"Name": [ADA, BO], "Company": [None, BRILL]},
        {"First name": ["Ada", "Bo"], "Last name": ["Q", "M"], "Company": [None, BRILL]},
        {"Payee": [ADA, BO], "Recipient": [ADA, BRILL]},
        {"Supplier": [ADA, BO], "Factoring company": [None, BRILL]},
        {"Entity": [ACME, BRILL], "Name": ["Main account", "Second account"]},
        {"Account Name": [ADA, BO], "Bank Account Name": [ACME, ACME]},
        {"Account Name": [ADA, BO], "Bank Account Name": [ACME, None]},
        {"Account Name": ["Office costs", "Travel"], "Supplier": [ACME, BRILL]},
        {"Account Name": ["Office costs", "Travel"], "Name": [ACME, BRILL]},
        {"Name": [ADA, BO], "Name 2": [None, "and sons"]},
        {"Initials": ["A", "B"], "Name": [ADA, "Marrow"]},
        {"Surname": ["Q", "M"], "Surname 2": [None, "Vale"], "First name": ["Ada", "Bo"]},
        # A name without a role that is paid, beside names of nobody knows whom.
        {"Zorblex name": [ADA, BO], "Name": [ACME, BRILL]},
        {"Zorblex's name": [ADA, BO], "Full name": [ACME, BRILL]},
        {"Zorblexname": [ADA, BO], "Name": [ACME, BRILL]},
        {"Zorblex name": [ADA, "Brill"], "First name": ["Cy", "Dee"], "Last name": ["Q", "M"]},
        {"Zorblex name": [ADA, BO], "Account name": [ACME, BRILL]},
        {"Zorblex name": [ADA, BO], "Company": [ACME, BRILL]},
        {"Zorblex name": [ADA, BO], "Tenant name": [ACME, BRILL]},
        {"Zorblex": [ADA, BO], "Tenant": [ACME, BRILL]},
        {"Zorblex": [ADA, BO], "Company": [ACME, BRILL]},
        {"Zorblex": [ADA, BO], "Name": [ACME, BRILL]},
        {"Zorblex": [ADA, BO], "First name": ["Cy", "Dee"], "Last name": ["Q", "M"]},
        # A list's employees and suppliers may be those for whom another is paid.
        {"Issuing authority": [ACME, BRILL], "Employee name": [ADA, BO]},
        {"Zorblex name": [ACME, BRILL], "Supplier": [ADA, BO]},
        {"Trading as": [ACME, BRILL], "Subcontractor": [ADA, BO]},
        # Who is named in some rows only may be paid there instead.
        {"Zorblex": [ACME, None], "Payee": [ADA, BO]},
        # Capitals may be codes, and may be names.
        {"Supplier": ["TESCO", "ACMELTD"], "Name": [ADA, BO]},
        {"Supplier": ["ACMELTD", "BRILL"], "Zorblex name": [ACME, BRILL]},
        {"Supplier": ["acme", "brill"], "Name": ["ada quillon", "bo marrow"]},
        {"Supplier": ["acmeltd", "brill"], "Employee name": [ADA, BO]},
        {"Name": [ADA, "Marrow"], "First name": ["Ada", "Bo"]},
        {
            "Name": [ACME, BRILL],
            "First name": ["Ada", "Bo"],
            "Last name": ["Q", "M"],
        },
        # One payee of several accounts may be the suppliers' customer, or their factor.
        {"Recipient": [ACME, ACME], "Supplier": [ADA, BO]},
        {"Account holder": [ACME, ACME], "First name": ["Ada", "Bo"], "Last name": ["Quillon", "Marrow"]},
        {"Name": [ACME, ACME], "First name": ["Ada", "Bo"], "Last name": ["Quillon", "Marrow"]},
    ],
)
def test_two_that_could_be_paid_and_differ_are_refused_with_the_way_out(columns):
    with refused(InputError, "headers.either_could_be", "headers.choose_one"):
        sources_of(columns)


@pytest.mark.parametrize(
    "columns",
    [
        {"Contact name": [ADA, BO]},
        {"First name": ["Ada", "Bo"]},
        {"Parent": ["P70001", "P70002"]},
        {"User": [ADA, BO], "Approved by": ["Cy Dee", "Al Moss"]},
        {"User": [ADA, ADA]},
        {"Debtor name": [ADA, BO]},
        {"Vendor": ["70001", "70002"]},
        {"Initials": ["A", "B"]},
        {"Apellido 1": ["Quillon", "Marrow"], "Apellido 2": ["Ostra", "Vale"]},
        {"Next of kin": [ADA, BO], "Emergency contact": [ADA, BO]},
    ],
)
def test_a_file_that_names_nobody_who_is_paid_is_refused(columns):
    with refused(InputError, "headers.no_payee"):
        sources_of(columns)


@pytest.mark.parametrize(
    ("customer", "payer", "refund"),
    [
        ("Customer", "Payer", "Refund amount"),
        ("Mitglied", "Zahler", "Beitragserstattung"),
        ("Client", "Payeur", "Montant à rembourser"),
        ("Kund", "Betalare", "Återbetalning"),
    ],
)
def test_who_paid_may_own_the_account_of_a_refund_unless_the_file_says_whose_it_is(customer, payer, refund):
    columns = {customer: [ADA, BO], payer: [ACME, BRILL], refund: ["4.00", "5.00"]}
    for payers in ([ACME, BRILL], [None, BRILL]):
        with refused(InputError, "headers.the_payee", pairs=[("name", customer), ("name", payer)]):
            sources_of({**columns, payer: payers})
    for said in (
        {payer: [ADA, BO]},  # the customers themselves
        {payer: [ACME, ACME]},  # perhaps your own company
        {"Account holder": [ADA, BO]},
        {"Payee": [ADA, BO]},
    ):
        sources = sources_of({**columns, **said})
        assert sources is not None
        assert (payer,) not in sources
    employees = {**columns, "Employee": columns[customer]}
    del employees[customer]
    assert sources_of(employees) == (("Employee",),), "paid by one of the employers"
    assert sources_of({customer: [ADA, BO], payer: [ACME, BRILL], "Amount": ["4", "5"]}) == ((customer,),)


@pytest.mark.parametrize(
    "columns",
    [
        {"Code": ["BANK1", "BANK2"], "Name": ["Aurora Bank AG", "Sparkasse Auental"]},
        {"Vendor No.": ["1", "2"], "Navn": ["Auroras Sparebank", "Nova Bank A/S"]},
        {"Vendor No.": ["1", "2"], "Name": ["ING-DiBa", "BNP Paribas SA"]},
        {"Name": [ADA, BO], "Pankkitilin nimi": ["Aurora Pankki", "Nova Bank"]},
    ],
)
def test_names_of_banks_are_not_asked_about_unless_a_map_says_so(columns):
    with refused(
        InputError,
        "headers.names_of_banks",
        Sentence("headers.say_which_has_payee", column=("name", "HEADER")),
        Sentence("headers.say_that_banks_are_paid", column=("name", [*columns][1])),
    ):
        sources_of(columns)
    frame = pl.DataFrame({**columns, "IBAN": IBANS})
    assert read_columns(frame, {"name": list(columns)[1]}, where="x.csv").sources["name"]


def test_an_iban_is_no_name_though_its_header_names_a_holder():
    columns = pl.DataFrame({"Account holder name": [ADA, BO], "Account holder IBAN": IBANS})
    sources = read_columns(columns, {}, where="x.csv").sources
    assert sources == {"name": (("Account holder name",),), "iban": (("Account holder IBAN",),)}


@pytest.mark.parametrize(
    ("columns", "name"),
    [
        ({"Tenant": [ADA, BO], "Landlord": [ACME, BRILL], "Landlord account": IBANS}, ["Landlord"]),
        ({"Tenant": [ADA, BO], "Landlord": [ACME, BRILL], "Tenant IBAN": IBANS}, ["Tenant"]),
        ({"Mieter": [ADA, BO], "Vermieter": [ACME, BRILL], "IBAN des Vermieters": IBANS}, ["Vermieter"]),
        ({"Employee": [ADA, BO], "Supplier": [ACME, BRILL], "Vendor bank account": IBANS}, ["Supplier"]),
        ({"Supplier": [ACME, BRILL], "Company": [ADA, BO], "Supplier IBAN": IBANS}, ["Supplier"]),
        ({"Pupil": [ADA, BO], "Parent": [ACME, BRILL], "Pupil IBAN": IBANS}, ["Pupil"]),
        ({"Pupil": [ADA, BO], "Parent": [ACME, BRILL], "Parent IBAN": IBANS}, ["Parent"]),
        ({"Name": [ADA, BO], "Naam ouder": [ACME, BRILL], "IBAN ouder": IBANS}, ["Naam ouder"]),
        (
            {
                "First name": ["Ada", "Bo"],
                "Last name": ["Q", "M"],
                "Parent first name": ["Cy", "Dee"],
                "Parent last name": ["O", "L"],
                "Parent IBAN": IBANS,
            },
            ["Parent first name", "Parent last name"],
        ),
        ({"Ενοικιαστής": [ADA, BO], "Ιδιοκτήτης": [ACME, BRILL], "IBAN ιδιοκτήτη": IBANS}, ["Ιδιοκτήτης"]),
        ({"Supplier": [ADA, BO], "Factor": [ACME, ACME], "Factor IBAN": IBANS}, ["Factor"]),
        ({"Zorblex name": [ADA, BO], "Tenant": [ACME, BRILL], "Tenant IBAN": IBANS}, ["Tenant"]),
        (
            {
                "Tenant first name": ["Ada", "Bo"],
                "Tenant last name": ["Q", "M"],
                "Landlord first name": ["Cy", "Dee"],
                "Landlord last name": ["O", "L"],
                "Landlord IBAN": IBANS,
            },
            ["Landlord first name", "Landlord last name"],
        ),
        # Who owns the account is more explicit, and a name of nobody in particular is anybody's.
        (
            {"Account holder": [ADA, BO], "Landlord": [ACME, BRILL], "Landlord IBAN": IBANS},
            ["Account holder"],
        ),
        ({"Name": [ADA, BO], "Landlord IBAN": IBANS}, ["Name"]),
    ],
)
def test_the_header_of_the_account_says_which_party_is_paid(columns, name):
    sources = read_columns(pl.DataFrame(columns), {}, where="x.csv").sources["name"]
    assert sources == (tuple(name),)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        (
            {"Employee": [ADA, BO], "Supplier IBAN": IBANS},
            Sentence("headers.account_of_other_party", account='"Supplier IBAN"', names='"Employee"'),
        ),
        (
            {"Tenant": [ADA, BO], "Landlord IBAN": IBANS},
            Sentence("headers.account_of_other_party", account='"Landlord IBAN"', names='"Tenant"'),
        ),
        ({"Payee": [ADA, BO], "Landlord": [ACME, BRILL], "Landlord IBAN": IBANS}, "headers.either_could_be"),
        ({"Volunteer": ["Ada", "Bo"], "Name": [ADA, BO], "IBAN": IBANS}, "headers.either_could_be"),
    ],
)
def test_nobody_is_asked_about_with_the_account_of_another_party(columns, sentence):
    with refused(InputError, sentence):
        read_columns(pl.DataFrame(columns), {}, where="x.csv")


def test_the_party_of_a_mapped_account_is_paid():
    columns = {"Tenant": [ADA, BO], "Landlord": [ACME, BRILL], "Landlord IBAN": IBANS, "IBAN": IBANS[::-1]}
    sources = read_columns(pl.DataFrame(columns), {"iban": "Landlord IBAN"}, where="x.csv").sources
    assert sources["name"] == (("Landlord",),)


@pytest.mark.parametrize("codes", [["qmarrow", "aquillon"], ["ACMELTD", "BRILL"]])
def test_words_that_may_be_codes_are_read_where_nobody_else_is_named_and_it_is_said(codes):
    columns = read_columns(pl.DataFrame({"Supplier": codes, "IBAN": IBANS}), {}, where="x.csv")
    assert columns.sources["name"] == (("Supplier",),)
    assert columns.notes == (Sentence("headers.names_may_be_codes", column='"Supplier"'),)


@pytest.mark.parametrize(
    "names", [["Acme", "Brill"], ["3M", "Brill Roofing"], ["李明", "王芳"], ["TESCO", "TESCO"]]
)
def test_trading_names_of_one_word_need_no_note(names):
    assert not read_columns(pl.DataFrame({"Supplier": names, "IBAN": IBANS}), {}, where="x.csv").notes


@for_each(
    ("columns", "sources"),
    [
        ({"Payee": [ADA, BO, ADA], "Zorblex": [ACME, ACME, BRILL]}, None),
        ({"Payee": [ADA, BO, ADA], "Company": [ACME, ACME, BRILL]}, None),
        ({"Payee": [ADA, BO, ADA], "Zorblex": [ACME, BRILL, BRILL]}, [["Payee"]]),
        ({"Payee": [ADA, BO, ADA], "Zorblex": [ACME, ACME, ACME]}, [["Payee"]]),
        ({"Payee": [ADA, ADA, BO], "Zorblex": [ACME, ACME, BRILL]}, [["Payee"]]),
    ],
)
def test_the_owner_of_an_account_that_several_share_is_in_the_column_that_names_one(columns, sources):
    cells = pl.DataFrame({**columns, "IBAN": [IBANS[0], IBANS[0], IBANS[1]]})
    if sources is None:
        with refused(InputError, "headers.either_could_be", "headers.the_payee"):
            read_columns(cells, {}, where="x.csv")
    else:
        assert read_columns(cells, {}, where="x.csv").sources["name"] == tuple(map(tuple, sources))


@pytest.mark.parametrize("other", ["Garnishee payee", "Zorblex beneficiary"])
def test_a_payee_in_words_that_nobody_knows_is_not_passed_over(other):
    columns = {"Employee name": [ADA, BO], other: [ACME, BRILL], "IBAN": IBANS}
    with refused(InputError, "headers.the_payee", pairs={("name", other)}):
        read_columns(pl.DataFrame(columns), {}, where="x.csv")


@for_each(
    ("columns", "mapping", "advised"),
    [
        # Of a pupil's parent, a word for one who cares is no employee's.
        ({"Pupil name": [ADA, BO], "Parent/Carer name": [ACME, BRILL]}, {}, "Parent/Carer name"),
        # A word that only the account and one other column have.
        (
            {"Worker": [ADA, BO], "Zorblex company": [ACME, BRILL], "Zorblex account": IBANS},
            {"iban": "Zorblex account"},
            "Zorblex company",
        ),
        # A name that stands elsewhere in some rows, or lacks a part in them.
        ({"Payee (if different)": [None, BO], "Zorblex": [ADA, ACME]}, {}, "Payee (if different)|Zorblex"),
        (
            {
                "Prénom": ["Ada", "Bo"],
                "Nom d'usage": ["Quillon", None],
                "Nom de naissance": ["Marrow", "Lis"],
            },
            {},
            "Prénom+Nom de naissance",
        ),
        ({"Shareholder": [ADA, BO], "Mandate name": [ADA, ACME]}, {}, "Mandate name"),
    ],
)
def test_who_else_may_be_paid_is_said(columns, mapping, advised):
    frame = pl.DataFrame({**columns, **({} if mapping else {"IBAN": IBANS})})
    with refused(InputError, "headers.choose_one", pairs={("name", advised)}):
        read_columns(frame, mapping, where="x.csv")


def test_a_payee_who_is_named_only_where_another_is_paid():
    columns = {
        "Payee (if not learner)": [None, BO],
        "Learner first name": ["Ada", "Lis"],
        "Learner surname": ["Q", "M"],
    }
    assert [list(parts) for parts in sources_of(columns)] == [
        ["Payee (if not learner)"],
        ["Learner first name", "Learner surname"],
    ]


@for_each(
    ("columns", "found"),
    [
        # A word that only the headers of a name and of an account have binds them, whatever it means.
        (
            {"Zorblex name": [ADA, BO], "Vorblag": [ACME, BRILL], "Zorblex IBAN": IBANS},
            {"name": "Zorblex name", "iban": "Zorblex IBAN"},
        ),
        (
            {"Zorblex": [ADA, BO], "IBAN des Zorblex": IBANS, "Vorblag": [ACME, BRILL]},
            {"name": "Zorblex", "iban": "IBAN des Zorblex"},
        ),
        (
            {
                "Zorblex": [ADA, BO],
                "Zorblex sort code": ["123456"] * 2,
                "Zorblex a/c no": ["12345678", "2" * 8],
            },
            {"name": "Zorblex", "sort_code": "Zorblex sort code", "account_number": "Zorblex a/c no"},
        ),
        (
            {"Stypendysta": [ADA, BO], "IBAN stypendysty": IBANS, "Opiekun": [ACME, BRILL]},
            {"name": "Stypendysta", "iban": "IBAN stypendysty"},
        ),
        (
            {"Zorblex surname": ["Q", "M"], "Zorblex first name": ["Ada", "Bo"], "Zorblex IBAN": IBANS},
            {"name": "Zorblex first name+Zorblex surname", "iban": "Zorblex IBAN"},
        ),
        (
            {
                "Entity": [ACME, BRILL],
                "Entity bank details: IBAN": IBANS,
                "Entity bank details: BIC": ["COBADEFF", "BNPAFRPP"],
                "Subsidiary": [ADA, ADA],
            },
            {"name": "Entity", "iban": "Entity bank details: IBAN", "bic": "Entity bank details: BIC"},
        ),
        # Named twice, a person is no account in the books.
        (
            {"Zorblex name": [ADA, BO], "Vorblag": [ACME, BRILL], "Account name": [ADA, BO], "IBAN": IBANS},
            {"name": "Account name", "iban": "IBAN"},
        ),
        # The account that is the same in every row is the payer's, and a firm's name is a name.
        (
            {
                "Vorblag account": IBANS[:1] * 2,
                "Raison sociale du zorblex": [ACME, BRILL],
                "IBAN zorblex": ["FR1420041010050500013M02606", "NL91ABNA0417164300"],
            },
            {"name": "Raison sociale du zorblex", "iban": "IBAN zorblex"},
        ),
        (
            {"Vorblag recipient": [ADA, BO], "Vorblag recipient IBAN": IBANS},
            {"name": "Vorblag recipient", "iban": "Vorblag recipient IBAN"},
        ),
        # In English, the last word of a name is who it is.
        (
            {"Lead tenant": [ADA, BO], **UK_OF["Tenant"]},
            {"name": "Lead tenant", "sort_code": "Tenant sort code", "account_number": "Tenant a/c no"},
        ),
        (
            {"Foster carer": [ADA, BO], **UK_OF["Carer's"]},
            {"name": "Foster carer", "sort_code": "Carer's sort code", "account_number": "Carer's a/c no"},
        ),
        # Beside a payee or holder, unknown words describe the only account.
        (
            {"Payee": [ADA, BO], "IBAN of the zorblex": IBANS},
            {"name": "Payee", "iban": "IBAN of the zorblex"},
        ),
        (
            {"Account owner": [ADA, BO], "IBAN of account owner": IBANS},
            {"name": "Account owner", "iban": "IBAN of account owner"},
        ),
        # Not beside others (it may be a bailiff's), nor if it is of a known party, invalid or shared.
        ({"Employee": [ADA, BO], "Bailiff IBAN": IBANS}, None),
        ({"Supplier": [ACME, BRILL], "Zorblex account (IBAN)": IBANS}, None),
        ({"Name": [ADA, BO], "Zorblex account (IBAN)": IBANS}, None),
        ({"Name": [ADA, BO], "IBAN of the zorblex": IBANS}, None),
        ({"Payee": [ADA, BO], "Zorblex landlord IBAN": IBANS}, None),
        (
            {"Payee": [ADA, BO], "Zorblex IBAN": ["DE00370400440532013000", "FR0020041010050500013M02606"]},
            None,
        ),
        ({"Payee": [ADA, BO], "Zorblex IBAN": IBANS[:1] * 2}, None),
        ({"Payee": [ADA, BO, "Cy Ostrava"], "Zorblex IBAN": [*IBANS, IBANS[0]]}, None),
        ({"Pupil": [ADA, BO], "Zorblex IBAN": IBANS}, None),
        ({"Payee": [ADA, BO], "Zorblex IBAN": IBANS, "Vorblag IBAN": IBANS[::-1]}, None),
        # Nor if two columns end in the word, or another person comes before it.
        ({"Lead tenant": [ADA, BO], "Other tenant": [ACME, BRILL], **UK_OF["Tenant"]}, None),
        ({"Guarantor of tenant": [ADA, BO], **UK_OF["Tenant"]}, None),
        ({"Zorblex name": [ADA, BO], "Vorblag zorblex name": [ACME, BRILL], "Zorblex IBAN": IBANS}, None),
        # Not where a known column has other names, two words are bound, or one account is the payer's.
        ({"Zorblex": [ADA, BO], "Zorblex IBAN": IBANS, "Payee": [ACME, BRILL]}, None),
        ({"Zorblex": [ADA, BO], "Zorblex IBAN": IBANS, "Name": [ACME, BRILL]}, None),
        ({"Zorblex": [ADA, BO], "Zorblex IBAN": IBANS, "Vorblag": IBANS[::-1]}, None),
        (
            {
                "Zorblex": [ADA, BO],
                "Zorblex IBAN": IBANS,
                "Vorblag": [ACME, BRILL],
                "Vorblag IBAN": IBANS[::-1],
            },
            None,
        ),
        ({"Zorblex": [ACME, ACME], "Zorblex IBAN": IBANS[:1] * 2, "Vorblag": [ADA, BO]}, None),
        ({"Company": [ACME, BRILL], "Company IBAN": IBANS, "Employee": [ADA, BO]}, None),
        ({"Company": [ACME, BRILL], "Company IBAN": IBANS[:1] * 2}, None),
        ({"First name": ["Ada", "Bo"], "Last name": ["Q", "M"], "Parent IBAN": IBANS}, None),
        ({"Zorblex fund": [ACME, BRILL], "Zorblex fund IBAN": IBANS, "Vorblag": [ADA, BO]}, None),
        # Two people: whose name no rule prefers.
        ({"Annuitant": [ACME, BRILL], "Initials": ["A", "B"], "Surname": ["Q", "M"], "IBAN": IBANS}, None),
    ],
)
def test_a_word_without_meaning_binds_a_name_to_its_account(columns, found):
    def read():
        return read_columns(pl.DataFrame(columns), {}, where="x.csv").sources

    if found is None:
        with refused(InputError, {"headers.choose_one", "headers.name_columns"}):
            read()
    else:
        assert read() == {field: (tuple(header.split("+")),) for field, header in found.items()}


def test_a_name_in_parts_of_an_unknown_party_is_proposed_whole():
    columns = pl.DataFrame(
        {"Zorblex first name": ["Ada", "Bo"], "IBAN": IBANS, "Zorblex last name": ["Quillon", "Marrow"]}
    )
    with refused(InputError, "headers.name_columns", pairs=[("name", "#1+#3")]):
        read_columns(columns, {}, where="x.csv")


@for_each(
    ("columns", "name"),
    [
        # Beside a part of the same party's name, what is headed as its name is the rest of it.
        (
            {"Bénévole (nom)": ["Quillon", "Marrow"], "Bénévole (prénom)": ["Ada", "Bo"]},
            ["Bénévole (prénom)", "Bénévole (nom)"],
        ),
        (
            {"Employee - Surname": ["Quillon", "Marrow"], "Employee - Name": ["Ada", "Bo"]},
            ["Employee - Name", "Employee - Surname"],
        ),
        ({"Employee surname": ["Quillon", "Marrow"], "Employee name": [ADA, BO]}, ["Employee name"]),
        # The payee's role beside words that have no meaning, where no other column names anybody.
        ({"Zorblex payee": [ACME, BRILL], "Vorblag": [ADA, BO]}, ["Zorblex payee"]),
        ({"Lieferant": [ACME, BRILL], "Empfängername laut Bank": [ADA, BO]}, ["Empfängername laut Bank"]),
        ({"Entidade": ["1002", "1003"], "Nome da entidade": [ACME, BRILL]}, ["Nome da entidade"]),
        ({"partner_id/name": [ACME, BRILL], "currency_id": ["EUR", "EUR"]}, ["partner_id/name"]),
    ],
)
def test_the_whole_name_is_found_in_other_words(columns, name):
    [parts] = sources_of({**columns, "IBAN": IBANS})
    assert list(parts) == name


def test_parts_of_other_names_beside_a_payee_in_every_row_do_not_matter():
    columns = {
        "Beneficiary": ["Ada Quillon", "Bo Marrow"],
        "First name 1": ["Cid", "Dot"],
        "First name 2": ["Eve", "Fay"],
        "IBAN": ["DE89370400440532013000", "FR1420041010050500013M02606"],
    }
    read = read_columns(pl.DataFrame(columns), {}, where="x.csv")
    assert read.sources["name"] == (("Beneficiary",),)
    with refused(InputError, "headers.either_could_be", "headers.part_of_the_payees_name"):
        read_columns(pl.DataFrame({**columns, "Beneficiary": ["Ada Quillon", None]}), {}, where="x.csv")


@pytest.mark.parametrize(
    "header", ["Speaker", "Künstlerin", "Stagiaire", "Becario", "Tirocinante", "Prelegent", "Luennoitsija"]
)
def test_more_roles_are_who_a_list_is_about(header):
    assert sources_of({header: ["Ada Quillon", "Bo Marrow"]}) == ((header,),)


def test_an_account_name_that_the_subject_confirms_is_read_whoever_else_is_named():
    columns = {
        "Intern name": ["Ada Quillon", "Bo Marrow"],
        "Account name": ["Ada Quillon", "Bo Marrow"],
        "Trainer": ["Cid Halloran", "Dot Strandvik"],
        "IBAN": ["DE89370400440532013000", "FR1420041010050500013M02606"],
    }
    read = read_columns(pl.DataFrame(columns), {}, where="x.csv")
    assert read.sources["name"][0] == ("Account name",)
    other = {**columns, "Intern name": ["Ada Quillon", "Eve Moravec"]}
    with refused(InputError, "headers.either_could_be", "headers.the_payee"):
        read_columns(pl.DataFrame(other), {}, where="x.csv")


@pytest.mark.parametrize(
    "header", ["Ad Soyad", "Isim soyisim", "Nom i cognoms", "Nafn", "ПІБ", "Name of individual"]
)
def test_names_in_four_more_languages(header):
    assert sources_of({header: ["Ada Quillon", "Bo Marrow"]}) == ((header,),)


@pytest.mark.parametrize("header", ["Titular", "Titulaire"])
def test_a_titular_goes_before_a_supplier(header):
    assert sources_of({"Supplier": [ACME, BRILL], header: [ADA, BO]}) == ((header,),)


@pytest.mark.parametrize(
    "header", ["In favour of", "Zu Gunsten", "En faveur de", "Na rzecz", "A) Beneficiary"]
)
def test_in_whose_favour_a_payment_is_says_who_is_paid(header):
    assert sources_of({"Name": ["Wexcombe Ltd", "Wexcombe Ltd"], header: [ADA, BO]}) == ((header,),)


QM = ["Quillon", "Marrow"]
PARTS = {"First name": ["Ada", "Bo"], "Last name": QM}


@for_each(
    ("columns", "name"),
    [
        # Parts of a name, abbreviated or with the letter of their part.
        ({"VName": ["Ada", "Bo"], "NName": QM}, ["VName", "NName"]),
        ({"Vorn.": ["Ada", "Bo"], "Name": QM}, ["Vorn.", "Name"]),
        ({"F. Name": ["Ada", "Bo"], "S. Name": QM}, ["F. Name", "S. Name"]),
        ({"EmpFName": ["Ada", "Bo"], "EmpLName": QM}, ["EmpFName", "EmpLName"]),
        ({"Prén.": ["Ada", "Bo"], "Nom": QM}, ["Prén.", "Nom"]),
        ({"First_Nm": ["Ada", "Bo"], "Last_Nm": QM}, ["First_Nm", "Last_Nm"]),
        ({"A. Name": [ADA, BO]}, ["A. Name"]),
        # A family or company name, completed by the given name.
        (
            {"Nom / Raison sociale": ["Quillon", ACME], "Prénom": ["Ada", None]},
            ["Prénom", "Nom / Raison sociale"],
        ),
        ({"Nachname/Firma": [ACME, BRILL], "Vorname": [None, None]}, ["Nachname/Firma"]),
        ({"Company name": [ACME, BRILL], "First name": ["Ada", "Bo"]}, ["Company name"]),
        # A relative who identifies the payee, unless no other name is there or the account is theirs.
        ({"Name": [ADA, BO], "Father's Name": [ACME, BRILL]}, ["Name"]),
        ({"Name": [ADA, BO], "Father/Husband Name": [ACME, BRILL]}, ["Name"]),
        ({"Name": [ADA, BO], "Mother's maiden name": QM}, ["Name"]),
        ({"Név": [ADA, BO], "Anyja neve": [ACME, BRILL]}, ["Név"]),
        ({"Name": [ADA, BO], "Guardian": [ACME, BRILL]}, ["Name"]),
        ({"Employee Name": [ADA, BO], "Nominee": [ACME, BRILL]}, ["Employee Name"]),
        ({"Guardian": [ADA, BO]}, ["Guardian"]),
        ({"Name": [ADA, BO], "Father": [ACME, BRILL], "Father's IBAN": IBANS}, ["Father"]),
        # A parent or user, if no other column may name people.
        ({"Parent name": [ADA, BO]}, ["Parent name"]),
        ({"User name": [ADA, BO], "Bank name": ["Ostra Bank", "Vale Bank"]}, ["User name"]),
        ({"User": [ADA, BO], "Name": [ACME, BRILL]}, ["Name"]),
        # The given name that a person uses counts if no other is there.
        ({"Preferred name": ["Ada", "Bo"], "Surname": QM}, ["Preferred name", "Surname"]),
        ({"Nom": QM, "Prénom usuel": ["Ada", "Bo"]}, ["Prénom usuel", "Nom"]),
        ({"Name": ["Adele Quillon", "Robert Marrow"], "Known as": ["Ada", "Bo"]}, ["Name"]),
        ({"Vorname": ["Adele", "Robert"], "Rufname": ["Ada", "Bo"], "Nachname": QM}, ["Vorname", "Nachname"]),
        (
            {"Cognome/Ragione sociale": ["Quillon", ACME], "Nome": ["Ada", None]},
            ["Nome", "Cognome/Ragione sociale"],
        ),
        (
            {"Nome/Ragione sociale": ["Ada", ACME], "Cognome": ["Quillon", None]},
            ["Nome/Ragione sociale", "Cognome"],
        ),
        (
            {"Achternaam of bedrijfsnaam": ["Quillon", ACME], "Voorletters": ["A.", None]},
            ["Voorletters", "Achternaam of bedrijfsnaam"],
        ),
        (
            {"Nombre": ["Adele", "Robert"], "Nombre preferido": ["Ada", "Bo"], "Apellidos": QM},
            ["Nombre", "Apellidos"],
        ),
        # An institution, if no other column names or numbers people.
        ({"School": [ACME, BRILL]}, ["School"]),
        ({"School": [ACME, BRILL], "School ID": ["70001", "70002"]}, ["School"]),
        ({"School": [ACME, BRILL], "Student ID": ["70001", "70002"]}, None),
        ({"School": [ACME, BRILL], "Claim ref": ["70001", "70002"]}, None),
        # An agency or an employer of the people named.
        ({"Agency worker name": [ADA, BO], "Agency name": [ACME, BRILL]}, ["Agency worker name"]),
        ({"Agency": [ACME, BRILL], "Name": [ADA, BO]}, ["Name"]),
        ({"Worker": [ADA, BO], "Agency": [ACME, BRILL]}, ["Worker"]),
        ({"Worker": [ADA, BO], "Umbrella company": [ACME, BRILL]}, None),
        ({**PARTS, "Agency": [ACME, BRILL]}, list(PARTS)),
        ({**PARTS, "Arbeitgeber": [ACME, BRILL]}, list(PARTS)),
        ({"Name": [ADA, BO], "Employer": [ACME, BRILL]}, ["Name"]),
        ({**PARTS, "Agency": [ACME, BRILL], "Agency IBAN": IBANS}, ["Agency"]),
        ({"Employer": [ACME, BRILL]}, ["Employer"]),
        # Neither, so that somebody has to say.
        ({"Student": [ADA, BO], "Father": [ACME, BRILL]}, None),
        ({"Zorblex": [ADA, BO], "Father": [ACME, BRILL]}, None),
        ({"Child first name": ["Ada", "Bo"], "Guardian": [ACME, BRILL]}, None),
        ({**PARTS, "Client": [ACME, BRILL]}, None),
        ({"Claimant": [ADA, BO], "Employer": [ACME, BRILL]}, None),
        ({"Name": QM, "Zorblex": ["Ada", "Bo"]}, None),
        ({"Name (column 1)": [ADA, BO], "Name (column 2)": [ACME, BRILL]}, None),
    ],
)
def test_whose_name_it_is_beside_parts_relatives_and_firms(columns, name):
    has_account = any("IBAN" in header for header in columns)
    cells = pl.DataFrame({**columns, **({} if has_account else {"IBAN": IBANS})}, strict=False)
    if name is None:
        with refused(InputError, {"headers.either_could_be", "headers.no_payee"}):
            read_columns(cells, {}, where="x.csv")
    else:
        assert read_columns(cells, {}, where="x.csv").sources["name"] == (tuple(name),)


SIMILAR = [ADA, BRILL]
"""Names of payouts: the first is also that of the person in the row."""


@for_each(
    ("columns", "name"),
    [
        # A name of the payout beside its account; if no word is shared, somebody else may be meant.
        ({"Name": [ADA, BO], "payout_name": SIMILAR, "payout_IBAN": IBANS}, ["payout_name"]),
        ({**PARTS, "Auszahlung Name": SIMILAR, "Auszahlung IBAN": IBANS}, ["Auszahlung Name"]),
        ({"virement_nom": SIMILAR, "virement_IBAN": IBANS}, ["virement_nom"]),
        ({"Bolsista/Orientador": [ADA, BO]}, ["Bolsista/Orientador"]),
        ({"Nome": [ADA, BO], "Orientador": [ACME, BRILL]}, None),
        ({"payment_details_name": SIMILAR, "payment_details_IBAN": IBANS}, ["payment_details_name"]),
        ({"Name": [ADA, BO], "paymentInfo.name": [ACME, BRILL], "paymentInfo.IBAN": IBANS}, None),
        (
            {
                "Name": [ADA, BO],
                "refund first name": ["A", "B"],
                "refund last name": QM,
                "refund IBAN": IBANS,
            },
            ["refund first name", "refund last name"],
        ),
        ({"Name": [ADA, BO], "payout_name": [ACME, BRILL], "payout_IBAN": IBANS}, None),
        ({"Supplier": [ADA, BO], "Payment name": [ACME, BRILL], "Payment IBAN": IBANS}, None),
        ({"Company": [ADA, BO], "Payment name": [ACME, BRILL], "Payment IBAN": IBANS}, None),
        ({**PARTS, "Transfer name": [ACME, BRILL]}, None),
        ({"Supplier": [ADA, BO], "Payment name": ["rent", "stock"], "Payment IBAN": IBANS}, ["Supplier"]),
        # Who holds what is paid into.
        ({"Company": [ACME, BRILL], "payment_bank_holder": [ADA, BO]}, ["payment_bank_holder"]),
        ({"Nimi": [ACME, BRILL], "pankki_haltija": [ADA, BO]}, ["pankki_haltija"]),
        ({"Company": [ACME, BRILL], "Payout holder": [ADA, BO], "Payout IBAN": IBANS}, None),
        # A holder in the same section as the account.
        (
            {"Naam": [ACME, BRILL], "kassa__IBAN": IBANS, "kassa__rekeninghouder": [ADA, BO]},
            ["kassa__rekeninghouder"],
        ),
        ({"Payee": [ACME, BRILL], "zorblex.IBAN": IBANS, "zorblex.account holder": [ADA, BO]}, None),
        # Two companies of the payer.
        (
            {
                "Company": ["10", "10"],
                "Company name": [ACME, ACME],
                "Business": [BRILL, BRILL],
                "Name": [ADA, BO],
            },
            ["Name"],
        ),
        ({"Company": [ACME, ACME], "Company name": [ADA, BRILL]}, ["Company name"]),
    ],
)
def test_names_of_payouts_and_holders_of_sections_belong_to_their_account(columns, name):
    test_whose_name_it_is_beside_parts_relatives_and_firms.__wrapped__(columns, name)


def test_an_account_name_before_a_sort_code_is_a_bank_accounts_if_it_holds_names():
    account = {"Sort code": ["123456", "234567"], "Account number": ["12345678", "23456789"]}
    columns = {"Supplier": [ADA, BO], "Account name": [ACME, BRILL], **account}
    assert read_columns(pl.DataFrame(columns), {}, where="x.csv").sources["name"] == (("Account name",),)
    with refused(InputError, "headers.either_could_be", "headers.the_payee"):
        read_columns(pl.DataFrame({**columns, "Account name": ["travel", "rent"]}), {}, where="x.csv")
