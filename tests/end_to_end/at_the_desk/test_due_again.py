"""A file that is uploaded again when its payments are due again, with answers that are not simulated."""

import json
import re

import pytest
from refusals import said
from visitors import served_desk

ROWS = b"payment_id,name,account_type,sort_code,account_number,amount,currency\n" + b"".join(
    f"P-{n},{name},Personal,001122,00012345,{n}0.00,GBP\n".encode()
    for n, name in enumerate(("Avery Thornwood", "Avery Thornwood", "Averi Thornwood"), 1)
)


@pytest.fixture(scope="module")
def rita(tmp_path_factory, sandbox):
    """A reviewer at a desk whose profile is of production."""
    section = sandbox.section("sandbox", "cop", server="production")
    lines = ["[profiles.main.cop]", *(f"{key} = {json.dumps(value)}" for key, value in section.items())]
    with served_desk(tmp_path_factory.mktemp("again"), profiles="\n".join(lines) + "\n") as running:
        yield running.visitor("Rita")


def text_of(answer):
    assert answer.status == 200, answer.text
    return " ".join(re.sub("<[^>]*>", "", answer.text).split())


def test_what_was_released_before_is_shown_and_released_again_only_if_the_approver_says_that_it_is_due(rita):
    first, second = rita.checked(ROWS, "rent.csv"), rita.checked(ROWS, "rent.csv")
    page = f"/files/{second}/release"
    assert "due again" not in text_of(rita.get(page))
    assert rita.approve(first).status == 303

    held = text_of(rita.get(page))
    assert "2 payments were released before in rent.csv, approved by Rita" in held
    assert "1, 2. They are held here." in held
    assert "The same file was uploaded twice. They are due again" in held
    again = text_of(rita.get(f"{page}?again=yes"))
    assert "2 payments were released before in rent.csv" in again
    assert "held here" not in again
    assert "2 payments are due again, and this approval releases them: rows 1, 2." in again
    listed = rita.get(f"/files/{second}/review?rows=all&decided=release&again=yes").text
    assert re.findall('id="row-([0-9]+)"', listed) == ["2", "1"]

    refused = rita.approve(second, release_again="yes", shown=rita.shown(second, "release"))
    assert refused.status == 409  # the page showed that they are held
    assert rita.approve(second).status == 303
    assert "Nothing to release: every payment is held." in text_of(rita.get(page))
    assert rita.post(f"/files/{second}/rows/3", {"decision": "hold", "reason": "called"}).status == 303

    shown = rita.shown(second, "release?again=yes")
    assert rita.approve(second, release_again="yes", shown=shown).status == 303
    done = text_of(rita.get(page))
    assert "2 payments were released again: rows 1, 2." in done
    assert "held here" not in done
    assert "GBP" in done.partition("Release2")[2].partition("Hold")[0]
    verified = text_of(rita.post(f"/files/{second}/verify"))
    assert said("evidence.released_again", "page", count=2, rows="1, 2") in verified
    assert "Nothing was changed." in verified
    assert "were released" not in text_of(rita.get(f"/files/{first}/release"))  # by then


def test_what_another_file_of_the_family_released_is_never_due_again(rita):
    at = rita.checked(ROWS, "wages.csv")
    assert rita.post(f"/files/{at}/rows/3", {"decision": "fix", "reason": "on the invoice"}).status == 303
    after = rita.post(f"/files/{at}/check-again").to.split("/")[2]
    rita.check(after)
    assert rita.approve(after).status == 303
    for address in (f"/files/{at}/release", f"/files/{at}/release?again=yes"):
        page = text_of(rita.get(address))
        assert "payments were released before in" in page
        assert "They are held here." in page
        assert "due again" not in page
    shown = rita.shown(at, "release?again=yes")
    assert rita.approve(at, release_again="yes", shown=shown).status == 303
    assert "every payment is held" in text_of(rita.get(f"/files/{at}/release"))


def test_a_release_file_that_is_uploaded_again_is_held_until_its_payments_are_due(rita):
    at = rita.checked(ROWS.replace(b"P-", b"F-"), "fees.csv")
    assert rita.approve(at).status == 303
    released = rita.get(f"/files/{at}/download/release.csv").body

    again = rita.checked(released, "release.csv")

    page = text_of(rita.get(f"/files/{again}/release"))
    assert "2 payments were released before in fees.csv" in page
    assert "They are due again" in page
    assert rita.approve(again).status == 303
    assert "every payment is held" in text_of(rita.get(f"/files/{again}/release"))
