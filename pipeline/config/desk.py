"""The section `[desk]` of the configuration: roles, limits and retention for a team's desk."""

from typing import Annotated

from pydantic import Field, StringConstraints

from pipeline.sections.values import Section, Words

HeaderName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9-]*$")]


class DeskRoles(Section):
    """The users with each role, by their identities at the proxy."""

    uploader: list[Words] = Field(default_factory=list)
    reviewer: list[Words] = Field(default_factory=list)
    approver: list[Words] = Field(default_factory=list)
    auditor: list[Words] = Field(default_factory=list)


class DeskSection(Section):
    """The section `desk` of the configuration."""

    host: Words | None = None
    """The host name of a team's desk for browsers, with a port if it is not 443."""
    proxy_user: Words | None = None
    """The system user that the proxy runs as; only this user may connect to the socket."""
    identity_header: HeaderName = "X-Forwarded-Email"
    """The header that carries the user's name from the proxy."""
    upload_mib_max: Annotated[int, Field(ge=1, le=1_000_000)] = 512
    """Maximum size of an upload."""
    person_mib_max: Annotated[int, Field(ge=1, le=1_000_000)] = 8192
    """Maximum total size of one person's files at the desk."""
    idle_minutes_max: Annotated[int, Field(ge=1, le=1_000_000)] = 240
    """How long a session lasts without activity."""
    session_hours_max: Annotated[int, Field(ge=1, le=1_000_000)] = 12
    """How long a session lasts at most."""
    keep_days: Annotated[int, Field(ge=1, le=36_500)] | None = None
    """How long names and files are kept after the last check; None means until a user deletes them."""
    roles: DeskRoles = Field(default_factory=DeskRoles)
