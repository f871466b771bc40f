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
    └── StoppedError      130   a signal asked to stop (143 for SIGTERM, and so on); run again to go on

A bad row is not an error: it is data, and travels as a reject. Our own bugs are `AssertionError` or other
Python errors; they are caught in one place, at the end of the command or of its work on one file.
"""

import signal
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from pipeline.wording import ENGLISH, Sentence, SurfaceKind, words

if TYPE_CHECKING:
    from schemas.summary import Summary


class PrecheckError(Exception):
    """An error that ends the run with an exit status; `str()` is English, `sentences` are for surfaces."""

    exit_code: int

    def __init__(self, reason: Sentence, *, advice: Sentence | Sequence[Sentence] = ()) -> None:
        """Take the reason, and the advice: one remedy or several."""
        self.reason = reason
        self.advice = (advice,) if isinstance(advice, Sentence) else tuple(advice)
        super().__init__(reason)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the error with all attributes, whatever its constructor takes."""
        return _made_again, (type(self), vars(self))

    def __str__(self) -> str:
        return self.sentence()

    @property
    def messages(self) -> tuple[Sentence, ...]:
        """The problem and its remedy: one sentence, or one for each of several mistakes."""
        if not self.advice:
            return (self.reason,)
        return (Sentence("advice.reason_and_step", reason=self.reason, step=reduce(_either, self.advice)),)

    def sentences(self, surface: SurfaceKind = SurfaceKind.ANY, language: str = ENGLISH) -> tuple[str, ...]:
        """The messages in words, one line each."""
        return tuple(words(message, surface, language) for message in self.messages)

    def sentence(self, surface: SurfaceKind = SurfaceKind.ANY, language: str = ENGLISH) -> str:
        """The messages in words, in one line."""
        return "; ".join(self.sentences(surface, language))


def _made_again(kind: type[PrecheckError], held: dict[str, object]) -> PrecheckError:
    error = kind.__new__(kind)
    vars(error).update(held)
    return error


def _either(one: Sentence, other: Sentence) -> Sentence:
    return Sentence("advice.either", one=one, other=other)


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
    """Another process holds the chunk of this question now; nothing was written."""

    def __init__(self) -> None:
        super().__init__(Sentence("errors.lease_lost"))


class CapSpentError(IncompleteError):
    """The daily cap has no request left for this question; nothing was written, and it must not be sent."""

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
        """Take a sentence for each mistake."""
        super().__init__(mistakes[0])
        self._mistakes = tuple(mistakes)

    @property
    def messages(self) -> tuple[Sentence, ...]:
        """A sentence about each mistake."""
        return self._mistakes


class WrongValueError(ValueError):
    """A value of the configuration is wrong; `ConfigurationFileError` adds its place to the sentence."""

    def __init__(self, message: Sentence, *below: str) -> None:
        """Take problem and remedy, and the keys that lead to the value below the validated section."""
        super().__init__(message)
        self.message, self.below = message, below


class TlsError(ConfigurationError):
    """No TLS connection can be made that keeps the rules of the API reference."""


class StoppedError(PrecheckError):
    """The user stopped the run; the same command resumes it."""

    def __init__(self, reason: Sentence, exit_code: int) -> None:
        super().__init__(reason)
        self.exit_code = exit_code


def stopped_by(number: int) -> Sentence:
    """The sentence about a run that a signal stopped.

    >>> str(stopped_by(2))
    'stopped by Ctrl-C; answers so far are kept: run the same command again to continue'
    """
    return Sentence(
        "errors.stopped_by", name="Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
    )


CONCERN_ONE_FILE = (InputError, OtherRunError, OutputError, LockedError)
"""Errors that concern one file only: the next file can still be checked."""

_LEAST_TO_MOST_SERIOUS = (0, 1, 75, 2, 65, 73, 74, 76, 77, 78, 70)


def most_serious(exit_codes: Iterable[int]) -> int:
    """The most serious of several exit statuses.

    An error that a person must fix outranks one that running the command again fixes, which outranks a
    finding of `--fail-on`.

    >>> most_serious([0, 75, 65, 1])
    65
    """
    return max(exit_codes, key=_LEAST_TO_MOST_SERIOUS.index)


FAILED_ON = 1
"""The exit status if a row has an outcome or a warning named by --fail-on."""
ANY_WARNING = "warning"
"""In `--fail-on`: any warning."""
TOTALS_DIFFER = "TOTALS_DIFFER"
"""In `--fail-on`: a total or count in the file that differs from its payments."""


def status_of_summary(summary: "Summary", fail_on: Collection[str] = ()) -> int:
    """Exit status of a summary; an incomplete run reports that first, unless `fail_on` names it."""
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
    """The one failure to report if many tasks failed at once; our own bugs come first."""
    leaves = list(_leaves(failures))
    return next((leaf for leaf in leaves if not isinstance(leaf, PrecheckError)), leaves[0])


def _leaves(failures: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for failure in failures.exceptions:
        if isinstance(failure, BaseExceptionGroup):
            yield from _leaves(failure)
        else:
            yield failure
