"""All rows of a file: sorted, filtered by their address, with whole accounts for who compares."""

import re
from pathlib import Path

import pytest

MIXED = (Path(__file__).parents[3] / "sample_data" / "payments_mixed.csv").read_bytes()
UP, UMA, RITA = (f"{name}@example.com" for name in ("up", "uma", "rita"))
WHOLE_IBAN = "<bdi>[A-Z]{2}[0-9]{2}[0-9A-Z ]{10,}</bdi>"


@pytest.fixture(scope="module")
def at(team_desk):
    return team_desk.person(UP).checked(MIXED, "payments_mixed.csv")


def page_of(visitor, at, query):
    return visitor.get(f"/files/{at}/review?rows=all&{query}").text


def rows_on(page):
    return [int(row) for row in re.findall(r'id="row-(\d+)"', page)]


def money_on(page):
    found = re.findall(r'<td class="number"><b>([\d,.]+)</b> <small>(\w*)</small>', page)
    return [(currency, float(amount.replace(",", ""))) for amount, currency in found]


def names_on(page):
    cells = re.findall(r'<span class="label">In the file</span> <bdi>(.*?)</bdi>', page)
    return [re.sub("<[^>]*>", "", cell).lower() for cell in cells]


def test_rows_are_sorted_by_any_column_in_both_directions(team_desk, at):
    for column, key in (("row", rows_on), ("name", names_on)):
        up, down = (page_of(team_desk.person(RITA), at, f"sort={sign}{column}") for sign in ("", "-"))
        known = [one for one in key(up) if one]
        assert known == sorted(known), column
        assert rows_on(up) != rows_on(down), column
        assert f'sort=-{column}#group">' in up, column
    by_money = money_on(page_of(team_desk.person(RITA), at, "sort=amount"))
    assert by_money == sorted(by_money, key=lambda one: (one[0], -one[1]))


def test_a_filter_stands_in_the_address_and_compares_no_two_currencies(team_desk, at):
    rita = team_desk.person(RITA)
    said = {"rows": "all", "outcome": "close_match", "currency": "EUR", "least": "100", "text": " "}
    sent = rita.post(f"/files/{at}/review", said)
    assert (sent.status, sent.to) == (
        303,
        f"/files/{at}/review?outcome=close_match&rows=all&currency=EUR&least=100&page=1#group",
    )
    money = money_on(rita.get(sent.to.partition("#")[0]).text)
    assert money
    assert all(currency == "EUR" and amount >= 100 for currency, amount in money)
    unfiltered = page_of(rita, at, "least=100")
    assert "Choose a currency to filter by amount." in unfiltered
    assert rows_on(unfiltered) == rows_on(page_of(rita, at, ""))
    for query in ("least=1e9", "least=-1", "currency=eur", "currency=%3Cb%3E", "sort=amount;drop"):
        assert rows_on(page_of(rita, at, query)) == rows_on(page_of(rita, at, "")), query


def test_who_compares_sees_whole_accounts_once_on_record_and_others_masked_ones(team_desk, at):
    rita, uma = map(team_desk.person, (RITA, UMA))
    assert "DE35 3704 0044 0084 2100 77" in page_of(rita, at, "sort=row")
    masked = page_of(uma, at, "sort=row")
    assert "DE35 3704" not in masked
    assert "DE**0077" in masked
    [row, *_] = rows_on(page_of(rita, at, "outcome=no_match&currency=EUR"))
    whole, hidden = (visitor.get(f"/files/{at}/rows/{row}").text for visitor in (rita, uma))
    assert re.search(WHOLE_IBAN, whole)
    assert not re.search(WHOLE_IBAN, hidden)
    assert re.search("<bdi>[A-Z]{2}[*]{2}[0-9]{4}</bdi>", hidden)
    seen = [
        entry["by"] for entry in team_desk.audit() if (entry["deed"], entry["run"]) == ("saw accounts", at)
    ]
    assert seen == [RITA]


def test_rows_open_and_the_head_says_what_is_left(team_desk, at):
    copy, rita = team_desk.copy(at), team_desk.person(RITA)
    before = rita.get(f"/files/{copy}/review").text
    [row] = rows_on(before)[:1]
    assert before.count("<summary>Decide<span") == len(rows_on(before))
    [left] = re.findall('<span id="decided"><b>0 of [0-9]+ decided</b>; undecided: (.*?)</span>', before)
    rita.post(f"/files/{copy}/rows/{row}", {"decision": "hold", "reason": ""})
    [now] = re.findall(
        '<span id="decided"><b>1 of [0-9]+ decided</b>; undecided: (.*?)</span>',
        rita.get(f"/files/{copy}/review").text,
    )
    assert now != left
