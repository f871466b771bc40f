"""Decide whether a server turns away all questions or single ones.

A status that is neither an answer nor trouble, such as 401, 403, 404 or a redirect, may mean that our
credentials or our address are wrong, and so every question would meet it; or that a filter before the server
dislikes one name. The reply does not show which. So questions are asked one at a time until one is answered,
and where five in a row are turned away alike, it is all of them: a run that never had an answer ends, and one
that had leaves the rest to a later run. Any other question that is turned away has no answer in this run, and
does not hold up the others. A status about what a request says is more often a filter's: once this run has
had an answer, it takes a hundred of them in a row.

A question that an earlier run had turned away as well is no evidence about the others.
"""

from collections import Counter, deque

from pipeline.errors import PrecheckError

ALIKE_MAX = 5
"""Questions asked one at a time and turned away alike, after which no other is sent."""
TURNED_AWAY_IN_A_ROW_MAX = 20
"""Questions turned away without an answer between them, after which the others are asked one at a time; and
one at a time, after which no other is sent, however they were turned away."""
ABOUT_WHAT_IT_SAYS = frozenset({"HTTP_400", "HTTP_413", "HTTP_415", "HTTP_422"})
"""Codes of a gateway before the server that objects to a request's content."""
ABOUT_WHAT_IT_SAYS_MAX = 100
"""Such questions in a row, after an answer in this run, that end the asking: rows of one kind stand side by
side."""


class Admission:
    """True if one API's server admits us."""

    def __init__(self, *, has_answered: bool) -> None:
        """Begin a run; it may have answered a question of this file before, under the same settings."""
        self.has_answered = has_answered
        self._has_answered_here = False
        self._in_a_row = 0
        self._alike: deque[str] = deque(maxlen=ALIKE_MAX)
        self._turned_away: Counter[str] = Counter()
        self._last: PrecheckError | None = None
        self._last_code = ""

    def answered(self) -> None:
        """Note an answered question."""
        self.has_answered = self._has_answered_here = True
        self.let_in()

    def let_in(self) -> None:
        """Note a processed question, whatever the result."""
        self._in_a_row = 0
        self._alike.clear()

    def doubted(self, code: str, error: PrecheckError) -> PrecheckError | None:
        """It refused a question that is asked once more, by another request's reply; as `is_over`."""
        self._in_a_row += 1
        self._last, self._last_code = error, code
        return self.is_over

    def turned_away(self, code: str, error: PrecheckError, *, alone: bool, again: bool) -> bool:
        """It refused access to a question.

        Args:
            code: of the refusal.
            error: what ends the run where all questions are refused so.
            alone: whether the question was sent one at a time.
            again: whether it turned the same question away in an earlier run.

        Returns:
            Whether the others must be asked one at a time from now on.
        """
        self._turned_away[code] += 1
        self._last, self._last_code = error, code
        if again and self.has_answered:
            return False
        self._in_a_row += 1
        if alone:
            self._alike.append(code)
        elif self._in_a_row >= TURNED_AWAY_IN_A_ROW_MAX:
            self.let_in()
            return True
        return False

    @property
    def is_over(self) -> PrecheckError | None:
        """Why to send no other question; None if others may be admitted."""
        if self._has_answered_here and self._last_code in ABOUT_WHAT_IT_SAYS:
            over = self._in_a_row >= ABOUT_WHAT_IT_SAYS_MAX - TURNED_AWAY_IN_A_ROW_MAX
        else:
            are_alike = len(self._alike) == ALIKE_MAX and len(set(self._alike)) == 1
            over = are_alike or self._in_a_row >= TURNED_AWAY_IN_A_ROW_MAX
        return self._last if over else None

    def all_turned_away(self, asked_count: int | None) -> PrecheckError | None:
        """The error for the whole run if every question was refused alike; else None."""
        is_all = [*self._turned_away.values()] == [asked_count]
        return self._last if is_all and not self.has_answered else None
