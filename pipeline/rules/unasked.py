"""Payments that break no rule and are still not asked about, because the profile excludes them."""

from collections.abc import Mapping

from schemas.outcomes import Action, Meaning, Outcome

OUT_OF_REACH, OUT_OF_ALPHABET = "OUT_OF_REACH", "OUT_OF_ALPHABET"
_BY_THE_PROFILE = "anything about the payee or the account: no bank was asked, as the profile wants it."
UNASKED: Mapping[str, Meaning] = {
    OUT_OF_REACH: Meaning(
        Outcome.NOT_POSSIBLE,
        Action.ASK_PAYEE,
        "from a country that is not in the profile's vop_countries, so no bank was asked",
        _BY_THE_PROFILE,
        "Ask the payee, by a contact that you knew before this payment; or, if the country's banks take part "
        "in VoP, add it to vop_countries.",
    ),
    OUT_OF_ALPHABET: Meaning(
        Outcome.NOT_POSSIBLE,
        Action.ASK_PAYEE,
        'has letters that VoP may not carry between banks, and the profile has vop_names = "latin", so no '
        "bank was asked",
        _BY_THE_PROFILE,
        "Give the name in Latin letters where the payee has one, and check again; or ask the payee, by a "
        "contact that you knew before this payment.",
    ),
}
"""The code and reason of a payment that breaks no rule and that the profile excludes."""
