"""How large the house is: files, code lines and statements of every package, and what imports what.

Code lines are the lines on which code stands, docstrings, comments and blank lines apart; so nobody
saves lines by leaving out what explains them. ``make house`` prints the table; `test_tree` holds
the budget.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "rankblend"
# What is true today; the house is meant to come down to 260 files and 27,500 code lines.
MOST_FILES = 266
MOST_CODE_LINES = 32_500
MOST_IN_A_FILE = 400

_NO_CODE = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}
_WITH_DOCSTRING = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Size(NamedTuple):
    """Of one file, or of several together."""

    files: int
    code_lines: int
    statements: int

    def __add__(self, other: Size) -> Size:  # type: ignore[override]
        return Size(*(mine + its for mine, its in zip(self, other, strict=True)))


def size_of(text: str) -> Size:
    """The size of one file with this text."""
    tree = ast.parse(text)
    docstrings = [
        node.body[0]
        for node in ast.walk(tree)
        if isinstance(node, _WITH_DOCSTRING) and ast.get_docstring(node, clean=False) is not None
    ]
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for docstring in docstrings:
        lines.difference_update(range(docstring.lineno, (docstring.end_lineno or 0) + 1))
    statements = sum(isinstance(node, ast.stmt) for node in ast.walk(tree))
    return Size(1, len(lines), statements - len(docstrings))


def sizes() -> dict[Path, Size]:
    """The size of every source file."""
    return {
        path: size_of(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))
    }


def name_of(path: Path) -> str:
    """The module in a source file: ``rankblend.stores`` for ``stores/__init__.py``."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path, modules: set[str]) -> Iterator[str]:
    """The modules of the house that a file imports, late or early, but for annotations alone."""
    for node in _run(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module in modules:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name for name in inner if name in modules)
            if not all(name in modules for name in inner):
                yield node.module


def _run(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes below but those under ``if TYPE_CHECKING``."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and getattr(child.test, "id", None) == "TYPE_CHECKING":
            continue
        yield child
        yield from _run(child)


def main() -> None:
    """Print the table."""
    packages: dict[str, Size] = {}
    nothing = Size(0, 0, 0)
    for path, size in sizes().items():
        package = path.parent.relative_to(SOURCE).as_posix()
        packages[package] = packages.get(package, nothing) + size
    rows = [*packages.items(), ("all", sum(packages.values(), nothing))]
    print(f"{'package':26} {'files':>6} {'code lines':>11} {'statements':>11}")
    for name, size in rows:
        print(f"{name:26} {size.files:6,} {size.code_lines:11,} {size.statements:11,}")
    print(f"{'at most':26} {MOST_FILES:6,} {MOST_CODE_LINES:11,}")


if __name__ == "__main__":
    sys.exit(main())
