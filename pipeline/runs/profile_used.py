"""The settings of a run as its manifest records them, and the routes that follow from these."""

from collections.abc import Mapping
from typing import NamedTuple

from pipeline.config import Profile
from pipeline.stages.validate import Routes
from schemas.manifest import ProfileUsed, ServerUsed
from schemas.outcomes import ApiName

_CLIENT_SHOWN_LENGTH = 4


class RunSettings(NamedTuple):
    """The settings of a run."""

    profile_name: str
    profile: Profile
    fingerprint: str
    mapping: Mapping[str, str]  # canonical field -> header, chosen by the user
    language: str  # language of page and workbook


def profile_used(settings: RunSettings) -> ProfileUsed:
    """Return a run's settings for its manifest, without credentials."""
    profile = settings.profile
    return ProfileUsed(
        name=settings.profile_name,
        sha256=settings.fingerprint,
        default_account_type=profile.default_account_type,
        gb_iban_to=profile.gb_iban_to,
        ask_by=profile.ask_by,
        vop_countries=None if profile.vop_countries == "any" else profile.vop_countries,
        vop_names=profile.vop_names,
        servers=[
            ServerUsed(
                api=server.name,
                client=masked_client(server.client),
                daily_cap=server.cap,
                **server.model_dump(include=_KEPT),
            )
            for server in profile.servers
        ],
    )


_KEPT = set(ServerUsed.model_fields) - {"api", "client", "daily_cap"}
"""Keys of a section that the manifest records under the same name."""


def routes_of(profile: ProfileUsed) -> Routes:
    """Return the routes of payments under a run's settings; a run without servers read a bank's report."""
    return Routes(
        apis=tuple(server.api for server in profile.servers) or (ApiName.BANK_REPORT,),
        gb_iban_to="vop" if profile.gb_iban_to == "vop" else "cop",
        default_account_type=profile.default_account_type,
        ask_by="identification" if profile.ask_by == "identification" else "name",
        send_remittance=any(server.send_remittance for server in profile.servers),
        bic_table={start: bic for server in profile.servers for start, bic in server.bic_table.items()},
        vop_countries=None if profile.vop_countries is None else tuple(profile.vop_countries),
        vop_names="latin" if profile.vop_names == "latin" else "any",
    )


def masked_client(client: str) -> str:
    """Return as much of a client's id as is needed to tell clients apart."""
    return "****" + (client[-_CLIENT_SHOWN_LENGTH:] if len(client) > 2 * _CLIENT_SHOWN_LENGTH else "")
