"""docs/guarantees.md: every test it names exists, and every problem a test names is on it."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and "---" not in line]
_TEST = re.compile(r"`(tests/[\w/]+\.py)::([\w:]+)`")
_PROBLEM = re.compile(r"\b[\w.-]+/[\w.-]+#\d+")


@cache
def defined(path: Path) -> set[str]:
    """The tests of a file, those of a class as ``Class::test``."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{i.name}" for i in node.body if isinstance(i, ast.FunctionDef)}
    return found


def test_guarantees_when_a_test_is_named_then_it_exists() -> None:
    named = _TEST.findall(PAGE)
    lost = [
        f"{path}::{name}"
        for path, name in named
        if not (ROOT / path).is_file() or name not in defined(ROOT / path)
    ]
    assert lost == []
    assert len(named) > 80


def test_guarantees_when_a_problem_is_listed_then_a_test_or_a_reason_stands_beside_it() -> None:
    bare = [row for row in ROWS if not _TEST.search(row) and "does not apply, because " not in row]
    headings = [row for row in bare if row == "| elsewhere | what goes wrong | here |"]
    assert bare == headings
    assert len(headings) == len(re.findall(r"^## ", PAGE, re.MULTILINE))


def test_guarantees_when_a_regression_test_names_a_problem_then_it_is_listed_with_that_test() -> (
    None
):
    for path in sorted((ROOT / "tests" / "regressions").glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef) or not node.name.startswith("test_"):
                continue
            rows = [row for row in ROWS if f"::{node.name}`" in row]
            assert rows, f"{path.name}::{node.name} is not on the page"
            for problem in _PROBLEM.findall(ast.get_docstring(node) or ""):
                assert any(problem in row for row in rows), f"{node.name}: {problem}"
