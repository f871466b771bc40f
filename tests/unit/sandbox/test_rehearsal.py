"""What a rehearsal answers about accounts that nobody here knows."""

from collections import Counter

from pipeline.sandbox.accounts import MIX, UK_ACCOUNTS, DummyAccounts, Rehearsal
from schemas.cop import AccountType, NameVerification, ReasonCode
from schemas.outcomes import Outcome
from schemas.vop import GatewayRequest

REHEARSAL = Rehearsal()


def asked(number, name="Jane Payee", account_type=AccountType.PERSONAL):
    return NameVerification(
        scheme_name="SortCodeAccountNumber",
        account_type=account_type,
        identification=f"001199{number:08d}",
        name=name,
    )


def outcome_of(report):
    if report.matched:
        return Outcome.MATCH
    return {
        "MBAM": Outcome.CLOSE_MATCH,
        "BAMM": Outcome.CLOSE_MATCH,
        "PAMM": Outcome.CLOSE_MATCH,
        "ANNM": Outcome.NO_MATCH,
        "BANM": Outcome.NO_MATCH,
        "PANM": Outcome.NO_MATCH,
    }.get(report.reason_code.value, Outcome.NOT_POSSIBLE)


def test_unknown_accounts_get_the_usual_mix_and_the_same_answer_each_time():
    reports = [REHEARSAL.check_name(asked(number))[0] for number in range(5000)]
    assert reports == [Rehearsal().check_name(asked(number))[0] for number in range(5000)]
    found = Counter(map(outcome_of, reports))
    for share, outcome in MIX:
        assert abs(found[outcome] - 5 * share) < 125, outcome  # 2 % of the right name have the other type
    assert {report.reason_code for report in reports} > {ReasonCode.AC01, ReasonCode.BANM, ReasonCode.MBAM}


def test_a_known_account_answers_as_ever():
    for account in UK_ACCOUNTS:
        question = NameVerification(
            scheme_name="SortCodeAccountNumber",
            account_type=account.account_type,
            identification=account.identification,
            name=account.name,
        )
        assert REHEARSAL.check_name(question) == DummyAccounts().check_name(question)


def test_ibans_and_names_of_any_length_are_answered():
    for name in ("A", "Å" * 140, "x " * 70, "Jane Payee"):
        for number in range(200):
            iban = f"DE{number:02d}500105170648489890"
            question = GatewayRequest.model_validate(
                {"party": {"name": name}, "partyAccount": {"iban": iban}}, by_alias=True
            )
            held = REHEARSAL.check_payee(question)[0].matched_name
            assert held is None or (0 < len(held) <= 140 and held != name)
