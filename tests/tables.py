"""Long tables, each in one test: most cases take less time than pytest takes for a test of its own."""

from functools import wraps
from inspect import Parameter, signature

import pytest


def for_each(names, cases, *, parts=1):
    """As `pytest.mark.parametrize`, but in one test, which tells of all cases that fail.

    Not where a case changes what a fixture gave. A function is called for its cases when a test runs, as each
    process that shares the tests would parse a long table. One part of a very long table is tried by day, the
    others by night.
    """
    columns = [names] if isinstance(names, str) else names

    def tried_in(part):
        rows = cases() if callable(cases) and not isinstance(cases, type) else cases
        some = [dict(zip(columns, [row] if isinstance(names, str) else row, strict=True)) for row in rows]
        assert some, "a test of nothing"
        return some[part::parts]

    def decorate(test):
        @wraps(test)
        def of_all(part=0, **fixtures):
            failures, tried = [], tried_in(part)
            for case in tried:
                try:
                    test(**fixtures, **case)
                except (Exception, BaseExceptionGroup, pytest.fail.Exception) as failure:  # noqa: BLE001, the others are tried too
                    failure.add_note(f"with {case}")
                    failures.append(failure)
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(tried)}", failures)

        whole = signature(test)
        parameters = [each for each in whole.parameters.values() if each.name not in columns]
        if parts > 1:
            parameters.append(Parameter("part", Parameter.KEYWORD_ONLY))
            by_night = (pytest.param(part, marks=pytest.mark.nightly) for part in range(1, parts))
            pytest.mark.parametrize("part", [0, *by_night])(of_all)
        of_all.__signature__ = whole.replace(parameters=parameters)
        return of_all

    return decorate
