"""Files that cannot be used: the page gives the command's reason, and the desk lives."""

import re

import pytest
from hostile_files import UNUSABLE


@pytest.mark.parametrize("name", UNUSABLE)
def test_the_page_gives_the_reason_that_the_command_gives(own_desk, mara, name):
    at, reason, page = own_desk.refusals(mara, name, UNUSABLE[name])
    assert reason in page
    assert "--" not in page
    assert "precheck columns" not in page
    assert mara.post(f"/files/{at}/columns", {"then": "plan"}).to.endswith("/columns")
    assert mara.post(f"/files/{at}/start").status == 409
    assert own_desk.process.poll() is None


def test_what_cells_look_like_is_proposed_and_what_is_missing_is_said(mara):
    at = mara.file(b"wer;wohin\nAda Quilon;112233 00000001\nBo Marrow;203040 12345678\n", "odd.csv")
    page = mara.get(f"/files/{at}/columns").text
    assert re.findall('<option value="([a-z_]+)" selected', page) == ["name", "account_number"]
    assert "Still missing" not in page
    said = {"column:wer": "name", "column:wohin": "account_number", "country": "GB", "then": "plan"}
    assert mara.post(f"/files/{at}/columns", said).to.endswith("/columns?read=anew")
    assert mara.post(f"/files/{at}/columns", said).to.endswith("/plan")
    at = mara.file(b"wer;wieviel\nAda Quilon;12\nBo Marrow;13\n", "odd.csv")
    page = mara.get(f"/files/{at}/columns").text
    assert "Still missing: account." in page
    assert page.count('name="then"') == 1


@pytest.mark.parametrize("code", ["de", pytest.param("fr", marks=pytest.mark.nightly)])
def test_the_reason_is_in_the_language_of_the_page(own_desk, mara, code):
    for name, content in UNUSABLE.items():
        at, reason, _ = own_desk.refusals(mara, name, content)
        page = mara.get(f"/files/{at}/columns", Accept_Language=code).text
        [notice] = re.findall(r'<p class="notice" role="alert">(.*?)</p>', page, re.DOTALL)
        assert 'lang="en"' not in notice, name
        assert reason not in notice, name
