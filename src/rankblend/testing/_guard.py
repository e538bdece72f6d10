"""Standard tests are not overridden; what is known to fail is listed, with a reason; a kit without pytest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import pytest
from attrs import frozen

from rankblend.errors import InvalidArgumentError, UnknownNameError

_OURS = "rankblend.testing."


class Guarded:
    """Base of every kit: a subclass fills in the hooks and adds tests, and changes nothing else.

    Attributes:
        hooks: What a subclass may set.
        xfails: Standard test → why it fails for this store. The test still runs, and passing is
            reported as a failure, so that the list stays true.
    """

    hooks: ClassVar[frozenset[str]] = frozenset({"xfails"})
    xfails: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls, **arguments: object) -> None:
        super().__init_subclass__(**arguments)
        if cls.__module__.startswith(_OURS):
            return
        ours = {name for base in cls.__mro__ if _is_ours(base) for name in vars(base)}
        final = sorted(
            name
            for name in vars(cls)
            if name in ours and name not in cls.hooks and not name.startswith("__")
        )
        tests = standard_tests(cls)
        problems = [
            f"{cls.__name__}.{name} is part of the kit; list a test that must fail in xfails, "
            f"the hooks are {', '.join(sorted(cls.hooks))}"
            for name in final
        ]
        problems += [
            f"{cls.__name__}.xfails: there is no standard test {name!r}"
            for name in cls.xfails
            if name not in tests
        ]
        problems += [
            f"{cls.__name__}.xfails[{name!r}]: expected a reason"
            for name, reason in cls.xfails.items()
            if not str(reason).strip()
        ]
        if problems:
            raise InvalidArgumentError(problems)

    @pytest.fixture(autouse=True)
    def _expected_failure(self, request: pytest.FixtureRequest) -> None:
        """Mark what is listed in xfails; strictly, whatever the project's default is."""
        reason = self.xfails.get(request.node.originalname)
        if reason is not None:
            request.applymarker(pytest.mark.xfail(reason=reason, strict=True))


def standard_tests(kit: type) -> tuple[str, ...]:
    """The names of the tests a kit brings, in the order they are written."""
    names: dict[str, None] = {}
    for base in kit.__mro__:
        if _is_ours(base):
            names.update(dict.fromkeys(name for name in vars(base) if name.startswith("test_")))
    return tuple(names)


def _is_ours(base: type) -> bool:
    return base.__module__.startswith(_OURS)


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
