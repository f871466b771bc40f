"""The plan of a file says what its calls cost, where the profile has prices."""

import html
import json
import re

import pytest

SECTION = {
    "server": "production",
    "base_url": "https://check.example",
    "token_url": "https://login.example/token",
    "client_id": "CLIENT_ID",
    "client_secret_env": "CHECK_SECRET",
    "scope": "SCOPE/.default",
}
GATEWAY = SECTION | {"api": "gateway"}
PROFILES = {
    "priced": {"cop": SECTION | {"price_per_call": "0.0125 GBP"}, "vop": GATEWAY},
    "dear": {
        "cop": SECTION | {"price_per_call": "1234.5 GBP"},
        "vop": GATEWAY | {"price_per_call": "0.2 EUR"},
    },
    "capped": {"cop": SECTION | {"price_per_call": "0.0125 GBP", "daily_cap": 1}},
    "silent": {"cop": SECTION, "vop": GATEWAY},
    "shared": {"cop": SECTION},
}
LEDGER = "postgresql://precheck@db.example/precheck"
FILE = b"""payment_id,name,sort_code,account_number,iban
P1,Averi Thornwood,001122,00012345,
P2,Averi Thornwood,001122,00012345,
P3,Rowan Blackmere,001122,00012345,
P4,Invented Company,,,DE89370400440532013000
"""
SAID = {
    "en": {
        "header": "Calls Cost Limit",
        "cost": "0.025 GBP 0.0125 GBP a call",
        "unpriced": "no price",
        "sentence": "Cost: 0.025 GBP. Retries are not included.",
        "left out": "not included: the profile has no price.",
        "totals": "Cost: 2,469.00 GBP, 0.20 EUR.",
    },
    "de": {
        "header": "Anfragen Kosten Limit",
        "cost": "0,025 GBP 0,0125 GBP pro Anfrage",
        "unpriced": "kein Preis",
        "sentence": "Kosten: 0,025 GBP. Wiederholte Anfragen sind nicht enthalten.",
        "left out": "nicht enthalten, weil im Profil kein Preis steht.",
        "totals": "Kosten: 2.469,00 GBP, 0,20 EUR.",
    },
    "fr": {
        "header": "Requêtes Coût Limite",
        "cost": "0,025 GBP 0,0125 GBP par requête",
        "unpriced": "sans prix",
        "sentence": "Coût : 0,025 GBP. Les requêtes répétées ne sont pas comprises.",
        "left out": "non compris, car le profil n",
        "totals": "Coût : 2 469,00 GBP, 0,20 EUR.",
    },
}


@pytest.fixture(scope="module")
def plan_of(tmp_path_factory):
    """`plan_of(profile, language)`: the words of the page."""
    from visitors import served_desk

    folder = tmp_path_factory.mktemp("prices")
    sections = {f"{profile}.{api}": keys for profile, apis in PROFILES.items() for api, keys in apis.items()}
    lines = (
        "\n".join([f"[profiles.{name}]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items())])
        for name, keys in sections.items()
    )
    shared = f'[profiles.shared]\nledger = "{LEDGER}"\nledger_key_env = "LEDGER_KEY"'
    with served_desk(folder, profiles="\n".join([*lines, shared])) as running:
        visitor = running.visitor()
        at = visitor.planned(FILE)

        def page(profile, language="en"):
            assert visitor.post(f"/files/{at}/plan", {"profile": profile}).status == 303
            text = visitor.get(f"/files/{at}/plan", Accept_Language=language).text
            return " ".join(html.unescape(re.sub("<[^>]*>", " ", text)).split())

        yield page


@pytest.mark.parametrize("language", SAID)
def test_a_plan_says_in_each_language_what_calls_cost(plan_of, language):
    said = dict(SAID[language])
    totals = said.pop("totals")
    priced = plan_of("priced", language)
    assert {what: words for what, words in said.items() if words not in priced} == {}
    dear = plan_of("dear", language)
    assert totals in dear
    assert said["unpriced"] not in dear


def test_a_plan_of_several_days_says_what_it_costs_to_continue_by_itself(plan_of):
    assert "Continue by itself on the following days, until all payments are checked (0.025 GBP)" in plan_of(
        "capped"
    )


def test_a_plan_without_prices_says_nothing_of_cost(plan_of):
    said = plan_of("silent")
    assert "Calls Limit" in said
    assert "Cost" not in said
    assert "no price" not in said
    assert "not counted" not in said


def test_a_plan_says_that_real_banks_will_be_asked_and_by_which_profile(plan_of):
    assert "Real banks will be asked, with the profile silent." in plan_of("silent")
    assert "Real banks" not in plan_of("sandbox")


def test_a_plan_says_what_of_a_shared_ledger_is_not_counted(plan_of):
    assert f"Answers and daily usage of other hosts in {LEDGER} are not included." in plan_of("shared")
    assert f"Antworten und Tagesverbrauch anderer Rechner in {LEDGER} sind nicht enthalten" in plan_of(
        "shared", "de"
    )
