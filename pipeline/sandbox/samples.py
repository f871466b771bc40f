"""Payment files drawn from the simulated network, for trials and load tests.

Most rows match; the shares of other outcomes are approximate, because answers also depend on the bank.
"""

import csv
import random
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from pipeline.errors import OutputError
from pipeline.files.disk_errors import not_writable
from pipeline.sandbox import banks, iban, names
from pipeline.sandbox.accounts import IBAN_ACCOUNTS, UK_ACCOUNTS, IbanAccount, UkAccount
from pipeline.sandbox.banks import Bank
from pipeline.sandbox.registers import AccountStatus, RegisteredAccount, account_of
from pipeline.wording import Sentence
from schemas.cop import AccountType

HEADER = (
    "payment_id", "name", "account_type", "sort_code", "account_number", "iban",
    "secondary_reference", "amount", "currency", "reference",
)  # fmt: skip

_UK_SHARE = 0.6  # of the payments; the rest go to an IBAN
_REPEATED_SHARE = 0.1  # of the rows repeat an earlier row's question
_DUMMY_SEED = 7
_REMEMBERED_MAX = 10_000  # earlier questions to choose from


class SampleQuestion(NamedTuple):
    """The part of a row that asks about the payee."""

    name: str
    account_type: str
    sort_code: str
    account_number: str
    iban: str
    secondary_reference: str


def write_payments(path: Path, *, rows: int, seed: int, force: bool = False) -> None:
    """Write a CSV of payments to the network of a seed, always the same (OutputError, DiskError)."""
    chance = random.Random(seed)  # noqa: S311 (a sample is no secret)
    remembered: list[SampleQuestion] = []
    _write(path, (_next_question(seed, chance, remembered) for _ in range(rows)), chance, force=force)


def write_dummy_payments(path: Path) -> None:
    """Write a new CSV of some forty payments to the dummy accounts, for trials without a configuration.

    Two rows in three are correct. Same errors as `write_payments`.
    """
    chance = random.Random(_DUMMY_SEED)  # noqa: S311 (a sample is no secret)
    questions = list(_of_dummy_accounts())
    chance.shuffle(questions)
    _write(path, questions, chance)


def _of_dummy_accounts() -> Iterator[SampleQuestion]:
    uk = [
        SampleQuestion(one.name, one.account_type, one.identification[:6], one.identification[6:], "", "")
        for one in UK_ACCOUNTS
    ]
    others = [SampleQuestion(one.name, AccountType.BUSINESS, "", "", one.iban, "") for one in IBAN_ACCOUNTS]
    yield from [*uk, *others] * 2
    yield from uk
    named: list[tuple[UkAccount | IbanAccount, SampleQuestion]] = [
        *zip(UK_ACCOUNTS, uk, strict=True),
        *zip(IBAN_ACCOUNTS[:2], others[:2], strict=True),
    ]
    for account, right in named:
        yield right._replace(name=account.close_name)
    for account, right in named[::2]:
        yield right._replace(name=account.other_name)
    yield uk[-1]._replace(account_type=AccountType.PERSONAL)
    yield uk[0]._replace(account_number=uk[0].account_number[1:])
    yield others[0]._replace(iban=f"{others[0].iban[:2]}00{others[0].iban[4:]}")


def _write(
    path: Path, questions: Iterable[SampleQuestion], chance: random.Random, *, force: bool = False
) -> None:
    try:
        with path.open("w" if force else "x", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(HEADER)
            for row, question in enumerate(questions, start=1):
                currency = "GBP" if question.sort_code else "EUR"
                amount = f"{chance.randrange(1, 5000)}.{chance.randrange(100):02d}"
                writer.writerow((f"PAY{row:08d}", *question, amount, currency, f"INV {row}"))
    except FileExistsError:
        raise OutputError(Sentence("sandbox.file_exists", path=path)) from None
    except OSError as error:
        raise not_writable(path, error, otherwise=Sentence("advice.other_path")) from error


def _next_question(seed: int, chance: random.Random, remembered: list[SampleQuestion]) -> SampleQuestion:
    if remembered and chance.random() < _REPEATED_SHARE:
        return chance.choice(remembered)
    question = _new_question(seed, chance)
    if len(remembered) < _REMEMBERED_MAX:
        remembered.append(question)
    else:
        remembered[chance.randrange(_REMEMBERED_MAX)] = question
    return question


def _new_question(seed: int, chance: random.Random) -> SampleQuestion:
    (flaw,) = chance.choices([*_SHARES_PER_MILLE], cum_weights=_FLAW_WEIGHTS)
    needs_roll_number = flaw in {"no secondary reference", "wrong secondary reference"}
    is_uk = needs_roll_number or chance.random() < _UK_SHARE
    while True:
        choices, weights = _weighted_banks(is_uk=is_uk)
        (bank,) = chance.choices(choices, cum_weights=weights)
        if needs_roll_number and not bank.has_roll_numbers:
            continue
        if is_uk:
            number = f"{chance.randint(*banks.sort_codes(bank)):06d}{chance.randrange(10**8):08d}"
        else:
            number = _draw_iban(bank, chance)
        account = account_of(seed, bank, number)
        if account.status is AccountStatus.OPEN or flaw == "as it comes":
            break
    question = SampleQuestion(
        name=account.name,
        account_type=account.account_type.value,
        sort_code=number[:6] if is_uk else "",
        account_number=number[6:] if is_uk else "",
        iban="" if is_uk else number,
        secondary_reference=account.secondary_reference or "",
    )
    return _flawed(flaw, question, account, chance)


@cache
def _weighted_banks(*, is_uk: bool) -> tuple[tuple[Bank, ...], list[int]]:
    choices = banks.UK_BANKS if is_uk else banks.IBAN_BANKS
    return choices, [*accumulate(bank.weight for bank in choices)]


def _draw_iban(bank: Bank, chance: random.Random) -> str:
    pattern = banks.BBAN_PATTERNS[bank.country]
    before, _, rest = pattern.partition(pattern.strip("AN"))
    bban = f"{before.replace('A', 'X')}{bank.code}{chance.randrange(10 ** len(rest)):0{len(rest)}d}"
    return iban.compose(bank.country, bban)


def _flawed(  # noqa: PLR0911 (one for each flaw)
    flaw: str, question: SampleQuestion, account: RegisteredAccount, chance: random.Random
) -> SampleQuestion:
    other_type = AccountType.PERSONAL if account.is_business else AccountType.BUSINESS
    match flaw:
        case "close name":
            return question._replace(name=_close_name(account, chance))
        case "wrong name":
            pool = names.EUROPE if question.iban else names.UK
            wrong = f"{chance.choice(names.UK.forenames)} {chance.choice(pool.surnames)}"
            return question._replace(name=wrong)
        case "wrong type":
            return question._replace(account_type=other_type.value)
        case "close name, wrong type":
            return question._replace(name=_close_name(account, chance), account_type=other_type.value)
        case "no route" if question.iban:
            return question._replace(iban=iban.compose("NL", f"QQQQ{chance.randrange(10**10):010d}"))
        case "no route":
            return question._replace(sort_code=f"9{chance.randrange(10**5):05d}")
        case "no secondary reference":
            return question._replace(secondary_reference="")
        case "wrong secondary reference":
            return question._replace(secondary_reference="ROLL00000000")
        case "broken":
            return _broken(question, chance)
        case _:
            return question


def _close_name(account: RegisteredAccount, chance: random.Random) -> str:
    words = account.name.split()
    if account.is_business:
        return " ".join(words[:-1])
    if chance.random() < 0.3:
        return f"{words[-1]} {' '.join(words[:-1])}"
    first = words[0]
    position = chance.randrange(1, len(first) - 1)
    return " ".join([first[:position] + first[position + 1 :], *words[1:]])


def _broken(question: SampleQuestion, chance: random.Random) -> SampleQuestion:
    """Make an error that a client should find: a lost digit, a wrong check digit, no name."""
    if chance.random() < 0.3:
        return question._replace(name="")
    if question.iban:
        wrong = (int(question.iban[2:4]) + 1) % 97
        return question._replace(iban=f"{question.iban[:2]}{wrong:02d}{question.iban[4:]}")
    return question._replace(account_number=question.account_number[1:])


_SHARES_PER_MILLE = {
    "right": 804,
    "close name": 70,
    "wrong name": 30,
    "wrong type": 25,
    "close name, wrong type": 5,
    "as it comes": 40,  # right, but the account may be unknown, switched, opted out or of an unsupported type
    "no route": 6,
    "no secondary reference": 10,
    "wrong secondary reference": 4,
    "broken": 6,
}
"""What is wrong with a row -> its share of the rows."""
_FLAW_WEIGHTS = [*accumulate(_SHARES_PER_MILLE.values())]
