"""A server is one, however its address is spelled, and a client is not named."""

import pytest

from pipeline.stores.scopes import canonical, scope_of

SPELLINGS = {
    "cop.example": [
        "cop.example",
        "COP.example",
        "Cop.Example:443",
        "cop.example:0443",
        "cop.example:",
        "cop.example.",
        "COP.EXAMPLE.:443",
    ],
    "cop.example:8443": ["cop.example:8443", "COP.example.:08443"],
    "localhost": ["localhost", "LOCALHOST", "localhost:443", "LocalHost."],
    "xn--bcher-kva.example": ["xn--bcher-kva.example", "XN--BCHER-KVA.example"],
    "[::1]": ["[::1]", "[::1]:443", "[0:0:0:0:0:0:0:1]", "[0000::0001]"],
    "[2001:db8::ff]:8443": ["[2001:db8::ff]:8443", "[2001:0DB8:0:0::00FF]:8443"],
    "127.0.0.1": ["127.0.0.1", "127.0.0.1:443", "127.0.0.1.", "127.1", "0x7f.1", "[::ffff:127.0.0.1]"],
}


@pytest.mark.parametrize(
    ("one", "spelled"), [(one, spelled) for one, all_of_it in SPELLINGS.items() for spelled in all_of_it]
)
def test_all_spellings_of_a_server_are_one(one, spelled):
    assert scope_of(spelled, "client-7") == f"{one}|d2a753150e076f9b"


def test_different_servers_and_ports_stay_apart_and_so_do_a_name_and_its_address():
    netlocs = [
        *SPELLINGS,
        "cop.example:80",
        "cop.example:44",
        "op.example",
        "cop.exampl",
        "[::2]",
        "127.0.0.2",
    ]
    assert len({canonical(netloc) for netloc in netlocs}) == len(netlocs)


def test_different_clients_of_a_server_stay_apart():
    assert scope_of("cop.example", "client-7") != scope_of("cop.example", "client-8")


@pytest.mark.parametrize("text", ["", ".", ":99999", "a:b", "[::1", "[::g]", "[]", "\0"])
def test_what_is_no_host_is_left_as_it_is(text):
    assert canonical(text) == text


def test_a_scope_names_the_server_and_hides_the_client():
    assert scope_of("cop.example", "client-7") == "cop.example|d2a753150e076f9b"
