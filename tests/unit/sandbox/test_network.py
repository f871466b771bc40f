"""The simulated network: routed by rule, deterministic from its seed, every answer reachable."""

from collections import Counter

import pytest
from schwifty import IBAN

from pipeline.sandbox import banks, iban
from pipeline.sandbox.banks import Conduct
from pipeline.sandbox.network import Network
from pipeline.sandbox.registers import AccountStatus, account_of
from pipeline.sandbox.samples import HEADER, write_payments
from schemas.cop import AccountType, NameVerification, ReasonCode
from schemas.vop import (
    Agent,
    FinancialInstitutionId,
    GatewayRequest,
    IdMatch,
    NameMatch,
    OrganisationId,
    Party,
    PartyAccount,
    PartyIdentification,
    StandardRequest,
)

SEED = 1
STEADY_UK = [bank for bank in banks.UK_BANKS if bank.conduct is Conduct.STEADY and not bank.has_roll_numbers]


def uk_question(identification, name, account_type=AccountType.PERSONAL, reference=None):
    return NameVerification(
        scheme_name="SortCodeAccountNumber",
        account_type=account_type,
        identification=identification,
        name=name,
        secondary_identification=reference,
    )


def uk_account(bank, **wanted):
    """The first open account of a bank that is as wanted, with its number."""
    first, _ = banks.sort_codes(bank)
    for number in range(10_000):
        identification = f"{first:06d}{number:08d}"
        account = account_of(SEED, bank, identification)
        if account.status is wanted.get("status", AccountStatus.OPEN) and all(
            getattr(account, key) == value for key, value in wanted.items()
        ):
            return identification, account
    raise AssertionError("no such account in the first ten thousand")


def iban_account(bank, *, is_business):
    pattern = banks.BBAN_PATTERNS[bank.country]
    for number in range(1000):
        rest = f"{number:0{pattern.count('N')}d}"
        bban = ("X" if pattern[0] == "A" else "") + bank.code + rest
        account_number = iban.compose(bank.country, bban)
        account = account_of(SEED, bank, account_number)
        if account.status is AccountStatus.OPEN and account.is_business is is_business:
            return account_number, account
    raise AssertionError("no such account in the first thousand")


def code_of(network, question):
    return network.check_name(question)[0].reason_code


def test_one_seed_is_one_network():
    identification, account = uk_account(STEADY_UK[0])
    bank = STEADY_UK[0]
    assert account_of(SEED, bank, identification) == account
    others = [account_of(seed, bank, identification).name for seed in range(2, 12)]
    assert set(others) != {account.name}


def test_every_reason_code_is_reachable():
    faulty = Network(SEED, is_faulty=True)
    bank = STEADY_UK[0]
    person, person_account = uk_account(bank, account_type=AccountType.PERSONAL)
    company, company_account = uk_account(bank, account_type=AccountType.BUSINESS)
    society = next(bank for bank in banks.UK_BANKS if bank.has_roll_numbers)
    member, member_account = uk_account(society)
    failing = next(bank for bank in banks.UK_BANKS if bank.conduct is Conduct.FAILING)
    first_failing, _ = banks.sort_codes(failing)
    reversed_person = " ".join(reversed(person_account.name.split()))
    shortened_company = company_account.name.split()[0] + " " + company_account.name.split()[1] + " GmbH"
    business, personal = AccountType.BUSINESS, AccountType.PERSONAL
    statuses = (
        AccountStatus.ABSENT,
        AccountStatus.OPTED_OUT,
        AccountStatus.UNSUPPORTED_TYPE,
        AccountStatus.SWITCHED,
    )
    questions = [
        uk_question(person, person_account.name),
        uk_question(person, reversed_person),
        uk_question(person, "Quentin Zylberstajn"),
        uk_question(person, person_account.name, business),
        uk_question(person, reversed_person, business),
        uk_question(company, company_account.name, personal),
        uk_question(company, shortened_company, personal),
        *(uk_question(uk_account(bank, status=status)[0], "Any Name") for status in statuses),
        uk_question(member, member_account.name),
        uk_question(member, member_account.name, reference="ROLL?"),
        uk_question("010099" + "00000001", "Any Name"),
        uk_question("99000000000001", "Any Name"),
        *(uk_question(f"{first_failing:06d}{number:08d}", "Any Name") for number in range(20)),
    ]
    codes = {code_of(faulty, question) for question in questions}
    assert codes == {None, *ReasonCode}


def test_the_right_secondary_reference_lets_the_name_be_checked():
    society = next(bank for bank in banks.UK_BANKS if bank.has_roll_numbers)
    member, account = uk_account(society)
    question = uk_question(member, account.name, account.account_type, account.secondary_reference)
    assert Network(SEED, is_faulty=False).check_name(question)[0].matched is True


def test_banks_behave_unless_told_otherwise():
    numbers = [f"{banks.sort_codes(bank)[0]:06d}00000001" for bank in banks.UK_BANKS]
    questions = [uk_question(number, "Any Name") for number in numbers]
    steady, faulty = Network(SEED, is_faulty=False), Network(SEED, is_faulty=True)
    assert {steady.check_name(question)[1] for question in questions} == {Conduct.STEADY}
    assert {faulty.check_name(question)[1] for question in questions} == set(Conduct)


@pytest.mark.parametrize(
    ("sort_code", "code"),
    [
        ("009999", None),
        ("010000", "northmere"),
        ("109999", "northmere"),
        ("110000", "castlebrook"),
        ("399999", None),
        ("599999", None),
        ("700000", None),
        ("839999", "glenarrow"),
        ("840000", None),
    ],
)
def test_a_sort_code_outside_every_range_has_no_route(sort_code, code):
    bank = banks.bank_of_sort_code(sort_code)
    assert (bank.code if bank else None) == code


@pytest.mark.parametrize("bank", banks.IBAN_BANKS, ids=lambda bank: bank.bic)
def test_a_bank_is_found_by_the_iban_of_its_account(bank):
    account_number, _ = iban_account(bank, is_business=False)
    assert banks.bank_of_iban(account_number) is bank
    assert banks.bank_of_bic(bank.bic[:8] + "123") is bank
    assert iban.is_valid(account_number)
    assert IBAN(account_number).is_valid


def test_the_bic_of_a_steady_bank_is_the_one_that_a_registry_gives():
    for bank in banks.IBAN_BANKS:
        account_number, _ = iban_account(bank, is_business=True)
        found = IBAN(account_number).bic
        if bank.conduct is Conduct.STEADY:
            assert str(found)[:8] == bank.bic[:8]
        else:
            assert found is None


def test_a_payee_is_answered_by_name_and_else_by_identification():
    network = Network(SEED, is_faulty=False)
    account_number, account = iban_account(banks.IBAN_BANKS[0], is_business=True)
    held = OrganisationId(lei=account.identifications["LEI"])
    identified = PartyIdentification(organisation_id=held)
    by_both = Party(name="Quentin Zylberstajn", identification=identified)
    by_identification = Party(identification=identified)

    def ask(party):
        question = GatewayRequest(party=party, party_account=PartyAccount(iban=account_number))
        return network.check_payee(question)[0]

    assert ask(Party(name=account.name)).party_name_match is NameMatch.MTCH
    assert (ask(by_both).party_name_match, ask(by_both).party_id_match) == (NameMatch.NMTC, None)
    assert ask(by_identification).party_id_match is IdMatch.MTCH
    assert ask(by_identification).party_name_match is None
    wrong = OrganisationId(lei="SIMU0000000000000183")
    no_match = ask(Party(identification=PartyIdentification(organisation_id=wrong)))
    assert no_match.party_id_match is IdMatch.NMTC


def test_a_close_match_says_the_name_and_only_a_close_match():
    network = Network(SEED, is_faulty=False)
    account_number, account = iban_account(banks.IBAN_BANKS[0], is_business=False)
    *forenames, surname = account.name.split()

    def ask(name):
        question = GatewayRequest(party=Party(name=name), party_account=PartyAccount(iban=account_number))
        return network.check_payee(question)[0]

    close = ask(f"{surname} {' '.join(forenames)}")
    assert (close.party_name_match, close.matched_name) == (NameMatch.CMTC, account.name)
    assert ask(account.name).matched_name is None
    assert ask("Quentin Zylberstajn").matched_name is None


def test_the_wrong_bank_knows_nothing_of_an_account():
    network = Network(SEED, is_faulty=False)
    one, other = banks.IBAN_BANKS[:2]
    account_number, account = iban_account(one, is_business=False)

    def ask(bic):
        agent = Agent(financial_institution_id=FinancialInstitutionId(bicfi=bic))
        question = StandardRequest(
            party=Party(name=account.name),
            party_account=PartyAccount(iban=account_number),
            party_agent=agent,
            requesting_agent=agent,
        )
        return network.check_payee(question)[0].party_name_match

    assert ask(one.bic) is NameMatch.MTCH
    assert ask(other.bic) is NameMatch.NOAP
    assert ask("NOBKDE00XXX") is NameMatch.NOAP


def test_an_iban_that_no_bank_owns_is_not_applicable():
    for account_number in (iban.compose("NL", "QQQQ0000000001"), iban.compose("SE", "1" * 20)):
        question = GatewayRequest(
            party=Party(name="Any Name"), party_account=PartyAccount(iban=account_number)
        )
        response = Network(SEED, is_faulty=False).check_payee(question)[0]
        assert response.party_name_match is NameMatch.NOAP


def test_samples_are_the_same_from_the_same_seed_and_mostly_match(tmp_path):
    one, same, other = (tmp_path / name for name in ("one.csv", "same.csv", "other.csv"))
    write_payments(one, rows=2000, seed=SEED)
    write_payments(same, rows=2000, seed=SEED)
    write_payments(other, rows=2000, seed=2)
    assert one.read_bytes() == same.read_bytes() != other.read_bytes()
    header, *rows = one.read_text().splitlines()
    assert header == ",".join(HEADER)
    assert len(rows) == 2000
    repeated = sum(times - 1 for times in Counter(row.split(",")[1:7].__repr__() for row in rows).values())
    assert 150 <= repeated <= 250
    network = Network(SEED, is_faulty=False)
    uk_rows = [row.split(",") for row in rows if ",GBP," in row]
    matched = sum(
        network.check_name(uk_question(row[3] + row[4], row[1], AccountType(row[2]), row[6] or None))[
            0
        ].matched
        for row in uk_rows
        if len(row[4]) == 8 and row[1]
    )
    assert 0.75 * len(uk_rows) < matched < 0.95 * len(uk_rows)
