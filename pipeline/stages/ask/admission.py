"""Decide whether a server refuses all questions or single ones.

A status such as 401, 403, 404 or a redirect may mean wrong credentials or a wrong address, or that a filter
in front of the server rejects one name. So questions are asked one at a time until one is answered. After
five equal refusals in a row, a run without any answer ends, and one with answers leaves the rest to a later
run. A status about a request's content is more often a filter's: once this run has an answer, it takes a
hundred in a row. A question that was also refused in an earlier run says nothing about the others.
"""

from collections import Counter, deque

from pipeline.errors import PrecheckError

ALIKE_MAX = 5  # after this many equal refusals of questions sent one at a time, no other is sent
TURNED_AWAY_IN_A_ROW_MAX = 20
"""After this many refusals without an answer between them, questions are sent one at a time; after as many
more refusals of any kind, no other is sent.
"""
ABOUT_WHAT_IT_SAYS = frozenset({"HTTP_400", "HTTP_413", "HTTP_415", "HTTP_422"})
"""Codes of a gateway that rejects a request's content before the server sees it."""
ABOUT_WHAT_IT_SAYS_MAX = 100  # in a row that end a run with an answer; similar rows may be adjacent


class Admission:
    """Whether one API's server accepts our requests."""

    def __init__(self, *, has_answered: bool) -> None:
        """Begin a run; the server may have answered a question of this file before."""
        self.has_answered = has_answered
        self._has_answered_here = False
        self._in_a_row = 0
        self._alike: deque[str] = deque(maxlen=ALIKE_MAX)
        self._turned_away: Counter[str] = Counter()
        self._last: PrecheckError | None = None
        self._last_code = ""

    @property
    def has_just_answered(self) -> bool:
        """True if the server answered in this run and has refused nothing since."""
        return self._has_answered_here and self._in_a_row == 0

    def answered(self) -> None:
        """Record an answered question."""
        self.has_answered = self._has_answered_here = True
        self.let_in()

    def let_in(self) -> None:
        """Record a processed question, answered or not."""
        self._in_a_row = 0
        self._alike.clear()

    def doubted(self, code: str, error: PrecheckError) -> PrecheckError | None:
        """Record a refusal meant for another request; the question is asked again. Returns like `is_over`."""
        self._in_a_row += 1
        self._last, self._last_code = error, code
        return self.is_over

    def turned_away(self, code: str, error: PrecheckError, *, alone: bool, again: bool) -> bool:
        """Record a refused question; return true if the others must be sent one at a time from now on.

        `error` is for the run if all are refused; `again` is true if this was refused in an earlier run too.
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
        """Return why no other question may be sent; None if others may."""
        if self._has_answered_here and self._last_code in ABOUT_WHAT_IT_SAYS:
            over = self._in_a_row >= ABOUT_WHAT_IT_SAYS_MAX - TURNED_AWAY_IN_A_ROW_MAX
        else:
            are_alike = len(self._alike) == ALIKE_MAX and len(set(self._alike)) == 1
            over = are_alike or self._in_a_row >= TURNED_AWAY_IN_A_ROW_MAX
        return self._last if over else None

    def all_turned_away(self, asked_count: int | None) -> PrecheckError | None:
        """Return the error for the whole run if every question was refused alike; else None."""
        return None if self.has_answered or [*self._turned_away.values()] != [asked_count] else self._last
