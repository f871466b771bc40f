"""What can end a run, drawn as a tree. Each error is one sentence: where, what, what to do.

    PrecheckError
    ├── UsageError          2   the arguments of the command do not fit together
    │   └── OtherRunError       the folder holds another run
    ├── InputError         65   the input file cannot be used
    ├── OutputError        73   an output cannot be created
    ├── MistakeError       70   an unexpected error of this program
    ├── DiskError          74   a disk is full or an I/O operation failed
    ├── IncompleteError    75   not everything was decided; run again to go on
    │   ├── LockedError         another run is working on the same folder
    │   ├── LeaseLostError      ends one question here: another process asks it now
    │   └── CapSpentError       ends one question for today: no request of the daily cap is left for it
    ├── ProtocolError      76   the server broke the protocol repeatedly
    ├── CredentialsError   77   credentials or certificate were refused
    ├── ConfigurationError 78   the configuration cannot be used
    │   ├── ConfigurationFileError   its file has mistakes, one line for each
    │   └── TlsError            no trusted TLS connection can be made
    └── StoppedError      130   a signal asked to stop (143 for SIGTERM); run again to go on

A bad row is not an error: it is data, and travels as a reject. A mistake of our own is an `AssertionError`,
or whatever Python raises, and is caught in one place: where the command, or what it does for one file, ends.
"""

import signal
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Self

if TYPE_CHECKING:
    from schemas.summary import Summary


class Advice(StrEnum):
    """What to do about an error, as text for any surface; each may have its own words for it.

    Those of the command line, which name its options, are in `cli/advice.py`.
    """

    OTHER_FOLDER = "choose another folder"
    FOLDER_EACH = "check them one at a time, each to a folder of its own"
    START_OVER = "start over"
    ASK_AGAIN = "start over, which asks every question again"
    REPLACE_RESULTS = "start over, which replaces it"
    REPLACE_FILE = "allow it to be replaced"
    CHOOSE_PROFILE = "pick one of {choices}"
    CHOOSE_FORMAT = "choose one of {choices}"
    NAME_FORMAT = "say which format it has"
    NAME_SHEET = "name the sheet with the payments"
    NAME_NO_SHEET = "name no sheet"
    MAP_NOTHING = "map no columns"
    CHOOSE_ENCODING = "choose its encoding from {choices}"
    READ_AS = "read it as {choices}"
    READ_AS_OF_WINDOWS = "read it as {choices} if the file comes from Windows"
    READ_AS_IF_CSV = "read it as {choices} if it is one"
    READ_AS_IF_TEXT = "read it as {choices} if it is text"
    NAME_LAYOUTS = "name the file that has it"
    WRITE_CONFIGURATION = "write a configuration"
    NAME_CONFIGURATION = "name an existing one"
    NAME_INPUT = "say where the payment file of this run is"
    NAME_DECIDER = "name who decides"
    ALLOW_MANY_NAMES = "allow it with a reason, which is recorded"
    ALLOW_SIMULATED = "allow simulated answers, to try this out"
    WRITE_WORK = "begin the run again, which writes it anew"
    NAME_WORK = "name the folder that runs share with workers"
    WAIT_LONGER = "wait longer for it"
    NAME_LEDGER = "name one in the profile, or leave the workers out"
    CHECK_AS_DATA_SET = "check the files in it as the parts of one data set"
    READ_FROM = "{choices}"
    """A pair of a `Phrase`."""


Words = Mapping[Advice, str]
"""The words of one surface for kinds of advice."""
NEUTRAL: Words = MappingProxyType({})


class ColumnPair(str):
    """Within a `Phrase`: a field and the headers to read it from, as `name=Payee`; safe to show."""

    __slots__ = ()


class Phrase(NamedTuple):
    """What to do, with pairs in it, for which each surface has a way of its own to ask."""

    parts: tuple[str, ...]

    @classmethod
    def of(cls, *parts: "str | Phrase") -> Self:
        """These one after another."""
        texts = (part.parts if isinstance(part, Phrase) else (part,) for part in parts)
        return cls(tuple(text for several in texts for text in several))

    @classmethod
    def joined(cls, between: str, phrases: "Iterable[Phrase]") -> Self:
        """These with a word between them."""
        first, *rest = phrases
        return cls.of(first, *(part for phrase in rest for part in (between, phrase)))

    def text(self, words: Words = NEUTRAL) -> str:
        """The phrase in the words of a surface."""
        pair = words.get(Advice.READ_FROM, Advice.READ_FROM)
        return "".join(
            pair.format(choices=part) if isinstance(part, ColumnPair) else part for part in self.parts
        )


class PrecheckError(Exception):
    """Something that ends the run, with the exit status of the command.

    As text it is a sentence for any surface. A surface with words of its own for advice asks for `sentences`.
    """

    exit_code: int

    def __init__(
        self,
        reason: str,
        *,
        option: str = "",
        advice: str | Phrase | Sequence[str | Phrase] = (),
        choices: Iterable[str] = (),
    ) -> None:
        """Take what happened apart from what to do.

        Args:
            reason: where, and what.
            option: of the command line, which gave what the reason begins with.
            advice: what to do, or several ways; an `Advice` where it takes an argument of the job, and a
                `Phrase` where it names columns.
            choices: what there is to choose from.
        """
        self.reason = reason
        self.advice = (advice,) if isinstance(advice, str | Phrase) else tuple(advice)
        self._option = option
        self._choices = ", ".join(choices)
        super().__init__(*PrecheckError.sentences(self))

    def sentences(self, words: Words = NEUTRAL) -> tuple[str, ...]:
        """What happened and what to do, as lines, in the words of a surface."""
        steps = ", or ".join(self._step(one, words) for one in self.advice)
        what = f"{self._option} {self.reason}" if self._option else self.reason
        return (f"{what}; {steps}" if steps else what,)

    def sentence(self, words: Words = NEUTRAL) -> str:
        """The same in one line."""
        return "; ".join(self.sentences(words))

    def _step(self, one: str | Phrase, words: Words) -> str:
        if isinstance(one, Phrase):
            return one.text(words)
        return words.get(one, one).format(choices=self._choices) if isinstance(one, Advice) else one


class UsageError(PrecheckError):
    """The arguments of the command do not fit together."""

    exit_code = 2


class OtherRunError(UsageError):
    """The folder holds the run of another input, profile or environment."""


class InputError(PrecheckError):
    """The input file cannot be used."""

    exit_code = 65


class OutputError(PrecheckError):
    """An output cannot be created."""

    exit_code = 73


class MistakeError(PrecheckError):
    """An unexpected error of this program, to be reported; what was answered is kept."""

    exit_code = 70


class DiskError(PrecheckError):
    """A disk is full, or an I/O operation failed."""

    exit_code = 74


class IncompleteError(PrecheckError):
    """The run stopped before every row was decided; running the same command again goes on."""

    exit_code = 75


class LockedError(IncompleteError):
    """Another run is working on the same folder."""


class LeaseLostError(IncompleteError):
    """Another process holds the chunk of this question now, and nothing was written: it is no longer ours."""

    def __init__(self) -> None:
        super().__init__("another process asks this question now; run the same command again to go on")


class CapSpentError(IncompleteError):
    """No unit of the daily cap was left for this request, and nothing was written: it may not leave."""

    def __init__(self) -> None:
        super().__init__("the daily cap is used up; run the same command again tomorrow to go on")


class ProtocolError(PrecheckError):
    """The server broke the protocol repeatedly."""

    exit_code = 76


class CredentialsError(PrecheckError):
    """The server refused the credentials or the client certificate."""

    exit_code = 77


class ConfigurationError(PrecheckError):
    """The configuration cannot be used."""

    exit_code = 78


class ConfigurationFileError(ConfigurationError):
    """The configuration file has mistakes."""

    def __init__(self, mistakes: Sequence[str]) -> None:
        """Take a sentence for each mistake."""
        super().__init__("; ".join(mistakes))
        self._mistakes = tuple(mistakes)

    def sentences(self, _words: Words = NEUTRAL) -> tuple[str, ...]:
        """A sentence about each mistake."""
        return self._mistakes


class TlsError(ConfigurationError):
    """No TLS connection can be made that keeps the rules of the API reference."""


class StoppedError(PrecheckError):
    """The user stopped the run; running the same command again goes on."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def stopped_by(number: int) -> str:
    """What a signal did to a run, as the end of a sentence.

    >>> stopped_by(2)
    'stopped by Ctrl-C; what was answered is kept: run the same command again to go on'
    """
    name = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
    return f"stopped by {name}; what was answered is kept: run the same command again to go on"


CONCERN_ONE_FILE = (InputError, OtherRunError, OutputError, LockedError)
"""Errors that concern one file only: the next file can still be checked."""

_LEAST_TO_MOST_SERIOUS = (0, 1, 75, 2, 65, 73, 74, 76, 77, 78, 70)


def most_serious(exit_codes: Iterable[int]) -> int:
    """The most serious of several exit statuses.

    What a person must put right goes before what running the same command again does, and that goes before
    what `--fail-on` found.

    >>> most_serious([0, 75, 65, 1])
    65
    """
    return max(exit_codes, key=_LEAST_TO_MOST_SERIOUS.index)


FAILED_ON = 1
"""The exit status where a row has an outcome or a warning named by --fail-on."""
ANY_WARNING = "warning"
"""Stands in `--fail-on` for every code of a warning."""
TOTALS_DIFFER = "TOTALS_DIFFER"
"""What `--fail-on` calls a total or a count in the file that is not that of its payments."""


def status_of_summary(summary: "Summary", fail_on: Collection[str] = ()) -> int:
    """The exit status that a summary stands for.

    A row that is not decided yet may still become what `fail_on` names, so an incomplete run says
    so first; unless it was asked to fail on just that.

    Args:
        summary: of the run.
        fail_on: outcomes, codes of warnings, or `ANY_WARNING`.
    """
    from schemas.outcomes import Outcome

    there = {total.outcome.value for total in summary.outcomes if total.row_count}
    there |= {count.code.value for count in summary.warning_codes}
    there |= {TOTALS_DIFFER} if summary.input.differences else set()
    there |= {ANY_WARNING} if summary.warning_codes or summary.input.differences else set()
    found = there.intersection(fail_on)
    if found & {Outcome.DEFERRED, Outcome.UNANSWERED}:
        return FAILED_ON
    if not summary.complete:
        return ProtocolError.exit_code if summary.given_up else IncompleteError.exit_code
    return FAILED_ON if found else 0


def first_of(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one failure to report, where many tasks failed at once.

    A mistake of our own goes before any other error.
    """
    leaves = list(_leaves(failures))
    return next((leaf for leaf in leaves if not isinstance(leaf, PrecheckError)), leaves[0])


def _leaves(failures: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for failure in failures.exceptions:
        if isinstance(failure, BaseExceptionGroup):
            yield from _leaves(failure)
        else:
            yield failure
