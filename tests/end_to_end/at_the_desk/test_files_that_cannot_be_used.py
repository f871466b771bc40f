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


@pytest.mark.parametrize("code", ["de", pytest.param("fr", marks=pytest.mark.nightly)])
def test_the_reason_is_in_the_language_of_the_page(own_desk, mara, code):
    for name, content in UNUSABLE.items():
        at, reason, _ = own_desk.refusals(mara, name, content)
        page = mara.get(f"/files/{at}/columns", Accept_Language=code).text
        [notice] = re.findall(r'<p class="notice" role="alert">(.*?)</p>', page, re.DOTALL)
        assert 'lang="en"' not in notice, name
        assert reason not in notice, name
