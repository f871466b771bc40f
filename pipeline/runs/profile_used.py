"""The settings of a run: what its manifest says of them, and where payments could go by what it says."""

from collections.abc import Mapping
from typing import NamedTuple

from pipeline.config import Profile, Server, VopStandard
from pipeline.stages.validate import Routes
from schemas.manifest import ProfileUsed, ServerUsed
from schemas.outcomes import ApiName

_CLIENT_SHOWN_LENGTH = 4


class Settings(NamedTuple):
    """With which settings a run was made."""

    profile_name: str
    profile: Profile
    fingerprint: str
    mapping: Mapping[str, str]
    """Canonical field -> header, as --map said."""


def profile_used(settings: Settings) -> ProfileUsed:
    """The settings of a run as its manifest has them; credentials are left out."""
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
                **server.model_dump(include=_LIMITS),
                **(_directory(server) if isinstance(server, VopStandard) else {}),
            )
            for server in profile.servers
        ],
    )


_LIMITS = (set(Server.model_fields) & set(ServerUsed.model_fields)) - {"daily_cap"}


def _directory(server: VopStandard) -> dict[str, object]:
    return {"send_remittance": server.send_remittance, "bic_table": server.bic_table}


def routes_of(profile: ProfileUsed) -> Routes:
    """Where payments could go under the settings of the run."""
    servers = {server.api: server for server in profile.servers}
    standard = servers.get(ApiName.VOP_STANDARD)
    return Routes(
        cop=ApiName.COP in servers,
        vop=next((api for api in servers if api is not ApiName.COP), None),
        gb_iban_to="vop" if profile.gb_iban_to == "vop" else "cop",
        default_account_type=profile.default_account_type,
        ask_by="identification" if profile.ask_by == "identification" else "name",
        send_remittance=standard is not None and standard.send_remittance,
        bic_table={} if standard is None else standard.bic_table,
        vop_countries=None if profile.vop_countries is None else tuple(profile.vop_countries),
        vop_names="latin" if profile.vop_names == "latin" else "any",
    )


def masked_client(client: str) -> str:
    """Enough of a client's id to tell two apart, and no more."""
    return "****" + (client[-_CLIENT_SHOWN_LENGTH:] if len(client) > 2 * _CLIENT_SHOWN_LENGTH else "")
