"""Headers that banks, payroll products and payment providers print in their own templates.

They are written here as printed; `columns.fold` makes them comparable. A header that could mean
two things is not a synonym: a wrong guess would ask a bank about the wrong account.
"""

from collections.abc import Mapping

SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "payment_id": ("E2E ID", "End To End ID", "transaction id", "custom id"),
    "name": (
        "Payee",
        "Beneficiary",
        "Beneficiary Name",
        "Beneficiary Account Name",
        "Recipient",
        "Recipient Name",
        "Account Name",
        "Account Holder",
        "Account Holder Name",
        "Creditor Name",
        "Destination Name",
        "Destination Account Name",
        "Contact Name",
        "Request Name",
        "Payee Name",
        "Nm",
        "NAME 1",
        "AGNAME1",
        "Empfänger",
        "Inhaber",
        "Kontoinhaber",
        "Empfänger/Absender - Name",
        "KNDNAME",
    ),
    "account_type": (
        "Payee Type",
        "Beneficiary Type",
        "Recipient Type",
        "Person or Business",
        "Personal or Business",
    ),
    "sort_code": (
        "Payee Sort Code",
        "Beneficiary Sort Code",
        "Recipient Sort Code",
        "Destination Sort Code",
    ),
    "account_number": (
        "Account",
        "Account No",
        "Payee Account Number",
        "Beneficiary Account",
        "Beneficiary Account Number",
        "Recipient Account Number",
        "Destination Account Number",
        "Bank Account Number",
    ),
    "iban": (
        "Account IBAN",
        "Payee IBAN",
        "Beneficiary IBAN",
        "Recipient IBAN",
        "Request IBAN",
        "Creditor IBAN",
        "creditor account IBAN",
        # German files of the SEPA era write the IBAN under the old word for account number. An old
        # number under it cannot pass for an IBAN: its check digits would be wrong.
        "Kontonummer",
        "KONTONR",
        "KTONUMMER",
        "KONTO",
        "AGKTO",
        "KNDKONTONR",
        "Empfänger/Absender - Kontonummer",
    ),
    "bic": (
        "BIC Code",
        "SWIFT",
        "SWIFT Code",
        "SWIFT BIC",
        "BIC SWIFT",
        "Account SWIFT",
        "Beneficiary BIC",
        "creditor agent BIC",
    ),
    "secondary_reference": (
        "Secondary Identification",
        "Roll Number",
        "Building Society Roll Number",
        "Building Society Reference",
    ),
    "lei": ("Legal Entity Identifier",),
    "organisation_bic": ("organization BIC", "AnyBIC", "BICOrBEI"),
    "organisation_id": ("organization id", "org id", "Beneficiary ORG ID"),
    "organisation_id_scheme": ("organization id scheme", "org id scheme"),
    "organisation_id_issuer": ("organization id issuer", "org id issuer"),
    "amount": (
        "amount pounds",
        "Amount (GBP)",
        "Amount (EUR)",
        "payment amount",
        "Send Value",
        "InstdAmt",
        "Value",
        "Net Pay",
        "Betrag",
        "Betrag (EUR)",
    ),
    "currency": (
        "Currency Code",
        "amount currency",
        "Währung",
        "WAEHRUNG",
        "BTGWAEHR",
        "Betrag - Währung",
        "WKZ",
        "VK-Währung",
    ),
    "reference": (
        "Payment Reference",
        "Beneficiary Reference",
        "Recipient Reference",
        "Service User Reference",
        "Customer Reference",
        "Reference Number",
        "label",
        "remittance information",
        "Ustrd",
        "Text for creditor",
        "VWZ",
        "Verwendungszweck",
        "ZWECK1",
        "Umsatzbeschreibung",
    ),
}
"""Headers seen in the wild, as printed, that mean one field wherever they stand.

Left out on purpose: `Details` (a sort code in one product, free text in all others); `code`,
`number`, `identifier`, `id` (of what?); `bank code`, `routing number`, `BLZ`, `national bank code`
(a national code of any country: a sort code only in Britain, never a BIC); `InstrId` (stands
beside EndToEndId); source, target, send, recipient, payment and payout currency (two of them in
one file); company registration, tax number, DUNS (an identification without its scheme).
"""

SECOND_CHOICE: Mapping[str, tuple[str, ...]] = {
    "payment_id": ("Employee No", "Employee Number", "Payroll No", "Payroll Number"),
    "name": (
        "Full Name",
        "Employee Name",
        "Staff Name",
        "Supplier Name",
        "Supplier",
        "Vendor Name",
        "Customer Name",
        "Zahlungsempfänger",
        "Begünstigter",
        "Bénéficiaire",
        "Nom",
    ),
    "sort_code": ("Bank Sort Code",),
    "account_number": ("Acc No", "A/C No", "Bank Account"),
    "iban": ("IBAN Number", "IBAN No", "IBAN des Empfängers"),
    "amount": ("Amt",),
    "currency": ("Ccy",),
}
"""Headers that mean a field where no other header of the file does.

A supplier's name often stands beside the name of its account, and an employee's number beside the id of
the payment: then they are columns like any other.
"""

COMBINED: tuple[str, ...] = (
    "Sort Code Account Number",
    "Sort Code and Account Number",
    "Sort Code Account",
    "Sort Code and Account",
    "Sort Code Account No",
)
"""Headers of a sort code and an account number in one cell; read as account_number, then split."""

GIVEN_NAME = ("First Name", "Given Name", "Forename", "fname", "Vorname", "Prénom", "Prenom")
FAMILY_NAME = ("Last Name", "Family Name", "Surname", "lname", "Nachname")
COMPANY_NAME = ("Company Name", "Company", "Business Name", "Organisation Name", "Organization Name")
