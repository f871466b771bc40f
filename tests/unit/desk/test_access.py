"""Who comes in: a person whom the proxy names once, or the holder of a link that works once."""

import os
import socket
from types import SimpleNamespace

import pytest
from multidict import CIMultiDict
from refusals import refused

from pipeline.config.file import DeskSection
from pipeline.desk.access import LINK_MAX_S, ProxyAccess, Sessions, new_link
from pipeline.desk.people import Role
from pipeline.desk.refusals import Forbidden, NotNamed

OURS = os.getuid()
HEADER = "X-Forwarded-Email"
LASTS = {"idle_max_s": 60, "max_s": 3600}
TEAM = DeskSection(host="desk.example", roles={"approver": ["Anna@example.com"]})


@pytest.fixture
def named():
    """What a request with these identities is taken for, if a process of this user passes it on."""
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:

        def person(*names, proxy_uid=OURS):
            transport = SimpleNamespace(get_extra_info={"socket": ours}.get)
            headers = CIMultiDict((HEADER, name) for name in names)
            request = SimpleNamespace(headers=headers, transport=transport)
            access = ProxyAccess(TEAM, proxy_uid)
            access.require_peer(request)
            return access.person(request, counts=True)

        yield person


def test_the_proxy_says_who_it_is(named):
    person = named("anna@example.com")
    assert (person.roles, person.is_identified) == ({Role.APPROVER}, True)


@pytest.mark.parametrize(
    "names",
    [
        (),
        ("",),
        ("anna@example.com", "anna@example.com"),
        ("anna@example.com", "eve@example.com"),
        ("anna@example.com, eve@example.com",),
    ],
)
def test_an_identity_that_is_missing_empty_or_repeated_is_none(named, names):
    with pytest.raises(NotNamed):
        named(*names)


@pytest.mark.parametrize("name", ["\uff32ita@example.com", "rit\uff41@example.com", "\u212aim@example.com"])
def test_an_identity_in_letters_that_stand_for_others_is_none(named, name):
    with pytest.raises(NotNamed):
        named(name)


def test_nobody_but_the_proxy_says_who_it_is(named):
    with refused(Forbidden, "desk.only_the_proxy"):
        named("anna@example.com", proxy_uid=OURS + 1)


@pytest.fixture
def entered(tmp_path):
    """Whom a link of time 0 lets in, at a time."""
    new_link(tmp_path, "Mara", "token", 0.0)
    return lambda token, at_s: Sessions(tmp_path, **LASTS, clock=lambda: at_s, chance=lambda: "s").enter(
        token
    )


def test_a_link_works_once(entered):
    _, person = entered("token", 1.0)
    assert person.name == "Mara"
    assert entered("token", 1.0) is None


def test_a_link_that_is_unknown_or_too_old_lets_nobody_in(entered):
    assert entered("another", 1.0) is None
    assert entered("token", LINK_MAX_S + 1) is None
