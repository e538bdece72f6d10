"""Run a kit without pytest's command line, e.g. to report what a store can and cannot do."""

from __future__ import annotations

import pytest
from attrs import frozen

from rankblend.errors import UnknownNameError
from rankblend.testing.guard import Guarded, standard_tests

__all__ = ["Outcome", "run_conformance"]


@frozen
class Outcome:
    """How one test of a kit went.

    Attributes:
        test: Its name.
        status: ``passed``, ``failed``, ``skipped`` or ``xfailed``; ``xpassed`` for a test that is
            listed in xfails and passes.
        detail: Why it failed or was skipped.
    """

    test: str
    status: str
    detail: str = ""


def run_conformance(kit: type[Guarded], *, only: str | None = None) -> dict[str, Outcome]:
    """Run the standard tests of a kit, each on a new instance.

    Args:
        kit: Your subclass of a kit.
        only: One test; None for all.

    Returns:
        Outcomes by test, in the order of the tests.

    Raises:
        UnknownNameError: There is no test of that name.
    """
    tests = standard_tests(kit)
    if only is not None and only not in tests:
        raise UnknownNameError("standard test", only, tests)
    return {test: _run(kit, test) for test in (tests if only is None else (only,))}


def _run(kit: type[Guarded], test: str) -> Outcome:
    expected = kit.xfails.get(test)
    try:
        getattr(kit(), test)()
    except pytest.skip.Exception as skipped:
        return Outcome(test, "skipped", str(skipped))
    except (Exception, pytest.fail.Exception) as error:
        status = "failed" if expected is None else "xfailed"
        return Outcome(test, status, f"{type(error).__name__}: {error}")
    return Outcome(test, "passed" if expected is None else "xpassed", expected or "")
