"""The fixed dummy accounts: every category of the reference, at least twice."""

from collections import Counter

from schwifty import IBAN

from pipeline.sandbox import iban
from pipeline.sandbox.accounts import (
    CLOSED_UK_ACCOUNTS,
    IBAN_ACCOUNTS,
    UK_ACCOUNTS,
    DummyAccounts,
    describe_accounts,
)
from schemas.cop import AccountType, NameVerification, ReasonCode
from schemas.outcomes import ApiName
from schemas.vop import (
    Agent,
    FinancialInstitutionId,
    GatewayRequest,
    IdMatch,
    NameMatch,
    OrganisationId,
    OtherId,
    Party,
    PartyAccount,
    PartyIdentification,
    SchemeCode,
    StandardRequest,
)

ACCOUNTS = DummyAccounts()


def ask_name(identification, name, account_type=AccountType.PERSONAL):
    question = NameVerification(
        scheme_name="SortCodeAccountNumber",
        account_type=account_type,
        identification=identification,
        name=name,
    )
    return ACCOUNTS.check_name(question)[0]


def ask_payee(account, party, bic=None):
    if bic is None:
        question = GatewayRequest(party=party, party_account=PartyAccount(iban=account.iban))
    else:
        agent = Agent(financial_institution_id=FinancialInstitutionId(bicfi=bic))
        question = StandardRequest(
            party=party,
            party_account=PartyAccount(iban=account.iban),
            party_agent=agent,
            requesting_agent=agent,
        )
    return ACCOUNTS.check_payee(question)[0]


def test_every_category_of_the_reference_has_two_pairs():
    found = Counter((row.account_type, row.code) for row in describe_accounts())
    personal = {"MATCHED", "MBAM", "ANNM", "AC01", "BANM", "BAMM"}
    business = {"MATCHED", "MBAM", "ANNM", "AC01", "PANM", "PAMM"}
    expected = {(AccountType.PERSONAL, code) for code in personal}
    expected |= {(AccountType.BUSINESS, code) for code in business}
    expected |= {(None, code) for code in ("MTCH", "CMTC", "NMTC", "NOAP")}
    assert set(found) == expected
    assert min(found.values()) >= 2


def test_what_is_described_is_what_is_answered():
    for row in describe_accounts():
        if row.api is ApiName.COP:
            report = ask_name(row.account, row.asked, row.account_type)
            assert (report.reason_code or "MATCHED", report.name) == (row.code, row.matched_name)
            assert report.matched is (row.code == "MATCHED")


def test_a_name_is_given_only_with_a_close_match():
    for row in describe_accounts():
        assert (row.matched_name is not None) == (row.code in {"MBAM", "BAMM", "PAMM", "CMTC"})


def test_a_name_is_looked_up_letter_by_letter():
    account = UK_ACCOUNTS[0]
    assert ask_name(account.identification, account.name).matched is True
    assert ask_name(account.identification, account.name.upper()).reason_code is ReasonCode.ANNM
    assert ask_name(account.identification, account.name + " ").reason_code is ReasonCode.ANNM


def test_an_unknown_account_does_not_exist():
    assert not {account.identification for account in UK_ACCOUNTS} & set(CLOSED_UK_ACCOUNTS)
    assert ask_name(CLOSED_UK_ACCOUNTS[0], UK_ACCOUNTS[0].name).reason_code is ReasonCode.AC01


def test_ibans_are_valid_and_their_bank_is_in_the_registry():
    for account in IBAN_ACCOUNTS:
        assert iban.is_valid(account.iban)
        assert str(IBAN(account.iban).bic)[:8] == account.bic[:8]


def test_every_checkable_account_matches_closely_matches_and_does_not():
    for account in IBAN_ACCOUNTS:
        asked = (account.name, account.close_name, "Quentin Zylberstajn")
        answers = [ask_payee(account, Party(name=name)).party_name_match for name in asked]
        checkable = [NameMatch.MTCH, NameMatch.CMTC, NameMatch.NMTC]
        assert answers == (checkable if account.is_checkable else [NameMatch.NOAP] * 3)


def test_an_unknown_iban_is_not_applicable():
    question = GatewayRequest(
        party=Party(name=IBAN_ACCOUNTS[0].name),
        party_account=PartyAccount(iban="DE89370400440532013000"),
    )
    assert ACCOUNTS.check_payee(question)[0].party_name_match is NameMatch.NOAP


def test_identifications_match_differ_or_are_not_held():
    german, french, dutch = IBAN_ACCOUNTS[:3]

    def by(organisation):
        return Party(identification=PartyIdentification(organisation_id=organisation))

    lei = OrganisationId(lei=german.identifications["LEI"])
    bic = OrganisationId(any_bic=dutch.identifications["BIC"])
    tax = OtherId(identification=german.identifications["TXID"], scheme_name_code=SchemeCode.TXID)
    assert ask_payee(german, by(lei)).party_id_match is IdMatch.MTCH
    assert ask_payee(dutch, by(bic)).party_id_match is IdMatch.MTCH
    assert ask_payee(german, by(OrganisationId(others=[tax]))).party_id_match is IdMatch.MTCH
    assert ask_payee(dutch, by(lei)).party_id_match is IdMatch.NMTC
    assert ask_payee(french, by(lei)).party_id_match is IdMatch.NOAP
    assert ask_payee(german, by(None)).party_id_match is IdMatch.NOAP
    assert ask_payee(german, by(lei)).party_name_match is None


def test_the_wrong_responder_does_not_know_the_account():
    account = IBAN_ACCOUNTS[0]
    party = Party(name=account.name)
    assert ask_payee(account, party, account.bic).party_name_match is NameMatch.MTCH
    assert ask_payee(account, party, account.bic[:8] + "123").party_name_match is NameMatch.MTCH
    assert ask_payee(account, party, "SOGEFRPPXXX").party_name_match is NameMatch.NOAP
