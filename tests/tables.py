"""Long tables, each in one test: most cases take less time than pytest takes for a test of its own."""

from functools import wraps
from inspect import Parameter, signature

import pytest


def for_each(names, cases, *, parts=1):
    """As `pytest.mark.parametrize`, but in one test, which tells of all cases that fail.

    Not where a case changes what a fixture gave. One part of a very long table is tried by day, the others by
    night.
    """
    tuples = [(case,) for case in cases] if isinstance(names, str) else cases
    names = [names] if isinstance(names, str) else names
    cases = [dict(zip(names, values, strict=True)) for values in tuples]
    assert cases, "a test of nothing"

    def decorate(test):
        @wraps(test)
        def of_all(part=0, **fixtures):
            failures, tried = [], cases[part::parts]
            for case in tried:
                try:
                    test(**fixtures, **case)
                except (Exception, BaseExceptionGroup, pytest.fail.Exception) as failure:  # noqa: BLE001, the others are tried too
                    failure.add_note(f"with {case}")
                    failures.append(failure)
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(tried)}", failures)

        whole = signature(test)
        parameters = [each for each in whole.parameters.values() if each.name not in cases[0]]
        if parts > 1:
            parameters.append(Parameter("part", Parameter.KEYWORD_ONLY))
            by_night = (pytest.param(part, marks=pytest.mark.nightly) for part in range(1, parts))
            pytest.mark.parametrize("part", [0, *by_night])(of_all)
        of_all.__signature__ = whole.replace(parameters=parameters)
        return of_all

    return decorate
