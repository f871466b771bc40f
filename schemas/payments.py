"""The payment file: the fields of a payment row, and their meanings."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class Payment(BaseModel):
    """One row of a payment file. Every field is text; an empty field is absent."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    payment_id: Annotated[str | None, Field(description="The payer's own id of the payment.")] = None
    name: Annotated[
        str | None, Field(description="The payee's name, at most 140 characters; sent as entered.")
    ] = None
    account_type: Annotated[str | None, Field(description="Personal or Business.")] = None
    sort_code: Annotated[
        str | None, Field(description="UK sort code: 6 digits, hyphens and spaces allowed.")
    ] = None
    account_number: Annotated[str | None, Field(description="UK account number: 8 digits.")] = None
    iban: Annotated[str | None, Field(description="IBAN, ISO 13616; spaces and punctuation allowed.")] = None
    bic: Annotated[str | None, Field(description="BIC of the payee's bank, ISO 9362.")] = None
    secondary_reference: Annotated[
        str | None, Field(description="Secondary reference, such as a building society roll number.")
    ] = None
    lei: Annotated[str | None, Field(description="The payee's Legal Entity Identifier, ISO 17442.")] = None
    organisation_bic: Annotated[str | None, Field(description="The payee's own BIC.")] = None
    organisation_id: Annotated[str | None, Field(description="Another identification of the payee.")] = None
    organisation_id_scheme: Annotated[
        str | None, Field(description="What organisation_id is: one of the 14 scheme codes, such as TXID.")
    ] = None
    organisation_id_issuer: Annotated[str | None, Field(description="Who issued organisation_id.")] = None
    amount: Annotated[
        str | None, Field(description="Amount in the currency's main unit, as decimal text.")
    ] = None
    currency: Annotated[str | None, Field(description="Currency, ISO 4217, three letters, or £ or €.")] = None
    reference: Annotated[str | None, Field(description="Payment reference, returned untouched.")] = None


FIELDS: tuple[str, ...] = tuple(Payment.model_fields)
"""The canonical fields, in the order of the documentation."""

IGNORE = "ignore"  # the key in mappings for columns to ignore


class ConfiguredHeader(str):
    """A header that the configuration maps: it helps to read a file, but is not a sign of payments."""

    __slots__ = ()
