"""The examples in the docstrings of the package."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import rankblend


def _examples() -> list[doctest.DocTest]:
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = []
    for module in pkgutil.walk_packages(rankblend.__path__, "rankblend."):
        # Without examples of what a module only imports: those are found at home.
        found += finder.find(importlib.import_module(module.name))
    found += finder.find(rankblend)
    return [example for example in found if example.examples]


EXAMPLES = _examples()


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.name for example in EXAMPLES])
def test_docstring_when_its_example_runs_then_it_says_what_it_shows(
    example: doctest.DocTest,
) -> None:
    said: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    failed, _ = runner.run(example, out=said.append)
    assert not failed, "".join(said)


def test_docstrings_when_counted_then_the_main_ones_have_an_example() -> None:
    names = {example.name for example in EXAMPLES}
    assert {
        "rankblend",
        "rankblend.recall._memory.Memory",
        "rankblend.relevance._scope.Scope",
        "rankblend.relevance._signals.RelevanceSignals",
        "rankblend.stores._signal_store.SignalStore",
    } <= names
