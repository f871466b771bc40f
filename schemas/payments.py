"""The payment file: the fields of a payment row, and their meanings."""

from pydantic import BaseModel, ConfigDict, Field


class Payment(BaseModel):
    """One row of a payment file. Every field is text; an empty field is absent."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    payment_id: str | None = Field(None, description="The payer's own id of the payment.")
    name: str | None = Field(None, description="The payee's name, at most 140 characters; sent as entered.")
    account_type: str | None = Field(None, description="Personal or Business.")
    sort_code: str | None = Field(None, description="UK sort code: 6 digits, hyphens and spaces allowed.")
    account_number: str | None = Field(None, description="UK account number: 8 digits.")
    iban: str | None = Field(None, description="IBAN, ISO 13616; spaces and punctuation allowed.")
    bic: str | None = Field(None, description="BIC of the payee's bank, ISO 9362.")
    secondary_reference: str | None = Field(
        None, description="Secondary reference, such as a building society roll number."
    )
    lei: str | None = Field(None, description="The payee's Legal Entity Identifier, ISO 17442.")
    organisation_bic: str | None = Field(None, description="The payee's own BIC.")
    organisation_id: str | None = Field(None, description="Another identification of the payee.")
    organisation_id_scheme: str | None = Field(
        None, description="What organisation_id is: one of the 14 scheme codes, such as TXID."
    )
    organisation_id_issuer: str | None = Field(None, description="Who issued organisation_id.")
    amount: str | None = Field(None, description="Amount in the currency's main unit, as decimal text.")
    currency: str | None = Field(None, description="Currency, ISO 4217, three letters, or £ or €.")
    reference: str | None = Field(None, description="Payment reference, returned untouched.")


FIELDS: tuple[str, ...] = tuple(Payment.model_fields)  # in the order of the documentation

IGNORE = "ignore"  # the key in mappings for columns to ignore


class ConfiguredHeader(str):
    """A header that the configuration maps: it helps to read a file, but is not a sign of payments."""

    __slots__ = ()
