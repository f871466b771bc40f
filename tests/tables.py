"""Long tables, each in one test: most cases take less time than pytest takes for a test of its own."""

from functools import wraps
from inspect import signature

import pytest


def for_each(names, cases):
    """As `pytest.mark.parametrize`, but in one test, which tells of all cases that fail.

    Not where a case changes what a fixture gave.
    """
    tuples = [(case,) for case in cases] if isinstance(names, str) else cases
    names = [names] if isinstance(names, str) else names
    cases = [dict(zip(names, values, strict=True)) for values in tuples]
    assert cases, "a test of nothing"

    def decorate(test):
        @wraps(test)
        def of_all(**fixtures):
            failures = []
            for case in cases:
                try:
                    test(**fixtures, **case)
                except (Exception, BaseExceptionGroup, pytest.fail.Exception) as failure:  # noqa: BLE001, the others are tried too
                    failure.add_note(f"with {case}")
                    failures.append(failure)
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(cases)}", failures)

        whole = signature(test)
        parameters = [each for each in whole.parameters.values() if each.name not in cases[0]]
        of_all.__signature__ = whole.replace(parameters=parameters)
        return of_all

    return decorate
