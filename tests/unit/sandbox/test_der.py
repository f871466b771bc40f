"""The little of DER that is spoken."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.sandbox import der


@given(st.lists(st.text(max_size=400), max_size=8))
def test_what_is_written_is_read_back(texts):
    ((tag, content),) = der.members(der.sequence(*(der.utf8_string(text) for text in texts)))
    assert tag == der.SEQUENCE
    assert [(der.UTF8_STRING, text.encode()) for text in texts] == list(der.members(content))


def test_an_object_identifier_is_as_in_the_standard():
    assert der.object_identifier("1.2.840.113549").hex() == "06062a864886f70d"
    assert der.object_identifier("0.4.0.19495.2").hex() == "060604008198270" + "2"


@pytest.mark.parametrize("broken", [b"\x30", b"\x30\x05ab", b"\x30\x80", b"\x30\x85\x01\x01\x01\x01\x01"])
def test_what_is_cut_short_is_refused(broken):
    with pytest.raises(ValueError, match="short"):
        list(der.members(broken))
