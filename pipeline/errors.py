"""The errors that can end a run, as a tree. Each is one sentence: where, what, what to do.

    PrecheckError
    ├── UsageError          2   the arguments of the command do not fit together
    │   └── OtherRunError       the folder holds another run
    ├── InputError         65   the input file cannot be used
    ├── OutputError        73   an output cannot be created
    ├── MistakeError       70   an unexpected error of this program
    ├── DiskError          74   a disk is full or an I/O operation failed
    ├── IncompleteError    75   not everything was decided; run again to continue
    │   ├── LockedError         another run is working on the same folder
    │   ├── LeaseLostError      another process has the question now; ends this question only
    │   └── CapSpentError       the daily cap is used up; ends this question for today
    ├── ProtocolError      76   the server broke the protocol repeatedly
    ├── CredentialsError   77   credentials or certificate were refused
    ├── ConfigurationError 78   the configuration cannot be used
    │   ├── ConfigurationFileError   its file has mistakes, one line for each
    │   └── TlsError            no trusted TLS connection can be made
    └── StoppedError      130   stopped by a signal (143 for SIGTERM, and so on); run again to continue

A bad row is not an error but data: a reject. Our own bugs are `AssertionError` or other Python errors; they
are caught in one place, at the end of the command or of its work on one file.
"""

import signal
from collections.abc import Collection, Iterable, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from pipeline.wording import ENGLISH, Sentence, SurfaceKind, words

if TYPE_CHECKING:
    from schemas.summary import Summary


class PrecheckError(Exception):
    """An error that ends the run with an exit status; `str()` returns English, `sentences` any language."""

    exit_code: int

    def __init__(self, reason: Sentence, *, advice: Sentence | Sequence[Sentence] = ()) -> None:
        self.reason = reason
        self.advice = (advice,) if isinstance(advice, Sentence) else tuple(advice)
        super().__init__(reason)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the error with all attributes, independently of its constructor's arguments."""
        return type(self).__new__, (type(self),), vars(self)

    def __str__(self) -> str:
        return self.sentence()

    @property
    def messages(self) -> tuple[Sentence, ...]:
        """The problem and its remedy: one sentence, or one for each mistake."""
        if not self.advice:
            return (self.reason,)
        step = reduce(lambda one, other: Sentence("advice.either", one=one, other=other), self.advice)
        return (Sentence("advice.reason_and_step", reason=self.reason, step=step),)

    def sentences(self, surface: SurfaceKind = SurfaceKind.ANY, language: str = ENGLISH) -> tuple[str, ...]:
        """Return the messages in words, one line each."""
        return tuple(words(message, surface, language) for message in self.messages)

    def sentence(self, surface: SurfaceKind = SurfaceKind.ANY, language: str = ENGLISH) -> str:
        """Return the messages in words, in one line."""
        return "; ".join(self.sentences(surface, language))


class UsageError(PrecheckError):
    """The command's arguments are invalid."""

    exit_code = 2


class OtherRunError(UsageError):
    """The folder holds a run of another input, profile or environment."""


class InputError(PrecheckError):
    """The input file cannot be used."""

    exit_code = 65


class OutputError(PrecheckError):
    """An output cannot be created."""

    exit_code = 73


class MistakeError(PrecheckError):
    """An unexpected error of this program, to be reported; answers are kept."""

    exit_code = 70


class DiskError(PrecheckError):
    """A disk is full, or an I/O operation failed."""

    exit_code = 74


class IncompleteError(PrecheckError):
    """The run stopped before every row was decided; the same command resumes it."""

    exit_code = 75


class LockedError(IncompleteError):
    """Another run is working on the same folder."""


class LeaseLostError(IncompleteError):
    """Another process now holds this question's chunk; nothing was written."""

    def __init__(self) -> None:
        super().__init__(Sentence("errors.lease_lost"))


class CapSpentError(IncompleteError):
    """The daily cap has no request left; the question must not be sent, and nothing was written."""

    def __init__(self) -> None:
        super().__init__(Sentence("errors.cap_spent"))


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

    def __init__(self, mistakes: Sequence[Sentence]) -> None:
        super().__init__(mistakes[0])
        self._mistakes = tuple(mistakes)

    @property
    def messages(self) -> tuple[Sentence, ...]:
        """One sentence per mistake."""
        return self._mistakes


class WrongValueError(ValueError):
    """A value of the configuration is wrong; `ConfigurationFileError` adds its position to the sentence."""

    def __init__(self, message: Sentence, *below: str) -> None:
        """Take a sentence, and the keys that lead from the validated section to the value."""
        super().__init__(message)
        self.message, self.below = message, below


class TlsError(ConfigurationError):
    """No TLS connection is possible under the rules of the API reference."""


class StoppedError(PrecheckError):
    """The user stopped the run; the same command resumes it."""

    def __init__(self, reason: Sentence, exit_code: int) -> None:
        super().__init__(reason)
        self.exit_code = exit_code


def stopped_by(number: int) -> Sentence:
    """Return the sentence about a run that a signal stopped.

    >>> str(stopped_by(2))
    'stopped by Ctrl-C; answers so far are kept: run the same command again to continue'
    """
    return Sentence(
        "errors.stopped_by", name="Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
    )


CONCERN_ONE_FILE = (InputError, OtherRunError, OutputError, LockedError)
"""Errors that concern only one file; the next file can still be checked."""

_LEAST_TO_MOST_SERIOUS = (0, 1, 75, 2, 65, 73, 74, 76, 77, 78, 70)


def most_serious(exit_codes: Iterable[int]) -> int:
    """Return the most serious exit status: a person's task outranks another run's, and that a `--fail-on`.

    >>> most_serious([0, 75, 65, 1])
    65
    """
    return max(exit_codes, key=_LEAST_TO_MOST_SERIOUS.index)


FAILED_ON = 1  # exit status if a row has an outcome or a warning that --fail-on names
ANY_WARNING = "warning"  # stands for any warning in `--fail-on`
TOTALS_DIFFER = "TOTALS_DIFFER"  # stands for a total or count other than the payments' in `--fail-on`


def status_of_summary(summary: "Summary", fail_on: Collection[str] = ()) -> int:
    """Return the exit status of a summary; incomplete runs have their own, unless `fail_on` names it."""
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
    """Return the failure to report if many tasks failed at once; our own bugs come first."""
    bugs = failures.subgroup(lambda failure: not isinstance(failure, (PrecheckError, BaseExceptionGroup)))
    first: BaseException = bugs or failures
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return first
