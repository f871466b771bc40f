"""Files that cannot be used: the page gives the command's reason, and the desk lives."""

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
